"""No claim is out of reach: some finished run of the full protocol decides its rule."""

from functools import cache
from pathlib import Path

import pytest
from imagined_runs import planned_run

from svmbench.papers import judging
from svmbench.papers.judging.evidence import Evidence

ROOT = Path(__file__).resolve().parents[2]
ALL = {claim.id: claim for claim in judging.read_all_claims()}
#: Claims that are judged from what a script keeps, of which there are records.
OF_SCRIPTS = {"alsvm-7"}
SEEDS = range(3)


@cache
def run_of(config, seed):
    return planned_run(config, seed)


def outcomes(name):
    claim = ALL[name]
    for seed in SEEDS:
        sources = {config: [run_of(config, seed)] for config in claim.configs}
        runs = tuple(source.run for (source,) in sources.values())
        (verdict,) = judging.judge([claim], Evidence(sources, runs=runs))
        yield verdict


def is_decided(name):
    return any(part.holds is not None for verdict in outcomes(name) for part in verdict.parts)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ALL.keys() - OF_SCRIPTS))
def test_a_finished_run_of_the_full_protocol_decides_a_claim_or_the_claim_says_why_not(name):
    assert is_decided(name) is not bool(ALL[name].out_of_reach)


def test_claims_that_no_run_decides_are_few_and_the_page_names_them():
    out = {name for name, claim in ALL.items() if claim.out_of_reach}
    assert out == {"srbo-10"}
    page = " ".join((ROOT / "docs" / "claims.md").read_text(encoding="utf-8").split())
    assert all(f"{name}: {ALL[name].out_of_reach}" in page for name in out)
    (verdict,) = judging.judge([ALL["srbo-10"]], Evidence({}))
    assert verdict.to_decide.startswith("no run of srbo_fig8 can: the matrix of more than ")
