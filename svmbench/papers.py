"""The seven papers whose experiments the suite re-runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """One paper: its key in configs and records, and its citation."""

    key: str
    citation: str


PAPERS: dict[str, Paper] = {
    paper.key: paper
    for paper in (
        Paper(
            "smo",
            "J. C. Platt: Sequential Minimal Optimization: A Fast Algorithm for Training Support "
            "Vector Machines. Microsoft Research technical report MSR-TR-98-14, 1998",
        ),
        Paper(
            "cpsp",
            "T. Joachims, C.-N. J. Yu: Sparse Kernel SVMs via Cutting-Plane Training. "
            "Machine Learning 76, 2009",
        ),
        Paper(
            "alsvm",
            "T. Le, V. Nguyen, A. Nguyen, K. Nguyen: Adaptable Linear Support Vector Machine. "
            "NICS 2015",
        ),
        Paper(
            "sgdlssvm",
            "K. Nguyen, T. Le, V. Lai, D. Nguyen, D. Tran, W. Ma: Least Square Support Vector "
            "Machine for Large-Scale Dataset. IJCNN 2015",
        ),
        Paper(
            "fosvm",
            "T. Le, D. Phung, K. Nguyen, S. Venkatesh: Fast One-Class Support Vector Machine for "
            "Novelty Detection. PAKDD 2015",
        ),
        Paper(
            "nlsgd",
            "G. Melki, V. Kecman: Speeding Up Online Training of L1 Support Vector Machines. "
            "SoutheastCon 2016",
        ),
        Paper(
            "srbo",
            "Z. Yang, W. Chen, H. Zhang, Y. Xu, L. Shi, J. Zhao: A Safe Screening Rule with "
            "Bi-level Optimization of nu Support Vector Machine (preprint)",
        ),
    )
}
