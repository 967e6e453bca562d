"""What the tests of writers beside collectors share: a graph, writes, and others in between.

What others do here goes past the turns that writers of one process take, so that it can come
in anywhere, even while a writer is inside its publish.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import pyarrow as pa

import omnigraph as og
from omnigraph.lang.structural import ID
from omnigraph.maintain.cleanup import cleanup
from omnigraph.manifest.branches import is_missing
from omnigraph.manifest.publish_request import AdvanceTable, PendingCommit, PublishRequest
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.clock import microseconds_now
from omnigraph.storage.tables import handles
from omnigraph.storage.tables.table import Table, TablePin
from omnigraph.write.recovery.intents import microseconds
from tests import faults
from tests.table_writes import insert, overwrite
from tests.write.writing import Action, Rows, image, mutate, table_of

SCHEMA = """\
node Person {
    name: String @key
    age: I32?
}

node Film {
    title: String @key
}

edge Knows: Person -> Person {
    note: String?
}
"""
NO_GRACE = timedelta(0)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)

PREPARING = ["txn_captured", "changes_built", "changes_checked"]
STAGING = ["rows_written", "table_staged"]
PUBLISHING = ["publish_ready", "before_commit"]
POINTS = [*PREPARING, *STAGING, *PUBLISHING]
"""Where others come in; before a commit, it is the one to a manifest."""


def person(name: str, age: int | None = None) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, "age": age}}


def knows(id_: str, source: str, target: str) -> dict[str, Any]:
    return {"edge": "Knows", "from": source, "to": target, "data": {"id": id_}}


def make(place: str) -> og.Graph:
    """A graph whose older commits show rows that its head does not."""
    graph = og.init(place, SCHEMA, actor="setup")
    people = [person(name, 30) for name in ("Ann", "Bob", "Cid")]
    graph.load([*people, knows("k1", "Ann", "Bob")], mode="append")
    mutate(graph, 'insert Film { title: "Alien" } insert Person { name: "Dan" }')
    mutate(graph, 'update Person set { age: 31 } where name = "Bob"')
    mutate(graph, 'delete Person where name = "Cid"')
    return graph


def load(mode: str, *lines: dict[str, Any], **options: Any) -> Action:
    return lambda graph: graph.load(list(lines), mode=mode, **options)


def run(body: str, branch: str = "main") -> Action:
    return lambda graph: mutate(graph, body, branch=branch)


def writes_to(branch: str) -> dict[str, Action]:
    """One write of every kind to a branch; all but the last three can be repeated."""
    return {
        "insert": run('insert Person { name: "New", age: 1 }', branch),
        "upsert": run('insert Person { name: "Ann", age: 2 }', branch),
        "append": load("append", person("New"), knows("k2", "New", "Ann"), branch=branch),
        "merge": load("merge", person("Ann", 3), person("New"), branch=branch),
        "update": run('update Person set { age: 40 } where name = "Ann"', branch),
        "delete": run('delete Person where name = "Bob"', branch),
        "overwrite": load("overwrite", knows("k3", "Bob", "Ann"), branch=branch),
    }


# -- others ------------------------------------------------------------------------------


def collect(graph: og.Graph, ahead: timedelta = NO_GRACE) -> None:
    """A thorough cleanup, by a clock that may be ahead."""
    now = microseconds_now() + microseconds(ahead)
    # A manifest of its own knows nothing but what storage says.
    manifest = Manifest(graph.location)
    report = cleanup(graph.location, manifest, keep=1, grace=NO_GRACE, now=now)
    assert report.errors == {}


def collect_ahead(ahead: timedelta) -> Action:
    return lambda graph: collect(graph, ahead)


def collect_twice(graph: og.Graph) -> None:
    """Two cleanups, one after the other."""
    collect(graph)
    collect(graph)


def slip_in(graph: og.Graph, key: str, branch: str, made: Callable[[Table], TablePin]) -> None:
    """Publish another version of a table as one commit."""
    found = graph.snapshot(branch).tables[key]
    advance = AdvanceTable(found.identity, found.version, made(table_of(graph, key, branch)))
    branch_id = graph.manifest.branch_id(branch)
    graph.manifest.publish(branch_id, PublishRequest(PendingCommit.mint("other"), (advance,)))


def move_on(graph: og.Graph, branch: str = "main") -> None:
    """Two commits that leave no file of the films as it was."""
    for title in ("Brazil", "Alien"):
        rows = pa.table({ID: [title], "title": [title]})
        slip_in(graph, "node:Film", branch, partial(overwrite, data=rows))


def add_person(graph: og.Graph, name: str, branch: str = "main") -> None:
    """One more person, without asking anybody."""
    rows = pa.table({ID: [name], "name": [name]})
    slip_in(graph, "node:Person", branch, partial(insert, data=rows))


def move_on_and_collect(graph: og.Graph) -> None:
    """The base of whoever is at it is collected."""
    move_on(graph)
    add_person(graph, "Zoe")
    collect(graph)


@contextmanager
def meanwhile(graph: og.Graph, point: str, action: Action) -> Iterator[faults.Fault]:
    """In the block, another handle acts when a point is passed for the first time."""
    other = og.open(str(graph.location), actor="other")
    # The commit of a publish, and not of a table.
    matching = "__manifest" if point == "before_commit" else ""
    with faults.observed(point, lambda: action(other), matching=matching) as fault:
        yield fault


# -- what must be so ---------------------------------------------------------------------


def reopened(graph: og.Graph) -> og.Graph:
    """The same graph as another process would see it."""
    handles.handles.clear()
    handles._session = None
    return og.open(str(graph.location), actor="next")


def shown(graph: og.Graph) -> dict[str, dict[str, Rows]]:
    """All rows of every branch, read from storage and through every column."""
    found = reopened(graph)
    names = [name for name in found.branches.list() if not is_missing(found.manifest, name)]
    return {name: image(found, name) for name in names}


def check_sound(graph: og.Graph, branch: str = "main") -> None:
    """Everything reads, before and after another cleanup, and the next write succeeds."""
    before = shown(graph)
    assert branch in before
    collect(reopened(graph))
    assert shown(graph) == before
    found = reopened(graph)
    for name, rows in before.items():
        exported = [json.loads(line) for line in found.export(branch=name)]
        assert len(exported) == sum(map(len, rows.values()))
    assert mutate(found, 'insert Person { name: "Next" }', branch=branch).commit is not None
    assert "Next" in shown(graph)[branch]["node:Person"]
