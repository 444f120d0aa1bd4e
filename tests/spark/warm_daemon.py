"""Spark's daemon of Python workers, which forks them with all imported that they would import."""

import gc

import pyspark.daemon

import svmbench.spark.l2svm
import svmbench.spark.search  # noqa: F401

if __name__ == "__main__":
    gc.freeze()  # a worker collects garbage after each task, and would look through all of it
    pyspark.daemon.manager()
