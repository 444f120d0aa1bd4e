"""Runs that were added from packs stand apart on a site, and each machine has its verdict."""

from __future__ import annotations

from pathlib import Path

from claimed_runs import SCENES, Kept
from synthetic_runs import race_run

from svmbench.papers.judging.verdict import MachineVerdict
from svmbench.report.reading.folders import ELSEWHERE, OURS
from svmbench.schema.rechecks import MANIFEST, Ages
from svmbench.site import Material, build_site


def site_of(tmp_path: Path, ages: Ages | None = None) -> Path:
    race_run(tmp_path / "results" / "race")
    added = race_run(tmp_path / "results" / "contributed" / "race-1")
    (added / MANIFEST).write_text("{}")
    material = Material(
        (tmp_path / "results",), ages_of_run=None if ages is None else lambda _: ages
    )
    build_site(material, tmp_path / "site")
    return tmp_path / "site"


def text_of(site: Path) -> str:
    return "\n".join(path.read_text() for path in sorted(site.rglob("*.html")))


def test_a_contributed_run_is_from_elsewhere(tmp_path: Path) -> None:
    site = site_of(tmp_path)
    index = (site / "index.html").read_text()
    assert index.count('href="#origin">from elsewhere') + index.count(
        'href="index.html#origin">from elsewhere'
    ) == 1  # fmt: skip
    assert 'id="origin"' in index
    assert "confirmed here</a>" not in text_of(site)
    manifests = list(site.rglob("manifest.json"))
    assert len(manifests) == 1


def test_a_rechecked_sample_confirms_it(tmp_path: Path) -> None:
    site = site_of(tmp_path, Ages({"k": "fresh"}, 3, is_sampled=True))
    assert ">confirmed here</a>" in text_of(site)
    assert ">from elsewhere</a>" not in text_of(site)


def test_each_machine_has_its_verdict(tmp_path: Path) -> None:
    from dataclasses import replace

    from svmbench.papers import judging

    kept = Kept()
    SCENES["smo-1"].build(kept)
    root = kept.write(tmp_path / "results")
    known = [one for one in judging.read_all_claims() if one.id == "smo-1"]
    (verdict,) = judging.judge(known, judging.gather_evidence([root]))
    machines = (
        MachineVerdict("CPU A", OURS, verdict.outcome, verdict.reason),
        MachineVerdict("<b>CPU</b>", ELSEWHERE, "undecided", "nothing"),
    )
    shown = replace(verdict, machines=machines)
    build_site(Material((root,), verdicts=(shown,)), tmp_path / "site")
    pages = text_of(tmp_path / "site")
    assert "supported on 1 of 2 machines, undecided on 1" in pages
    assert "&lt;b&gt;CPU&lt;/b&gt; (from elsewhere): undecided" in pages
    assert "<dt>measured on</dt>" in pages
