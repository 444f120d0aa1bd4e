"""Print the size of the package and of its largest parts, and fail above the limits on style.

Run from the repository's root:

    python scripts/size.py                # the table; exit code 1 if a limit is exceeded
    python scripts/size.py --names        # the public names that several modules define, too
    python scripts/size.py --style        # project-specific words still used as names, too
    python scripts/size.py --docstrings   # docstrings that do not open with a plain sentence, too
    python scripts/size.py svmbench/report   # any other folder; the limits are not applied
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

FOLDERS = ("svmbench", "svmbench/core", "svmbench/core/csvc")

#: A function with this many arguments or more is counted as one with many arguments.
MANY_ARGUMENTS = 8

#: The first words of a docstring that is not a plain imperative sentence.
INDIRECT_OPENING = re.compile(
    r"(?:(?:Return|Yield|Say|Tell) )?(?:what|how|whether|which)\b", re.IGNORECASE
)

#: Words that only this project used, and the field's terms that replace them. These words may not
#: name a module, class, function, method, parameter, variable or attribute.
FIELD_TERMS = {
    "find_partner": "working-set selection",
    "move_and_find_top": "gradient update",
    "narrowing": "shrinking",
    "Found": "Result",
    "Ends": "StoppingCriteria",
    "rising": "up set",
    "falling": "low set",
    "top": "m(alpha)",
    "bottom": "M(alpha)",
    "row_store": "row_cache",
    "RowStore": "RowCache",
    "fetched_rows": "row_cache",
    "FetchedRows": "RowCache",
    "growing_matrix": "lazy_matrix",
    "GrowingMatrix": "LazyMatrix",
    "whole_matrix": "full_matrix",
    "WholeMatrix": "FullMatrix",
    "platt": "smo_common",
    "crew": "thread_pool",
    "Tally": "counter",
    "tally": "counter",
    "ledger": "training_set",
    "Ledger": "TrainingSet",
    "hull_steps": "mn_svm_loop",
    "together": "block_pivoting",
    "unit_box": "box_qp",
    "misfits": "validation_messages",
    "inert": "escape",
    "side_by_side": "parallel_map",
    "duel": "race",
    "say": "print_line",
    "tell": "print_line",
    "complain": "print_stderr",
    "hand_over": "write_output",
    "Duel": "Race",
    "misfit": "validation_message",
    "Errand": "Job",
    "errand": "job",
    "Campaign": "Batch",
    "campaign": "batch",
    "Prospect": "RunPlan",
    "prospect": "run_plan",
    "look_ahead": "plan_run",
    "carry_out": "execute_run",
    "conclude": "evaluate_objective",
    "aim": "objective_id",
    "clocked": "timed_call",
}
#: Words of ``FIELD_TERMS`` with an ordinary meaning, too: variables may have these names.
ORDINARY_WORDS = {"top", "bottom", "rising", "falling", "say", "tell", "together"}
#: The same for words that may not name a module; functions and parameters may have these names.
FIELD_TERMS_OF_MODULES = {
    "answers": "ipc",
    "asked": "requested_metrics",
    "box": "qp_problem",
    "copies": "clone",
    "drafts": "partial_parse",
    "driver": "solver",
    "inner": "qp_solvers",
    "labels": "target_type",
    "passes": "working-set selection, gradient update",
    "sequence": "path",
    "several": "ovo_model",
    "widths": "gamma_scale",
    "written": "export",
}


#: Names that every module of a folder defines because a caller looks the name up in a module that
#: it knows by its file's name alone. All definitions below the folder are one meaning.
CONTRACTS = {
    "KIND": "svmbench/report/plots/kinds",  # `schema/specs.py` reads it from a kind's module
    "register": "svmbench/cli",  # `cli/__init__.py` calls it in the module of a command
    "main": "svmbench",  # the entry point of each module that is run as a program
}


class Size(NamedTuple):
    """The counts of one folder; percentages are of docstrings, of names and of lines of code."""

    lines: int
    modules: int
    many_arguments: int
    colliding_names: float
    comments: float
    indirect_docstrings: float
    project_words: int


class Limit(NamedTuple):
    """The goal for one count of one folder, and the value that the folder has reached."""

    goal: float
    reached: float

    @property
    def allowed(self) -> float:
        """Return the largest value that passes."""
        return max(self.goal, self.reached)


#: Where `reached` is above the goal, it is the value of today: lower it with each change that
#: lowers the count, and never raise it. Lines and modules are printed, and have no limit: a new
#: solver is welcome.
LIMITS = {
    ("svmbench", "indirect_docstrings"): Limit(goal=2.0, reached=0.1),
    ("svmbench", "colliding_names"): Limit(goal=3.0, reached=0.3),
    ("svmbench", "project_words"): Limit(goal=0, reached=0),
    ("svmbench/core", "many_arguments"): Limit(goal=37, reached=29),
}

TITLES = {
    "lines": "lines",
    "modules": "modules",
    "many_arguments": f"functions with {MANY_ARGUMENTS} arguments or more",
    "colliding_names": "public names with several definitions, %",
    "comments": "comments per 100 lines of code",
    "indirect_docstrings": "docstrings that open with What, How, ..., %",
    "project_words": "names that the field has other terms for",
}


class Module(NamedTuple):
    """One module: its path, its text and its parsed statements."""

    path: Path
    text: str
    tree: ast.Module


def modules_in(folder: Path) -> list[Module]:
    """Return the modules of a folder and of the folders below it."""
    return [module_at(path) for path in sorted(folder.rglob("*.py"))]


@cache
def module_at(path: Path) -> Module:
    """Return the module of a file."""
    text = path.read_text(encoding="utf-8")
    return Module(path, text, ast.parse(text))


@cache
def nodes_of(tree: ast.Module) -> list[ast.AST]:
    """Return all nodes of a tree, which several counts look through."""
    return list(ast.walk(tree))


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function and method of a module, nested ones among them."""
    for node in nodes_of(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def n_arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of a function's named arguments, without ``self`` and ``cls``."""
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def public_names(tree: ast.Module) -> set[str]:
    """Return the classes, functions and constants that a module defines, without private ones."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {part.id for part in node.targets if isinstance(part, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return {name for name in found if not name.startswith("_")}


def defined_in(modules: list[Module]) -> dict[str, list[Path]]:
    """Return the modules that define each public name."""
    found: dict[str, list[Path]] = {}
    for module in modules:
        for name in public_names(module.tree):
            found.setdefault(name, []).append(module.path)
    return found


def collides(name: str, paths: list[Path]) -> bool:
    """Return True if several definitions give a name several meanings."""
    folder = CONTRACTS.get(name)
    if folder is not None and all(Path(folder) in path.parents for path in paths):
        return False
    return len(paths) > 1


def docstrings(module: Module) -> Iterator[tuple[int, int, str]]:
    """Yield each docstring of a module: its first line, its last line and its text."""
    for node in nodes_of(module.tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield node.body[0].lineno, int(node.body[0].end_lineno or 0), text


def indirect(docstring: str) -> bool:
    """Return True if a docstring opens with What, How, Whether or Which, or "Return what"."""
    return INDIRECT_OPENING.match(docstring) is not None


def identifiers(tree: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """Yield the line and the name of each definition, and True for parameters and variables."""
    for node in nodes_of(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name, False
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg, True
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id, True
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr, True


def project_words(module: Module) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the name and the field's term of each name in ``FIELD_TERMS``."""
    stem = module.path.parent.name if module.path.stem == "__init__" else module.path.stem
    terms = {**FIELD_TERMS, **FIELD_TERMS_OF_MODULES}
    if stem in terms:
        yield 1, stem, terms[stem]
    for line, name, is_variable in identifiers(module.tree):
        word = name.strip("_")
        if word in FIELD_TERMS and not (is_variable and word in ORDINARY_WORDS):
            yield line, name, FIELD_TERMS[word]


def comments_and_code(module: Module) -> tuple[int, int]:
    """Return the number of lines with a comment, and of lines of code (without docstrings)."""
    comments: set[int] = set()
    code: set[int] = set()
    layout = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in layout:
            code |= set(range(token.start[0], token.end[0] + 1))
    for first, last, _ in docstrings(module):
        code -= set(range(first, last + 1))
    return len(comments), len(code)


def percent(part: int, whole: int) -> float:
    """Return a share in per cent; 0 of nothing."""
    return 100.0 * part / whole if whole else 0.0


class Counts(NamedTuple):
    """The counts of one module, which its folder adds up."""

    lines: int
    comments: int
    code: int
    many_arguments: int
    docstrings: int
    indirect_docstrings: int
    project_words: int


@cache
def counts_of(module: Module) -> Counts:
    """Return the counts of one module, which belongs to several folders."""
    openings = [indirect(text) for _, _, text in docstrings(module)]
    return Counts(
        len(module.text.splitlines()),
        *comments_and_code(module),
        sum(n_arguments(function) >= MANY_ARGUMENTS for function in functions(module.tree)),
        len(openings),
        sum(openings),
        len(list(project_words(module))),
    )


def measure(modules: list[Module]) -> Size:
    """Return the counts of some modules."""
    owners = defined_in(modules)
    counted = map(counts_of, modules)
    total = Counts(*map(sum, zip(*counted, strict=True))) if modules else Counts(*7 * [0])
    return Size(
        lines=total.lines,
        modules=len(modules),
        many_arguments=total.many_arguments,
        colliding_names=percent(sum(collides(*one) for one in owners.items()), len(owners)),
        comments=percent(total.comments, total.code),
        indirect_docstrings=percent(total.indirect_docstrings, total.docstrings),
        project_words=total.project_words,
    )


def exceeded(folder: str, size: Size) -> Iterator[str]:
    """Yield a sentence for each limit of a folder that its size exceeds."""
    for (limited, count), limit in LIMITS.items():
        value = getattr(size, count)
        if limited == folder and round(value, 1) > limit.allowed:
            yield f"{folder}: {TITLES[count]}: {value:,.1f}, at most {limit.allowed:,.1f}"


def shown(value: float) -> str:
    """Return a count as the table shows it."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.1f}"


def print_table(sizes: dict[str, Size]) -> None:
    """Print the counts, a column for each folder."""
    columns = [[f"{title:{max(map(len, TITLES.values()))}}" for title in ("", *TITLES.values())]]
    for folder, size in sizes.items():
        cells = [folder, *(shown(getattr(size, count)) for count in TITLES)]
        columns.append([f"{cell:>{max(map(len, cells))}}" for cell in cells])
    for row in zip(*columns, strict=True):
        print("  ".join(row))


def print_lists(modules: list[Module], chosen: argparse.Namespace) -> None:
    """Print the lists that the options ask for."""
    if chosen.names:
        for name, paths in sorted(defined_in(modules).items()):
            if collides(name, paths):
                print(f"{name}: {', '.join(map(str, paths))}")
    for module in modules:
        if chosen.docstrings:
            for line, _, text in docstrings(module):
                if indirect(text):
                    print(f"{module.path}:{line}: {text.splitlines()[0]}")
        if chosen.style:
            for line, name, term in project_words(module):
                print(f"{module.path}:{line}: {name} is called {term} in the field")


def main() -> int:
    """Print the table and the lists; return 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="*", default=FOLDERS)
    parser.add_argument("--names", action="store_true", help="list names with several definitions")
    parser.add_argument("--style", action="store_true", help="list project-specific names")
    parser.add_argument("--docstrings", action="store_true", help="list indirect docstrings")
    chosen = parser.parse_args()
    found = {folder: modules_in(Path(folder)) for folder in chosen.folders}
    sizes = {folder: measure(modules) for folder, modules in found.items()}
    print_table(sizes)
    print_lists(next(iter(found.values())), chosen)
    problems = [text for folder, size in sizes.items() for text in exceeded(folder, size)]
    for text in problems:
        print(text, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
