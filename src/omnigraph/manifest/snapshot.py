"""Snapshots: which version of every table one graph commit shows, and its schema, typed.

Owns the tables that readers and writers are handed, a state of a branch together with the
storage version it was read from, and the way from it into history: the log of the branch, and
those of the versions that it was forked from. Immutable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice

import pyarrow.compute as pc

from omnigraph.errors import NotFound
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.columns import AS_WRITTEN, TableColumns, columns_from_text
from omnigraph.lang.schema.compile import (
    SchemaState,
    catalog_from_ir,
    check_state,
    sealed,
    shape_of_source,
)
from omnigraph.lang.schema.ir.ir import IREdge, IRNode
from omnigraph.lang.source import Source
from omnigraph.lang.structural import EDGE_COLUMNS, NODE_COLUMNS
from omnigraph.manifest.entries import (
    Commit,
    EntityKind,
    Registration,
    SchemaContract,
    StoredVersion,
    TableIdentity,
)
from omnigraph.manifest.publish_request import ExactHead
from omnigraph.manifest.rows import from_table
from omnigraph.manifest.schema_contract import stored_ir
from omnigraph.manifest.state import ManifestState, line_of
from omnigraph.rows.stored_columns import AS_NAMED, StoredColumns
from omnigraph.storage.cache_budget import Part, Version
from omnigraph.storage.logs.head_log import HeadLog
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.table import Table, TablePin

SOURCE_NAME = "_schema.pg"

MANIFEST_NAME = "__manifest"
SCHEMAS_KEPT = 64
"""So many schemas are at hand: every branch has its own, and so has every commit of the past."""
# What a state takes: an opened table, and what is known of each type and each recent commit.
VIEW_BYTES, ENTRY_BYTES = 48 * 2**10, 1_000
IS_COMMIT = pc.field("object_type") == "graph_commit"


@dataclass(frozen=True, slots=True)
class SnapshotTable:
    """One table as a snapshot shows it."""

    table: Registration
    version: int
    pinned: Table
    branch: str | None = None

    @property
    def pin(self) -> TablePin:
        """The version of it that is shown."""
        return self.pinned.pin

    @property
    def identity(self) -> TableIdentity:
        """Which table it is."""
        return self.table.identity

    @property
    def columns(self) -> Mapping[str, str]:
        """The columns of the stored dataset, by the names that rows are read by."""
        return {name: self.pinned.columns.of(name) for name in self.pinned.schema.names}


class SnapshotTables(Mapping[str, SnapshotTable]):
    """The tables of a state by type key, each made when it is asked for.

    A graph may have hundreds of types, and a read or a write touches a few.
    """

    def __init__(self, state: ManifestState, root: Location) -> None:
        self._root = root
        self._live = {table.type_key: (table, version) for table, version in state.live}
        self._columns = stored_columns_of(state.schema)
        self._made: dict[str, SnapshotTable] = {}

    def __getitem__(self, type_key: str) -> SnapshotTable:
        made = self._made.get(type_key)
        if made is None:
            table, version = self._live[type_key]
            columns = self._columns.get(table.identity, AS_NAMED)
            pinned = Table(self._root.join(table.path), version.pin, columns)
            made = SnapshotTable(table, version.version, pinned, version.branch)
            # Of two threads that make it, both go on with the same.
            made = self._made.setdefault(type_key, made)
        return made

    def __contains__(self, type_key: object) -> bool:
        return type_key in self._live

    def __iter__(self) -> Iterator[str]:
        return iter(self._live)

    def __len__(self) -> int:
        return len(self._live)

    @cached_property
    def by_identity(self) -> Mapping[TableIdentity, SnapshotTable]:
        """The same tables by what they are."""
        keys = {table.identity: key for key, (table, _) in self._live.items()}
        return _TablesByIdentity(self, keys)


@dataclass(frozen=True, eq=False)
class _TablesByIdentity(Mapping[TableIdentity, SnapshotTable]):
    _tables: Mapping[str, SnapshotTable]
    _keys: Mapping[TableIdentity, str]

    def __getitem__(self, identity: TableIdentity) -> SnapshotTable:
        return self._tables[self._keys[identity]]

    def __contains__(self, identity: object) -> bool:
        return identity in self._keys

    def __iter__(self) -> Iterator[TableIdentity]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


@dataclass(frozen=True, repr=False)
class Snapshot:
    """One consistent view of the whole graph."""

    branch: str
    manifest_version: int
    commit_id: str
    tables: Mapping[str, SnapshotTable]
    """By type key, such as `node:Person`."""
    schema: SchemaContract

    @cached_property
    def by_identity(self) -> Mapping[TableIdentity, SnapshotTable]:
        """The same tables by what they are, whatever their types are called here."""
        if isinstance(self.tables, SnapshotTables):
            return self.tables.by_identity
        return {found.identity: found for found in self.tables.values()}

    @property
    def is_local(self) -> bool:
        """Whether its tables, which all have one root, are on a disk of this machine."""
        return all(found.pinned.location.is_local for found in islice(self.tables.values(), 1))

    def table(self, kind: EntityKind, name: str) -> SnapshotTable:
        """The table of a type, or NotFound when the type did not exist here.

        >>> graph.snapshot().table("edge", "ActedIn").version
        2
        """
        found = self.tables.get(f"{kind}:{name}")
        if found is None:
            raise NotFound(f"there is no {kind} type {name} at commit {self.commit_id}")
        return found

    def named(self, name: str) -> SnapshotTable:
        """The table of a type by its name: that of a node, unless `edge:Name` is written.

        >>> list(graph.snapshot().named("Film").columns)
        ['@id', 'title', 'year']
        """
        for key in (name, f"node:{name}", f"edge:{name}"):
            if key in self.tables:
                return self.tables[key]
        raise NotFound(f"there is no type {name} at commit {self.commit_id}")

    def __repr__(self) -> str:
        return f"<Snapshot of {self.branch} at {self.commit_id}, {len(self.tables)} types>"


def snapshot_of(state: ManifestState, root: Location) -> Snapshot:
    """The snapshot that a manifest state shows of the graph at a root."""
    return Snapshot(
        state.branch,
        state.version,
        state.head_commit_id,
        SnapshotTables(state, root),
        state.schema,
    )


@lru_cache(maxsize=SCHEMAS_KEPT)
def catalog_of(contract: SchemaContract) -> Catalog:
    """The catalog of an entry; refuses one whose parts do not fit together."""
    ir = stored_ir(contract.ir)
    shape = shape_of_source(Source(contract.source, SOURCE_NAME), stored=True)
    check_state(state_of(contract), ir, shape)
    return catalog_from_ir(ir)


@lru_cache(maxsize=SCHEMAS_KEPT)
def stored_columns_of(contract: SchemaContract) -> Mapping[TableIdentity, StoredColumns]:
    """The columns of those tables that have others than their properties say."""
    if contract.columns == AS_WRITTEN:
        return {}
    ir = stored_ir(contract.ir)
    names = columns_from_text(contract.columns, ir)
    return {
        TableIdentity(table.type_id, table.table_incarnation_id): _stored_columns(
            table, names[table.type_id]
        )
        for table in ir.tables()
        if names[table.type_id].differs_from(table)
    }


def _stored_columns(table: IRNode | IREdge, names: TableColumns) -> StoredColumns:
    structural = NODE_COLUMNS if table.kind == "node" else EDGE_COLUMNS
    properties = [(found.name, names[found.property_id]) for found in table.properties]
    return StoredColumns((*((name, name) for name in structural), *properties))


def state_of(contract: SchemaContract) -> SchemaState:
    """The hashes and the identity domain of an entry, as its state file records them."""
    return sealed(contract.shape_hash, contract.ir_hash, contract.identity_domain)


@dataclass(frozen=True)
class BranchState:
    """One state of a branch together with the storage version it was read from."""

    log: HeadLog
    state: ManifestState
    root: Location
    """Where the graph lies."""

    @property
    def branch_id(self) -> str:
        """What tells the branch from every other."""
        return self.state.branch_id

    @cached_property
    def snapshot(self) -> Snapshot:
        """What the state shows; made once, for every reader of it."""
        return snapshot_of(self.state, self.root)

    @property
    def stored(self) -> StoredVersion:
        """Where the state lies."""
        return StoredVersion(self.branch_id, self.log.version)

    @property
    def exact(self) -> ExactHead:
        """What must still be so for a write that was built on it to be published."""
        return ExactHead(self.state.head_commit_id, self.branch_id, self.state.epoch)

    @property
    def history(self) -> tuple[StoredVersion, ...]:
        """The versions whose logs hold what is not in the head, this one first."""
        origin = self.state.head.origin
        inherited = () if origin is None else origin.history
        return (self.stored, *inherited) if self.log.log_sizes() else inherited


def commits_of(view: BranchState) -> list[Commit]:
    """The commits of a branch, newest first: each the first parent of the one before it."""
    return list(line_of(view.state.head_commit_id, ancestors_of(view)))


def retained_line(view: BranchState) -> Iterator[Commit]:
    """Those of a branch's commits that can still be read, newest first."""
    for commit in commits_of(view):
        yield commit
        if commit.id == view.state.head.oldest_commit_id:
            return


def ancestors_of(view: BranchState) -> Mapping[str, Commit]:
    """Every commit that a branch descends from, over all parents of every merge, by id."""
    sealed = {commit.id: commit for commit in _sealed(view, IS_COMMIT)}
    return {**sealed, **view.state.known_commits}


def find_commit(view: BranchState, commit_id: str) -> Commit | None:
    """One commit that a branch descends from; most are found without touching the log."""
    wanted = pc.field("object_id") == commit_id
    return view.state.known_commits.get(commit_id) or next(_sealed(view, wanted), None)


def _sealed(view: BranchState, where: pc.Expression) -> Iterator[Commit]:
    """The commits of the logs; the filter runs in the scan, so other rows are never decoded."""
    for stored in view.history:
        log = view.log
        if stored != view.stored:
            log = HeadLog.open(view.root.join(MANIFEST_NAME, stored.branch_id), stored.version)
        entries = from_table(log.log(where))
        yield from (entry for entry in entries if isinstance(entry, Commit))


def left_behind(before: BranchState, after: BranchState) -> Iterator[Version]:
    """The versions of tables that a branch showed before, and shows no more."""
    now = after.state.versions
    for identity, shown in before.state.versions.items():
        newer = now.get(identity)
        if newer is None or newer.pin.version != shown.pin.version:
            path = before.state.tables[identity].path
            yield before.root.join(path).uri, shown.pin.version


def weight_of(view: BranchState) -> list[Part]:
    """What a state takes in a cache."""
    state = view.state
    entries = len(state.tables) + len(state.versions) + len(state.recent)
    return [(view, VIEW_BYTES + ENTRY_BYTES * entries)]
