"""What a schema change costs in requests, on a real S3-compatible server: little, for any table."""

from __future__ import annotations

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.meter import measure

pytestmark = pytest.mark.slow

MOST = 20
SCHEMA = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person\n"
RENAMED = SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")')
BACK = SCHEMA.replace("age: I32?", 'age: I32? @rename_from("years")')


def people(first: int, rows: int) -> dict[str, pa.Table]:
    names = [f"p{number}" for number in range(first, first + rows)]
    return {"Person": pa.table({"name": names, "age": pa.nulls(rows, pa.int32())})}


def requests(graph: og.Graph, text: str) -> int:
    with measure() as meter:
        assert graph.apply_schema(text).applied
    return meter.total


@pytest.mark.parametrize(("rows", "depth"), [(1, 1), (20_000, 60)])
def test_a_change_of_names_reads_and_writes_no_row(s3_bucket: str, rows: int, depth: int) -> None:
    graph = og.init(f"{s3_bucket}/graph", SCHEMA)
    graph.load(people(0, rows), mode="append", engine="inline")
    for number in range(depth):
        graph.load(people(rows + number, 1), mode="append", engine="inline")
    graph.apply_schema(RENAMED)
    tables = ControlObjects(graph.location)
    before = {name for kind in ("nodes", "edges") for name in tables.list(kind)}
    assert requests(graph, BACK) <= MOST
    assert {name for kind in ("nodes", "edges") for name in tables.list(kind)} == before


def test_a_new_column_is_one_file_for_each_piece_of_a_table(s3_bucket: str) -> None:
    graph = og.init(f"{s3_bucket}/graph", SCHEMA)
    for number in range(3):
        graph.load(people(number, 1), mode="append", engine="inline")
    tables = ControlObjects(graph.location)
    before = set(tables.list("nodes"))
    graph.apply_schema(SCHEMA.replace("age: I32?", "age: I32?  rank: I32 @default(1)"))
    files = [name for name in set(tables.list("nodes")) - before if "/data/" in name]
    assert len(files) == 3
