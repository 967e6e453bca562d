"""A small graph for tests: its schema, what a whole one looks like, and writing a row to it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import omnigraph as og
from omnigraph.evolve.genesis import CLAIM_NAME
from omnigraph.lang.structural import ID
from omnigraph.manifest.publish_request import AdvanceTable, PendingCommit, PublishRequest
from omnigraph.storage.tables.table import Table
from tests.table_writes import insert

SCHEMA = """\
node Person {
    name: String @key
}

node Film {
    title: String @key
    year: I32?
}

edge ActedIn: Person -> Film {
    role: String?
}
"""


def files(root: Path) -> dict[str, bytes]:
    """Everything below a directory."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def check_complete(root: Path, types: int = 3) -> None:
    """A graph that can be opened has all of its tables."""
    graph = og.open(root)
    tables = graph.snapshot().tables
    assert len(tables) == types
    assert [graph.table(key).count_rows() for key in tables] == [0] * types
    assert len(graph.commits.list()) == 1
    assert not (root / CLAIM_NAME).exists()


def insert_row(
    graph: og.Graph, key: str, name: str, *, branch: str = "main", actor: str | None = None
) -> str:
    """One more row in a table whose key property is the one beside `@id`; returns the commit."""
    shown = graph.snapshot(branch).tables[key]
    table = Table(graph.location.join(shown.table.path), shown.pin)
    pin = insert(table, pa.table({ID: [name], table.schema.names[1]: [name]}))
    commit = PendingCommit.mint(actor)
    change = AdvanceTable(shown.identity, shown.version, pin)
    graph.manifest.publish(graph.manifest.branch_id(branch), PublishRequest(commit, (change,)))
    return commit.id
