"""The three sides of a merge: the base, the source and the target, type by type.

Owns pairing their tables up, and refusing states that are no versions of one schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.errors import Conflict
from omnigraph.history.changed_rows import compared_columns
from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.storage.tables.table import Table
from omnigraph.write.change.change_set import EntityType, find_type
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.door import read_set_changed


@dataclass(frozen=True, slots=True)
class MergeTables:
    """One type on all three sides."""

    type_key: str
    type: EntityType
    base: Table
    source: Table
    target: Table

    @property
    def source_changed(self) -> bool:
        """Whether the source may say something else than the base."""
        return self.source.pin.version != self.base.pin.version

    @property
    def target_changed(self) -> bool:
        """Whether the target may say something else than the base."""
        return self.target.pin.version != self.base.pin.version

    @property
    def is_changed(self) -> bool:
        """Whether either of them may."""
        return self.source_changed or self.target_changed

    @property
    def columns(self) -> list[str]:
        """All columns, which are the same on all sides."""
        compared_columns(self.base, self.source)
        return compared_columns(self.base, self.target)

    @property
    def narrow(self) -> list[str]:
        """The columns that rules about several rows look at."""
        ends = ["src", "dst"] if isinstance(self.type, EdgeType) else []
        members = [name for unique in self.type.uniques for name in unique]
        return list(dict.fromkeys(["id", *ends, *members]))


def sides_of(base: Snapshot, source: Snapshot, target: Base) -> Mapping[str, MergeTables]:
    """Every type, by type key."""
    if not base.schema == source.schema == target.snapshot.schema:
        raise Conflict(
            f"branches {source.branch} and {target.snapshot.branch} have different schemas, and "
            "their rows cannot be merged: make a new branch and load the rows there",
            details={"source": source.branch, "target": target.snapshot.branch},
        )
    found: dict[str, MergeTables] = {}
    for key, shown in target.snapshot.tables.items():
        others = [snapshot.tables.get(key) for snapshot in (base, source)]
        if any(other is None or other.identity != shown.identity for other in others):
            raise read_set_changed(
                f"branch_merge_table_identity:{key}", None, str(shown.identity), f"the {key}"
            )
        old, new = (side.tables[key].pinned for side in (base, source))
        found[key] = MergeTables(
            key, find_type(target.catalog, key), old, new, target.table(key).table
        )
    return found
