"""Manifest state: the rows of one manifest version, folded.

Owns the rule by which rows make a state, and what must hold in it. A state is
immutable; publishing makes a new one from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from omnigraph.errors import StorageError
from omnigraph.manifest.entries import (
    MAIN,
    Commit,
    Head,
    Registration,
    SchemaContract,
    TableIdentity,
    TableVersion,
    Tombstone,
)
from omnigraph.manifest.rows import Entry


@dataclass(frozen=True, slots=True)
class ManifestState:
    """Everything current at one manifest version, and the history not sealed away yet."""

    version: int
    branch: str
    tables: Mapping[TableIdentity, Registration]
    versions: Mapping[TableIdentity, TableVersion]
    tombstones: Mapping[TableIdentity, Tombstone]
    heads: Mapping[str, Head]
    schema: SchemaContract
    recent: tuple[Commit | TableVersion, ...] = field(default=())
    """Commits and superseded versions of the head fragment, oldest first."""

    @property
    def head_commit_id(self) -> str:
        """The newest commit visible on this branch: its own, or the one it was forked from."""
        return self.commits[-1].id

    @property
    def commits(self) -> tuple[Commit, ...]:
        """The commits of the head fragment, oldest first; never empty."""
        return tuple(entry for entry in self.recent if isinstance(entry, Commit))

    @property
    def live(self) -> Iterator[tuple[Registration, TableVersion]]:
        """The tables that exist, by type key, with their current versions."""
        by_key = sorted(self.tables.values(), key=lambda table: table.type_key)
        for table in by_key:
            version = self.versions[table.identity]
            tombstone = self.tombstones.get(table.identity)
            if tombstone is None or tombstone.version < version.version:
                yield table, version

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
        yield from self.heads.values()
        yield from self.recent


def fold(entries: Iterable[Entry], *, version: int, branch: str) -> ManifestState:
    """The state that the entries of a head fragment describe."""
    tables: dict[TableIdentity, Registration] = {}
    versions: dict[TableIdentity, TableVersion] = {}
    tombstones: dict[TableIdentity, Tombstone] = {}
    heads: dict[str, Head] = {}
    schema: SchemaContract | None = None
    history: list[Commit | TableVersion] = []
    for entry in entries:
        match entry:
            case Registration():
                tables[entry.identity] = entry
            case TableVersion():
                known = versions.get(entry.identity)
                if known is not None and known.version == entry.version and known != entry:
                    raise _corrupt(
                        version, f"version {entry.version} of {entry.identity} is two versions"
                    )
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
                heads[entry.branch] = entry
            case SchemaContract():
                schema = entry
    if schema is None:
        raise _corrupt(version, "it names no schema")
    state = ManifestState(
        version, branch, tables, versions, tombstones, heads, schema, tuple(_ordered(history))
    )
    _check(state)
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


def _check(state: ManifestState) -> None:
    if not state.commits:
        raise _corrupt(state.version, "it names no commit")
    if MAIN not in state.heads:
        raise _corrupt(state.version, "main has no head")
    for table in state.tables.values():
        if table.identity not in state.versions:
            raise _corrupt(state.version, f"{table.type_key} has no version")
    for identity in state.versions:
        if identity not in state.tables:
            raise _corrupt(state.version, f"table {identity} has a version but no name")
    aliases: dict[str, TableIdentity] = {}
    for table, _ in state.live:
        other = aliases.setdefault(table.type_key, table.identity)
        if other != table.identity:
            raise _corrupt(state.version, f"two tables are called {table.type_key}")


def _corrupt(version: int, problem: str) -> StorageError:
    return StorageError(
        f"the manifest is inconsistent at version {version}: {problem}", kind="permanent"
    )
