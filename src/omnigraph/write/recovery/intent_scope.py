"""Announcements: the intent of a write whose staged files are worth keeping track of.

Owns when a write has one: a request-sized write needs none, its stray files are
small and fall to cleanup. Must never stand in anybody's way: an intent that is left
behind only tells the next sweep what to look at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from omnigraph.errors import StorageError
from omnigraph.manifest.entries import Registration
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.table import Stamp
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.staging import OperationClass, stamp
from omnigraph.write.recovery.intents import STAGING, Intent, IntentTable, LiveIntent, WriterKind

REQUEST_BYTES = 32 * 2**20
"""What one request may carry; a larger write is announced."""


@dataclass(slots=True)
class IntentScope:
    """The staged files of one write, and its intent, if it is large enough to have one."""

    root: Location
    branch: str
    operation_id: str
    commit: PendingCommit
    kind: WriterKind
    operation_class: OperationClass = "logical"
    _live: LiveIntent | None = field(default=None)

    @property
    def are_announced(self) -> bool:
        """Whether the write has an intent that tells collectors to leave its files."""
        return self._live is not None

    def stamp(self) -> Stamp:
        """What a table commit of the write says about itself."""
        return stamp(self.commit.id, self.operation_id, self.operation_class)

    def begin(self, type_keys: Iterable[str], base: Base, size: int | None = None) -> None:
        """Write the intent down before anything is staged on these types, once.

        A write that says its ``size`` in bytes has one if that is more than a request may carry.
        """
        if self._live is not None or (size is not None and size <= REQUEST_BYTES):
            return
        tables = [_table(base, key, ()) for key in type_keys]
        state = base.view.state
        branch_id = state.branch_id if state.branch == self.branch else None
        intent = Intent.mint(self.kind, self.branch, self.commit, tables, branch_id)
        live = LiveIntent.open(
            ControlObjects(self.root), replace(intent, operation_id=self.operation_id)
        )
        self._live = live.__enter__()

    def name(self, files: Mapping[str, tuple[str, ...]], base: Base) -> None:
        """Name files that were staged below the directories of tables, by type key."""
        if self._live is not None and files:
            self._live.extend(_table(base, key, names) for key, names in files.items())

    def name_files(self, table: Registration, version: int, files: tuple[str, ...]) -> None:
        """Name files that were staged below the directory of a table that may be new."""
        if self._live is not None and files:
            self._live.extend([IntentTable.of(table, version, files)])

    def cover(self, tables: Iterable[Registration]) -> None:
        """Tell of tables that are about to be made, which no branch knows of."""
        if self._live is not None:
            self._live.extend(IntentTable.of(table, 0) for table in tables)

    def require_alive(self) -> None:
        """Refuse to publish when an intent was revoked; without one there is nothing to ask."""
        if self._live is not None:
            self._live.require_alive()

    def close(self) -> None:
        """The write is published or given up, and so the intent is of no use any more."""
        if self._live is None:
            return
        objects = ControlObjects(self.root)
        try:
            # Before the intent, without which nobody would know whose they are.
            for name in objects.list(f"{STAGING}/{self.operation_id}"):
                objects.delete(name)
            self._live.remove()
        except StorageError:
            return  # the next sweep finds the commit and removes it

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # After a failure the intent stays: when it has expired, its files are discarded.
        if self._live is not None:
            self._live.__exit__(kind, error, trace)


def _table(base: Base, type_key: str, staged: tuple[str, ...]) -> IntentTable:
    found = base.snapshot.tables[type_key]
    return IntentTable.of(found.table, found.version, staged)
