"""Clusters as people use them: spark-submit, Connect, and executors that cannot do the work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.pipeline.spark.jvm import find_java
from omnigraph.pipeline.spark.submission import spark_home, spark_submit
from tests import jvm
from tests.pipeline.cluster import Cluster
from tests.pipeline.scripts import output_of
from tests.s3_server import free_ports

pytestmark = pytest.mark.slow
SECONDS = 600
SMALL = "spark.executor.memory=512m"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "graph", "node Person { name: String @key  age: I32? }\n")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "people.jsonl"
    lines = [{"type": "Person", "data": {"name": f"p{n}", "age": n}} for n in range(50)]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def test_a_load_is_submitted(cluster: Cluster, graph: og.Graph, rows: Path) -> None:
    ran = subprocess.run(
        [
            *(str(Path(sys.executable).with_name("omnigraph")), "submit", "--run"),
            *("--master", cluster.url, "--conf", SMALL),
            *("--conf", "spark.executor.memoryOverhead=256m"),
            *("--", "load", str(graph.location), "--data", str(rows), "--mode", "append"),
            *("--engine", "spark", "--json"),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    # Spark puts what a driver says on standard error among the rest.
    told = json.JSONDecoder().raw_decode(ran.stdout, ran.stdout.index("{"))[0]
    assert (told["engine"], told["total_entities"]) == ("spark", 50)
    assert graph.table("Person").count_rows() == 50


HIDDEN = """
import os, sys
if os.environ.get("HIDE") == "lance":
    sys.modules["lance"] = None
if os.environ.get("HIDE") == "python":
    sys.version_info = (3, 7, 0, "final", 0)
"""


def test_executors_that_cannot_do_the_work_are_told_of(
    cluster: Cluster, graph: og.Graph, tmp_path: Path
) -> None:
    """Two drivers: what executors see is settled when they start."""
    (tmp_path / "sitecustomize.py").write_text(HIDDEN, encoding="utf-8")
    text = """
        import sys
        import omnigraph as og
        from omnigraph.errors import EngineError
        from omnigraph.pipeline.spark.settings import SparkSettings

        master, hidden, root, place = sys.argv[1:]
        conf = {
            "spark.executor.memory": "512m",
            "spark.executorEnv.PYTHONPATH": place,
            "spark.executorEnv.HIDE": hidden,
        }
        row = {"type": "Person", "data": {"name": "x"}}
        try:
            spark = SparkSettings(master, conf=conf)
            og.open(root).load([row], mode="append", engine="spark", spark=spark)
        except EngineError as error:
            print(error)
    """
    said = output_of(text, cluster.url, "lance", str(graph.location), str(tmp_path))
    assert said[0] == f"executors of {cluster.url} cannot do the work; nothing was begun"
    assert "not installed: pylance==" in said[1]
    assert "ship an environment (spark.archives)" in said[1]
    said = output_of(text, cluster.url, "python", str(graph.location), str(tmp_path))
    assert said[0].startswith(f"executors of {cluster.url} cannot run Python 3.")
    assert "spark.pyspark.python=PATH" in said[1]
    assert graph.table("Person").count_rows() == 0


@contextmanager
def connect_server(directory: Path, port: int) -> Iterator[None]:
    """A server of Spark Connect with a local Spark of its own."""
    log = directory / "connect.log"
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": spark_home(),
        "JDK_JAVA_OPTIONS": jvm.OPTIONS,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }

    with log.open("wb") as said:
        process = subprocess.Popen(
            [
                *(spark_submit(), "--master", "local[2]", "--conf", "spark.ui.enabled=false"),
                *("--conf", f"spark.connect.grpc.binding.port={port}"),
                *("--conf", "spark.connect.grpc.binding.address=127.0.0.1"),
                *("--conf", "spark.driver.memory=1g"),
                *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
                "spark-internal",
            ],
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_a_load_through_spark_connect(s3_bucket: str, rows: Path, tmp_path: Path) -> None:
    """The client has no JVM; the server and the graph are wherever they are."""
    (port,) = free_ports(1)
    root = f"{s3_bucket}/graph"
    graph = og.init(root, "node Person { name: String @key  age: I32? }\n")
    text = """
        import sys, warnings
        warnings.simplefilter("ignore")
        import omnigraph as og
        from omnigraph.pipeline.spark.settings import SparkSettings

        root, remote, data = sys.argv[1:]
        graph = og.open(root)
        spark = SparkSettings(remote=remote)
        done = graph.load(data, mode="append", engine="spark", spark=spark)
        print(done.engine, done.total)
        print(graph.load(data, mode="merge", engine="spark", spark=spark).total)
    """
    with connect_server(tmp_path, port):
        remote = f"sc://127.0.0.1:{port}"
        ran = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(text), root, remote, str(rows)],
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
    log = (tmp_path / "connect.log").read_text(encoding="utf-8", errors="replace")
    assert ran.stdout.splitlines() == ["spark 50", "50"], ran.stderr[-2000:] + log[-2000:]
    assert graph.table("Person").count_rows() == 50
