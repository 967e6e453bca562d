"""What the write tests share: looking at whole graphs, maintenance, and being overtaken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import omnigraph as og
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.manifest.publish_request import AdvanceTable, PendingCommit, PublishRequest
from omnigraph.storage.indexes.table_indexes import compact
from omnigraph.storage.tables.table import Table, TablePin
from omnigraph.write.change.results import MutationResult
from omnigraph.write.publish.staging import stamp
from tests import faults
from tests.table_indexing import create_index

Rows = dict[str, dict[str, Any]]
Action = Callable[[og.Graph], object]


def rows(graph: og.Graph, type_name: str, branch: str = "main") -> Rows:
    """The rows of a type by id, without their blobs."""
    dataset = graph.table(type_name, branch=branch)
    columns = [field.name for field in dataset.schema if "blob" not in str(field.type)]
    found = dataset.to_table(columns=columns).to_pylist()
    assert len({row[ID] for row in found}) == len(found), f"{type_name} repeats an id"
    return {row.pop(ID): row for row in found}


def image(graph: og.Graph, branch: str = "main") -> dict[str, Rows]:
    """Every row of a branch by type key and id."""
    return {key: rows(graph, key, branch) for key in graph.snapshot(branch).tables}


def mutate(graph: og.Graph, body: str, **options: Any) -> MutationResult:
    """Run statements as one query without parameters."""
    return graph.mutate(f"query q() {{ {body} }}", **options)


@contextmanager
def unchanged(graph: og.Graph, branch: str = "main") -> Iterator[None]:
    """Nothing is published in the block, and no table has another version after it."""
    before = graph.snapshot(branch)
    commits = len(graph.commits.list(branch))
    yield
    after = og.open(str(graph.location)).snapshot(branch)
    assert after == before
    assert len(graph.commits.list(branch)) == commits


def table_of(graph: og.Graph, type_key: str, branch: str = "main") -> Table:
    """The pinned table of a type."""
    return graph.snapshot(branch).tables[type_key].pinned


def maintain(
    graph: og.Graph,
    branch: str,
    work: Callable[[str, Table, PendingCommit], TablePin],
) -> int:
    """Publish what maintenance makes of every table as one commit; says how many changed."""
    commit = PendingCommit.mint("maintenance")
    changes = []
    for key, found in graph.snapshot(branch).tables.items():
        pin = work(key, table_of(graph, key, branch), commit)
        if pin != found.pin:
            changes.append(AdvanceTable(found.identity, found.version, pin))
    graph.manifest.publish(graph.manifest.branch_id(branch), PublishRequest(commit, tuple(changes)))
    return len(changes)


def compact_all(graph: og.Graph, branch: str = "main") -> None:
    """Compact every table of a branch."""

    def work(_: str, table: Table, commit: PendingCommit) -> TablePin:
        return compact(table, stamp=stamp(commit.id, "compaction", "maintenance"))

    assert maintain(graph, branch, work), "there was nothing to compact"


def index_all(graph: og.Graph, branch: str = "main") -> None:
    """Index the ids, and the ends of the edges, of every table of a branch."""

    def work(key: str, table: Table, commit: PendingCommit) -> TablePin:
        pin = table.pin
        for column in (ID, SRC, DST) if key.startswith("edge:") else (ID,):
            stamped = stamp(commit.id, "index", "maintenance")
            pin = create_index(table.at(pin), column, "BTREE", stamp=stamped)
        return pin

    assert maintain(graph, branch, work), "there was nothing to index"


@contextmanager
def overtaken(
    graph: og.Graph, point: str, action: Action, *, times: int | None = 1
) -> Iterator[faults.Fault]:
    """In the block, another handle of the graph acts when a write passes a point."""
    other = og.open(str(graph.location), actor="other")
    other.snapshot()
    with faults.observed(point, lambda: action(other), times=times) as fault:
        yield fault
