"""Write the pages of a site from templates that escape every name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from svmbench.base import escape
from svmbench.papers.judging.export import outcome, summary
from svmbench.papers.judging.outcomes import outcomes
from svmbench.papers.judging.verdict import STATES, Verdict
from svmbench.report.builder import Content, read_content
from svmbench.report.media import HTML, Sentence
from svmbench.site.folder import placed
from svmbench.site.material import UNASSIGNED_PAGE, Material, Names, find_runs
from svmbench.site.ranks import p_text
from svmbench.site.runs import RunView, show_run
from svmbench.site.standings import Standing, standings

_HERE = Path(__file__).resolve().parent
_ASSETS = ("site.css", "site.js")
#: A sign for each state of a verdict, in addition to its colour.
SIGNS = dict(zip(STATES, ("✓", "◐", "✗", "○"), strict=True))


@dataclass(frozen=True)
class Site:
    """The site that `build_site` wrote.

    Attributes
    ----------
    index : Path
        The first page.
    pages : int
    runs : int
        Number of run folders.
    bare : tuple of Path
        Folders with tables but without records, which the site doesn't show.
    """

    index: Path
    pages: int
    runs: int
    bare: tuple[Path, ...]


def build_site(material: Material, target: Path) -> Site:
    """Write a site to `target`, which is replaced in one step.

    The same records, verdicts and solvers give the same bytes.

    Parameters
    ----------
    material : Material
        Inputs of the site.
    target : Path
        A new or empty folder, or a folder with an earlier site.

    Returns
    -------
    Site

    Raises
    ------
    svmbench.base.errors.ResultsError
        If there is no run, a run can't be read, or `target` has other files.
    """
    folders, bare = find_runs(material.folders)
    names = Names()
    contents = [(names(_named(folder)), read_content(folder)) for folder in folders]
    with placed(target) as made:
        pages = _Pages(material, contents, bare, made).write()
    return Site(target / "index.html", pages, len(contents), tuple(bare))


def _named(folder: Path) -> str:
    """Return the name of a run folder after the name of its parent, joined by a dash."""
    return "-".join(folder.resolve().parts[-2:])


class _Pages:
    """The writer of the pages of one site."""

    def __init__(
        self,
        material: Material,
        contents: Sequence[tuple[str, Content]],
        bare: Sequence[Path],
        made: Path,
    ) -> None:
        self.material, self.contents, self.bare, self.made = material, contents, bare, made
        self.standing = standings(contents)
        solver_names = Names("index")
        self.solvers = list(dict.fromkeys([*material.solvers, *sorted(self.standing)]))
        # Known solvers come first, so that their pages have their names.
        self.solver_files = {name: solver_names(name) for name in self.solvers}
        papers = dict.fromkeys([*material.papers, *(c.run.paper for _, c in contents)])
        paper_names = Names(UNASSIGNED_PAGE)
        self.papers = {name: paper_names(name) for name in papers if name}
        self.environment = self._environment()

    def _environment(self) -> Any:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
        from markupsafe import Markup

        def shown(value: Any) -> Any:
            return escape.line(value) if type(value) is str else value

        def spelt(sentence: Sentence) -> Any:
            return Markup(HTML.spell(sentence))

        environment = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=shown,
        )
        environment.filters |= {"spelt": spelt, "p_text": p_text}
        environment.globals.update(
            signs=SIGNS,
            states=STATES,
            version=self.material.version,
            papers=self.papers,
            solver_files=self.solver_files,
        )
        return environment

    def write(self) -> int:
        """Write all pages; return their number."""
        for name in _ASSETS:
            text = (_HERE / "assets" / name).read_text(encoding="utf-8")
            (self.made / name).write_text(text, encoding="utf-8")
        views: dict[str, list[RunView]] = {}
        for slug, content in self.contents:
            views.setdefault(content.run.paper, []).append(self._view(slug, content))
        self._page("index.html", "index.html", **self._overview(views))
        for key, file in self.papers.items():
            self._page(
                "paper.html",
                f"papers/{file}.html",
                key=key,
                citation=self.material.papers.get(key, ""),
                verdicts=[one for one in self.material.verdicts if one.claim.paper == key],
                runs=views.get(key, []),
            )
        if views.get(""):
            self._page(
                "paper.html", f"papers/{UNASSIGNED_PAGE}.html",
                key="", citation="", verdicts=[], runs=views[""],
            )  # fmt: skip
        places = self._places()
        for name in self.solvers:
            self._page(
                "solver.html",
                f"solvers/{self.solver_files[name]}.html",
                name=name,
                known=self.material.solvers.get(name),
                standings=[(one, places[one.run]) for one in self.standing.get(name, [])],
            )
        self._page("solvers.html", "solvers/index.html", rows=self._solver_rows())
        return len(list(self.made.rglob("*.html")))

    def _view(self, slug: str, content: Content) -> RunView:
        look = self.material.freshness
        known = None if look is None else look(content.run.path)
        return show_run(content, slug, self.made, known)

    def _overview(self, views: Mapping[str, Sequence[RunView]]) -> dict[str, Any]:
        verdicts = self.material.verdicts
        counts = {
            paper: [
                [v for v in verdicts if v.claim.paper == paper and v.state == state]
                for state in STATES
            ]
            for paper in dict.fromkeys(verdict.claim.paper for verdict in verdicts)
        }
        return {
            "verdicts": verdicts,
            "summary": summary(verdicts) if verdicts else "",
            "counts": counts,
            "outcomes": {
                paper: _outcome([one for one in verdicts if one.claim.paper == paper])
                for paper in counts
            },
            "tally": [(s, sum(v.state == s for v in verdicts)) for s in STATES],
            "citations": self.material.papers,
            "views": views,
            "bare": [path.as_posix() for path in self.bare],
        }

    def _places(self) -> dict[str, str]:
        """Return the page of each run by its slug."""
        return {
            slug: f"papers/{self.papers.get(content.run.paper, UNASSIGNED_PAGE)}.html"
            for slug, content in self.contents
        }

    def _solver_rows(self) -> list[tuple[str, str, str, int]]:
        rows = []
        for name in self.solvers:
            known = self.material.solvers.get(name)
            facts = known.facts if known else {}
            what, minimises = (str(facts.get(key, "")) for key in ("what", "minimises"))
            tables: list[Standing] = self.standing.get(name, [])
            rows.append((name, what, minimises, len(tables)))
        return rows

    def _page(self, template: str, file: str, **shown: Any) -> None:
        path = self.made / file
        path.parent.mkdir(parents=True, exist_ok=True)
        root = "../" * file.count("/")
        text = self.environment.get_template(template).render(root=root, file=file, **shown)
        path.write_text(text, encoding="utf-8")


def _outcome(verdicts: Sequence[Verdict]) -> str:
    """Return the sentence on a paper, where it is of these verdicts, and how many there are."""
    counted = outcome(verdicts)
    said = next(iter(outcomes(verdicts).values()), None)
    return counted if said is None or said.stale else f"{said.said} {counted}"
