"""Moments between a graph and Spark, whose sessions may be in any time zone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import omnigraph as og

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

SCHEMA = """\
node Event {
    at: DateTime @key
    seen: DateTime?
    visits: [DateTime]?
}
"""
FIRST, LAST = -62_135_596_800_000, 253_402_300_799_999
STORED = [FIRST, FIRST + 1, -1, 0, 1_500_000_000_123, LAST]
SETTINGS = ("spark.sql.session.timeZone", "spark.sql.python.filterPushdown.enabled")


@pytest.fixture(params=["UTC", "America/New_York", "Asia/Kolkata"])
def session(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[SparkSession]:
    """A session in a time zone that evaluates filters in storage."""
    before = [spark.conf.get(name) for name in SETTINGS]
    for name, value in zip(SETTINGS, (request.param, "true"), strict=True):
        spark.conf.set(name, value)
    yield spark
    for name, value in zip(SETTINGS, before, strict=True):
        spark.conf.set(name, value or "false")


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "graph", SCHEMA)
    events = [{"at": one, "seen": one, "visits": [one, 0]} for one in STORED]
    graph.load([{"type": "Event", "data": event} for event in events], mode="append")
    return graph


def millis(frame: DataFrame) -> list[tuple[int, int, list[int]]]:
    """What Spark holds, as numbers that know no time zone."""
    shown = frame.selectExpr(
        "unix_millis(at) as at",
        "unix_millis(seen) as seen",
        "transform(visits, one -> unix_millis(one)) as v",
    )
    return sorted((row["at"], row["seen"], row["v"]) for row in shown.collect())


def test_a_moment_is_the_same_in_every_time_zone(
    session: SparkSession, graph: og.Graph, tmp_path: Path
) -> None:
    frame = graph.to_spark("Event", spark=session)
    assert dict(frame.dtypes) == {
        "id": "string",
        "at": "timestamp",
        "seen": "timestamp",
        "visits": "array<timestamp>",
    }
    assert millis(frame) == [(one, one, [one, 0]) for one in STORED]
    # What Spark has is loaded as it was.
    second = og.init(tmp_path / "second", SCHEMA)
    second.load({"Event": frame.drop("id")}, mode="append", spark=session)
    assert list(second.export()) == list(graph.export())
    # So is what it exports.
    graph.export(tmp_path / "files", format="parquet", spark=session)
    third = og.init(tmp_path / "third", SCHEMA)
    third.load(tmp_path / "files", mode="append", engine="spark", spark=session)
    assert list(third.export()) == list(graph.export())
    stored = third.table("Event").schema
    moment = pa.timestamp("ms", "UTC")
    assert (stored.field("seen").type, stored.field("visits").type) == (moment, pa.list_(moment))


def test_filters_of_spark_about_moments_are_evaluated_in_storage(
    session: SparkSession, graph: og.Graph, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = graph.to_spark("Event", spark=session)
    for condition, wanted in {
        "seen = timestamp'1970-01-01T00:00:00Z'": [0],
        "seen < timestamp'1970-01-01T00:00:00Z'": [FIRST, FIRST + 1, -1],
        "seen >= timestamp'2017-07-14T02:40:00.123Z'": [1_500_000_000_123, LAST],
        "seen in (timestamp'0001-01-01T00:00:00.001Z', timestamp'1970-01-01T00:00:00Z')": [
            FIRST + 1,
            0,
        ],
    }.items():
        found = frame.where(condition)
        assert [one for one, _, _ in millis(found)] == wanted, condition
        found.explain()
        assert "Filter (" not in capsys.readouterr().out, condition
    # Between two milliseconds Spark decides.
    found = frame.where("seen > timestamp'2017-07-14T02:40:00.122999Z'")
    assert [one for one, _, _ in millis(found)] == [1_500_000_000_123, LAST]
    found.explain()
    assert "Filter (" in capsys.readouterr().out
