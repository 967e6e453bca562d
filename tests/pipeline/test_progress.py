from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import textwrap

import pytest

from omnigraph.pipeline.spark.engine import SparkEngine
from omnigraph.pipeline.spark.progress import stages

pytestmark = pytest.mark.slow

WORK = """
    from omnigraph.pipeline.spark.progress import stages
    from omnigraph.pipeline.spark.session import SparkSettings, spark_session

    with spark_session(SparkSettings("local[2]")) as engine:
        with stages(engine, show=True) as progress:
            with progress.stage("read", total_tasks=6) as stage:
                engine.session.range(0, 60, numPartitions=6).collect()
                stage.note("60 rows")
            with progress.stage("nothing to do"):
                pass
"""


def test_a_person_sees_a_bar_for_each_stage() -> None:
    shown = on_a_terminal(WORK)
    last = shown[shown.rindex("read") :]
    assert re.search(r"read +━+ +6/6 tasks +0:00:\d\d 60 rows", last)
    assert re.search(r"nothing to do +━+", last)


def on_a_terminal(text: str) -> str:
    """What a script writes to a terminal, without colours."""
    reader, writer = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text)],
        env={**os.environ, "COLUMNS": "120", "TERM": "xterm"},
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=writer,
    )
    os.close(writer)
    written = b""
    try:
        while chunk := os.read(reader, 65536):
            written += chunk
    except OSError:
        pass  # how a terminal says that nobody writes to it any more
    finally:
        os.close(reader)
        assert process.wait() == 0, written
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.decode("utf-8"))


def test_the_jobs_of_a_stage_are_a_group_and_the_users_group_comes_back(
    spark_engine: SparkEngine,
) -> None:
    context = spark_engine.session.sparkContext
    context.setJobGroup("theirs", "of the user's")
    try:
        with stages(spark_engine, show=False) as progress, progress.stage("count"):
            group = context.getLocalProperty("spark.jobGroup.id")
            assert context.getLocalProperty("spark.job.description") == "count"
            assert spark_engine.session.range(0, 8, numPartitions=2).count() == 8
        assert group is not None
        assert len(context.statusTracker().getJobIdsForGroup(group)) >= 1
        assert context.getLocalProperty("spark.jobGroup.id") == "theirs"
        assert context.getLocalProperty("spark.job.description") == "of the user's"
        with (
            pytest.raises(ValueError, match="of ours"),
            stages(spark_engine, show=False) as progress,
            progress.stage("fails"),
        ):
            raise ValueError("of ours")
        assert context.getLocalProperty("spark.jobGroup.id") == "theirs"
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]
