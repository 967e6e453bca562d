"""What the cleanup tests share: small graphs, what commits show, and cleanups without waiting."""

from __future__ import annotations

from datetime import timedelta

import omnigraph as og
from omnigraph.lang.structural import ID
from omnigraph.maintain.cleanup import cleanup
from omnigraph.maintain.reports import CleanupReport
from omnigraph.manifest.snapshot import catalog_of
from omnigraph.read.output.export import open_export
from omnigraph.storage.objects.clock import microseconds_now
from omnigraph.storage.tables import handles
from tests.write.writing import mutate

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


def clean(graph: og.Graph, keep: int = 1, **options: object) -> CleanupReport:
    """A cleanup that takes even the youngest files; nothing may go wrong."""
    report = graph.cleanup(keep, grace=NO_GRACE, **options)  # type: ignore[arg-type]
    assert report.errors == {}
    return report


def insert(graph: og.Graph, name: str, branch: str = "main") -> str:
    """One more person; returns the commit."""
    return change(graph, f'insert Person {{ name: "{name}" }}', branch)


def change(graph: og.Graph, body: str, branch: str = "main") -> str:
    """Run statements that change something; returns the commit."""
    commit = mutate(graph, body, branch=branch).commit
    assert commit is not None
    return commit.id


def shown(graph: og.Graph, commit: str) -> tuple[str, ...]:
    """Everything that a commit shows."""
    snapshot = graph.snapshot(commit=commit)
    lines = open_export(snapshot, catalog_of(snapshot.schema))
    return tuple(sorted(map(str, lines)))


def people(graph: og.Graph, branch: str = "main") -> list[str]:
    found: list[str] = graph.table("Person", branch=branch).to_table()[ID].to_pylist()
    return sorted(found)


def forget_all() -> None:
    """Let go of what this process remembers of tables, as if it had just started."""
    handles.handles._handles.clear()
    handles._session = None


def reopened(graph: og.Graph) -> og.Graph:
    """The same graph as another process would see it."""
    forget_all()
    return og.open(str(graph.location), read_only=True)


def clean_later(graph: og.Graph, keep: int = 1, after: timedelta = 2 * HOUR) -> CleanupReport:
    """A cleanup with the usual grace, by a clock that is ahead."""
    now = microseconds_now() + after // timedelta(microseconds=1)
    return cleanup(graph.location, graph.manifest, keep=keep, now=now)
