"""What an export says: which lines, in which order, and how values are spelled."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, NotFound
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.source import Source
from omnigraph.lang.structural import ID
from omnigraph.read.output.export import open_export
from omnigraph.read.output.json_text import blob_text, within_bytes
from omnigraph.rows.external_sort import SortLimits
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.sorted_scan import sorted_batches
from omnigraph.storage.tables.table import Table, TablePin
from omnigraph.storage.tables.write_rows import delete_addresses
from tests.read.graphs import SCHEMA, add_rows, export_of, make_graph

ANN = {"id": "Ann", "name": "Ann", "age": 30, "joined": date(2020, 1, 2)}


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return make_graph(tmp_path / "graph")


def ids(lines: Iterator[str]) -> list[str]:
    return [json.loads(line)["data"]["id"] for line in lines]


def test_lines_to_the_letter(graph: og.Graph) -> None:
    ann = {"id": "A", "name": "A", "age": 3, "joined": date(2020, 1, 2), "tags": ["a"]}
    add_rows(graph, "node:Person", [{"id": "B", "name": "B", "tags": []}, ann])
    knows = {"id": "1", "src": "A", "dst": "B", "since": date(2020, 5, 1)}
    add_rows(graph, "edge:Knows", [knows])
    assert list(export_of(graph)) == [
        '{"edge":"Knows","from":"A","to":"B","data":{"id":"1","note":null,"since":"2020-05-01"}}',
        '{"type":"Person","data":{"id":"A","age":3,"joined":"2020-01-02","name":"A","tags":["a"]}}',
        '{"type":"Person","data":{"id":"B","age":null,"joined":null,"name":"B","tags":[]}}',
    ]


def test_an_empty_graph_has_no_lines(graph: og.Graph) -> None:
    export = export_of(graph)
    assert list(export.chunks()) == []
    assert list(export) == []


def test_every_type(graph: og.Graph) -> None:
    full: dict[str, Any] = {
        "id": 'żółw "1"\n',
        "yes": True,
        "i32": -(2**31),
        "i64": 2**63 - 1,
        "u32": 2**32 - 1,
        "u64": 2**64 - 1,
        "f32": 0.1,
        "f64": -1.5e-300,
        "day": date(1, 1, 1),
        "moment": 1_709_209_815_250,
        "kind": "a",
        "flags": [True, False],
        "numbers": [1, -(2**63)],
        "halves": [0.5, 2.0],
        "days": [date(9999, 12, 31)],
        "moments": [-1],
        "vector": [0.1, -1.0],
        "blob": b"bytes",
    }
    shown = {
        **full,
        "day": "0001-01-01",
        "moment": "2024-02-29T12:30:15.250Z",
        "days": ["9999-12-31"],
        "moments": ["1969-12-31T23:59:59.999Z"],
        "blob": "base64:Ynl0ZXM=",
    }
    empty: dict[str, Any] = {"id": "empty", "flags": [], "days": [], "blob": b""}
    add_rows(graph, "node:Sample", [{"id": "none"}, full, empty])
    found = [json.loads(line)["data"] for line in export_of(graph)]
    nothing = dict.fromkeys(full)
    assert found == [
        {**nothing, "id": "empty", "flags": [], "days": [], "blob": "base64:"},
        {**nothing, "id": "none"},
        shown,
    ]
    assert [list(data) for data in found] == [["id", *sorted(full.keys() - {"id"})]] * 3


def test_order_is_by_type_then_by_the_bytes_of_the_id(graph: og.Graph) -> None:
    names = ["b", "B", "é", "z", "\U0001f422", "\uffff", "a"]
    add_rows(graph, "node:Person", [{"id": name, "name": name} for name in names])
    add_rows(graph, "node:Sample", [{"id": "0"}])
    add_rows(graph, "edge:Knows", [{"id": "9", "src": "a", "dst": "b"}])
    assert ids(export_of(graph)) == ["9", *sorted(names, key=str.encode), "0"]


def test_lines_survive_any_separator(graph: og.Graph) -> None:
    text = "a\u2028b\u2029c\x85d\x1ee\vf\r\ng"
    add_rows(graph, "node:Person", [{"id": text, "name": text}])
    assert ids(export_of(graph)) == [text]
    [chunk] = export_of(graph).chunks()
    assert (chunk.kind, chunk.type_name, chunk.rows) == ("node", "Person", 1)
    assert chunk.data.count(b"\n") == 1


def test_a_selection(tmp_path: Path) -> None:
    graph = og.init(
        tmp_path / "graph",
        "node Person { name: String @key }\nnode Likes { name: String @key }\n"
        "edge Likes: Person -> Person\nedge Knows: Person -> Person\n",
    )
    for name in ("Person", "Likes"):
        add_rows(graph, f"node:{name}", [{"id": f"n{name}", "name": f"n{name}"}])
    for name in ("Likes", "Knows"):
        add_rows(graph, f"edge:{name}", [{"id": f"e{name}", "src": "nPerson", "dst": "nPerson"}])
    assert ids(export_of(graph)) == ["eKnows", "eLikes", "nLikes", "nPerson"]
    assert ids(export_of(graph, [])) == ids(export_of(graph))
    assert ids(export_of(graph, ["Likes"])) == ["eLikes", "nLikes"]
    assert ids(export_of(graph, ["Person", "Knows", "Person"])) == ["eKnows", "nPerson"]
    shown = graph.snapshot()
    one = open_export(shown, graph.catalog, "Likes")
    assert ids(one) == ["eLikes", "nLikes"]


def test_wrong_names_are_refused_before_anything_is_read(graph: og.Graph) -> None:
    with pytest.raises(NotFound, match=r"^there is no type Persn: did you mean `Person`\?$"):
        export_of(graph, ["Person", "Persn"])
    with pytest.raises(NotFound, match="no type Zebra: the types are Knows, Person, Sample"):
        export_of(graph, ["Zebra"])
    with pytest.raises(BadRequest, match=r"'csv': the formats are jsonl"):
        open_export(graph.snapshot(), graph.catalog, format="csv")


def test_a_branch_and_an_earlier_view(graph: og.Graph) -> None:
    add_rows(graph, "node:Person", [ANN])
    before = export_of(graph)
    graph.branches.create("draft")
    add_rows(graph, "node:Person", [{"id": "Ben", "name": "Ben"}], branch="draft")
    add_rows(graph, "node:Person", [{"id": "Cid", "name": "Cid"}])
    assert ids(export_of(graph)) == ["Ann", "Cid"]
    assert ids(export_of(graph, branch="draft")) == ["Ann", "Ben"]
    assert ids(before) == ["Ann"]


def test_properties_are_found_by_name(graph: og.Graph) -> None:
    """A schema that has lost one property and got another one shows what is stored of it."""
    add_rows(graph, "node:Person", [ANN])
    shown = graph.snapshot()
    changed = SCHEMA.replace("    joined: Date?\n", "    nick: String?\n")
    accepted = compile_schema(Source(SCHEMA, "old.pg")).ir
    catalog = compile_schema(Source(changed, "new.pg"), accepted=accepted).catalog
    [line] = open_export(shown, catalog, ["Person"])
    assert line == (
        '{"type":"Person","data":{"id":"Ann","age":30,"name":"Ann","nick":null,"tags":null}}'
    )


@pytest.mark.slow
def test_runs_and_pieces_change_nothing(graph: og.Graph) -> None:
    rows = [
        {"id": f"{number * 7919 % 1009}", "blob": b"x" * (number % 50), "f32": number / 10}
        for number in range(1000)
    ]
    add_rows(graph, "node:Sample", rows[:400])
    add_rows(graph, "node:Sample", rows[400:])
    whole = list(export_of(graph))
    assert len(whole) == 1000
    tiny = SortLimits(run_rows=64, fan_in=3, batch_rows=10)
    assert list(export_of(graph, limits=tiny)) == whole


@pytest.mark.slow
def test_memory_does_not_grow_with_the_graph(graph: og.Graph) -> None:
    limits = SortLimits(run_rows=1_000, fan_in=4, batch_rows=250)
    peaks = []
    for start, end in ((0, 4_000), (4_000, 16_000)):
        places = range(start, end)
        rows = [{"id": str(place * 7919 % 65_537), "i64": place, "f64": 0.5} for place in places]
        add_rows(graph, "node:Sample", rows)
        gc.collect()
        before = pa.total_allocated_bytes()
        tracemalloc.start()
        lines = arrow = 0
        for chunk in export_of(graph, limits=limits).chunks():
            lines += chunk.rows
            arrow = max(arrow, pa.total_allocated_bytes() - before)
        _, python = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert lines == end
        peaks.append(arrow + python)
    small, large = peaks
    assert large < small * 1.5


# -- blobs -------------------------------------------------------------------------


def table_of(graph: og.Graph, key: str) -> Table:
    shown = graph.snapshot().tables[key]
    return Table(graph.location.join(shown.table.path), shown.pin)


def test_large_and_missing_blobs_after_a_deletion(graph: og.Graph) -> None:
    contents = {"a": b"\x00\xff", "b": None, "c": b"m" * 100_000, "d": b"l" * 5_000_000, "e": b""}
    rows = [{"id": id_, "blob": content} for id_, content in contents.items()]
    add_rows(graph, "node:Sample", rows[::-1])
    found = {(data := json.loads(line)["data"])["id"]: data["blob"] for line in export_of(graph)}
    assert found["a"] == "base64:AP8="
    assert found["b"] is None
    assert found["e"] == "base64:"
    assert len(found["d"]) == len("base64:") + -(-5_000_000 // 3) * 4
    table = table_of(graph, "node:Sample")
    left = table.at(delete_addresses(table, [0, 2]))
    [batch] = sorted_batches(left, [ID, "blob"], with_row_address=True)
    assert batch[ID].to_pylist() == ["a", "b", "d"]
    assert json.loads(blob_text(left, batch, "blob")[0].as_py()) == "base64:AP8="


def test_a_piece_has_few_bytes_of_blobs(graph: og.Graph) -> None:
    sizes = [10, 0, 95, 3, 400, 5, 5, None]
    rows = [
        {"id": str(place), "blob": None if size is None else b"x" * size}
        for place, size in enumerate(sizes)
    ]
    add_rows(graph, "node:Sample", rows)
    table = table_of(graph, "node:Sample")
    [batch] = sorted_batches(table, [ID, "blob"], with_row_address=True)
    pieces = list(within_bytes(batch, ["blob"], 100))
    assert [piece[ID].to_pylist() for piece in pieces] == [
        ["0", "1", "2"],
        ["3", "4"],
        ["5", "6", "7"],
    ]
    assert list(within_bytes(batch, [])) == [batch]


def test_a_reference_is_exported_unopened(tmp_path: Path) -> None:
    uri = f"file://{tmp_path}/gone.bin"
    Path(tmp_path, "gone.bin").write_bytes(b"outside")
    schema = pa.schema([pa.field(ID, pa.string()), lance.blob_field("blob")])
    blobs = lance.blob_array([lance.Blob.from_uri(uri), b"inside", None])
    dataset = lance.write_dataset(
        pa.table([pa.array(["a", "b", "c"]), blobs], schema=schema),
        str(tmp_path / "table"),
        data_storage_version="2.2",
        allow_external_blob_outside_bases=True,
    )
    Path(tmp_path, "gone.bin").unlink()
    table = Table(Location.parse(str(tmp_path / "table")), TablePin(dataset.version, None, 3))
    [batch] = sorted_batches(table, [ID, "blob"], with_row_address=True)
    assert blob_text(table, batch, "blob").to_pylist() == [
        json.dumps(uri),
        '"base64:aW5zaWRl"',
        None,
    ]
