"""The change feed as a stream of Spark: what a query has seen is exactly what the feed tells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

import omnigraph as og
from omnigraph.errors import ChangeCursorRejected, OmniGraphError
from omnigraph.pipeline.source.changes import SCHEMA, ChangeReader
from omnigraph.pipeline.source.datasource import GraphSource
from omnigraph.spark import register

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

PEOPLE = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person { since: I32? }
"""


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "graph", PEOPLE)
    add(graph, "Ann", "Ben")
    graph.load([{"edge": "Knows", "from": "Ann", "to": "Ben", "data": {}}], mode="append")
    graph.mutate('query q() { update Person set { age: 3 } where name = "Ann" }')
    return graph


def add(graph: og.Graph, *names: str) -> str:
    rows = [{"type": "Person", "data": {"name": name}} for name in names]
    return graph.load(rows, mode="append").commit.id


def reader_of(graph: og.Graph, **options: str) -> ChangeReader:
    source = GraphSource({"path": str(graph.location), "changes": "beginning", **options})
    reader = source.streamReader(source.schema())
    assert isinstance(reader, ChangeReader)
    return reader


def told(graph: og.Graph, start: str = "beginning", types: str | None = None) -> list[list[Any]]:
    """What the feed tells."""
    page = graph.changes.poll(start=start, types=types)
    assert page.caught_up
    return [
        [block.cause.graph_commit_id, one.op, one.type.name, one.id]
        for block in page.blocks
        for one in block.changes
    ]


def read(reader: ChangeReader, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        row
        for part in reader.partitions(start, end)
        for batch in reader.read(part)
        for row in batch.to_pylist()
    ]


def short(rows: list[dict[str, Any]]) -> list[list[Any]]:
    return [[row["commit"], row["op"], row["type"], row["id"]] for row in rows]


# -- without Spark -----------------------------------------------------------------


def test_offsets_are_cursors(graph: og.Graph) -> None:
    reader = reader_of(graph, max_commits="2")
    assert reader.getDefaultReadLimit() == ReadMaxFiles(2)
    start = reader.initialOffset()
    first = reader.latestOffset(start, ReadMaxFiles(2))
    second = reader.latestOffset(first, ReadMaxFiles(2))
    assert reader.latestOffset(second, ReadMaxFiles(2)) == second == reader.reportLatestOffset()
    assert reader.latestOffset(start, ReadAllAvailable()) == second
    rows = [*read(reader, start, first), *read(reader, first, second)]
    assert short(rows) == told(graph)
    assert read(reader, start, second) == rows
    assert read(reader, second, second) == []
    assert graph.changes.poll(cursor=first["cursor"]).cursor == second["cursor"]
    assert reader_of(graph, changes=first["cursor"]).initialOffset() == first
    last = rows[-1]
    assert (last["before"], last["after"]) == (
        '{"age":null,"name":"Ann"}',
        '{"age":3,"name":"Ann"}',
    )
    edge = next(row for row in rows if row["kind"] == "edge")
    assert (edge["src"], edge["dst"], edge["before"]) == ("Ann", "Ben", None)


def test_a_query_that_takes_what_is_there_ends(graph: og.Graph) -> None:
    reader = reader_of(graph, types="Person", ops="insert,update")
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    end = reader.reportLatestOffset()
    add(graph, "Cid")
    step = reader.latestOffset(start, ReadMaxFiles(1))
    assert step not in (start, end)
    assert reader.latestOffset(step, ReadMaxFiles(9)) == end
    assert reader.latestOffset(end, ReadMaxFiles(9)) == end
    assert {row["id"] for row in read(reader, start, end)} == {"Ann", "Ben"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"chnges": "now"}, "a stream has no option chnges: did you mean `changes`?"),
        ({"max_commits": "0"}, "max_commits is a number of commits from 1 on, found '0'"),
        ({"changes": "after:X"}, "commit 'X' is not in the history of branch main"),
        ({"types": "Persn"}, "Persn"),
        ({"ops": "upsert"}, "'upsert' is not a op of change"),
        ({"branch": "nowhere"}, "there is no branch nowhere"),
    ],
)
def test_wrong_options_are_explained(graph: og.Graph, options: dict[str, str], said: str) -> None:
    with pytest.raises(OmniGraphError) as raised:
        reader_of(graph, **options)
    assert said in str(raised.value)


def test_a_cursor_of_something_else_is_refused(graph: og.Graph) -> None:
    cursor = str(reader_of(graph).initialOffset()["cursor"])
    with pytest.raises(ChangeCursorRejected, match="other kinds, types or operations"):
        reader_of(graph, changes=cursor, types="Person")
    plain = GraphSource({"path": str(graph.location), "type": "Person"})
    with pytest.raises(OmniGraphError, match="a stream of a graph is of its changes"):
        plain.streamReader(plain.schema())


# -- on Spark ----------------------------------------------------------------------


@pytest.mark.slow
def test_a_query_goes_on_where_it_stopped(
    spark: SparkSession, graph: og.Graph, tmp_path: Path
) -> None:
    register(spark)
    batches: list[list[Row]] = []

    def run() -> None:
        stream = spark.readStream.format("omnigraph").options(changes="beginning", max_commits="2")
        rows = stream.load(str(graph.location))
        assert rows.schema == SCHEMA
        query = rows.writeStream.foreachBatch(lambda batch, _: batches.append(batch.collect()))
        query = query.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination()

    run()
    assert len(batches) >= 2
    assert short([row.asDict() for batch in batches for row in batch]) == told(graph)
    # A batch that was planned and not finished is played again, and is the same.
    commits = sorted(
        (tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=lambda one: int(one.name)
    )
    commits[-1].unlink()
    commits[-1].with_name(f".{commits[-1].name}.crc").unlink()
    before, last = len(batches), batches[-1]
    added = add(graph, "Cid", "Dan")
    run()
    assert batches[before] == last
    new = [row for batch in batches[before + 1 :] for row in batch]
    assert [(row.commit, row.id) for row in new] == [(added, "Cid"), (added, "Dan")]
    assert json.loads(new[0].after) == {"name": "Cid", "age": None}
