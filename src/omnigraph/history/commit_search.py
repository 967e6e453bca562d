"""Looking for commits: by who made them, when, what they say, and which types they changed.

Owns what it means to match. That a commit changed a type is known from its tables alone: no row
is read for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from omnigraph.history.changes import Filters, Names
from omnigraph.lang.schema.catalog import unknown_type
from omnigraph.manifest.entries import Commit, TableIdentity
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.store import GraphHandle
from omnigraph.storage.tables.table import TablePin


@dataclass(frozen=True, slots=True)
class CommitSearch:
    """What is looked for; a commit matches if it does in all that is given."""

    actor: str | None = None
    since: datetime | None = None
    grep: str | None = None
    types: Names = None

    def among(self, graph: GraphHandle, commits: Iterable[Commit]) -> list[Commit]:
        """Those that match; of a commit whose types are asked for, states are read."""
        found = [commit for commit in commits if self._is_said(commit)]
        names = Filters(types=self.types).type_names
        return _changing(graph, found, names) if names else found

    def _is_said(self, commit: Commit) -> bool:
        """Whether it matches in what it says itself."""
        if self.actor is not None and commit.actor != self.actor:
            return False
        if self.since is not None and commit.created_at < _microseconds(self.since):
            return False
        wanted = None if self.grep is None else self.grep.casefold()
        return wanted is None or wanted in (commit.message or "").casefold()


def _microseconds(moment: datetime) -> int:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1_000_000)


def _changing(graph: GraphHandle, commits: Sequence[Commit], names: list[str]) -> list[Commit]:
    """The commits that published another version of one of the tables of these types."""
    identities: set[TableIdentity] = set()
    known: set[str] = set()
    found: list[Commit] = []
    states: dict[str, Snapshot | None] = {}

    def state(commit: Commit) -> Snapshot | None:
        if commit.id not in states:
            view = graph.manifest.find_state(commit)
            states[commit.id] = None if view is None else view.snapshot
        return states[commit.id]

    for commit in commits:
        after = state(commit)
        if after is None or commit.parent_id is None:
            continue
        before = state(graph.manifest.find_commit(commit.parent_id))
        if before is None:
            continue
        for shown in (after, before):
            for table in shown.tables.values():
                known.add(table.table.type_name)
                if table.table.type_name in names:
                    identities.add(table.identity)
        if any(_pin(before, one) != _pin(after, one) for one in identities):
            found.append(commit)
    for name in names:
        if known and name not in known:
            raise unknown_type(name, known)
    return found


def _pin(shown: Snapshot, identity: TableIdentity) -> TablePin | None:
    table = shown.by_identity.get(identity)
    return None if table is None else table.pin
