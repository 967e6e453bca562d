"""Sources: paths, text, records and frames lead to the same batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.errors import BadRequest, ValidationError
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.structural import ID
from omnigraph.write.change.change_set import TypeBatch
from omnigraph.write.load.input import read_sources
from omnigraph.write.rules.violations import SourceLocation

CATALOG = compile_schema(
    "node Note { text: String\n on: Date?\n at: DateTime?\n body: Blob?\n n: I32?\n v: Vector(2)? }"
).catalog


def line(text: str) -> str:
    return f'{{"type":"Note","data":{{"text":"{text}"}}}}\n'


def decoded(data: object) -> list[TypeBatch]:
    return [one.batch for one in read_sources(data, CATALOG).sift(CATALOG, strict=True).batches]


def texts(data: object) -> list[Any]:
    batches = decoded(data)
    return list(batches[0].rows["text"].to_pylist()) if batches else []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"b.jsonl": "b", "a.ndjson": "a", "c.txt": "c"}.items():
        (tmp_path / name).write_text(line(text), encoding="utf-8")
    (tmp_path / "sub").mkdir()
    return tmp_path


def test_paths(folder: Path) -> None:
    assert texts(folder / "c.txt") == ["c"]
    assert texts(str(folder / "c.txt")) == ["c"]
    both = [folder / "a.ndjson", str(folder / "b.jsonl")]
    assert texts(both) == ["a", "b"]
    (batch,) = decoded(both)
    assert batch.places.place(1, None) == SourceLocation(str(folder / "b.jsonl"), 1)


def test_a_file_whose_name_looks_like_a_pattern(tmp_path: Path) -> None:
    odd = tmp_path / "a[1].jsonl"
    odd.write_text(line("x"), encoding="utf-8")
    assert texts(odd) == ["x"]


def test_text() -> None:
    assert texts(line("a") + line("b")) == ["a", "b"]
    assert texts(line("é").encode()) == ["é"]
    assert texts("") == []
    assert texts("\n") == []
    assert texts([]) == []
    assert texts({}) == []


def test_records() -> None:
    def records() -> Iterator[dict[str, Any]]:
        for at in range(10_000):
            yield {"type": "Note", "data": {"text": str(at)}}

    assert texts(records()) == [str(at) for at in range(10_000)]
    data = {
        "text": "a",
        "on": date(2020, 1, 2),
        "at": datetime(2020, 1, 1, tzinfo=UTC),
        "body": b"\x00",
        "n": np.int32(3),
        "v": np.array([1.0, 2.0]),
    }
    (batch,) = decoded([{"type": "Note", "data": data}])
    (row,) = batch.rows.drop_columns([ID, "at"]).to_pylist()
    assert row == {"text": "a", "on": date(2020, 1, 2), "body": b"\x00", "n": 3, "v": [1.0, 2.0]}
    assert batch.rows["at"].cast(pa.int64()).to_pylist() == [1577836800000]


def test_a_record_that_is_wrong_is_told_by_its_number() -> None:
    good, bad = {"type": "Note", "data": {"text": "a"}}, {"type": "Note", "data": {"text": 1}}
    with pytest.raises(ValidationError) as caught:
        decoded([good, bad])
    assert caught.value.details["violations"][0]["line"] == 2
    with pytest.raises(ValidationError, match="expected I32"):
        decoded([{"type": "Note", "data": {"text": "a", "n": b"x"}}])


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ({"type": "Note", "data": {"text": object()}}, "record 2 cannot be written as JSON"),
        ({"type": "Note", "data": {"text": math.nan}}, "record 2 cannot be written as JSON"),
        ({"type": "Note", "data": {"text": "\ud800"}}, "record 2 cannot be written as JSON"),
        (["type"], "record 2 must be a dict, found list"),
    ],
)
def test_records_that_are_none(bad: object, told: str) -> None:
    with pytest.raises(BadRequest, match=told):
        decoded([{"type": "Note", "data": {"text": "a"}}, bad])


def test_frames() -> None:
    assert texts({"Note": pa.table({"text": ["a"]})}) == ["a"]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda folder: folder / "none.jsonl", "cannot read .*none.jsonl: No such file"),
        (lambda folder: [folder / "b.jsonl", 1], "a list of paths, then int"),
        (lambda _: 3, "cannot load int"),
        (lambda _: None, "cannot load NoneType"),
        (lambda _: [None], "record 1 must be a dict, found NoneType"),
        (lambda _: pa.table({"text": ["a"]}), "frames by type name"),
        (lambda _: {"type": "Note", "data": {}}, "one envelope: put it into a list"),
        (lambda _: {1: pa.table({})}, "named by their type"),
        (lambda _: line("\ud800"), "not Unicode"),
    ],
)
def test_what_cannot_be_loaded(folder: Path, make: Callable[[Path], object], told: str) -> None:
    with pytest.raises(BadRequest, match=told):
        decoded(make(folder))
