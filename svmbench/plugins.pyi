"""Names that plug-ins import, by the modules that define them: the only list of these names."""

from .base.compiled import compiled as compiled
from .core.contract.base import BinaryClassifier as BinaryClassifier
from .core.contract.base import TrainingData as TrainingData
from .core.contract.linear_base import LinearClassifier as LinearClassifier
from .core.contract.linear_base import LinearSolution as LinearSolution
from .core.contract.problems import LossProblem as LossProblem
from .core.contract.problems import Offset as Offset
from .core.contract.registry import declare as declare
from .core.contract.without_objective import (
    LinearClassifierWithoutObjective as LinearClassifierWithoutObjective,
)
from .core.kernels.kernels import KernelSource as KernelSource
from .core.models.kernel_base import Expansion as Expansion
from .core.models.kernel_base import KernelClassifier as KernelClassifier
from .core.models.kernel_base import KernelSolution as KernelSolution
from .core.models.novelty_base import NoveltyDetector as NoveltyDetector
from .experiment.protocols import folds as folds
from .experiment.protocols import outcomes as outcomes
from .experiment.protocols.declare import protocol as protocol
from .experiment.protocols.folds import ALL_ROWS as ALL_ROWS
from .experiment.protocols.folds import ITSELF as ITSELF
from .experiment.protocols.folds import UNSCALED as UNSCALED
from .experiment.protocols.task import Outcome as Outcome
from .experiment.protocols.task import Task as Task
from .experiment.protocols.task import inputs_of as inputs_of
from .experiment.settings.blocks import Block as Block
from .experiment.settings.blocks import RaceBlock as RaceBlock
from .experiment.settings.blocks import TrainingBlock as TrainingBlock
from .experiment.settings.values import Folds as Folds
from .experiment.settings.values import Repeats as Repeats
from .report.output.formats import Format as Format
from .report.output.formats import declare_format as declare_format
from .report.plots.axes import COLOURS as COLOURS
from .report.plots.axes import log_ticks as log_ticks
from .report.plots.kinds import Kind as Kind
from .report.plots.kinds import declare_kind as declare_kind
from .report.plots.plot_data import Panel as Panel
from .report.plots.plot_data import PlotData as PlotData
from .report.tables.grids import TableGrid as TableGrid
from .report.tables.media import Medium as Medium
from .schema.scores.contract import Evaluation as Evaluation
from .schema.scores.contract import Undefined as Undefined
from .schema.scores.contract import compute_scores as compute_scores
from .schema.scores.contract import score as score
