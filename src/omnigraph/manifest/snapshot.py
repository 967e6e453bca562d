"""Snapshots: which version of every table one graph commit shows, and its schema, typed.

Owns the tables that readers and writers are handed. Immutable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice

from omnigraph.errors import NotFound
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.compile import shape_of_source
from omnigraph.lang.schema.ir.catalog_build import catalog_from_ir
from omnigraph.lang.schema.ir.reader import ir_from_json
from omnigraph.lang.schema.ir.state import SchemaState, check_state, sealed
from omnigraph.lang.source import Source
from omnigraph.manifest.entries import EntityKind, Registration, SchemaContract, TableIdentity
from omnigraph.manifest.state import ManifestState
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.table import Table, TablePin

SOURCE_NAME = "_schema.pg"


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


@dataclass(frozen=True)
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
        return {found.identity: found for found in self.tables.values()}

    @property
    def is_local(self) -> bool:
        """Whether its tables, which all have one root, are on a disk of this machine."""
        return all(found.pinned.location.is_local for found in islice(self.tables.values(), 1))

    def table(self, kind: EntityKind, name: str) -> SnapshotTable:
        """The table of a type, or NotFound when the type did not exist here."""
        found = self.tables.get(f"{kind}:{name}")
        if found is None:
            raise NotFound(f"there is no {kind} type {name} at commit {self.commit_id}")
        return found


def snapshot_of(state: ManifestState, root: Location) -> Snapshot:
    """The snapshot that a manifest state shows of the graph at a root."""
    tables = {
        table.type_key: SnapshotTable(
            table, version.version, Table(root.join(table.path), version.pin), version.branch
        )
        for table, version in state.live
    }
    return Snapshot(
        state.branch,
        state.version,
        state.head_commit_id,
        tables,
        state.schema,
    )


@lru_cache(maxsize=16)
def catalog_of(contract: SchemaContract) -> Catalog:
    """The catalog of an entry; refuses one whose parts do not fit together."""
    ir = ir_from_json(contract.ir)
    shape = shape_of_source(Source(contract.source, SOURCE_NAME), stored=True)
    check_state(state_of(contract), ir, shape)
    return catalog_from_ir(ir)


def state_of(contract: SchemaContract) -> SchemaState:
    """The hashes and the identity domain of an entry, as its state file records them."""
    return sealed(contract.shape_hash, contract.ir_hash, contract.identity_domain)
