"""Edges with a key on Spark: every input gives the same ids, and what is stored counts."""

from __future__ import annotations

import csv
import json
import shutil
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.errors import KeyConflict, ValidationError
from tests import faults
from tests.pipeline.engines import run_tasks_here
from tests.pipeline.rivals import Rival, act

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

SCHEMA = """
node Person { name: String @key }
node Room { house: String  number: I32  @key(house, number) }
edge Visits: Person -> Room {
    on: Date
    weight: F32 @default(0.5)
    note: String?
    @key(src, dst, on, weight)
}
edge Knows: Person -> Person { note: String?  @key(src, dst) }
"""
PEOPLE = ("Ann", "Ben", 'Zo"ë')
ROOMS = ('["r","1"]', '["r","2"]')
ROWS: list[dict[str, Any]] = [
    {"from": person, "to": room, "on": f"2020-01-0{day}", "weight": weight, "note": None}
    for person in PEOPLE
    for room in ROOMS
    for day in (1, 2)
    for weight in (0.1, 1.0)
]
IDS = sorted(
    json.dumps(
        [row["from"], row["to"], "18262" if row["on"] == "2020-01-01" else "18263", text],
        separators=(",", ":"),
        ensure_ascii=False,
    )
    for row in ROWS
    for text in ["0.1" if row["weight"] == 0.1 else "1"]
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("made") / "graph"
    nodes: list[dict[str, Any]] = [{"type": "Person", "data": {"name": name}} for name in PEOPLE]
    nodes += [{"type": "Room", "data": {"house": "r", "number": at}} for at in (1, 2)]
    og.init(place, SCHEMA).load([*nodes, line("Knows", "Ann", "Ben", note="old")], mode="append")
    return place


@pytest.fixture
def graph(made: Path, tmp_path: Path) -> og.Graph:
    shutil.copytree(made, tmp_path / "graph")
    return og.open(tmp_path / "graph")


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    run_tasks_here(monkeypatch)


def line(type_: str, source: str, target: str, **data: Any) -> dict[str, Any]:
    return {"edge": type_, "from": source, "to": target, "data": data}


def ids(graph: og.Graph, type_: str) -> list[str]:
    return [json.loads(text)["data"]["id"] for text in graph.export(types=[type_])]


def as_jsonl(place: Path) -> object:
    texts = []
    for row in ROWS:
        data = {name: row[name] for name in ("on", "weight", "note")}
        texts.append(json.dumps(line("Visits", row["from"], row["to"], **data)))
    path = place / "visits.jsonl"
    path.write_text("\n".join(texts), encoding="utf-8")
    return path


def as_csv(place: Path) -> object:
    path = place / "Visits.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.DictWriter(file, list(ROWS[0]))
        rows.writeheader()
        rows.writerows(ROWS)
    return {"Visits": path}


def as_parquet(place: Path) -> object:
    table = pa.Table.from_pylist([{**row, "note": ""} for row in ROWS]).drop_columns(["note"])
    pq.write_table(table, place / "Visits.parquet", row_group_size=5)
    return {"Visits": place / "Visits.parquet"}


# -- files ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("given_as", [as_jsonl, as_csv, as_parquet])
def test_every_kind_of_file_gives_the_same_ids(
    graph: og.Graph, tmp_path: Path, given_as: Any
) -> None:
    given = given_as(tmp_path)
    graph.load(given, mode="append", engine="spark")
    assert ids(graph, "Visits") == IDS
    with pytest.raises(KeyConflict, match="exists already in Visits") as caught:
        graph.load(given, mode="append", engine="spark")
    assert caught.value.details["codes"] == {"key_conflict": len(ROWS)}
    graph.load(given, mode="merge", engine="spark")
    graph.load(given, mode="overwrite", engine="spark")
    assert ids(graph, "Visits") == IDS


@pytest.mark.usefixtures("without_spark")
def test_what_is_wrong_is_told_with_its_line(graph: og.Graph, tmp_path: Path) -> None:
    lines = [
        line("Knows", "Ann", 'Zo"ë', note="first"),
        line("Knows", "Ann", "Ben", id="k1"),
        line("Knows", "Ann", 'Zo"ë', note="second"),
        line("Knows", "Ann", "Ben"),
    ]
    path = tmp_path / "edges.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    with pytest.raises(ValidationError) as caught:
        graph.load(path, mode="append", engine="spark")
    said = "id 'k1' is not the id its key gives: '[\"Ann\",\"Ben\"]'; leave it out"
    assert str(caught.value) == f"{path}:2: {said}"
    told = graph.load(
        path, mode="append", engine="spark", on_error="skip", rejects=str(tmp_path / "rejects")
    )
    assert (told.edges, told.rejects) == (
        {"Knows": 1},
        {"format": 1, "key_conflict": 1, "unique": 1},
    )
    rejects = [json.loads(text) for text in Path(told.rejects_file or "").read_text().splitlines()]
    assert [(one["line"], one["code"]) for one in rejects] == [
        (2, "format"),
        (3, "unique"),
        (4, "key_conflict"),
    ]
    (known, added) = map(json.loads, graph.export(types=["Knows"]))
    assert (known["data"]["note"], added["data"]["note"]) == ("old", "first")


# -- beside others -------------------------------------------------------------------------


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("mode", ["append", "merge"])
def test_another_adds_the_edge_meanwhile(graph: og.Graph, tmp_path: Path, mode: str) -> None:
    path = tmp_path / "edges.jsonl"
    path.write_text(json.dumps(line("Knows", "Ben", "Ann", note="ours")), encoding="utf-8")
    rival = Rival("mutate", 'create Knows { from: "Ben" to: "Ann" note: "theirs" }')

    def beside() -> None:
        act(str(graph.location.path), rival)

    with faults.observed("changes_built", beside) as fault:
        if mode == "append":
            with pytest.raises(KeyConflict, match="exists already in Knows"):
                graph.load(path, mode=mode, engine="spark")
        else:
            graph.load(path, mode=mode, engine="spark")
    assert fault.fired
    found = {
        one["data"]["id"]: one["data"]["note"]
        for one in map(json.loads, graph.export(types=["Knows"]))
    }
    expected = "theirs" if mode == "append" else "ours"
    assert found == {'["Ann","Ben"]': "old", '["Ben","Ann"]': expected}


# -- frames of Spark's -------------------------------------------------------------------------


def test_frames_in_and_out(graph: og.Graph, spark: SparkSession) -> None:
    rows = [{**row, "on": date.fromisoformat(str(row["on"]))} for row in ROWS]
    schema = "`from` string, `to` string, `on` date, weight double, note string"
    frame = spark.createDataFrame(rows, schema).coalesce(2)
    graph.load({"Visits": frame}, mode="append", spark=spark)
    assert ids(graph, "Visits") == IDS
    shown = graph.to_spark("Visits", spark=spark)
    (one,) = shown.where(shown["id"] == IDS[0]).collect()
    assert json.loads(one["id"])[:2] == [one["src"], one["dst"]]
    # What was read comes back under the ids it has, which says that it is there.
    with pytest.raises(KeyConflict, match=f"{len(ROWS)} problems"):
        graph.load({"Visits": shown}, mode="append", spark=spark)
