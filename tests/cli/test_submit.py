"""`omnigraph submit`: the command of spark-submit that it prints."""

from __future__ import annotations

import shlex
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnigraph.cli import submitted
from omnigraph.pipeline.spark.submission import memory_overhead_mib, spark_home, spark_submit

Run = Callable[..., Any]


def words_of(run: Run, *arguments: str) -> list[str]:
    ran = run("submit", *arguments)
    assert ran.code == 0, ran.err
    home, *words = shlex.split(ran.out)
    assert home == f"SPARK_HOME={spark_home()}"
    return words


def conf_of(words: list[str]) -> dict[str, str]:
    pairs = [words[at + 1] for at, word in enumerate(words) if word == "--conf"]
    return dict(pair.split("=", 1) for pair in pairs)


def test_it_prints_a_command(run: Run) -> None:
    words = words_of(
        run, "--master", "spark://localhost:7077", "--executor-cores", "4", "--", "load", "s3://b/g",
        *("--data", "x y.csv", "--mode", "append"),
    )  # fmt: skip
    assert words[:5] == [
        *(spark_submit(), "--master", "spark://localhost:7077", "--deploy-mode", "client"),
    ]
    entry = words.index(submitted.__file__)
    assert words[entry + 1 :] == ["load", "s3://b/g", "--data", "x y.csv", "--mode", "append"]
    conf = conf_of(words)
    assert conf["spark.executor.cores"] == "4"
    assert conf["spark.executor.memoryOverhead"] == f"{memory_overhead_mib(4)}m"
    # Workers of this machine run this interpreter.
    assert conf["spark.pyspark.python"] == sys.executable


def test_what_is_said_wins(run: Run, tmp_path: Path) -> None:
    package = tmp_path / "package.zip"
    words = words_of(
        run,
        *("--master", "yarn", "--deploy-mode", "cluster", "--package", str(package)),
        *("--environment", "s3://b/env.tar.gz", "--conf", "spark.executor.memoryOverhead=9g"),
        *("version",),
    )
    conf = conf_of(words)
    assert conf["spark.executor.memoryOverhead"] == "9g"
    assert "spark.pyspark.driver.python" not in conf
    assert conf["spark.archives"] == "s3://b/env.tar.gz#environment"
    assert conf["spark.pyspark.python"] == "./environment/bin/python"
    assert words[words.index("--py-files") + 1] == str(package)
    assert "omnigraph/cli/submitted.py" in zipfile.ZipFile(package).namelist()


def test_memory_follows_the_tasks() -> None:
    one, four = memory_overhead_mib(1), memory_overhead_mib(4)
    assert (one, four - one) == (384 + 576, 3 * 576)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--conf", "x", "load"), 1, "--conf takes KEY=VALUE, found 'x'"),
        (("--executor-cores", "0", "load"), 2, "--executor-cores"),
        ((), 2, "COMMAND"),
    ],
)
def test_what_it_cannot_submit(run: Run, arguments: tuple[str, ...], code: int, said: str) -> None:
    ran = run("submit", *arguments)
    assert ran.code == code
    assert said in ran.err
