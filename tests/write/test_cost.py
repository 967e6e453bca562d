"""What writes cost in requests, on a real S3-compatible server: little, and the same for ever."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.manifest import snapshot
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.storage.objects.meter import RequestMeter, measure
from omnigraph.storage.tables import handles, row_lookup
from tests.write.writing import mutate

pytestmark = pytest.mark.slow

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    email: String? @unique
}

node Note {
    text: String?
}

edge Knows: Person -> Person @card(0..1000) {
    since: Date?
}
"""
CONTRACT = 12
"""Requests of a one-row keyed insert on a warm handle, at any depth of history."""


def requests(action: Callable[[], object]) -> RequestMeter:
    with measure() as meter:
        action()
    return meter


def one_row(graph: og.Graph, body: str) -> Callable[[], object]:
    return lambda: mutate(graph, body)


@pytest.fixture
def graph(s3_bucket: str) -> og.Graph:
    """A graph on S3 whose handle has written to every table before."""
    graph = og.init(f"{s3_bucket}/graph", SCHEMA)
    for number in range(3):
        mutate(
            graph,
            f'insert Person {{ name: "a{number}" age: {number} email: "a{number}@x" }} '
            f'insert Person {{ name: "b{number}" }} insert Note {{ text: "{number}" }} '
            f'insert Knows {{ from: "a{number}" to: "b{number}" }}',
        )
    mutate(graph, 'update Person set { age: 5 } where name = "a0"')
    mutate(graph, 'insert Knows { from: "b0" to: "a0" }')
    return graph


FIGURES = {
    # Listings find the head and whether somebody waits; the table and the manifest each get a data
    # file, a transaction and a version.
    "insert": ('insert Person { name: "new" }', 9),
    "insert of a unique value": ('insert Person { name: "new" email: "new@x" }', 9),
    "insert without a key": ('insert Note { text: "new" }', 9),
    "upsert": ('insert Person { name: "a1" age: 7 }', 11),
    "update by key": ('update Person set { age: 7 } where name = "a1"', 12),
    "update by id": ('update Person set { age: 7 } where @id = "a1"', 12),
    "edge": ('insert Knows { from: "b1" to: "a2" }', 11),
    "delete of an edge": ('delete Knows where from = "a1"', 9),
    "delete of a node": ('delete Person where name = "b2"', 17),
    "nothing": ('update Person set { age: 7 } where name = "zed"', 1),
}


@pytest.mark.parametrize("kind", FIGURES)
def test_a_write_costs_so_much(graph: og.Graph, kind: str) -> None:
    body, most = FIGURES[kind]
    meter = requests(one_row(graph, body))
    assert meter.total <= most, str(meter)
    assert meter.deletes == 0


@pytest.mark.slow
def test_a_keyed_insert_keeps_the_contract_for_a_while(graph: og.Graph) -> None:
    """Sealing the manifest's history is part of some of them, folding of every eighth."""
    meters = [requests(one_row(graph, f'insert Person {{ name: "n{n}" }}')) for n in range(70)]
    costs = Counter(meter.total for meter in meters)
    assert max(costs) <= CONTRACT, costs
    usual, often = costs.most_common(1)[0]
    assert usual <= FIGURES["insert"][1], costs
    assert often >= 56, costs


def test_a_load_of_many_rows_costs_no_more_than_of_one(graph: og.Graph) -> None:
    def load(count: int, prefix: str) -> RequestMeter:
        rows = [{"type": "Person", "data": {"name": f"{prefix}{n}"}} for n in range(count)]
        return requests(lambda: graph.load(rows, mode="append"))

    assert load(1000, "many").total <= load(1, "one").total + 1


# -- depth ---------------------------------------------------------------------------------------


def copy_graph(source: Path, target: str) -> None:
    """Copy a graph, all of its files, as a person would copy its directory."""
    objects = ControlObjects(Location.parse(target))

    def put(file: Path) -> None:
        objects.replace(str(file.relative_to(source)), file.read_bytes())

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(put, (file for file in source.rglob("*") if file.is_file())))


@pytest.mark.slow
def test_a_keyed_insert_costs_the_same_at_any_depth(s3_bucket: str, tmp_path: Path) -> None:
    """A thousand one-row inserts into the same table, and no maintenance ever."""
    root = tmp_path / "grown"
    grown = og.init(root, SCHEMA)
    measured: dict[int, list[RequestMeter]] = {}
    for depth in (10, 1000):
        while len(grown.commits.list()) <= depth:
            for _ in range(10):
                number = grown.snapshot().manifest_version
                mutate(grown, f'insert Person {{ name: "p{number}" email: "p{number}@x" }}')
        place = f"{s3_bucket}/depth{depth}"
        copy_graph(root, place)
        graph = og.open(place)
        assert graph.snapshot().tables["node:Person"].pin.row_count >= depth
        mutate(graph, 'insert Person { name: "warm" email: "warm@x" }')
        measured[depth] = [
            requests(one_row(graph, f'insert Person {{ name: "new{n}" email: "new{n}@x" }}'))
            for n in range(3)
        ]
        assert graph.table("Person").count_rows() == grown.table("Person").count_rows() + 4
    shallow, deep = (min(meter.total for meter in measured[depth]) for depth in (10, 1000))
    told = {depth: list(map(str, meters)) for depth, meters in measured.items()}
    assert shallow == deep, told
    # A publish that seals history costs one or two more.
    assert max(meter.total for meters in measured.values() for meter in meters) <= CONTRACT, told


SEVERAL = (
    'insert Person { name: "new" } insert Knows { from: "new" to: "a1" } insert Note { text: "x" } '
    "update Person set { age: 1 } where age >= 0"
)


# -- opening -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        'insert Person { name: "new" email: "new@x" }',
        'insert Person { name: "a1" }',
        'update Person set { email: "x" } where name = "a1"',
        'delete Person where name = "a1"',
        SEVERAL,
    ],
    ids=["insert", "upsert", "update", "delete", "several"],
)
def test_each_table_is_opened_once_and_the_schema_compiled_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    """From cold: nothing is opened, nothing compiled and no map made before."""
    root = tmp_path / "graph"
    first = og.init(root, SCHEMA)
    rows: list[dict[str, Any]] = [
        {"type": "Person", "data": {"name": f"a{number}"}} for number in range(3)
    ]
    first.load([*rows, {"edge": "Knows", "from": "a1", "to": "a2"}], mode="append")
    opened: Counter[str] = Counter()
    really = handles._open

    def spy(location: Location, version: int, *rest: Any) -> Any:
        opened[location.uri] += 1
        return really(location, version, *rest)

    graph = og.open(root)
    monkeypatch.setattr(handles, "_open", spy)
    handles.handles.clear()
    row_lookup.fragment_maps.clear()
    snapshot.catalog_of.cache_clear()
    mutate(graph, body)
    assert snapshot.catalog_of.cache_info().misses == 1
    tables = {uri: count for uri, count in opened.items() if "__manifest" not in uri}
    assert tables
    assert max(tables.values()) == 1, tables
    opened.clear()
    mutate(graph, 'insert Person { name: "again" }')
    assert snapshot.catalog_of.cache_info().misses == 1
    assert not [uri for uri in opened if "nodes/" in uri]
