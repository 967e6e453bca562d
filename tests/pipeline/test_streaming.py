"""Streaming loads: one commit for each micro-batch, exactly once, whatever happens in between."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, ValidationError
from omnigraph.pipeline.load.entry import catalog_for, load_given, on_spark
from omnigraph.pipeline.load.stage.frames import given
from omnigraph.pipeline.spark.session import spark_session
from omnigraph.pipeline.streaming import STREAM, MicroBatch
from omnigraph.write.load.operation import Load, LoadOptions
from omnigraph.write.publish.driver import Target, run
from tests import faults
from tests.pipeline.scripts import run_script

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SCHEMA = """\
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person
"""
COLUMNS = "name string, age bigint, friend string"
NOW = {"availableNow": True}


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "people.omni", SCHEMA)


@dataclass(frozen=True)
class Feed:
    """A directory whose files are micro-batches, one each."""

    directory: Path
    spark: SparkSession

    def put(self, number: int, *rows: dict[str, Any]) -> None:
        self.directory.mkdir(exist_ok=True)
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (self.directory / f"{number}.json").write_text(text, encoding="utf-8")

    def rows(self, *columns: str) -> DataFrame:
        reader = self.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
        rows = reader.json(str(self.directory))
        return rows.select(*columns) if columns else rows

    def checkpoint(self) -> Path:
        return self.directory.with_name("checkpoint")


@pytest.fixture
def feed(tmp_path: Path, spark: SparkSession) -> Feed:
    return Feed(tmp_path / "feed", spark)


def finish(query: StreamingQuery) -> None:
    query.awaitTermination()


def fails(query: StreamingQuery) -> str:
    from pyspark.errors import StreamingQueryException

    with pytest.raises(StreamingQueryException) as failed:
        query.awaitTermination()
    return str(failed.value)


def names(graph: og.Graph) -> list[str]:
    return sorted(graph.table("Person").to_table(["name"]).column("name").to_pylist())


def batches(graph: og.Graph) -> list[int]:
    """The batches that commits say they are, oldest first."""
    noted = [commit.metadata.get(STREAM) for commit in graph.commits.list()]
    return [one["batch_id"] for one in reversed(noted) if one is not None]


def loaded_inline(graph: og.Graph, name: str, batch: MicroBatch) -> None:
    load = Load([{"type": "Person", "data": {"name": name}}], LoadOptions("append"))
    load.notes[STREAM] = batch.note
    run(load, Target(graph.location, graph.manifest, "main"))


# -- which batch was loaded --------------------------------------------------------


def test_a_batch_is_recognised_by_its_query_and_its_number(graph: og.Graph) -> None:
    def is_loaded(query_id: str, batch_id: int) -> bool:
        return MicroBatch(query_id, batch_id).find(graph.manifest.view("main")) is not None

    assert not is_loaded("q", 0)
    for number in range(3):
        loaded_inline(graph, f"p{number}", MicroBatch("q", number))
    graph.load([{"type": "Person", "data": {"name": "Ann"}}], mode="append")
    assert [is_loaded("q", number) for number in range(5)] == [True, True, True, False, False]
    assert not is_loaded("another", 0)


def test_what_is_no_stream(graph: og.Graph, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="a stream is a DataFrame of Spark's, found Table"):
        graph.stream_load(pa.table({"name": ["a"]}), type="Person", checkpoint=tmp_path)
    closed = og.open(graph.location.path, read_only=True)
    with pytest.raises(BadRequest, match="open read-only"):
        closed.stream_load(pa.table({"name": ["a"]}), type="Person", checkpoint=tmp_path)


# -- on Spark ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "loaded"),
    [
        # The commit is there, and Spark has not noted that the batch is done.
        pytest.param("published", ["a", "b", "c"], id="after the commit"),
        pytest.param("publish_ready", ["a", "b"], id="before the commit"),
    ],
)
def test_a_batch_that_is_played_again_is_loaded_once(
    graph: og.Graph, feed: Feed, point: str, loaded: list[str]
) -> None:
    def start() -> StreamingQuery:
        return graph.stream_load(
            feed.rows("name", "age"), type="Person", checkpoint=feed.checkpoint(), trigger=NOW
        )

    feed.put(1, {"name": "a", "age": 1}, {"name": "b"})
    first = start()
    finish(first)
    assert names(graph) == ["a", "b"]
    feed.put(2, {"name": "c"})
    with faults.armed(point) as fault:
        assert "injected fault" in fails(start())
    assert fault.fired == 1
    assert names(graph) == loaded
    feed.put(3, {"name": "d"})
    again = start()
    finish(again)
    assert again.id == first.id
    assert names(graph) == ["a", "b", "c", "d"]
    assert batches(graph) == [0, 1, 2]
    assert {commit.metadata[STREAM]["query_id"] for commit in graph.commits.list()[:3]} == {
        first.id
    }
    finish(start())
    assert batches(graph) == [0, 1, 2]


@pytest.mark.slow
def test_several_types_of_one_stream_are_one_commit(graph: og.Graph, feed: Feed) -> None:
    types: dict[str, Callable[[DataFrame], DataFrame]] = {
        "Person": lambda rows: rows.select("name", "age"),
        "Knows": lambda rows: rows.where("friend is not null").selectExpr(
            "name as `from`", "friend as `to`"
        ),
    }
    feed.put(1, {"name": "a", "friend": "b"}, {"name": "b", "age": 3})
    feed.put(2, {"name": "a", "age": 9, "friend": "b"})
    finish(
        graph.stream_load(
            feed.rows(),
            type=types,
            mode="merge",
            branch="live",
            from_branch="main",
            checkpoint=feed.checkpoint(),
            query_name="people",
            trigger=NOW,
            actor="ann",
        )
    )
    assert graph.table("Person").count_rows() == 0
    first, second = reversed(graph.commits.list("live")[:2])
    assert (first.actor, second.metadata[STREAM]["batch_id"]) == ("ann", 1)
    people = graph.table("Person", branch="live").to_table().to_pylist()
    assert sorted((one["name"], one["age"]) for one in people) == [("a", 9), ("b", 3)]
    assert graph.table("Knows", branch="live").count_rows() == 2


@pytest.mark.slow
def test_a_row_that_is_wrong_stops_the_query_or_is_skipped(
    graph: og.Graph, feed: Feed, tmp_path: Path
) -> None:
    def start(**options: Any) -> StreamingQuery:
        rows = feed.rows("name", "age")
        return graph.stream_load(
            rows, type="Person", checkpoint=feed.checkpoint(), trigger=NOW, **options
        )

    feed.put(1, {"name": "a"})
    feed.put(2, {"name": "b", "age": 5_000_000_000}, {"name": "c"})
    assert "Person:1: Person.age: the value does not fit I32" in fails(start())
    assert names(graph) == ["a"]
    finish(start(on_error="skip", rejects=str(tmp_path / "rejects")))
    assert names(graph) == ["a", "c"]
    assert batches(graph) == [0, 1]
    (listed,) = (tmp_path / "rejects").iterdir()
    assert json.loads(listed.read_text(encoding="utf-8"))["line"] == 1


@pytest.mark.slow
def test_another_driver_with_the_same_batch(graph: og.Graph, spark: SparkSession) -> None:
    batch = MicroBatch("q", 7)
    rival = og.open(graph.location.path)
    rows = spark.createDataFrame([("a",)], "name string")
    # Prepared when the other one publishes: too late to look, and in time to claim.
    with faults.observed("changes_checked", lambda: loaded_inline(rival, "a", batch)) as seen:
        target = Target(graph.location, graph.manifest, "main")
        with spark_session(existing=spark) as engine, on_spark(engine, target) as runner:
            done = load_given(
                given({"Person": rows}, catalog_for(target)),
                LoadOptions("append"),
                target,
                runner,
                notes={STREAM: batch.note},
                once=batch,
            )
    assert seen.fired == 1
    assert done.repeats_run
    assert names(graph) == ["a"]
    assert batches(graph) == [7]


@pytest.mark.slow
def test_what_cannot_be_streamed_is_told_before_it_starts(
    graph: og.Graph, feed: Feed, spark: SparkSession
) -> None:
    feed.put(1, {"name": "a"})

    def start(rows: DataFrame, **options: Any) -> StreamingQuery:
        return graph.stream_load(rows, **{"checkpoint": feed.checkpoint(), **options})

    with pytest.raises(ValidationError, match="unknown property 'friend' for Person"):
        start(feed.rows(), type="Person")
    with pytest.raises(BadRequest, match="no type 'Persn' for this frame"):
        start(feed.rows("name"), type={"Persn": lambda rows: rows})
    with pytest.raises(BadRequest, match="which type are the rows of"):
        start(feed.rows("name"), type={})
    with pytest.raises(BadRequest, match="needs a checkpoint"):
        start(feed.rows("name"), type="Person", checkpoint=" ")
    with pytest.raises(BadRequest, match="there is no load mode 'add'"):
        start(feed.rows("name"), type="Person", mode="add")
    with pytest.raises(BadRequest, match="this DataFrame is no stream"):
        start(spark.range(3), type="Person")
    assert not feed.checkpoint().exists()


@pytest.mark.slow
def test_a_process_ends_after_its_stream(tmp_path: Path) -> None:
    ran = run_script(
        """\
        import sys
        from pathlib import Path

        import omnigraph as og
        from omnigraph.pipeline.spark.session import spark_session

        place = Path(sys.argv[1])
        (place / "feed").mkdir()
        (place / "feed" / "1.json").write_text('{"name": "a"}\\n')
        graph = og.init(place / "people.omni", "node Person { name: String @key }")
        with spark_session() as engine:
            rows = engine.session.readStream.schema("name string").json(str(place / "feed"))
            query = graph.stream_load(
                rows, type="Person", checkpoint=place / "noted", trigger={"availableNow": True}
            )
            query.awaitTermination()
        print(graph.table("Person").count_rows())
        """,
        str(tmp_path),
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "1\n", "")
