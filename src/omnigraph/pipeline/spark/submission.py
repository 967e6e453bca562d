"""Submissions: the command line of spark-submit that runs a verb of ours, and its memory.

Owns how the package, its environment and the memory of executors are told to Spark. Plain data:
never imports pyspark, never starts anything.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from omnigraph.errors import BadRequest, MissingExtra
from omnigraph.pipeline.input.splits import TARGET_BYTES
from omnigraph.pipeline.spark.settings import loopback_conf, shares_this_disk

MIB = 1 << 20
WORKER_MIB = 256
"""An interpreter with Arrow and Lance loaded, before it has read anything."""
WRITTEN_BYTES = 96 * MIB
"""Decoded rows that a task collects before it writes them."""
JVM_MIB = 384
"""What a JVM needs beside its heap."""
_ENVIRONMENT = "environment"


def memory_overhead_mib(cores: int) -> int:
    """`spark.executor.memoryOverhead` in MiB, for executors that run so many tasks at once.

    The rows of a task are in its Python process, not in the JVM: its split as it is read, as it is
    decoded (about three times that), what it has collected, and the same once more as it is
    written.
    """
    if cores < 1:
        raise BadRequest(f"an executor has at least one core, not {cores}")
    task = WORKER_MIB + (4 * TARGET_BYTES + 2 * WRITTEN_BYTES) // MIB
    return JVM_MIB + cores * task


@dataclass(frozen=True, slots=True)
class Submission:
    """One command of ours as an application of Spark.

    ``package`` is an archive of this package for a driver that has not got it, ``environment`` one
    of all that it needs. ``conf`` overrides what is derived.
    """

    arguments: tuple[str, ...]
    master: str | None = None
    deploy_mode: str = "client"
    executor_cores: int = 1
    package: str | None = None
    environment: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, str]:
        """What Spark is told."""
        overhead = memory_overhead_mib(self.executor_cores)
        derived = {
            "spark.executor.cores": str(self.executor_cores),
            "spark.executor.memoryOverhead": f"{overhead}m",
        }
        if self.deploy_mode == "client":
            derived |= loopback_conf(self.master or "")
            derived["spark.pyspark.driver.python"] = sys.executable
        if self.environment is not None:
            derived["spark.archives"] = f"{self.environment}#{_ENVIRONMENT}"
            derived["spark.pyspark.python"] = f"./{_ENVIRONMENT}/bin/python"
        elif self.master is not None and shares_this_disk(self.master):
            derived["spark.pyspark.python"] = sys.executable
        return {**derived, **self.conf}

    def command(self, entry: str | Path) -> list[str]:
        """The words of the command."""
        words = [spark_submit()]
        if self.master is not None:
            words += ["--master", self.master]
        words += ["--deploy-mode", self.deploy_mode]
        for key, value in sorted(self.settings.items()):
            words += ["--conf", f"{key}={value}"]
        if self.package is not None:
            words += ["--py-files", self.package]
        return [*words, str(entry), *self.arguments]


def spark_home(environment: Mapping[str, str] = os.environ) -> str:
    """That of the environment, else the one that pyspark is."""
    home = environment.get("SPARK_HOME")
    if home:
        return home
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise MissingExtra(
            "spark-submit", extra="spark", missing=["pyspark"], otherwise="set SPARK_HOME"
        )
    return str(Path(found.origin).parent)


def spark_submit(environment: Mapping[str, str] = os.environ) -> str:
    """The program of that Spark."""
    return str(Path(spark_home(environment), "bin", "spark-submit"))


def parse_conf(given: Sequence[str]) -> dict[str, str]:
    """KEY=VALUE, as the command line has them."""
    pairs = {}
    for text in given:
        key, separator, value = text.partition("=")
        if not separator:
            raise BadRequest(f"--conf takes KEY=VALUE, found {text!r}")
        pairs[key.strip()] = value.strip()
    return pairs
