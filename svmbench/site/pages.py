"""Write the pages of a site from templates that escape every name."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from svmbench.base import escape
from svmbench.papers.judging.export import (
    at_scales,
    count_outcomes,
    evidence_time,
    outcome,
    reproduced,
    scales,
    summary,
)
from svmbench.papers.judging.made_again import MadeAgain, made_again
from svmbench.papers.judging.outcomes import outcomes
from svmbench.papers.judging.picture import MAX_SHOWN_PARTS, alternative_text, draw_parts
from svmbench.papers.judging.verdict import OUTCOMES, Verdict
from svmbench.report.numbers.certified import (
    ACCURACIES,
    MIN_RANKED_PROBLEMS,
    RANKED_AT,
    Board,
    boards,
)
from svmbench.report.numbers.choices import HEAD, caption, choices, standing_of
from svmbench.report.numbers.ratios import (
    EQUAL_OBJECTIVE,
    REFERENCES,
    Leader,
    Ratio,
    leaderboard,
    ratios,
    reference_of,
    repeated,
)
from svmbench.report.output.builder import Content, read_content
from svmbench.report.reading.folders import OURS, is_contributed
from svmbench.report.reading.wording import number
from svmbench.report.tables.media import HTML, Sentence
from svmbench.site.datasets import (
    base_name,
    best_solvers,
    comparable,
    outcomes_of,
    pareto_front,
    subsample_baseline,
)
from svmbench.site.diagrams import convergence_chart, error_chart, profile, ratio_chart
from svmbench.site.download import write_download
from svmbench.site.folder import placed
from svmbench.site.material import UNASSIGNED_PAGE, Material, Names, find_runs
from svmbench.site.printed_tables import printed_tables
from svmbench.site.ranks import p_text
from svmbench.site.runs import RunView, show_run
from svmbench.site.standings import Standing, standings

_HERE = Path(__file__).resolve().parent
_ASSETS = ("site.css", "site.js", "compare.js", "search.js")
#: Tables with more rows than this are folded.
_FOLDED_ROWS = 12
#: Largest number of charts of error against time on the page of a data set.
_MAX_CHARTS = 3
#: Largest number of charts of convergence of a board.
_MAX_CONVERGENCES = 3
#: Largest ratio to the fastest solver of each class of a table with colours.
_SHADES = ((1.1, "best"), (2.0, "close"), (4.0, "slower"), (10.0, "slow"))
#: Ending of the name of a paper's page of further runs.
_BEYOND = "-speed"
#: A whole number of five digits and more that is no part of a name or a decimal.
_LONG_NUMBER = re.compile(r"(?<![\w.,-])\d{5,}(?![\w.,])")
#: A sign for each state of a verdict, in addition to its colour.
SIGNS = dict(zip(OUTCOMES, ("✓", "◐", "✗", "○", "·"), strict=True))


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


def build_site(
    material: Material, target: Path, tell: Callable[[str], None] = lambda _: None
) -> Site:
    """Write a site to `target`, which is replaced in one step.

    The same records, verdicts and solvers give the same bytes.

    Parameters
    ----------
    material : Material
        Inputs of the site.
    target : Path
        A new or empty folder, or a folder with an earlier site.
    tell : callable, optional
        Called with the name of each run and page before its plots are drawn or it is written.

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
    contents = []
    for position, folder in enumerate(folders, start=1):
        tell(f"reading run {position} of {len(folders)}: {_named(folder)}")
        contents.append((names(_named(folder)), read_content(folder)))
    with placed(target) as made:
        pages = _Pages(material, contents, bare, made, target, tell).write()
    return Site(target / "index.html", pages, len(contents), tuple(bare))


def _named(folder: Path) -> str:
    """Return the name of a run folder after the name of its parent, joined by a dash."""
    return "-".join(folder.resolve().parts[-2:])


class _Pages:
    """The writer of the pages of one site.

    Parameters
    ----------
    material : Material
    contents : sequence of (str, Content)
        Runs with their slugs: the names of their anchors and data folders.
    bare : sequence of Path
        Folders with tables but without records.
    folder : Path
        The folder that is written.
    earlier : Path
        The site that this one replaces; plots with the same data are copied from it.
    tell : callable
        Called with the name of each run and page.
    """

    def __init__(
        self,
        material: Material,
        contents: Sequence[tuple[str, Content]],
        bare: Sequence[Path],
        folder: Path,
        earlier: Path,
        tell: Callable[[str], None],
    ) -> None:
        self.tell = tell
        self.material, self.contents, self.bare = material, contents, bare
        self.folder, self.earlier = folder, earlier
        self.standing = standings(contents, material.declared)
        # Times of other machines say nothing of ours.
        our_contents = [
            (slug, content) for slug, content in contents if not is_contributed(content.run.path)
        ]
        runs = [(slug, content.run) for slug, content in our_contents]
        self.ratios = ratios(runs, material.declared)
        self.repeated = repeated(runs, material.declared)
        self.boards = boards(runs)
        self.leaders = leaderboard(self.ratios)
        self.best = best_solvers(contents)
        self.outcomes = list(outcomes_of(our_contents, material.declared))
        solver_names, dataset_names = Names("index"), Names("index")
        seen = {
            base_name(cell.dataset)
            for _, content in contents
            for cell in content.run.cells
            if cell.dataset
        }
        ordered = [*(name for name in material.datasets if name in seen), *sorted(seen)]
        self.dataset_files = {name: dataset_names(name) for name in ordered}
        self.solver_files = {name: solver_names(name) for name in material.solvers}
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
        environment.filters |= {
            "spelt": spelt,
            "p_text": p_text,
            "ratio": ratio_text,
            "shade": _shade,
            "by_kind": _by_kind,
            "grouped": grouped,
            "capitalize_first": lambda text: text[:1].upper() + text[1:],
        }
        environment.globals.update(
            signs=SIGNS,
            outcomes_of_claims=OUTCOMES,
            ours=OURS,
            version=self.material.version,
            papers=self.papers,
            facts=self.material.papers,
            repository=self.material.repository,
            solver_files=self.solver_files,
            declared=self.material.declared,
            equal_objective=EQUAL_OBJECTIVE,
            folded_rows=_FOLDED_ROWS,
        )
        return environment

    def write(self) -> int:
        """Write all pages; return their number."""
        for name in _ASSETS:
            text = (_HERE / "assets" / name).read_text(encoding="utf-8")
            (self.folder / name).write_text(text, encoding="utf-8")
        views: dict[str, list[RunView]] = {}
        for position, (slug, content) in enumerate(self.contents, start=1):
            self.tell(f"drawing run {position} of {len(self.contents)}: {slug}")
            views.setdefault(content.run.paper, []).append(self._view(slug, content))
        addresses = self._addresses()
        self._page("index.html", "index.html", **self._overview(views), addresses=addresses)
        self._race_pages(addresses, [view for several in views.values() for view in several])
        self._paper_pages(addresses, views)
        self._solver_pages(addresses)
        self._dataset_pages(addresses)
        about = {"version": self.material.version, "url": self.material.repository}
        write_download(self.contents, self.material.declared, self.folder / "data", about=about)
        self._write_script("compare-data.js", "COMPARE", self._compared())
        self._page("compare.html", "compare.html")
        self._write_script(
            "search-data.js", "SEARCH_ENTRIES", self._search_entries(views, addresses)
        )
        self._page("search.html", "search.html")
        self._page(
            "solvers.html",
            "solvers/index.html",
            rows=self._solver_rows(),
            undeclared=self._undeclared(addresses),
        )
        return len(list(self.folder.rglob("*.html")))

    def _paper_pages(
        self, addresses: Mapping[str, str], views: Mapping[str, Sequence[RunView]]
    ) -> None:
        """Write the page of each paper, and the pages of runs that make none of its tables."""
        slugs = {content.run.path.resolve(): slug for slug, content in self.contents}
        for key, file in self.papers.items():
            views_of_paper = self._in_order(key, views.get(key, []))
            verdicts = [verdict for verdict in self.material.verdicts if verdict.claim.paper == key]
            shown = {
                "key": key,
                "verdicts": verdicts,
                "opening": _opening(verdicts),
                "claim_pictures": self._claim_pictures(file, verdicts),
                "made_again": self._made_again(key, verdicts),
                "deviating": self._deviating(key),
                "printed": printed_tables(key, self._printed_beside(key)),
                "addresses": addresses,
                "slug_of": lambda folder: slugs.get(Path(folder).resolve()),
            }
            of_paper = [run for run in views_of_paper if not self._is_beyond(key, run.name)]
            beyond = [run for run in views_of_paper if self._is_beyond(key, run.name)]
            self._page("paper.html", f"papers/{file}.html", **shown, runs=of_paper, beyond=beyond)
            if beyond:
                self._page("runs.html", f"papers/{file}{_BEYOND}.html", key=key, runs=beyond)
        if views.get(""):
            self._page("runs.html", f"papers/{UNASSIGNED_PAGE}.html", key="", runs=views[""])

    def _solver_pages(self, addresses: Mapping[str, str]) -> None:
        """Write the page of each solver."""
        for name in self.material.solvers:
            self._page(
                "solver.html",
                f"solvers/{self.solver_files[name]}.html",
                name=name,
                known=self.material.solvers[name],
                standings=[
                    (standing, addresses[standing.run]) for standing in self.standing.get(name, [])
                ],
                charts=self._charts(name),
                places_on_boards=standing_of(name, self.boards),
            )

    def _race_pages(self, addresses: Mapping[str, str], views: Sequence[RunView]) -> None:
        """Write the leaderboard, and the page of losses and wins."""
        self._page(
            "leaderboard.html", "leaderboard.html",
            boards=self.boards, leaderboard=self.leaders, accuracies=ACCURACIES,
            ranked_at=RANKED_AT, fewest=MIN_RANKED_PROBLEMS,
            pictures=[self._board_pictures(k, board) for k, board in enumerate(self.boards, 1)],
        )  # fmt: skip
        changed = [
            (view.title, f"{addresses[view.slug]}#{view.slug}", sentence)
            for view in views
            for sentence in view.changed
        ]
        self._page(
            "losses.html", "losses.html",
            addresses=addresses, changed=changed, n_repeated=len(self.repeated),
            losses=[ratio for ratio in reversed(self.ratios) if ratio.value < 1.0],
            wins=[ratio for ratio in self.ratios if ratio.value >= 1.0],
            worse=[repeat for repeat in self.repeated if repeat.word == "worse"],
            better=[repeat for repeat in self.repeated if repeat.word == "better"],
            n_within=sum(repeat.word == "within" for repeat in self.repeated),
        )  # fmt: skip

    def _board_pictures(self, index: int, board: Board) -> list[tuple[str, str, str]]:
        """Draw profiles and convergence of a board; return titles, files and alternative texts."""
        made = []
        for each in ACCURACIES:
            steps = {name: steps_of for name, steps_of in board.profiles(each).items() if steps_of}
            if not steps:
                continue
            file = f"board{index}-profile-{each}.svg"
            (self.folder / file).write_text(profile(steps), encoding="utf-8")
            title = (
                f"Performance profiles to a gap of {each}: the share of {len(board.problems)}"
                " problems that a solver solves within a factor of the fastest solver's time."
            )
            alt = f"Performance profiles of {', '.join(steps)}: {board.title}, to a gap of {each}"
            made.append((title, file, alt))
        for k, problem in enumerate(board.problems[:_MAX_CONVERGENCES], start=1):
            curves = {
                solver: [(s, float(each)) for each in ACCURACIES if (s := times[each]) is not None]
                for solver, times in problem.times.items()
            }
            curves = {solver: points for solver, points in curves.items() if points}
            if not curves:
                continue
            file = f"board{index}-convergence{k}.svg"
            (self.folder / file).write_text(convergence_chart(curves), encoding="utf-8")
            title = f"{problem.name}: certified gap of the objective against CPU time."
            alt = f"Certified gap against CPU time of {', '.join(curves)} on {problem.name}"
            made.append((title, file, alt))
        return made

    def _claim_pictures(
        self, file: str, verdicts: Sequence[Verdict]
    ) -> dict[str, tuple[str, str, str]]:
        """Draw the parts of each claim; return two files and the alternative text by claim.

        The second file has all parts, where the first leaves some out; else it is empty.
        """
        made = {}
        for index, verdict in enumerate(verdicts, start=1):
            if not verdict.parts:
                continue
            path = Path("papers", f"{file}-claim{index}.svg")
            (self.folder / path).parent.mkdir(exist_ok=True)
            (self.folder / path).write_text(draw_parts(verdict.parts), encoding="utf-8")
            whole = ""
            if len(verdict.parts) > MAX_SHOWN_PARTS:
                whole = path.with_stem(f"{path.stem}-all").as_posix()
                (self.folder / whole).write_text(
                    draw_parts(verdict.parts, most=None), encoding="utf-8"
                )
            made[verdict.claim.id] = (path.as_posix(), whole, alternative_text(verdict.parts))
        return made

    def _made_again(self, key: str, verdicts: Sequence[Verdict]) -> list[MadeAgain]:
        """Return whether each table and figure of a paper with claims was made again."""
        known = self.material.papers.get(key)
        runs_of_paper = [content.run for _, content in self.contents if content.run.paper == key]
        ours = [run for run in runs_of_paper if not is_contributed(run.path)]
        if known is None or not known.configs or not verdicts:
            return []
        return made_again(key, known.configs, verdicts, ours)

    def _deviating(self, key: str) -> list[tuple[list[str], tuple[str, ...]]]:
        """Return the deviations of a paper's solvers, those with the same ones together."""
        solvers_of: dict[tuple[str, ...], list[str]] = {}
        for name, known in self.material.solvers.items():
            if known.facts.get("paper") == key and known.deviations:
                solvers_of.setdefault(known.deviations, []).append(name)
        return [(names, sentences) for sentences, names in solvers_of.items()]

    def _printed_beside(self, key: str) -> list[tuple[str, str, str]]:
        """Return printed table, title and anchor of each table that shows printed numbers."""
        return [
            (table.spec.published, content.run.title, f"{slug}-{table.spec.name}")
            for slug, content in self.contents
            if content.run.paper == key and not self._is_beyond(key, content.run.name)
            for table in content.tables
            if table.spec.published
        ]

    def _dataset_pages(self, addresses: Mapping[str, str]) -> None:
        """Write a page for each data set of the results, and their list."""
        configs = {slug: content.run.name for slug, content in self.contents}
        rows = []
        for name, file in self.dataset_files.items():
            best = self.best.get(name, [])
            facts = self.material.datasets.get(name, {})
            shown = [(entry, addresses[entry.slug], configs[entry.slug]) for entry in best]
            charts = self._error_charts(name, file, addresses)
            self._page(
                "dataset.html", f"datasets/{file}.html",
                name=name, known=facts, best=shown, charts=charts,
            )  # fmt: skip
            rows.append((name, file, facts, len(best)))
        self._page("datasets.html", "datasets/index.html", rows=rows)

    def _error_charts(
        self, dataset: str, file: str, addresses: Mapping[str, str]
    ) -> list[tuple[str, str, str]]:
        """Write the charts of error against time of a data set; return titles, links and files."""
        titles = {
            (slug, name): f"{content.run.title}: {block.get('title') or name}"
            for slug, content in self.contents
            for name, block in content.run.blocks.items()
        }
        results = [result for result in self.outcomes if result.dataset == dataset]
        blocks = sorted(comparable(results).items(), key=lambda pair: -len(pair[1]))
        made: list[tuple[str, str, str]] = []
        drawn = []
        for (slug, block), several in blocks:
            points = [
                (result.label, result.seconds, 100.0 - (result.accuracy or 0.0))
                for result in several
            ]
            # Tables and figures of a paper share cells.
            if points in drawn or len(made) == _MAX_CHARTS:
                continue
            drawn.append(points)
            front = pareto_front((seconds, error) for _, seconds, error in points)
            path = Path("datasets", f"{file}-error{len(drawn)}.svg")
            (self.folder / path).parent.mkdir(exist_ok=True)
            baseline = subsample_baseline(several)
            chart = error_chart(points, front, "error on the test rows (%)", baseline)
            (self.folder / path).write_text(chart, encoding="utf-8")
            title = titles.get((slug, block), block)
            made.append((title, f"{addresses[slug]}#{slug}", path.as_posix()))
        return made

    def _compared(self) -> dict[str, dict[str, tuple[float, float | None]]]:
        """Return seconds and accuracy by solver and setting, for the solvers with pages."""
        by_solver: dict[str, dict[str, tuple[float, float | None]]] = {}
        for result in self.outcomes:
            if result.label in self.material.solvers:
                accuracy = None if result.accuracy is None else float(f"{result.accuracy:.5g}")
                by_solver.setdefault(result.label, {})[
                    f"{result.slug} {result.block}: {result.setting}"
                ] = (
                    float(f"{result.seconds:.4g}"),
                    accuracy,
                )
        return dict(sorted(by_solver.items()))

    def _search_entries(
        self, views: Mapping[str, Sequence[RunView]], addresses: Mapping[str, str]
    ) -> list[tuple[str, str, str, str]]:
        """Return kind, title, further words and address of everything that search finds."""
        entries = [
            (
                "paper",
                known.title if (known := self.material.papers.get(key)) else key,
                key,
                f"papers/{file}.html",
            )
            for key, file in self.papers.items()
        ]
        entries += [
            ("claim", f"{verdict.claim.id}: {verdict.claim.statement}", verdict.outcome,
             f"papers/{self.papers[verdict.claim.paper]}.html#claim-{verdict.claim.id}")
            for verdict in self.material.verdicts
            if verdict.claim.paper in self.papers
        ]  # fmt: skip
        entries += [
            ("solver", name, str(self.material.solvers[name].facts.get("what", "")),
             f"solvers/{file}.html")
            for name, file in self.solver_files.items()
        ]  # fmt: skip
        entries += [
            ("data set", name, "", f"datasets/{file}.html")
            for name, file in self.dataset_files.items()
        ]
        for run in (run for several in views.values() for run in several):
            entries.append(("run", run.title, run.name, f"{addresses[run.slug]}#{run.slug}"))
            entries += [
                ("table", grid.title, run.name, f"{addresses[run.slug]}#{run.slug}-{grid.name}")
                for grid in run.grids
            ]
        entries += [
            ("page", "Leaderboard", "fastest solvers", "leaderboard.html"),
            ("page", "Losses and wins", "regressions, what got worse", "losses.html"),
        ]
        return [
            (kind, escape.line(title), escape.line(more), url) for kind, title, more, url in entries
        ]

    def _write_script(self, file: str, name: str, content: Any) -> None:
        """Write data as a script, which pages can load without a server."""
        text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
        (self.folder / file).write_text(f'"use strict";\nconst {name} = {text};\n', "utf-8")

    def _view(self, slug: str, content: Content) -> RunView:
        """Write the files of a run, and return what its page shows."""
        ages_of_run = self.material.ages_of_run
        ages = None if ages_of_run is None else ages_of_run(content.run.path)
        return show_run(content, slug, self.folder, ages, self.earlier)

    def _overview(self, views: Mapping[str, Sequence[RunView]]) -> dict[str, Any]:
        verdicts = self.material.verdicts
        of_papers: dict[str, list[Verdict]] = {}
        for verdict in verdicts:
            of_papers.setdefault(verdict.claim.paper, []).append(verdict)
        return {
            "verdicts": verdicts,
            "summary": summary(verdicts) if verdicts else "",
            "reproduced": reproduced(verdicts),
            "counts": {paper: at_scales(of_paper) for paper, of_paper in of_papers.items()},
            "outcomes": {paper: _outcome(of_paper) for paper, of_paper in of_papers.items()},
            "choices": [
                replace(choice, why=choice.why.replace("`", ""))
                for choice in choices(self.boards, self.leaders)
            ],
            "choice_head": HEAD,
            "choice_caption": caption(self.boards).replace("`", ""),
            "any_age": any(verdict.age for verdict in verdicts),
            "tally": [
                (name, *counted)
                for name, counted in zip(OUTCOMES, count_outcomes(verdicts), strict=True)
            ],
            "views": views,
            "contributed": any(run.origin != OURS for runs in views.values() for run in runs),
            "bare": [path.as_posix() for path in self.bare],
        }

    def _addresses(self) -> dict[str, str]:
        """Return the page of each run by its slug."""
        addresses = {}
        for slug, content in self.contents:
            paper = content.run.paper
            beyond = _BEYOND if self._is_beyond(paper, content.run.name) else ""
            addresses[slug] = f"papers/{self.papers.get(paper, UNASSIGNED_PAGE)}{beyond}.html"
        return addresses

    def _is_beyond(self, paper: str, config: str) -> bool:
        """Return True if a config makes none of the tables and figures of its paper."""
        known = self.material.papers.get(paper)
        return known is not None and bool(known.configs) and config not in known.configs

    def _in_order(self, paper: str, runs: Sequence[RunView]) -> list[RunView]:
        """Return the runs of a paper in the order of its tables; contributed runs come last."""
        known = self.material.papers.get(paper)
        configs = known.configs if known else ()
        order = {name: index for index, name in enumerate(configs)}
        positions = {run.slug: order.get(run.name, len(order)) for run in runs}
        return sorted(runs, key=lambda run: (run.origin != OURS, positions[run.slug]))

    def _charts(self, solver: str) -> list[tuple[str, str, int]]:
        """Write the charts of a solver's ratios; return their titles, files and sizes."""
        by_class: dict[str, list[Ratio]] = {}
        for ratio in self.ratios:
            if ratio.solver == solver:
                by_class.setdefault(ratio.problem_class, []).append(ratio)
        made = []
        for k, (title, several) in enumerate(sorted(by_class.items()), start=1):
            file = Path("solvers", f"{self.solver_files[solver]}-ratios{k}.svg")
            rows = [
                (name, ratio.value, ratio.low, ratio.high)
                for name, ratio in zip(chart_names(several), several, strict=True)
            ]
            axis = f"CPU time of {reference_of(several[0].reference)} over that of {solver}"
            (self.folder / file).parent.mkdir(exist_ok=True)
            (self.folder / file).write_text(ratio_chart(rows, axis), encoding="utf-8")
            made.append((title, file.as_posix(), len(rows)))
        return made

    def _solver_rows(self) -> list[tuple[str, str, str, int]]:
        rows = []
        for name, known in self.material.solvers.items():
            what, minimises = (str(known.facts.get(key, "")) for key in ("what", "minimises"))
            rows.append((name, what, minimises, len(self.standing.get(name, []))))
        return rows

    def _undeclared(self, addresses: Mapping[str, str]) -> dict[str, list[tuple[Standing, str]]]:
        """Return the results of the names that no solver is declared by, by name."""
        return {
            name: [(standing, addresses[standing.run]) for standing in of_name]
            for name, of_name in sorted(self.standing.items())
            if name not in self.material.solvers
        }

    def _page(self, template: str, file: str, **shown: Any) -> None:
        self.tell(f"writing {file}")
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        root = "../" * file.count("/")
        text = self.environment.get_template(template).render(root=root, file=file, **shown)
        path.write_text(text, encoding="utf-8")


def ratio_text(ratio: float) -> str:
    """Return a ratio with separators of thousands."""
    return f"{ratio:,.0f}" if 999.5 <= ratio < math.inf else number("ratio", ratio)


def _shade(ratio: float | None) -> str:
    """Return the class of a ratio to the fastest solver in a table with colours."""
    if ratio is None:
        return "slowest"
    return next((name for most, name in _SHADES if ratio <= most), "slowest")


def _by_kind(leaders: Sequence[Leader]) -> list[tuple[str, list[Leader]]]:
    """Return the exact solvers of a class, and the others, each with a head if there are any."""
    kinds = {
        "Exact": [leader for leader in leaders if leader.is_exact],
        "Approximate, or another objective": [
            leader for leader in leaders if leader.is_exact is False
        ],
        "Objectives not compared": [leader for leader in leaders if leader.is_exact is None],
    }
    return [(kind, of_kind) for kind, of_kind in kinds.items() if of_kind]


def grouped(text: str) -> str:
    """Return a text with commas in its whole numbers of five digits and more."""
    return _LONG_NUMBER.sub(lambda digits: f"{int(digits[0]):,}", text)


def chart_names(ratios: Sequence[Ratio]) -> list[str]:
    """Return the data sets, with the label and the reference solver where they are special.

    Only problems of the same data set have the names of their blocks.
    """
    names = []
    for ratio in ratios:
        label = "" if ratio.label == ratio.solver else f"{ratio.label}: "
        against = "" if ratio.reference in REFERENCES else f" / {ratio.reference}"
        dataset, _, block = ratio.problem.removesuffix(")").rpartition(" (")
        names.append((f"{label}{dataset}{against}", block))
    counts = Counter(name for name, _ in names)
    return [f"{name}, block {block}" if counts[name] > 1 else name for name, block in names]


def _outcome(verdicts: Sequence[Verdict]) -> str:
    """Return the text on a paper, or the number of its claims by verdict if it has none."""
    written = next(iter(outcomes(verdicts).values()), None)
    return outcome(verdicts) if written is None or written.stale else written.text


def _opening(verdicts: Sequence[Verdict]) -> str:
    """Return what a paper's page says first: outcome, scales and time of the evidence, if any."""
    if not verdicts:
        return ""
    return f"{_outcome(verdicts)} {scales(verdicts)} {evidence_time(verdicts)}".strip()
