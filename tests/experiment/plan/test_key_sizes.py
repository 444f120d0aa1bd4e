"""A key covers what runs in a cell, and little more: its size, and a trace of small cells."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from script_loading import load_script

from svmbench.baselines.catalogue import solvers
from svmbench.experiment.protocols import protocols

key_sizes = load_script("key_sizes")

#: The classifiers with linear models; a linear detector shares a base class with kernel detectors.
LINEAR = [
    name
    for name, one in solvers().items()
    if one.kernels == ("linear",) and one.task != "one-class"
]

#: The most modules and statements that keys cover, under any protocol.
MOST_OF_LINEAR = (18, 2610)
MOST_OF_ANY = (37, 6410)
#: Linear solvers whose keys cover more than 15 modules: `alsvm-batch` gathers blocks and has
#: conjugate gradients; `newton-l2` factorises Gram matrices and has conjugate gradients.
ABOVE_15 = {"alsvm-batch", "newton-l2"}
#: The same of some solvers under some protocol.
MOST = {
    ("pegasos", "nested-cv"): (13, 1870),
    ("alsvm", "nested-cv"): (15, 2335),
    ("smo", "nested-cv"): (19, 3500),
    ("csvc", "nested-cv"): (28, 5190),
    # Two protocols in one key: `screening-sample` imports what it shares with `screening`,
    # `sampled-holdout` calls `holdout`.
    ("alsvm-batch", "screening-sample"): (18, 2660),
    ("newton-l2", "screening-sample"): (18, 2700),  # on Hessians, and on growing Gram matrices
    ("alsvm-batch", "sampled-holdout"): (19, 2610),
    ("newton-l2", "sampled-holdout"): (19, 2650),
}

#: What runs in cells, is in no key, and why.
UNCOVERED = {
    "svmbench.baselines.templates": "tells whether a solver's name is a program's commands",
    "svmbench.core.models.certificates": "says how good a result is, and changes none",
}

#: What a certificate calls. Of the protocols only these make one; `fit` sees a solver's own calls.
OF_CERTIFICATES = {"svmbench.core.numeric.conjugate_gradient"}
CERTIFIED = {"calls", "race", "nested-race"}


@pytest.mark.parametrize("protocol", list(protocols()))
def test_keys_cover_little_code(protocol: str) -> None:
    for name in solvers():
        modules, statements = key_sizes.size(key_sizes.covered(name, protocol))
        most = MOST_OF_LINEAR if name in LINEAR else MOST_OF_ANY
        most = MOST.get((name, protocol), most)
        assert modules <= most[0], name
        assert statements <= most[1], name
        few = 16 if protocol == "sampled-holdout" else 15  # it has the module of `holdout` as well
        assert modules <= few or name not in LINEAR or name in ABOVE_15, name


def test_no_key_of_a_linear_solver_covers_kernel_code() -> None:
    for protocol in protocols():
        for name in LINEAR:
            modules = key_sizes.covered(name, protocol)
            assert not any("kernel" in module for module in modules), (name, protocol)


@pytest.mark.slow
def test_what_runs_in_a_cell_is_in_its_key() -> None:
    """Each solver is traced under `fit`, and some under every protocol, in plain Python."""
    script = Path(__file__).with_name("traced_cells.py")
    done = subprocess.run(
        [sys.executable, script],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    lacking = {what: set(one["lacking"]) - UNCOVERED.keys() for what, one in found.items()}
    for what in lacking:
        lacking[what] -= OF_CERTIFICATES if what.split()[0] in CERTIFIED else set()
    assert {what: modules for what, modules in lacking.items() if modules} == {}
    assert {what.split()[1] for what in found} == solvers().keys()
    assert {what.split()[0] for what in found} == protocols().keys()
    # The functions of compiled loops are seen.
    assert "svmbench.core.csvc.smo" in found["fit csvc binary"]["ran"]
