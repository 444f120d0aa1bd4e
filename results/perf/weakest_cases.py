"""Measure the calls at which svmbench was slowest beside other programs.

    python results/perf/weakest_cases.py --output results/perf [--only nu-svc dcd-l1 …]

One thread; both sides take turns, and CPU time counts. Lines of parts that are not measured stay.
The features of each set are scaled to [0, 1].

- `nu-svc`: `fit` of several classes beside NuSVC, at its default tolerance and at the largest
  tenth, hundredth … of it at which the primal value of no pair of classes is more than a hundredth
  above ours.
- `dcd-l1`: the training alone beside ReHLine's, each at its largest tolerance of a ladder that ends
  within a hundredth of the best objective. Rows are in random order, those of sparse sets in their
  own. `made` has a million rows of 18 features: two normal distributions.
- `one-class`: `fit` on the first 10 … 70 rows of the most frequent class beside OneClassSVM.
- `smallest-nu`: `theirs` is the `fit` without the search for a nu that has a margin, which the
  warning names; `ratio` the share of this search in it.
- `least-squares`: `fit` of `lssvm-cg` beside KernelRidge of scikit-learn and of himalaya, which
  solve the same system without an offset; `excess` is the share of training rows on which the
  predictions differ.
- `mushrooms`: `fit` of `newton-l2` beside LinearSVC, at the default and at equal accuracy.
- `torchkm` (only if it is asked for; needs torchkm and PyTorch): a search of `csvc` by scikit-learn
  over ten values of C in five folds, on a precomputed kernel matrix, beside TorchKMSVC on the CPU;
  `excess` as for `least-squares`.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from default_parameters import EQUAL, TOLERANCES, in_turn, most_frequent, quietly, scaled
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC, NuSVC, OneClassSVM

import svmbench
from svmbench.core.nu import nu_svc

Line = dict[str, Any]
FIELDS = (
    "part", "case", "rows", "features", "theirs", "their_tol", "ours_cpu_ms", "theirs_cpu_ms",
    "ratio", "least", "most", "turns", "excess", "our_work",
)  # fmt: skip

#: Sets of several classes, and nu.
NU_CASES = (
    ("vehicle.scale", 0.05), ("vehicle.scale", 0.5), ("segment.scale", 0.05), ("digits", 0.05),
    ("dermatology", 0.1), ("glass.scale", 0.2), ("eukaryotic", 0.3), ("diabetes_scale", 0.2),
    ("svmguide3", 0.3), ("cmc", 0.5),
)  # fmt: skip

#: Tolerances of `dcd-l1` and of ReHLine.
OUR_LADDER = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03, 0.015, 0.01)
THEIR_LADDER = (0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3)


def line_of(part: str, case: str, X: Any, theirs: str, times: dict[str, str], **rest: Any) -> Line:
    """Return a line of the table."""
    return {"part": part, "case": case, "rows": X.shape[0], "features": X.shape[1]} | {
        "theirs": theirs, **times, **rest
    }  # fmt: skip


def nu_svc_of_several(rounds: int) -> Iterator[Line]:
    """Compare `nu-svc` with NuSVC at its default tolerance and at equal accuracy."""
    for name, nu in NU_CASES:
        X, y = scaled(name)
        classes = np.unique(y)
        ours = svmbench.solver("nu-svc", nu=nu, gamma="scale")
        quietly(lambda ours=ours, X=X, y=y: ours.fit(X, y))
        models = ours.estimators_ if len(classes) > 2 else [ours]
        best = np.array([model.objective_ for model in models])
        for tol in (1e-3, *TOLERANCES):
            theirs = NuSVC(nu=nu, tol=tol)
            quietly(lambda theirs=theirs, X=X, y=y: theirs.fit(X, y))
            values = []
            for pair in combinations(classes, 2):
                # NuSVC of one pair stops where that of all classes does for this pair.
                rows = np.isin(y, pair)
                alone = NuSVC(nu=nu, tol=tol, gamma=theirs._gamma)
                quietly(lambda alone=alone, X=X, y=y, rows=rows: alone.fit(X[rows], y[rows]))
                values.append(svmbench.certify(alone, X[rows], y[rows]).primal)
            excess = float(np.max((np.array(values) - best) / np.abs(best)))
            if tol == 1e-3 or excess <= EQUAL:
                fit = (
                    (lambda m=ours, X=X, y=y: m.fit(X, y)),
                    (lambda m=theirs, X=X, y=y: m.fit(X, y)),
                )
                yield line_of(
                    "nu-svc", f"{name}, nu {nu:g}", X, "NuSVC", in_turn(*fit, rounds),
                    their_tol=f"{tol:g}", excess=f"{excess:.1e}",
                    our_work=f"{ours.counters_['updates']} steps",
                )  # fmt: skip
            if excess <= EQUAL:
                break


def hinge_sets() -> Iterator[tuple[str, Any, np.ndarray]]:
    """Yield the names, inputs and labels ±1 of the sets for the hinge loss."""
    small = ("svmguide1", "banknote", "wine-quality", "digits-even-odd", "abalone", "australian")
    for name in ("cod-rna", "ijcnn1", "a9a", *small):
        data = svmbench.load(name)
        X, y = (data.X, np.asarray(data.y)) if sp.issparse(data.X) else scaled(name)
        yield name, X, np.where(y == y.max(), 1.0, -1.0)
    rng = np.random.default_rng(0)
    y = np.where(rng.random(10**6) < 0.5, -1.0, 1.0)
    yield "made", rng.standard_normal((10**6, 18)) + 0.5 * y[:, None] * rng.standard_normal(18), y


def hinge_beside_rehline(rounds: int) -> Iterator[Line]:
    """Compare the training of `dcd-l1` with ReHLine's within a hundredth of the best objective."""
    for name, X, y in hinge_sets():

        def trained(solver: str, tol: float, X: Any = X, y: np.ndarray = y) -> tuple[float, Any]:
            model = svmbench.solver(solver, C=1.0, tol=tol)
            data = model.prepare(X, y)
            begin = time.process_time()
            quietly(lambda: model.train(data))
            seconds = time.process_time() - begin
            return seconds, quietly(lambda: model.evaluate_objective(data))

        best = trained("dcd-l1", 1e-3)[1].objective_
        chosen = {}
        for solver, ladder in (("dcd-l1", OUR_LADDER), ("rehline-l1", THEIR_LADDER)):
            for tol in ladder:
                model = trained(solver, tol)[1]
                chosen[solver] = tol, model
                if model.objective_ - best <= EQUAL * best:
                    break
        turns = [[trained(s, chosen[s][0])[0] for s in chosen] for _ in range(rounds)]
        ours, theirs = np.array(turns).T
        times = {
            "ours_cpu_ms": f"{1e3 * np.median(ours):.2f}",
            "theirs_cpu_ms": f"{1e3 * np.median(theirs):.2f}",
            "ratio": f"{np.median(theirs / ours):.2f}",
            "least": f"{np.min(theirs / ours):.2f}",
            "most": f"{np.max(theirs / ours):.2f}",
            "turns": str(rounds),
        }
        (tol, other), mine = chosen["rehline-l1"], chosen["dcd-l1"][1]
        yield line_of(
            "dcd-l1", name, X, f"ReHLine {version('rehline')}", times, their_tol=f"{tol:g}",
            excess=f"{(other.objective_ - mine.objective_) / mine.objective_:.1e}",
            our_work=f"{mine.counters_['visits']} visits",
        )  # fmt: skip


def one_class_of_few(rounds: int) -> Iterator[Line]:
    """Compare `one-class` with OneClassSVM on few rows."""
    for name in ("iris", "teach", "wine.scale", "glass.scale"):
        X, y = scaled(name)
        X = X[y == most_frequent(y)]
        for n in (10, 20, 30, 50, 70):
            for nu in (0.5, 0.05):
                some = np.ascontiguousarray(X[:n])
                ours = svmbench.solver("one-class", nu=nu, gamma="scale")
                theirs = OneClassSVM(nu=nu)
                quietly(lambda m=ours, X=some: m.fit(X))
                fit = (lambda m=ours, X=some: m.fit(X)), (lambda m=theirs, X=some: m.fit(X))
                if len(X) >= n:
                    yield line_of(
                        "one-class", f"{name}, nu {nu:g}", some, "OneClassSVM",
                        in_turn(*fit, 5 * rounds), their_tol="0.001",
                        our_work=f"{ours.counters_['updates']} steps",
                    )  # fmt: skip


def share_of_smallest_nu(rounds: int) -> Iterator[Line]:
    """Measure the share in a `fit` of the search for a nu that has a margin."""
    search, spent = nu_svc.useful_nu, [0.0]

    def timed(*given: Any, **named: Any) -> float:
        begin = time.process_time()
        found = search(*given, **named)
        spent[0] += time.process_time() - begin
        return found

    nu_svc.useful_nu = timed
    cases = (
        ("a1a", 0.074, 1 / 119), ("a3a", 0.097, 1 / 122), ("a1a", 0.05, 1 / 119),
        ("a3a", 0.05, 1 / 122), ("cmc", 0.05, 1 / 9), ("yeast", 0.02, 1 / 8),
        ("german.numer_scale", 0.05, 1 / 24), ("haberman", 0.02, 0.5),
        ("liver-disorders", 0.1, 1.0),
    )  # fmt: skip
    for name, nu, gamma in cases:
        data = svmbench.load(name)
        X, y = data.X, np.asarray(data.y)
        if len(np.unique(y)) > 2:
            y = np.where(y == most_frequent(y), 1.0, -1.0)
        model, rests, shares = svmbench.solver("nu-svc", nu=nu, gamma=gamma), [], []
        for _ in range(rounds + 1):
            spent[0], begin = 0.0, time.process_time()
            quietly(lambda m=model, X=X, y=y: m.fit(X, y))
            rests.append(time.process_time() - begin - spent[0])
            shares.append(spent[0] / rests[-1])
        certificate = svmbench.certify(model, X, y)
        yield line_of(
            "smallest-nu", f"{name}, nu {nu:g}, gamma {gamma:.4g}", X, "fit without it",
            {"theirs_cpu_ms": f"{1e3 * np.median(rests[1:]):.2f}",
             "ratio": f"{np.median(shares[1:]):.3f}", "least": f"{np.min(shares[1:]):.3f}",
             "most": f"{np.max(shares[1:]):.3f}", "turns": str(rounds)},
            excess=f"{certificate.primal:.1e}", our_work=model.stop_reason_,
        )  # fmt: skip
    nu_svc.useful_nu = search


def least_squares_with_kernels(rounds: int) -> Iterator[Line]:
    """Compare `lssvm-cg` with KernelRidge of scikit-learn and of himalaya."""
    from himalaya.kernel_ridge import KernelRidge as HimalayaRidge

    for name, rows in (("electrical", 4000), ("wine-quality", 4000), ("splice", 1000)):
        X, y = scaled(name)
        X, signs = X[:rows], np.where(y[:rows] == y.max(), 1.0, -1.0)
        gamma = 1.0 / (X.shape[1] * X.var())
        ours = svmbench.solver("lssvm-cg", C=1.0, gamma=gamma)
        quietly(lambda m=ours, X=X, y=signs: m.fit(X, y))
        others: list[tuple[str, Any]] = [
            (f"KernelRidge {version('scikit-learn')}", KernelRidge(0.5, kernel="rbf", gamma=gamma))
        ]
        for solver in ("conjugate_gradient", "eigenvalues"):
            ridge = HimalayaRidge(0.5, kernel="rbf", kernel_params={"gamma": gamma}, solver=solver)
            others.append((f"himalaya {version('himalaya')}, {solver}", ridge))
        for label, theirs in others:
            quietly(lambda m=theirs, X=X, y=signs: m.fit(X, y))
            fit = (
                (lambda m=ours, X=X, y=signs: m.fit(X, y)),
                (lambda m=theirs, X=X, y=signs: m.fit(X, y)),
            )
            differs = np.mean((np.ravel(theirs.predict(X)) > 0.0) != (ours.predict(X) > 0.0))
            yield line_of(
                "least-squares", name, X, label, in_turn(*fit, rounds), excess=f"{differs:.4f}",
                our_work=f"{ours.counters_['products']} products",
            )  # fmt: skip


def search_beside_torchkm(rounds: int) -> Iterator[Line]:
    """Compare a search over ten values of C in five folds with TorchKM's on a CPU."""
    import torch
    from torchkm import TorchKMSVC

    torch.set_num_threads(1)
    costs = np.logspace(-2, 2, 10)
    for name in ("australian", "svmguide3", "a1a"):
        X, y = scaled(name)
        signs = np.where(y == y.max(), 1.0, -1.0)
        squares = np.sum(X * X, axis=1)
        distances = np.maximum(squares[:, None] + squares - 2.0 * X @ X.T, 0.0)
        K = np.exp(-distances / (X.shape[1] * X.var()))
        ours = GridSearchCV(svmbench.solver("csvc", kernel="precomputed"), {"C": costs}, cv=5)
        theirs = TorchKMSVC(kernel="precomputed", Cs=costs, cv=5, device="cpu")
        for model in (ours, theirs):
            quietly(lambda m=model, K=K, y=signs: m.fit(K, y))
        fit = (
            (lambda m=ours, K=K, y=signs: m.fit(K, y)),
            (lambda m=theirs, K=K, y=signs: m.fit(K, y)),
        )
        differs = np.mean(ours.predict(K) != np.asarray(theirs.predict(K)))
        label = f"TorchKM {version('torchkm')}, PyTorch {torch.__version__}"
        work = f"C {ours.best_params_['C']:.3g}, theirs {float(theirs.best_C_):.3g}"
        times = in_turn(*fit, rounds)
        yield line_of("torchkm", name, X, label, times, excess=f"{differs:.4f}", our_work=work)


def newton_on_mushrooms(rounds: int) -> Iterator[Line]:
    """Compare `newton-l2` with LinearSVC on mushrooms."""
    X, y = scaled("mushrooms")
    ours = svmbench.solver("newton-l2", C=1.0, tol=1e-4)
    quietly(lambda: ours.fit(X, y))
    best = svmbench.certify(ours, X, y).primal
    for tol in (1e-4, 1e-5, 1e-6, 1e-7):
        theirs = LinearSVC(tol=tol)
        quietly(lambda m=theirs: m.fit(X, y))
        excess = (svmbench.certify(theirs, X, y).primal - best) / best
        if tol == 1e-4 or excess <= EQUAL / 100:
            times = in_turn(lambda: ours.fit(X, y), lambda m=theirs: m.fit(X, y), 3 * rounds)
            yield line_of(
                "mushrooms", "mushrooms", X, "LinearSVC", times, their_tol=f"{tol:g}",
                excess=f"{excess:.1e}", our_work=f"{ours.counters_['visits']} visits",
            )  # fmt: skip
        if excess <= EQUAL / 100:
            break


PARTS: dict[str, Callable[[int], Iterator[Line]]] = {
    "nu-svc": nu_svc_of_several,
    "dcd-l1": hinge_beside_rehline,
    "one-class": one_class_of_few,
    "smallest-nu": share_of_smallest_nu,
    "least-squares": least_squares_with_kernels,
    "mushrooms": newton_on_mushrooms,
    "torchkm": search_beside_torchkm,
}


def main() -> None:
    """Measure the parts, and write a line for each case."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS)[:-1])
    parser.add_argument("--output", type=Path, help="folder of weakest_cases.csv")
    given = parser.parse_args()
    path = given.output / "weakest_cases.csv" if given.output else None
    for part in given.only:
        lines: list[Line] = []
        for line in PARTS[part](given.rounds):
            lines.append(line)
            print("  ".join(f"{key}={value}" for key, value in line.items()), flush=True)
        if path is None:
            continue
        kept: list[Line] = []
        if path.exists():
            with path.open(newline="", encoding="utf-8") as stream:
                kept = [line for line in csv.DictReader(stream) if line["part"] != part]
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, FIELDS, lineterminator="\n", extrasaction="ignore")
            writer.writeheader()
            writer.writerows(
                sorted([*kept, *lines], key=lambda line: list(PARTS).index(line["part"]))
            )


if __name__ == "__main__":
    main()
