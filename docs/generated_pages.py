"""A Sphinx extension: the reference pages that are written from the package at each build.

``generated/config.md`` lists the keys of a config from the schema that editors read,
``generated/papers.md`` how each paper was read, and ``generated/solvers.md`` every solver with its
source and its deviations from print. ``generated/api.rst`` names the public classes.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import click
import click.testing
from sphinx.application import Sphinx

from svmbench.base.paper_folders import papers
from svmbench.baselines import catalogue
from svmbench.cli import cli
from svmbench.papers import judging

#: Keys of a config's top level, in words; a block's keys come from its protocol's own text.
TOP = {
    "paper": "Key of the paper whose tables the config remakes.",
    "title": "Title of its tables and plots.",
    "seed": "Seed of every random choice: folds, subsets, solvers.",
    "timeout_s": "Seconds after which a cell is stopped.",
    "memory_gb": "Memory limit of a cell.",
    "scratch_gb": "Limit of a cell's temporary files.",
    "threads": "Threads of a fit.",
    "blas_core": "OpenBLAS's core type, to pin the arithmetic (such as Haswell).",
    "datasets": "Data sets of all blocks that name none.",
    "solvers": "Solvers of all blocks that name none.",
    "blocks": "The experiments: each has a protocol, data sets and solvers.",
    "tables": "Tables made from the records.",
    "plots": "Plots made from the records.",
    "profiles": "Named cuts of the protocol, such as quick and paper.",
}

#: Keys that blocks of every protocol have.
SHARED = {
    "name": "Name of the block, by which tables and plots refer to it.",
    "title": "Title of its tables and plots.",
    "datasets": "Data sets of this block instead of the config's.",
    "solvers": "Solvers of this block instead of the config's.",
    "scaling": "Rows that the scaler is fitted on.",
    "scaler": "Scaling of the features: to [0, 1], by the largest magnitude, or to unit variance.",
    "task": "Task; by default the data set's own.",
    "multiclass": "Treatment of more than two classes by a binary solver.",
    "scores": "Scores that are measured on held-out rows.",
    "select_by": "Score that chooses the parameters.",
    "inputs": "Storage of the inputs: as the data set is stored, or dense.",
    "subset": "Choice of rows for `sizes`: stratified at random, or the first ones.",
    "sweep": "Values of parameters, each a series of its own.",
    "sizes": "Numbers of rows (or shares of them) to run at.",
    "features": "Numbers of features to run at.",
    "max_samples": "Largest number of rows; 0 for all.",
}

#: Characters of a default beyond which the table doesn't show it.
LONGEST_DEFAULT = 40


def _printed(*arguments: str) -> str:
    result = click.testing.CliRunner().invoke(cli, list(arguments))
    if result.exit_code != 0:
        raise RuntimeError(f"svmbench {' '.join(arguments)}: {result.output}")
    return result.stdout


def _type_of(field: dict[str, Any]) -> str:
    """Return a field's type in words."""
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "$ref" in field:
        return field["$ref"].rsplit("/", 1)[1]
    for key in ("anyOf", "oneOf"):
        if key in field:
            kinds = [_type_of(one) for one in field[key] if one.get("type") != "null"]
            return " or ".join(dict.fromkeys(kinds))
    if field.get("type") == "array":
        return f"list of {_type_of(field.get('items', {}))}"
    if field.get("type") == "object":
        return "mapping"
    if isinstance(field.get("type"), list):
        return " or ".join(_type_of({"type": one}) for one in field["type"] if one != "null")
    words = {"integer": "whole number", "string": "text", "boolean": "true or false"}
    return words.get(field.get("type", ""), field.get("type", "any"))


def _default_of(field: dict[str, Any], name: str, required: list[str]) -> str:
    if name in required:
        return "required"
    default = field.get("default")
    shown = "" if default in (None, "", [], {}) else f"`{json.dumps(default)}`"
    return shown if len(shown) <= LONGEST_DEFAULT else "see below"


def _key_table(properties: dict[str, Any], required: list[str], texts: dict[str, str]) -> list[str]:
    lines = ["| key | type | default | meaning |", "| --- | --- | --- | --- |"]
    for name, field in properties.items():
        cells = [
            f"`{name}`",
            _type_of(field),
            _default_of(field, name, required),
            texts.get(name, ""),
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return [*lines, ""]


def _attributes(description: str) -> tuple[str, dict[str, str]]:
    """Return a docstring's text before its attributes, and the text of each attribute."""
    head, _, rest = description.partition("Attributes\n----------\n")
    texts: dict[str, list[str]] = defaultdict(list)
    names: list[str] = []
    for line in rest.splitlines():
        if line and not line.startswith(" "):
            names = [name.strip() for name in line.split(" : ")[0].split(",")]
        elif line:
            for name in names:
                texts[name].append(line.strip())
    return head.strip(), {name: _in_markdown(" ".join(lines)) for name, lines in texts.items()}


def _in_markdown(text: str) -> str:
    return text.replace("``", "`")


def config_page() -> str:
    """Return the page of a config's keys."""
    schema = json.loads(_printed("schema"))
    kinds = schema["$defs"]
    protocols = {
        one["properties"]["protocol"]["const"]: name
        for name, one in kinds.items()
        if "protocol" in one.get("properties", {})
    }
    blocks = [kinds[name]["properties"] for name in protocols.values()]
    shared = set.intersection(*(set(block) for block in blocks)) - {"protocol"}
    lines = [
        "# Keys of a config",
        "",
        "Written from `svmbench schema`, which an editor can read to complete and check configs.",
        "",
        "## Top level",
        "",
        *_key_table(schema["properties"], schema.get("required", []), TOP),
        "## Keys of every block",
        "",
        *_key_table({k: v for k, v in blocks[0].items() if k in shared}, ["name"], SHARED),
    ]
    for protocol, name in sorted(protocols.items()):
        head, texts = _attributes(kinds[name].get("description", ""))
        own = {k: v for k, v in kinds[name]["properties"].items() if k not in shared | {"protocol"}}
        lines += [f"## Protocol `{protocol}`", "", _in_markdown(head), ""]
        lines += _key_table(own, kinds[name].get("required", []), texts) if own else []
    for name in sorted(set(kinds) - set(protocols.values())):
        head, texts = _attributes(kinds[name].get("description", ""))
        lines += [f"## {name}", "", _in_markdown(head), ""]
        lines += _key_table(
            kinds[name].get("properties", {}), kinds[name].get("required", []), texts
        )
    return "\n".join(lines)


def solvers_page() -> str:
    """Return the page of all solvers: problem, source, parameters and deviations from print."""
    lines = [
        "# Every solver",
        "",
        "Written from the solvers' declarations; `svmbench describe NAME` prints one entry.",
        "",
    ]
    for name in sorted(catalogue.solvers()):
        facts = json.loads(_printed("describe", name, "--json"))
        lines += [f"## `{name}`", "", f"{facts['what']}.", ""]
        shown = ("reference", "minimises", "offset", "promises", "kernels", "inputs", "task")
        lines += [f"- **{key}**: {facts[key]}" for key in shown if facts.get(key)]
        if facts.get("parameters"):
            lines.append(
                f"- **parameters**: {', '.join(f'`{one}`' for one in facts['parameters'])}"
            )
        if facts.get("deviations"):
            lines += ["", "Deviations from print:", ""]
            lines += [f"- {one}" for one in facts["deviations"]]
        lines.append("")
    return "\n".join(lines)


def papers_page() -> str:
    """Return the page of the papers: what they claim, and how the suite reads each claim."""
    claims = judging.read_all_claims()
    lines = [
        "# How each paper was read",
        "",
        "Each claim stands in the paper's own words, with its place and the rule that decides it.",
        "[Errata](../errata.md) lists where a paper contradicts itself, and "
        "[each solver's entry](solvers.md) its deviations from print.",
        "",
    ]
    for key, paper in papers().items():
        own = [claim for claim in claims if claim.paper == key]
        lines += [f"## {paper.title}", "", f"{', '.join(paper.authors)}. {paper.venue}.", ""]
        for claim in own:
            lines += [
                f"**{claim.id}** ({claim.place()}). {claim.statement}",
                "",
                f"> {claim.quote}",
                "",
                f"Rule, fixed on {claim.fixed}: {claim.rule}.",
                "",
            ]
    return "\n".join(lines)


def api_page() -> str:
    """Return the page of the public names, one page each."""
    import svmbench

    names = sorted(name for name in dir(svmbench) if not name.startswith("_"))
    title = "Python API"
    return "\n".join(
        [
            title,
            "=" * len(title),
            "",
            "Every solver is a scikit-learn estimator; :doc:`/estimators` describes their API.",
            "",
            ".. currentmodule:: svmbench",
            "",
            ".. autosummary::",
            "   :toctree: api",
            "",
            *(f"   {name}" for name in names),
            "",
        ]
    )


def write_pages(app: Sphinx) -> None:
    """Write the generated pages below the sources, each only if it has changed."""
    folder = Path(app.srcdir) / "generated"
    folder.mkdir(exist_ok=True)
    pages = {
        "config.md": config_page(),
        "solvers.md": solvers_page(),
        "papers.md": papers_page(),
        "api.rst": api_page(),
    }
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


#: A link to a file of the repository outside these pages.
_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./|ci-example|scaling\.json)[^)]*\)")


def name_outside_links(app: Sphinx, name: str, source: list[str]) -> None:
    """Replace links to files outside the documentation by their text."""
    source[0] = _OUTSIDE.sub(lambda link: link[1], source[0])


def escape_stars(app: Sphinx, command: click.Context, lines: list[str]) -> None:
    """Escape the stars of a command's help, which reStructuredText takes for emphasis."""
    lines[:] = [line.replace("*", "\\*") for line in lines]


#: A reference into scikit-learn's own pages, in a docstring that a class inherits from it.
_FOREIGN = re.compile(r":(?:ref|term):`([^`<]+?)(?:\s*<[^`>]*>)?`")
#: An attribute's name as ``coef_``, which reStructuredText takes for a link.
_FINAL_UNDERSCORE = re.compile(r"(?<![`\w])(\w+)_(?![`\w])")


def mend_docstring(
    app: Sphinx, kind: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Escape bars and final underscores; name pages of other packages without a link."""
    lines[:] = [
        _FINAL_UNDERSCORE.sub(r"\1\\_", _FOREIGN.sub(r"\1", line)).replace("|", "\\|")
        for line in lines
    ]


def skip_metadata_requests(
    app: Sphinx, kind: str, name: str, thing: object, skip: bool, options: object
) -> bool | None:
    """Leave out scikit-learn's methods of metadata routing, which every estimator has."""
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing", name) else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the extension."""
    app.setup_extension("sphinx_click")
    app.connect("builder-inited", write_pages, priority=100)  # before autosummary reads them
    app.connect("source-read", name_outside_links)
    app.connect("sphinx-click-process-description", escape_stars)
    app.connect("autodoc-skip-member", skip_metadata_requests)
    app.connect("autodoc-process-docstring", mend_docstring, priority=900)
    return {"parallel_read_safe": True}
