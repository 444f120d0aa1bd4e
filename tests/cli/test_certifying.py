"""The command certify: a model file and its training rows."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from runs import svmbench

pytestmark = pytest.mark.usefixtures("private_cache")

ROWS = np.round(np.random.default_rng(2).normal(size=(30, 2)), 3)
LABELS = np.where(ROWS[:, 0] + 0.5 * ROWS[:, 1] > 0.1, 3, 1)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Write a model of LIBSVM, and the rows that it was trained on."""
    from libsvm import svmutil

    model = svmutil.svm_train(LABELS.tolist(), sp.csr_matrix(ROWS), "-c 2 -g 0.5 -e 1e-8 -q")
    svmutil.svm_save_model(str(tmp_path / "model"), model)
    lines = [f"{y} 1:{a} 2:{b}\n" for y, (a, b) in zip(LABELS, ROWS.tolist(), strict=True)]
    (tmp_path / "rows.txt").write_text("".join(lines), encoding="ascii")
    return tmp_path / "model", tmp_path / "rows.txt"


def test_a_model_file_is_certified_and_one_that_lies_is_not(files: tuple[Path, Path]) -> None:
    model, rows = files
    words = ("certify", model, rows, "--parameter", 2)
    ended = svmbench(*words, "--accuracy", "1e-5")
    assert ended.code == 0, ended.err
    assert "problem: hinge, offset free" in ended.out
    assert "solved to 1e-05: yes" in ended.out
    told = json.loads(svmbench(*words, "--json").out)
    assert told["primal"] - told["dual"] == pytest.approx(told["gap"], abs=1e-9)
    assert told["relative_gap"] < 1e-5
    text = model.read_text(encoding="ascii")
    rho = float(text.partition("\nrho ")[2].split()[0])
    model.write_text(text.replace(f"\nrho {rho}", f"\nrho {rho + 0.3}"), encoding="ascii")
    lie = svmbench(*words, "--accuracy", "1e-3")
    assert lie.code == 3
    assert "solved to 0.001: not certain" in lie.out
    assert svmbench("certify", model, rows).err.startswith("svmbench: the model doesn't say its C")
