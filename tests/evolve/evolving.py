"""What the tests of schema changes share: graphs to change, and looking at all that they hold."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.evolve.apply import SchemaResult
from omnigraph.lang.schema.migration.plan import MigrationPlan
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.storage.tables import handles

Row = dict[str, Any]
Rows = dict[str, dict[str, Row]]
"""The rows of a graph by type and id; an edge's ends are `from` and `to`."""


def node(type_: str, /, **data: Any) -> Row:
    """A line of a load."""
    return {"type": type_, "data": data}


def edge(type_: str, source: str, target: str, /, **data: Any) -> Row:
    """A line of a load."""
    return {"edge": type_, "from": source, "to": target, "data": data}


def make(place: Path | str, schema: str, lines: Iterable[Row] = ()) -> og.Graph:
    """A graph with some rows."""
    graph = og.init(place, schema, actor="setup")
    if found := list(lines):
        graph.load(found, mode="append")
    return graph


def shown(graph: og.Graph, branch: str = "main", snapshot: str | None = None) -> Rows:
    """Every row of a branch, or of what a commit showed, as an export tells it."""
    found: Rows = {name: {} for name in types_of(graph.snapshot(branch, commit=snapshot))}
    for line in graph.export(branch=branch, snapshot=snapshot):
        told = json.loads(line)
        data = told["data"]
        if "edge" in told:
            data |= {"from": told["from"], "to": told["to"]}
        id_ = data.pop("@id") if "@id" in data else data.pop("id")
        rows = found[told.get("type") or told["edge"]]
        assert id_ not in rows, f"{id_} is there twice"
        rows[id_] = data
    return found


def held(snapshot: Snapshot) -> Rows:
    """Every row of a snapshot, as its tables hold it by name; blobs and vectors are left out."""
    found: Rows = {}
    for key, table in snapshot.tables.items():
        names = [field.name for field in table.pinned.schema if "list_size" not in dir(field.type)]
        names = [name for name in names if "blob" not in str(table.pinned.schema.field(name).type)]
        rows = {}
        for row in table.pinned.scan(names).to_pylist():
            for stored, name in ((SRC, "from"), (DST, "to")):
                if stored in row:
                    row[name] = row.pop(stored)
            rows[row.pop(ID)] = row
        found[key.partition(":")[2]] = rows
    return found


def types_of(snapshot: Snapshot) -> list[str]:
    """The names of its types."""
    return [key.partition(":")[2] for key in snapshot.tables]


def reopened(graph: og.Graph) -> og.Graph:
    """The same graph as another process would see it."""
    handles.handles.clear()
    handles._session = None
    return og.open(str(graph.location), actor="next")


def run(graph: og.Graph, body: str, **options: Any) -> object:
    """Run statements as one mutation."""
    return graph.mutate(f"query q() {{ {body} }}", **options)


def ask(graph: og.Graph, match: str, *wanted: str, **options: Any) -> list[Row]:
    """The rows of a query, in the order of the first thing that is wanted."""
    text = (
        f"query q() {{ match {{ {match} }} "
        f"return {{ {', '.join(wanted)} }} order {{ {wanted[0]} }} }}"
    )
    return graph.query(text, **options).rows


def steps(result: MigrationPlan | SchemaResult) -> list[tuple[str, ...]]:
    """What a plan consists of: kind, tier and cost of each step, or what is refused."""
    found: list[tuple[str, ...]] = []
    for step in result.steps:
        told = step.to_json()
        found.append((told["kind"], told.get("tier", "refused"), told.get("cost", "")))
    return found


@contextmanager
def unchanged(graph: og.Graph, branch: str = "main") -> Iterator[None]:
    """In the block nothing is published, and no table gets another version."""
    before = graph.snapshot(branch)
    commits = len(graph.commits.list(branch))
    yield
    after = og.open(str(graph.location), read_only=True).snapshot(branch)
    assert after == before
    assert len(graph.commits.list(branch)) == commits
