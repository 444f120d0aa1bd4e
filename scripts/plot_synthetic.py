"""Draw docs/synthetic.png: the screening paper's artificial sets, supervised and one-class.

Run it after changing a generator::

    python scripts/plot_synthetic.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

from svmbench.data import synthetic
from svmbench.data.registry import entry, names

TARGET = Path(__file__).resolve().parent.parent / "docs" / "synthetic.png"


def planar() -> list[str]:
    """Return the generated sets with two features: the supervised six, then the one-class six."""
    made = [name for name in names() if entry(name).builtin and entry(name).n_features == 2]
    found = [name for name in made if "srbo" in entry(name).papers]
    return sorted(found, key=lambda name: "oneclass" in name)


def draw(target: Path) -> None:
    """Write the figure; the classes differ in shape and in grey, so that print shows them too."""
    shown = planar()
    figure, axes = plt.subplots(2, len(shown) // 2, figsize=(12, 4.4), layout="constrained")
    for axis, name in zip(axes.flat, shown, strict=True):
        one = entry(name)
        assert one.builtin is not None
        part, _ = synthetic.BUILTINS[one.builtin](**one.parameters)
        for label, marker, colour in ((-1, "x", "0.6"), (1, ".", "0.1")):
            rows = part.X[part.labels == label]
            axis.scatter(rows[:, 0], rows[:, 1], s=6, linewidths=0.6, marker=marker, color=colour)
        axis.set_title(f"{name} ({one.counts[1]} / {one.counts[0]})", fontsize=8)
        axis.set_xticks([])
        axis.set_yticks([])
        axis.set_aspect("equal", adjustable="datalim")
    figure.savefig(target, dpi=100, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    mpl.use("Agg")
    draw(TARGET)
    print(f"wrote {TARGET.name}")
