"""Spark's daemon of Python workers, which forks them with all imported that they would import."""

import pyspark.daemon

import svmbench.spark.l2svm
import svmbench.spark.search  # noqa: F401

if __name__ == "__main__":
    pyspark.daemon.manager()
