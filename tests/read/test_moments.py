"""Moments: one `DateTime` in a file, in a table, in a query, in an index, and back again."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.lang.structural import ID
from omnigraph.read.access import entities
from omnigraph.wire.changes import ChangeBody
from tests import profile
from tests.wire.plain import plain
from tests.write.writing import table_of

MOMENT = pa.timestamp("ms", "UTC")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = -62_135_596_800_000, 253_402_300_799_999
"""The bounds of the language: the years 1 to 9999."""
SCHEMA = """\
node Event {
    at: DateTime @key
    seen: DateTime? @default("1969-12-31T23:59:59.999Z")
    visits: [DateTime]?
}
edge Follows: Event -> Event { since: DateTime? }
"""
MILLIS = st.sampled_from([FIRST, FIRST + 1, -86_400_001, -1, 0, 1, 999, LAST - 1, LAST])
MILLIS |= st.integers(FIRST, LAST)


def text_of(millis: int) -> str:
    moment = EPOCH + timedelta(milliseconds=millis)
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def numbers(column: pa.ChunkedArray) -> list[Any]:
    is_list = pa.types.is_list(column.type)
    found: list[Any] = column.cast(pa.list_(pa.int64()) if is_list else pa.int64()).to_pylist()
    return found


@st.composite
def events(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Events by distinct moments, as milliseconds."""
    return [
        {
            "at": at,
            "seen": draw(st.none() | MILLIS),
            "visits": draw(st.none() | st.lists(MILLIS, max_size=3)),
        }
        for at in draw(st.lists(MILLIS, min_size=1, max_size=6, unique=True))
    ]


def written(value: Any, *, as_text: bool) -> Any:
    if isinstance(value, list):
        return [written(one, as_text=as_text) for one in value]
    return text_of(value) if as_text and value is not None else value


def envelopes(given_: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every other event with texts, the others with numbers; the first leads to all."""
    nodes = [
        {
            "type": "Event",
            "data": {name: written(one[name], as_text=number % 2 == 0) for name in one},
        }
        for number, one in enumerate(given_)
    ]
    edges = [
        {
            "edge": "Follows",
            "from": str(given_[0]["at"]),
            "to": str(one["at"]),
            "data": {"id": str(number), "since": one["seen"]},
        }
        for number, one in enumerate(given_)
    ]
    return [*nodes, *edges]


@pytest.mark.slow
@profile.dear
@given(events())
@example([{"at": FIRST, "seen": LAST, "visits": [FIRST, -1, LAST]}])
def test_a_moment_survives_load_query_export_and_load(given_: list[dict[str, Any]]) -> None:
    by_id = {str(one["at"]): one for one in given_}
    with TemporaryDirectory() as directory:
        graph = og.init(Path(directory) / "first", SCHEMA)
        graph.load(envelopes(given_), mode="append")
        # As it lies in storage, for any tool.
        stored = graph.table("Event").to_table()
        assert stored.schema.field("at").type == MOMENT
        assert stored.schema.field("visits").type == pa.list_(MOMENT)
        for name in ("at", "seen", "visits"):
            found = dict(zip(stored[ID].to_pylist(), numbers(stored[name]), strict=True))
            assert found == {id_: one[name] for id_, one in by_id.items()}
        # As a query returns it.
        result = graph.query(
            "query q() { match { $e: Event } "
            "return { $e.at as at, $e.seen as seen, $e.visits as visits } order { $e.at } }"
        )
        ordered = sorted(given_, key=lambda one: one["at"])
        assert result.rows == [
            {name: written(value, as_text=True) for name, value in one.items()} for one in ordered
        ]
        table = result.to_arrow()
        assert table.schema.types == [MOMENT, MOMENT, pa.list_(MOMENT)]
        assert numbers(table["at"]) == [one["at"] for one in ordered]
        # As it is exported, and loaded from that text.
        lines = list(graph.export())
        exported = {
            line["data"]["id"]: line["data"] for line in map(json.loads, lines) if "type" in line
        }
        assert {id_: line["visits"] for id_, line in exported.items()} == {
            id_: written(one["visits"], as_text=True) for id_, one in by_id.items()
        }
        second = og.init(Path(directory) / "second", SCHEMA)
        second.load("\n".join(lines), mode="append")
        assert list(second.export()) == lines
        # And from the frames that the tables are.
        third = og.init(Path(directory) / "third", SCHEMA)
        third.load({"Event": stored, "Follows": graph.table("Follows").to_table()}, mode="append")
        assert list(third.export()) == lines


@profile.dear
@given(st.lists(MILLIS, min_size=1, max_size=4))
def test_least_and_greatest_are_moments(millis: list[int]) -> None:
    with TemporaryDirectory() as directory:
        graph = og.init(Path(directory) / "graph", "node Event { seen: DateTime? }\n")
        graph.load([{"type": "Event", "data": {"seen": one}} for one in millis], mode="append")
        found = graph.query(
            "query q() { match { $e: Event } return "
            "{ min($e.seen) as first, max($e.seen) as last } }"
        )
    assert found.rows == [{"first": text_of(min(millis)), "last": text_of(max(millis))}]
    assert found.to_arrow().schema.types == [MOMENT, MOMENT]


# -- the same wherever it comes from -----------------------------------------------


@pytest.mark.parametrize(
    ("seen", "kept"),
    [
        (pa.array([1_500_000_000_123_999], pa.timestamp("us", "UTC")), 1_500_000_000_123),
        (pa.array([-1], pa.timestamp("ns", "America/New_York")), -1),
        (pa.array([-1], pa.timestamp("s", "UTC")), -1000),
        (pa.array([FIRST], pa.timestamp("ms", "UTC")), FIRST),
        (pa.array([LAST], pa.int64()).cast(pa.date64(), safe=False), LAST),
        (pa.array(["1969-12-31T23:59:59.9999+00:00"]), -1),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_any_frame_gives_the_same_column(seen: pa.Array, kept: int, tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", SCHEMA)
    visits = pa.ListArray.from_arrays([0, 1], seen)
    graph.load({"Event": pa.table({"at": seen, "seen": seen, "visits": visits})}, mode="append")
    stored = graph.table("Event").to_table()
    assert stored[ID].to_pylist() == [str(kept)]
    assert stored.schema.field("seen").type == MOMENT
    assert (numbers(stored["seen"]), numbers(stored["visits"])) == ([kept], [[kept]])


def test_defaults_parameters_and_now_are_moments(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", SCHEMA)
    begun = datetime.now(UTC) - timedelta(milliseconds=1)
    graph.load([{"type": "Event", "data": {"at": 0}}], mode="append")
    graph.mutate(
        "query q($at: DateTime) { insert Event { at: $at  seen: now() } }",
        params={"at": EPOCH + timedelta(days=1)},
    )
    stored = graph.table("Event").to_table().sort_by("at")
    assert stored.schema.field("seen").type == MOMENT
    assert numbers(stored["at"]) == [0, 86_400_000]
    default, now = stored["seen"].to_pylist()
    assert default == EPOCH - timedelta(milliseconds=1)
    assert begun <= now <= datetime.now(UTC)
    # What differs is told as text, as ever.
    graph.branches.create("draft")
    graph.mutate(
        'query q() { update Event set { seen: datetime("2024-05-01T12:00:00Z") } '
        'where at = datetime("1970-01-01T00:00:00Z") }',
        branch="draft",
    )
    (change,) = graph.diff("main", "draft")
    told = json.dumps(plain(ChangeBody.of(change)))
    assert '"seen": "1969-12-31T23:59:59.999Z"' in told
    assert '"seen": "2024-05-01T12:00:00.000Z"' in told


# -- indexes -----------------------------------------------------------------------

INDEXED = "node Event { name: String @key  seen: DateTime? @index  visits: [DateTime]? }\n"
STORED = [FIRST, -1, 0, 1, 1_500_000_000_123, LAST, None]
CLAUSES = {
    '$e.seen = datetime("1970-01-01T00:00:00Z")': 1,
    '$e.seen = datetime("0001-01-01T00:00:00Z")': 1,
    '$e.seen != datetime("1969-12-31T23:59:59.999Z")': 5,
    '$e.seen < datetime("1970-01-01T00:00:00.001Z")': 3,
    '$e.seen <= datetime("0001-01-01T00:00:00Z")': 1,
    '$e.seen > datetime("2017-07-14T02:40:00.122Z")': 2,
    '$e.seen >= datetime("9999-12-31T23:59:59.999Z")': 1,
    '$e.seen >= datetime("1970-01-01T00:00:00Z") $e.seen < datetime("2020-01-01T00:00:00Z")': 3,
    '$e.seen in [datetime("9999-12-31T23:59:59.999Z"), datetime("1970-01-01T00:00:00Z")]': 2,
    '$e.seen in [datetime("2024-05-01T12:00:00Z")]': 0,
    "$e.seen is null": 1,
    "$e.seen is not null": 6,
    "$e.seen < now()": 5,
}
"""Conditions, and how many of the stored values pass each of them."""


def _names(graph: og.Graph, clause: str) -> list[str]:
    source = f"query q() {{ match {{ $e: Event {clause} }} return {{ $e.name as name }} }}"
    return sorted(row["name"] for row in graph.query(source))


def test_filters_find_the_same_rows_with_and_without_an_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = og.init(tmp_path / "graph", INDEXED)
    rows = [
        {"type": "Event", "data": {"name": f"{seen}/{turn}", "seen": seen, "visits": [0]}}
        for turn in range(3)
        for seen in STORED
    ]
    graph.load(rows, mode="append")
    in_memory = {clause: _names(graph, clause) for clause in CLAUSES}
    assert {clause: len(found) for clause, found in in_memory.items()} == {
        clause: 3 * count for clause, count in CLAUSES.items()
    }
    # From here on storage is asked.
    monkeypatch.setattr(entities, "MANY", -1)
    assert {clause: _names(graph, clause) for clause in CLAUSES} == in_memory
    graph.ensure_indices()
    assert {clause: _names(graph, clause) for clause in CLAUSES} == in_memory
    # Some rows that the index does not cover.
    late = [{"type": "Event", "data": {"name": f"{seen}/late", "seen": seen}} for seen in STORED]
    graph.load(late, mode="append")
    covered = {clause: _names(graph, clause) for clause in CLAUSES}
    monkeypatch.undo()
    assert covered == {clause: _names(graph, clause) for clause in CLAUSES}


def test_a_filter_on_a_moment_is_pushed_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = og.init(tmp_path / "graph", INDEXED)
    graph.load([{"type": "Event", "data": {"name": "a", "seen": 0, "visits": [0]}}], mode="append")
    graph.ensure_indices()
    monkeypatch.setattr(entities, "MANY", -1)
    clause = '$e.seen >= datetime("1970-01-01T00:00:00Z")'
    source = f"query q() {{ match {{ $e: Event {clause} }} return {{ $e.name }} }}"
    scan = graph.explain(source).to_json()["operators"][0]
    assert (scan["access"], len(scan["pushed"]), scan["in_memory"]) == ("scan", 1, [])


def test_an_index_serves_ranges_and_choices_of_moments(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", INDEXED)
    rows = [{"type": "Event", "data": {"name": str(seen), "seen": seen}} for seen in STORED]
    graph.load(rows, mode="append")
    graph.ensure_indices()
    table = table_of(graph, "node:Event")
    seen = pc.field("seen")
    for wanted in (
        seen == pa.scalar(0, MOMENT),
        (seen >= pa.scalar(-1, MOMENT)) & (seen < pa.scalar(LAST, MOMENT)),
        seen.isin(pa.array([FIRST, LAST], MOMENT)),
    ):
        assert "ScalarIndexQuery" in table.dataset().scanner(filter=wanted).explain_plan()
