"""Claims: what a load on Spark depends on, should others publish before it does.

Owns which changes of a base leave its verdict standing. A load may have been at work for
long and its input may be large: only the rows that were added or lost since are looked at,
and asked of the directories that the check has left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.pipeline.load.columns import key_texts
from omnigraph.pipeline.load.directory import Directory
from omnigraph.pipeline.load.rules import tuples_name
from omnigraph.pipeline.load.staged import StagedType
from omnigraph.storage.delta import FragmentDelta, fragment_delta
from omnigraph.storage.table import ROW_ADDRESS
from omnigraph.write.base import Base
from omnigraph.write.batches import EntityType
from omnigraph.write.load.run import LoadMode
from omnigraph.write.reads import Claim, Everything, Read
from omnigraph.write.uniqueness import Constraint, constraints_of


@dataclass(frozen=True, slots=True)
class _Changed:
    """The tables of one type before and after."""

    delta: FragmentDelta

    @classmethod
    def of(cls, key: str, before: Base, after: Base) -> _Changed | None:
        old, new = before.table(key), after.table(key)
        if old.table.pin.version == new.table.pin.version:
            return None
        return cls(fragment_delta(old.table, new.table))

    def added(self, type_: EntityType, members: tuple[str, ...]) -> pa.Array:
        """The keys of rows that came."""
        names = list(dict.fromkeys(members))
        return key_texts(type_, members, self.delta.rows(names).combine_chunks()).drop_null()


@dataclass(frozen=True, slots=True)
class NoneHolds:
    """Nobody adds a row that holds one of these keys."""

    type_key: str
    type: EntityType
    members: tuple[str, ...]
    keys: Directory

    def holds(self, before: Base, after: Base) -> bool:
        """Look up the keys of the rows that came."""
        changed = _Changed.of(self.type_key, before, after)
        if changed is None:
            return True
        return not self.keys.has(changed.added(self.type, self.members)).any()


@dataclass(frozen=True, slots=True)
class AllStay:
    """The stored rows that are replaced stay where they are."""

    type_key: str
    rows: pa.Table

    def holds(self, before: Base, after: Base) -> bool:
        """Look for the rows that went."""
        changed = _Changed.of(self.type_key, before, after)
        return changed is None or changed.delta.keeps(self.rows.column(ROW_ADDRESS))


@dataclass(frozen=True, slots=True)
class NoNodeGoes:
    """No node of a type that edges lead to is deleted."""

    type_key: str

    def holds(self, before: Base, after: Base) -> bool:
        """Whether every row that went has come again, or has only moved."""
        changed = _Changed.of(self.type_key, before, after)
        if changed is None:
            return True
        lost = changed.delta.lost(["id"]).column("id")
        if not len(lost):
            return True
        back = changed.delta.rows(["id"]).column("id").combine_chunks()
        return bool(pc.all(pc.is_in(lost, value_set=back), min_count=0).as_py())


@dataclass(frozen=True, slots=True)
class NoEdgeGoes:
    """No stored edge of a type is deleted: its source might have too few."""

    type_key: str

    def holds(self, before: Base, after: Base) -> bool:
        """Whether all rows are where they were."""
        changed = _Changed.of(self.type_key, before, after)
        return changed is None or not changed.delta.lost(["id"]).num_rows


def claims_of(
    staged: Mapping[str, StagedType],
    directories: Mapping[str, Directory],
    *,
    gone: Mapping[str, pa.Table],
    mode: LoadMode,
    touched: Collection[str],
    base: Base,
) -> Iterator[Claim]:
    """What must still be so when the load is published."""
    if mode == "overwrite":
        yield from _whole_tables(touched, base)
        return
    for key, one in staged.items():
        ids = directories.get(f"ids:{key}")
        if ids is not None and one.has_given_ids:
            yield NoneHolds(key, one.type, ("id",), ids)
        if key in gone:
            yield AllStay(key, gone[key])
        for rule in constraints_of(one.type):
            yield from _tuples(key, rule, directories)
        sources = directories.get(f"sources:{key}")
        if sources is not None:
            yield NoneHolds(key, one.type, ("src",), sources)
            if isinstance(one.type, EdgeType) and one.type.min_out:
                yield NoEdgeGoes(key)
    for name in directories:
        if name.startswith("stored:"):
            yield NoNodeGoes(name.removeprefix("stored:"))


def _tuples(
    key: str, rule: Constraint, directories: Mapping[str, Directory]
) -> Iterator[NoneHolds]:
    found = directories.get(tuples_name(key, rule))
    if found is not None:
        yield NoneHolds(key, rule.type, rule.members, found)


def _whole_tables(touched: Collection[str], base: Base) -> Iterator[Claim]:
    """What is replaced as a whole, the nodes its edges lead to, and the edges of its nodes."""
    keys = set(touched)
    for name, edge in base.catalog.edges.items():
        ends = {f"node:{edge.source}", f"node:{edge.target}"}
        if f"edge:{name}" in touched:
            keys |= ends
        if ends & set(touched):
            keys.add(f"edge:{name}")
    for key in sorted(keys):
        yield Read(key, Everything())
