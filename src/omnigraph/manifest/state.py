"""Manifest state: the rows of one manifest version, folded.

Owns the rule by which rows make a state, and what must hold in it. A state is
immutable; publishing makes a new one from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from omnigraph.errors import StorageError
from omnigraph.manifest.entries import (
    Commit,
    Head,
    Registration,
    SchemaContract,
    TableIdentity,
    TableVersion,
    Tombstone,
)
from omnigraph.manifest.rows import Entry


@dataclass(frozen=True)
class ManifestState:
    """Everything current at one manifest version, and the history not sealed away yet."""

    head: Head
    tables: Mapping[TableIdentity, Registration]
    versions: Mapping[TableIdentity, TableVersion]
    tombstones: Mapping[TableIdentity, Tombstone]
    schema: SchemaContract
    recent: tuple[Commit | TableVersion, ...] = field(default=())
    """Commits and superseded versions of the head fragment, oldest first."""

    @property
    def version(self) -> int:
        """The manifest version that this is; a branch goes on counting where it was forked."""
        return self.head.version

    @property
    def branch(self) -> str:
        """The name of the branch."""
        return self.head.branch

    @property
    def branch_id(self) -> str:
        """What tells this branch from every other, of whatever name and time."""
        return self.head.branch_id

    @property
    def epoch(self) -> int:
        """How many collections the branch has seen."""
        return self.head.epoch

    @property
    def head_commit_id(self) -> str:
        """The newest commit visible on this branch: its own, or the one it was forked from."""
        return self.head.commit_id

    @cached_property
    def known_commits(self) -> Mapping[str, Commit]:
        """The commits of the head fragment by id, those that merges brought along included."""
        return {entry.id: entry for entry in self.recent if isinstance(entry, Commit)}

    @property
    def commits(self) -> tuple[Commit, ...]:
        """The newest commits of the branch itself, oldest first; never empty.

        Those of the head fragment, from one to its first parent.
        """
        return tuple(line_of(self.head.commit_id, self.known_commits))[::-1]

    @cached_property
    def live(self) -> Sequence[tuple[Registration, TableVersion]]:
        """The tables that exist, by type key, with their current versions."""
        by_key = sorted(self.tables.values(), key=lambda table: table.type_key)
        return tuple(
            (table, self.versions[table.identity])
            for table in by_key
            if self.current_version(table.identity)
        )

    def current_version(self, identity: TableIdentity) -> int:
        """The published version of a table; 0 for one that does not exist."""
        version = self.versions.get(identity)
        tombstone = self.tombstones.get(identity)
        if version is None or (tombstone is not None and tombstone.version >= version.version):
            return 0
        return version.version

    def entries(self) -> Iterator[Entry]:
        """Every entry of the head fragment, as it is written."""
        yield self.schema
        yield from self.tables.values()
        yield from self.versions.values()
        yield from self.tombstones.values()
        yield self.head
        yield from self.recent


def line_of(commit_id: str | None, known: Mapping[str, Commit]) -> Iterator[Commit]:
    """A commit, its first parent, that one's first parent and so on, as far as they are known."""
    while commit_id is not None and (commit := known.get(commit_id)) is not None:
        yield commit
        commit_id = commit.parent_id


def fold(entries: Iterable[Entry], onto: ManifestState | None = None) -> ManifestState:
    """The state that the entries of a head fragment describe.

    Or the state that they make of another one, whose head they replace: that costs what is new.
    """
    tables: dict[TableIdentity, Registration] = {} if onto is None else dict(onto.tables)
    versions: dict[TableIdentity, TableVersion] = {} if onto is None else dict(onto.versions)
    tombstones: dict[TableIdentity, Tombstone] = {} if onto is None else dict(onto.tombstones)
    head: Head | None = None
    schema: SchemaContract | None = None if onto is None else onto.schema
    history: list[Commit | TableVersion] = [] if onto is None else list(onto.recent)
    renames = onto is None
    for entry in entries:
        match entry:
            case Registration():
                renames = True
                tables[entry.identity] = entry
            case TableVersion():
                renames = renames or entry.identity not in tables
                known = versions.get(entry.identity)
                if known is not None and known.version == entry.version and known != entry:
                    raise _corrupt(f"version {entry.version} of {entry.identity} is two versions")
                newer, older = (entry, known) if _is_newer(entry, known) else (known, entry)
                if newer is not None:
                    versions[entry.identity] = newer
                if older is not None:
                    history.append(older)
            case Tombstone():
                gone = tombstones.get(entry.identity)
                if gone is None or gone.version < entry.version:
                    tombstones[entry.identity] = entry
            case Commit():
                history.append(entry)
            case Head():
                if head is not None:
                    raise _corrupt("it has two heads")
                head = entry
            case SchemaContract():
                schema = entry
    if schema is None:
        raise _corrupt("it names no schema")
    if head is None:
        raise _corrupt("it has no head")
    state = ManifestState(head, tables, versions, tombstones, schema, tuple(_ordered(history)))
    if state.head.commit_id not in state.known_commits:
        raise _corrupt(f"it does not hold its newest commit {state.head.commit_id}")
    if renames:
        _check_names(state)
    return state


def _is_newer(entry: TableVersion, known: TableVersion | None) -> bool:
    return known is None or entry.version > known.version


def _ordered(history: list[Commit | TableVersion]) -> list[Commit | TableVersion]:
    """Superseded versions first, then commits in the order they were published."""
    superseded = [entry for entry in history if isinstance(entry, TableVersion)]
    commits = [entry for entry in history if isinstance(entry, Commit)]
    superseded.sort(key=lambda entry: (entry.identity, entry.version))
    commits.sort(key=lambda entry: (entry.manifest_version, entry.created_at, entry.id))
    return [*superseded, *commits]


def _check_names(state: ManifestState) -> None:
    for table in state.tables.values():
        if table.identity not in state.versions:
            raise _corrupt(f"{table.type_key} has no version")
    for identity in state.versions:
        if identity not in state.tables:
            raise _corrupt(f"table {identity} has a version but no name")
    aliases: dict[str, TableIdentity] = {}
    for table, _ in state.live:
        other = aliases.setdefault(table.type_key, table.identity)
        if other != table.identity:
            raise _corrupt(f"two tables are called {table.type_key}")


def _corrupt(problem: str) -> StorageError:
    return StorageError(f"the manifest is inconsistent: {problem}", kind="permanent")
