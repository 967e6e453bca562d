"""The base of a write: one state of a branch, and its tables.

Immutable: when the branch has moved on, the write gets another base.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.lang.schema.catalog import Catalog
from omnigraph.manifest.entries import TableIdentity
from omnigraph.manifest.publish_request import ExactHead
from omnigraph.manifest.snapshot import BranchState, Snapshot, catalog_of
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.table import Table


@dataclass(frozen=True, slots=True)
class BaseTable:
    """One table of a base."""

    type_key: str
    identity: TableIdentity
    version: int
    table: Table


@dataclass(frozen=True, slots=True)
class Base:
    """One state of a branch, with its schema and its tables."""

    root: Location
    view: BranchState
    snapshot: Snapshot
    catalog: Catalog

    @classmethod
    def of(cls, root: Location, view: BranchState) -> Base:
        """The base a view makes."""
        return cls(root, view, view.snapshot, catalog_of(view.state.schema))

    @property
    def head(self) -> str:
        """The commit it shows."""
        return self.view.state.head_commit_id

    @property
    def exact(self) -> ExactHead:
        """What must still be so for a write that was built on it to be published."""
        return self.view.exact

    def table(self, type_key: str) -> BaseTable:
        """One table, by its type key."""
        found = self.snapshot.tables[type_key]
        return BaseTable(type_key, found.identity, found.version, found.pinned)
