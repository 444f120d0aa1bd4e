"""Rows of the lists (solvers, data sets, configs, papers, …), and cards of single entries."""

from __future__ import annotations

import inspect
import re
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from svmbench.base.paths import PACKAGE

if TYPE_CHECKING:
    from svmbench.data.frames import TableForm


def list_solvers() -> list[dict[str, Any]]:
    """Return one row for each solver, by name."""
    from svmbench.baselines.catalogue import solvers

    return [
        {
            "solver": name,
            "problem": d.problem or "-",
            "kernels": ", ".join(d.kernels),
            "sparse": "yes" if d.sparse else "no",
            "paper": d.paper or "baseline",
            "what": d.summary,
        }
        for name, d in solvers().items()
    ]


def list_datasets() -> list[dict[str, Any]]:
    """Return one row for each data set, in the registry's order."""
    from svmbench import data

    return data.list_datasets()


def list_configs() -> list[dict[str, Any]]:
    """Return one row for each config that ships with the package, by name."""
    from svmbench.experiment.config.loader import load_config, shipped_configs

    rows = []
    for path in shipped_configs():
        config = load_config(path)
        rows.append(
            {
                "config": path.stem,
                "paper": config.paper or "-",
                "profiles": ", ".join(config.profiles),
                "title": config.title,
            }
        )
    return rows


def list_papers() -> list[dict[str, Any]]:
    """Return one row for each paper, with the configs that re-run its tables and figures."""
    from svmbench.base.paper_folders import papers

    configs = list_configs()
    return [
        {
            "paper": key,
            "configs": ", ".join(c["config"] for c in configs if c["paper"] == key) or "-",
            "citation": paper.citation,
        }
        for key, paper in papers().items()
    ]


def list_plugins() -> list[dict[str, Any]]:
    """Return one row for each plug-in that an installed package names; none is imported."""
    from svmbench.base.plugin_names import installed_plugins

    return [
        {
            "name": name,
            "module": entry.module,
            "package": f"{entry.dist.name} {entry.dist.version}" if entry.dist else "-",
        }
        for name, entry in sorted(installed_plugins().items())
    ]


def list_scores() -> list[dict[str, Any]]:
    """Return a row for each score, also of plug-ins, in the order of declaration."""
    from svmbench.baselines.catalogue import load_plugins
    from svmbench.schema.scores import SCORES

    load_plugins()
    return [
        {
            "score": name,
            "metric": declared.metric,
            "unit": declared.unit or "-",
            "better": declared.better,
            "what": declared.caption,
        }
        for name, declared in SCORES.items()
    ]


def list_protocols() -> list[dict[str, Any]]:
    """Return a row for each protocol, also of plug-ins, by name."""
    from svmbench.experiment.protocols import protocols

    return [
        {
            "protocol": name,
            "one cell": declared.cell,
            "tasks": ", ".join(declared.tasks),
            "scalings": ", ".join(declared.scalings) or "-",
            "what": declared.caption,
        }
        for name, declared in protocols().items()
    ]


def list_plot_kinds() -> list[dict[str, Any]]:
    """Return a row for each kind of plot, also of plug-ins, by name."""
    from svmbench.baselines.catalogue import load_plugins
    from svmbench.schema.specs import PLOT_KINDS

    load_plugins()
    kinds = {name: PLOT_KINDS.named(name) for name in PLOT_KINDS.names()}
    return [
        {
            "kind": name,
            "x": kind.x,
            "y": kind.y,
            "what": _first_sentence(sys.modules[kind.draw.__module__].__doc__),
        }
        for name, kind in kinds.items()
    ]


def list_formats() -> list[dict[str, Any]]:
    """Return a row for each output format, also of plug-ins, by name."""
    from svmbench.baselines.catalogue import load_plugins
    from svmbench.report.output.formats import FORMATS

    load_plugins()
    forms = {name: FORMATS.named(name) for name in FORMATS.names()}
    return [
        {
            "format": name,
            "tables": form.ending,
            "plots": ", ".join(form.plots) or "-",
            "what": form.what,
        }
        for name, form in forms.items()
    ]


def _first_sentence(text: str | None) -> str:
    return " ".join((text or "").split()).partition(". ")[0].rstrip(".")


LISTS = {
    "solvers": list_solvers,
    "datasets": list_datasets,
    "configs": list_configs,
    "papers": list_papers,
    "protocols": list_protocols,
    "scores": list_scores,
    "plot-kinds": list_plot_kinds,
    "formats": list_formats,
    "plugins": list_plugins,
}


def card_of(name: str, *, trust: bool = False) -> dict[str, Any]:
    """Return the card of a solver, of a class at a dotted path, or of a data set.

    Parameters
    ----------
    name : str
    trust : bool, default=False
        Whether classes outside scikit-learn may be imported.

    Raises
    ------
    svmbench.base.errors.ConfigError
        If the class can't be used.
    svmbench.base.errors.UnknownNameError
        For an unknown name; the message suggests the most similar one.
    """
    from svmbench import data
    from svmbench.base.errors import ConfigError, UnknownNameError
    from svmbench.baselines.catalogue import solver, solver_class, solvers, why_not_loaded
    from svmbench.core.contract.declaration import PROMISES

    if reason := why_not_loaded(name, trust=trust):
        raise ConfigError(reason)
    declared = solvers().get(name)
    if declared is None:
        try:
            return data.dataset_card(name)
        except UnknownNameError as error:
            if "." in name:
                return _describe_class(name, trust)
            if package := needed_package(name):
                raise ConfigError(
                    f"{name} needs the package {package}, which is not installed:"
                    " pip install '.[peers]' in the checkout"
                ) from error
            known = [*solvers(), *data.names()]
            raise UnknownNameError("solver or data set", name, known) from error
    return {
        "solver": name,
        "what": declared.summary,
        **({"suits": declared.suits} if declared.suits else {}),
        **_line_of_code(name),
        "paper": declared.paper or "none: a baseline",
        "reference": declared.reference,
        "minimises": _minimised(declared.problem),
        "offset": str(solver(name).offset),
        "promises": PROMISES.get(declared.promise, "").replace("{}", declared.promised_by),
        "kernels": ", ".join(declared.kernels),
        "reads": ", ".join(declared.reads),
        "inputs": "dense, CSR" if declared.sparse else "dense",
        "task": declared.task,
        "parameters": [f"{key} = {value}" for key, value in solver(name).get_params().items()],
        "deviations": deviations(solver_class(name)),
    }


def table_card(
    name: str,
    label: str | None = None,
    text: str | None = None,
    impute: bool = False,
    form: TableForm | None = None,
) -> dict[str, Any] | None:
    """Return the card of a file or of a data set of OpenML; None for any other name.

    Parameters
    ----------
    name : str
        A file, or ``openml:NUMBER``.
    label, text, impute, form
        As for :func:`svmbench.studies.datasets.dataset_entry`.

    Raises
    ------
    svmbench.base.errors.ConfigError
        For options of tables if `name` is no table.
    """
    from svmbench import data
    from svmbench.base.known_names import dataset_names, solver_names
    from svmbench.base.paths import is_file
    from svmbench.studies.datasets import dataset_entry

    is_table = name.startswith("openml:") or (
        is_file(name) and name not in (*solver_names(), *dataset_names())
    )
    if not (is_table or label or text or impute or form):
        return None
    # Called only for its errors about options.
    dataset_entry(name, label, text, impute, form)
    return data.file_card(name, label, text, impute, form)


def _minimised(problem: str) -> str:
    from svmbench.core.contract.problems import PROBLEMS

    if not problem:
        return "no objective: it is compared by scores and times"
    return f"{problem}: {PROBLEMS[problem].formula}"


def _line_of_code(name: str) -> dict[str, str]:
    """Return a card's entry with the line of Python that fits a solver; empty for baselines."""
    import svmbench
    from svmbench.baselines.catalogue import solver, solver_class

    cls = solver_class(name)
    if getattr(svmbench, cls.__name__, None) is not cls:
        return {}
    return {"in Python": f"svmbench.{solver(name)!r}.fit(X, y)"}


def needed_package(name: str) -> str:
    """Return the package that an optional solver needs, or an empty text."""
    for source in PACKAGE.joinpath("baselines").glob("*.py"):
        text = source.read_text(encoding="utf-8")
        needed = re.search(r'^\w+_REQUIREMENT = "(\w+)"$', text, re.MULTILINE)
        if needed and f'name="{name}",' in text:
            return needed[1]
    return ""


def deviations(cls: type) -> list[str]:
    """Return the paragraphs under Deviations in the header of a solver's file.

    Parameters
    ----------
    cls : type
        The solver's class. Paragraphs under "Deviations of NAME" belong to the class with this
        name, apart from hyphens. A paragraph that begins with "See the modules" is replaced by
        the paragraphs of the modules that it names in backticks, each with its module's name; those
        under "What the print leaves open" are included. Without deviations the list is empty.
    """
    texts = []
    for paragraph in _paragraphs(cls.__module__, cls.__name__.lower()):
        if paragraph.startswith(_OF_PARTS):
            package = cls.__module__.rpartition(".")[0]
            for part in re.findall(r"``(\w+)``", paragraph):
                import_module(f"{package}.{part}")
                texts += [
                    f"``{part}``: {paragraph}" for paragraph in _paragraphs(f"{package}.{part}")
                ]
        else:
            texts.append(paragraph)
    return texts


#: A paragraph that begins so names modules whose deviations are also the solver's.
_OF_PARTS = "See the modules: "


def _paragraphs(module: str, solver: str = "") -> list[str]:
    """Return the paragraphs of a module on its deviations, or on those of one solver in it."""
    text = inspect.cleandoc(sys.modules[module].__doc__ or "")
    paragraphs: list[str] = []
    inside = False
    for line in text.splitlines():
        if line[:1].strip():
            what, _, whose = line.lower().replace("-", "").partition(" of ")
            inside = "deviations" in what and whose in ("", solver)
            inside |= not solver and line == "What the print leaves open"
        elif inside and line.strip():
            words = " ".join(line.split())
            if words.startswith("- ") or not paragraphs:
                paragraphs.append(words.removeprefix("- "))
            else:
                paragraphs[-1] += f" {words}"
    return paragraphs


def _describe_class(path: str, trust: bool) -> dict[str, Any]:
    """Return the card of a foreign class, with what this suite knows of it."""
    from svmbench.base.errors import ConfigError
    from svmbench.baselines.catalogue import solver, solver_class
    from svmbench.baselines.foreign import why_not_taken

    if reason := why_not_taken(path, trust=trust):
        raise ConfigError(f"no data set is called {path!r}, and as a class {reason}")
    declared = solver_class(path).declaration
    return {
        "solver": path,
        "what": declared.summary,
        "reference": declared.reference,
        "minimises": "not known: it is compared by scores and times, never by objective",
        "kernels": ", ".join(declared.kernels),
        "task": declared.task,
        "parameters": [f"{key} = {value}" for key, value in solver(path).get_params().items()],
    }
