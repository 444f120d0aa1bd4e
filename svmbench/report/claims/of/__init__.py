"""The checks, a module for each paper; importing this declares them all."""

from svmbench.report.claims.of import alsvm, cpsp, fosvm, nlsgd, sgdlssvm, smo, srbo

__all__ = ["alsvm", "cpsp", "fosvm", "nlsgd", "sgdlssvm", "smo", "srbo"]
