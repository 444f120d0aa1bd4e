"""No claim is out of reach: some finished run of the full protocol decides its rule."""

from functools import cache

import pytest
from imagined_runs import planned_run

from svmbench.papers import judging
from svmbench.papers.judging.evidence import Evidence

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
def test_a_finished_run_of_the_full_protocol_decides_a_claim(name):
    assert is_decided(name)
