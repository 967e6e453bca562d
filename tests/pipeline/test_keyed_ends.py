"""Ends of edges that are keys in their own types: in lines, frames and CSV, on both ways."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import ValidationError
from omnigraph.write.load import sifting
from tests.pipeline.engines import Twins

SCHEMA = """
node Team {
    number: I64 @key
}

node Day {
    day: Date @key
}

node Seat {
    hall: String
    row: I32
    @key(hall, row)
}

node Person {
    name: String @key
}

edge Plays: Team -> Team

edge On: Team -> Day

edge Sits: Person -> Seat
"""

NODES: list[dict[str, Any]] = [
    {"type": "Team", "data": {"number": 7}},
    {"type": "Team", "data": {"number": -8}},
    {"type": "Day", "data": {"day": "2020-01-01"}},
    {"type": "Seat", "data": {"hall": 'a"b', "row": 3}},
    {"type": "Person", "data": {"name": "Ann"}},
]


@pytest.fixture
def twins(tmp_path: Path) -> Twins:
    made = Twins.make(tmp_path, SCHEMA, way="bulk")
    for graph in made.both():
        graph.load(NODES, mode="append")
    return made


def load(twins: Twins, lines: list[Any], **options: Any) -> Any:
    place = twins.directory / f"edges-{twins.loads}.jsonl"
    place.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in lines))
    twins.loads += 1
    done = twins.directory / f"done-{twins.loads}"
    return twins._compared(done, place, place, mode="append", **options)


def ends(graph: og.Graph) -> list[tuple[str, str, str]]:
    found = map(json.loads, graph.export())
    return sorted((one["edge"], one["from"], one["to"]) for one in found if "edge" in one)


SEAT = '["a\\"b","3"]'


@pytest.mark.slow
@pytest.mark.parametrize("refuses_bulk", [False, True])
def test_lines(twins: Twins, refuses_bulk: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if refuses_bulk:
        monkeypatch.setattr(sifting, "read_bulk", lambda *_, **__: None)
    done = load(
        twins,
        [
            {"edge": "Plays", "from": 7, "to": -8},
            {"edge": "plays", "from": "7", "to": 7, "data": {"id": "x"}},
            {"edge": "On", "from": 7, "to": "2020-01-01"},
            {"edge": "On", "from": "7", "to": 18262},
            {"edge": "On", "from": {"number": 7}, "to": "18262"},
            {"edge": "Sits", "from": "Ann", "to": ['a"b', 3]},
            {"edge": "Sits", "from": "Ann", "to": {"row": 3, "hall": 'a"b'}},
            {"edge": "Sits", "from": "Ann", "to": SEAT},
        ],
    )
    assert done.error is None
    assert ends(twins.inline) == [
        *[("On", "7", "18262")] * 3, ("Plays", "7", "-8"), ("Plays", "7", "7"),
        *[("Sits", "Ann", SEAT)] * 3,
    ]  # fmt: skip


@pytest.mark.slow
def test_lines_that_name_nobody(twins: Twins) -> None:
    done = load(
        twins,
        [
            {"edge": "Plays", "from": 7.5, "to": 7},
            {"edge": "Plays", "from": None, "to": 7},
            {"edge": "Sits", "from": 7, "to": ['a"b', 3]},
            {"edge": "Sits", "from": "Ann", "to": ['a"b']},
            {"edge": "Sits", "from": "Ann", "to": {"hall": "b", "seat": 3}},
            {"edge": "Sits", "from": "Ann", "to": ["b", "3"]},
            {"edge": "Sits", "from": "Ann", "to": ["b", 4]},
            {"edge": "Plays", "from": 7, "to": 7},
        ],
        on_error="skip",
    )
    told = {one["line"]: one["message"] for one in done.rejects}
    assert told.keys() == set(range(1, 8))
    assert "the id of a Team or its key (number: I64)" in told[1]
    assert "'from' must be a string, the id of a node; found the number 7" in told[3]
    assert "its key (hall: String, row: I32), as an array in this order" in told[4]
    assert "Seat.row: expected I32" in told[6]
    assert "not found in Seat" in told[7]
    assert ends(twins.inline) == [("Plays", "7", "7")]


@pytest.mark.slow
def test_frames_and_csv(twins: Twins, tmp_path: Path) -> None:
    seat = pa.struct([("hall", pa.string()), ("row", pa.int64())])
    done = twins.load_tables(
        {
            "Plays": pa.table({"from": [7, -8], "to": ["7", "7"]}),
            "On": pa.table({"from": [7], "to": [dt.date(2020, 1, 1)]}),
            "Sits": pa.table({"from": ["Ann"], "to": pa.array([{"hall": 'a"b', "row": 3}], seat)}),
        },
        mode="append",
    )
    assert done.error is None
    (tmp_path / "On.csv").write_text("from,to\n7,2020-01-01\n-8,18262\n")
    (tmp_path / "Sits.csv").write_text('from,to\nAnn,"[""a\\""b"",""3""]"\n')
    twins.inline.load([tmp_path / "On.csv", tmp_path / "Sits.csv"], mode="append")
    assert ends(twins.inline) == [
        ("On", "-8", "18262"), *[("On", "7", "18262")] * 2, ("Plays", "-8", "7"),
        ("Plays", "7", "7"), *[("Sits", "Ann", SEAT)] * 2,
    ]  # fmt: skip
    with pytest.raises(ValidationError, match="'from' must be the id of a node, found null"):
        twins.inline.load({"Plays": pa.table({"from": [7, None], "to": [7, 7]})}, mode="append")
    with pytest.raises(ValidationError, match=r"Team\.number"):
        twins.inline.load({"Plays": pa.table({"from": [True], "to": [7]})}, mode="append")
