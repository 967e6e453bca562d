"""Frames: which columns stand for what, and what is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest

from omnigraph.errors import BadRequest, ValidationError
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.write.change.change_set import TypeBatch, row_schema, type_key
from omnigraph.write.load.sifting import sift_frames
from omnigraph.write.rules.violations import SourceLocation

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    big: U64?
    small: F32?
    score: F64? @default(0.5)
    active: Bool?
    born: Date?
    seen: DateTime?
    tags: [String]?
    counts: [I32]?
    face: Vector(2)?
    photo: Blob?
    mood: enum(sad, happy)?
}
node Note { text: String }
node Same { a: String? }
edge Same: Note -> Note
edge Knows: Person -> Person { since: Date? }
"""
CATALOG = compile_schema(SCHEMA).catalog


def decode(**frames: object) -> dict[str, TypeBatch]:
    batches = [one.batch for one in sift_frames(frames, CATALOG, strict=True).batches]
    for batch in batches:
        assert batch.rows.schema.names == row_schema(batch.type).names
    return {type_key(batch.type): batch for batch in batches}


def column(name: str, array: Any) -> list[Any]:
    """What a column of persons becomes."""
    frame = pa.table({"name": [str(at) for at in range(len(array))], name: array})
    rows = decode(Person=frame)["node:Person"].rows
    converted = rows[name].cast(pa.int64()) if name == "seen" else rows[name]
    return list(converted.to_pylist())


def problems(frame: object, name: str = "Person") -> list[str]:
    with pytest.raises(ValidationError) as caught:
        sift_frames({name: frame}, CATALOG, strict=True)
    found = caught.value.details["violations"]
    assert caught.value.details["total"] == len(found)
    return [f"{one['line']} {one['rule']} {one['message']}" for one in found]


def problem(name: str, array: Any) -> str:
    (only,) = problems(pa.table({"name": [str(at) for at in range(len(array))], name: array}))
    return only


@pytest.mark.parametrize(
    ("name", "array", "values"),
    [
        ("age", pa.array([1, None], pa.int64()), [1, None]),
        ("age", pa.array([1, 2], pa.uint8()), [1, 2]),
        ("big", pa.array([1, 2**64 - 1], pa.uint64()), [1, 2**64 - 1]),
        ("big", pa.array([1, 2], pa.int16()), [1, 2]),
        ("small", pa.array([0.5, 2.0], pa.float64()), [0.5, 2.0]),
        ("score", pa.array([1, 2], pa.int32()), [1.0, 2.0]),
        ("active", pa.array([True, None]), [True, None]),
        ("mood", pa.array(["sad", None]).dictionary_encode(), ["sad", None]),
        ("mood", pa.array(["sad", None], pa.large_string()), ["sad", None]),
        ("mood", pa.array(["sad", None], pa.string_view()), ["sad", None]),
        ("mood", pa.nulls(2), [None, None]),
        ("face", pa.nulls(1), [None]),
        ("born", pa.array(["2020-01-01", None]), [date(2020, 1, 1), None]),
        ("born", pa.array([date(2020, 1, 1), None], pa.date32()), [date(2020, 1, 1), None]),
        ("born", pa.array([date(2020, 1, 1)], pa.date64()), [date(2020, 1, 1)]),
        ("born", pa.array([1, None]), [date(1970, 1, 2), None]),
        ("born", pa.array([datetime(1969, 1, 1)], pa.timestamp("ns")), [date(1969, 1, 1)]),  # noqa: DTZ001
        ("seen", pa.array(["1970-01-01T00:00:01Z", None]), [1000, None]),
        ("seen", pa.array([datetime(1970, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")), [0]),
        ("seen", pa.array([-1], pa.timestamp("us", "Europe/Paris")), [-1]),
        ("seen", pa.array([5]), [5]),
        ("tags", pa.array([["a"], [], None]), [["a"], [], None]),
        ("tags", pa.array([["a"]], pa.large_list(pa.large_string())), [["a"]]),
        ("tags", pa.array([[], []], pa.list_(pa.null())), [[], []]),
        ("counts", pa.array([[1, 2], None], pa.list_(pa.int64())), [[1, 2], None]),
        ("face", pa.array([[1, 2], None], pa.list_(pa.float64())), [[1, 2], None]),
        ("face", pa.array([[1, 2], None], pa.list_(pa.float32(), 2)), [[1, 2], None]),
        ("face", pa.array([None, [1, 2]], pa.large_list(pa.int8())), [None, [1, 2]]),
        ("photo", pa.array([b"a", None]), [b"a", None]),
    ],
)
def test_columns(name: str, array: Any, values: list[Any]) -> None:
    assert column(name, array) == values


@pytest.mark.parametrize(
    ("name", "array", "told"),
    [
        ("age", [2**31, 1], "1 type Person.age: the value does not fit I32"),
        ("age", [1.0], "None type frame 'Person': Person.age: a column of double cannot hold I32"),
        (
            "age",
            [1.0, None],
            ("None type frame 'Person': Person.age: a column of double cannot hold I32"),
        ),
        ("age", ["1"], "None type frame 'Person': Person.age: a column of string cannot hold I32"),
        ("big", [1, -1], "2 type Person.big: the value does not fit U64"),
        ("small", [1e39], "1 type Person.small: the value does not fit F32"),
        (
            "score",
            [float("nan")],
            ("1 type Person.score: the number is not finite; write null if there is none"),
        ),
        (
            "mood",
            [1],
            (
                "None type frame 'Person': Person.mood: a column of int64 cannot hold"
                " enum(happy, sad)"
            ),
        ),
        ("born", ["2020-02-30"], "1 type Person.born: the value does not fit Date"),
        ("born", ["2020-01-01T00:00:00Z"], "1 type Person.born: the value does not fit Date"),
        ("born", [2932897], "1 type Person.born: the value does not fit Date"),
        (
            "born",
            pa.array([1], pa.timestamp("ms")),
            ("1 type Person.born: the value does not fit Date"),
        ),
        ("tags", [["a", None]], "1 type Person.tags: a list has no null elements"),
        ("counts", [[1], [2**31]], "2 type Person.counts: the value does not fit [I32]"),
        (
            "counts",
            [1],
            ("None type frame 'Person': Person.counts: a column of int64 cannot hold [I32]"),
        ),
        ("face", [[1.0, 2.0], [1.0]], "2 type Person.face: the value does not fit Vector(2)"),
        (
            "face",
            [[1.0, float("inf")]],
            ("1 type Person.face: the number is not finite; write null if there is none"),
        ),
        (
            "photo",
            ["base64:YQ=="],
            ("None type frame 'Person': Person.photo: a column of string cannot hold Blob"),
        ),
        (
            "nme",
            [1],
            ("None format frame 'Person': unknown property 'nme' for Person; did you mean `name`?"),
        ),
        ("_rowid", [1], "None format frame 'Person': '_rowid' is reserved physical state"),
        ("id", ["x"], "1 format id 'x' is not the id its key gives: '0'; leave it out"),
        (
            "id",
            pa.array(["0", None]),
            ("2 type 'id' must be a string, found null; leave the column out to have ids made"),
        ),
    ],
)
def test_what_does_not_fit(name: str, array: Any, told: str) -> None:
    assert problem(name, array) == told


def test_times_without_a_zone_are_refused_with_advice() -> None:
    told = problem("seen", pa.array([1], pa.timestamp("ms")))
    assert "have no time zone" in told
    assert 'tz_localize("UTC")' in told


def test_a_missing_column_takes_the_default_and_a_null_cell_does_not() -> None:
    assert column("score", pa.array([None, 1.0])) == [None, 1.0]
    assert decode(Person=pa.table({"name": ["a"]}))["node:Person"].rows["score"].to_pylist() == [
        0.5
    ]


def test_required() -> None:
    assert problems(pa.table({"id": ["a"]}), "Note") == [
        "1 required non-nullable property 'text' has null or invalid values"
    ]


def test_ids_and_ends() -> None:
    found = decode(
        Person=pa.table({"name": ["a", "b"]}),
        Note=pa.table({"text": ["x"], "id": ["n"]}),
        knows=pa.table({"from": ["a"], "to": ["b"]}),
        **{"edge:Same": pa.table({"src": ["n"], "dst": ["n"], "id": ["e"]})},
    )
    assert list(found) == ["edge:Knows", "edge:Same", "node:Note", "node:Person"]
    assert found["node:Person"].rows[ID].to_pylist() == ["a", "b"]
    assert found["edge:Knows"].fresh is None
    same = found["edge:Same"]
    assert (same.rows[SRC].to_pylist(), same.rows[DST].to_pylist()) == (["n"], ["n"])
    assert same.fresh is not None
    assert same.fresh.to_pylist() == [False]
    assert found["node:Note"].places.place(0, "text") == SourceLocation("Note", 1)


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (
            {"from": ["a"]},
            ("None format frame 'Knows': an edge needs a column 'to' with the ids of nodes"),
        ),
        (
            {"from": ["a"], "src": ["a"], "to": ["b"]},
            (
                "None format frame 'Knows': an edge needs only"
                " one of the columns 'from' and 'src' with the ids of nodes"
            ),
        ),
        ({"from": [None], "to": ["b"]}, "1 type 'from' must be the id of a node, found null"),
        (
            {"from": [1], "to": ["b"]},
            ("None type frame 'Knows': 'from' must be a column of strings, found int64"),
        ),
    ],
)
def test_ends_are_needed(columns: dict[str, list[Any]], told: str) -> None:
    assert problems(pa.table(columns), "Knows") == [told]


def test_all_problems_of_all_frames_are_told() -> None:
    frames = {
        "Person": pa.table({"name": ["a", None], "age": ["x", "y"]}),
        "Note": pa.table({"text": pa.nulls(150, pa.string())}),
    }
    with pytest.raises(ValidationError) as caught:
        sift_frames(frames, CATALOG, strict=True)
    assert caught.value.details["total"] == 151


class Stream:
    """Anything that exports an Arrow stream, as a Polars frame does."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def test_kinds_of_frames() -> None:
    table = pa.table({"text": ["a", "b"]})
    batch = table.to_batches()[0]
    readers = [
        table,
        batch,
        pa.RecordBatchReader.from_batches(batch.schema, [batch]),
        Stream(table),
        pd.DataFrame({"text": ["a", "b"]}, index=[7, 8]),
    ]
    for frame in readers:
        assert decode(Note=frame)["node:Note"].rows["text"].to_pylist() == ["a", "b"]


def test_pandas() -> None:
    frame = pd.DataFrame(
        {
            "name": ["a", "b", "c"],
            "age": [1, None, 3],
            "score": [0.5, np.nan, 1.5],
            "born": [date(2020, 1, 1), None, date(2020, 1, 2)],
            "seen": pd.to_datetime(["2020-01-01", None, "2020-01-02"]).tz_localize("UTC"),
            "tags": [["x"], None, []],
            "face": [np.array([1.0, 2.0]), None, [3.0, 4.0]],
            "mood": pd.Categorical(["sad", None, "happy"]),
        }
    )
    rows = decode(Person=frame)["node:Person"].rows
    assert rows["age"].to_pylist() == [1, None, 3]
    assert rows["score"].to_pylist() == [0.5, None, 1.5]
    assert rows["born"].to_pylist() == [date(2020, 1, 1), None, date(2020, 1, 2)]
    assert rows["tags"].to_pylist() == [["x"], None, []]
    assert rows["face"].to_pylist() == [[1, 2], None, [3, 4]]
    assert rows["mood"].to_pylist() == ["sad", None, "happy"]


def test_pandas_floats_are_integers_only_because_of_gaps() -> None:
    assert problems(pd.DataFrame({"name": ["a", "b"], "age": [1.5, None]})) == [
        "1 type Person.age: the value does not fit I32"
    ]
    (told,) = problems(pd.DataFrame({"name": ["a"], "age": [1.0]}))
    assert "a column of double cannot hold I32" in told


def test_pandas_columns_of_mixed_values_are_refused() -> None:
    with pytest.raises(BadRequest, match="frame 'Person' cannot be read"):
        decode(Person=pd.DataFrame({"name": ["a", 1]}))
    with pytest.raises(BadRequest, match="give a DataFrame"):
        decode(Person=pd.Series(["a"]))


@pytest.mark.parametrize(
    ("frames", "told"),
    [
        ({"Persn": pa.table({})}, "no type 'Persn' for this frame; did you mean `Person`"),
        ({"node:Knows": pa.table({})}, "no type 'node:Knows'"),
        ({"Same": pa.table({})}, "'Same' is a node type and an edge type"),
        ({"knows": pa.table({}), "Knows": pa.table({})}, "frames of one type"),
        ({"Note": [1]}, "'Note' is no frame but list"),
    ],
)
def test_names_and_values_that_are_no_frames(frames: dict[str, object], told: str) -> None:
    with pytest.raises(BadRequest, match=told):
        sift_frames(frames, CATALOG, strict=True)


def test_no_rows() -> None:
    batch = decode(Person=pa.table({"name": pa.array([], pa.string())}))["node:Person"]
    assert batch.rows.num_rows == 0
    assert batch.rows.schema.names == row_schema(batch.type).names
