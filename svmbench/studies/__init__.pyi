"""The functions of studies, by the modules that define them: the only list of these names."""

from .doctor import Finding as Finding
from .doctor import examine_machine as examine_machine
from .judging import ages_of as ages_of
from .judging import make_site as make_site
from .judging import verdicts as verdicts
from .listing import card_of as card_of
from .paper_check import paper_problems as paper_problems
from .racing import RaceResult as RaceResult
from .racing import RaceSettings as RaceSettings
from .racing import race as race
from .rechecking import Draw as Draw
from .rechecking import RecheckOutcome as RecheckOutcome
from .rechecking import draw_kept as draw_kept
from .rechecking import recheck as recheck
from .refreshing import OldRun as OldRun
from .refreshing import old_runs as old_runs
from .refreshing import refresh as refresh
from .reproducing import reproduce as reproduce
from .reproducing import requests_of as requests_of
from .sharing import add_pack as add_pack
from .sharing import write_archive as write_archive
from .trying import TryResult as TryResult
from .trying import TrySettings as TrySettings
from .trying import try_table as try_table
from .versions import compare_environments as compare_environments
from .versions import compare_versions as compare_versions
