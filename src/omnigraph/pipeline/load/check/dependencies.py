"""Claims: what a load on Spark depends on, should others publish before it does.

Owns which changes of a base leave its verdict standing. A load may have been at work for
long and its input may be large: only the rows that were added or lost since are looked at,
and asked of the keys that the check has cut.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.structural import ID, SRC
from omnigraph.pipeline.load.check.cuts import KeySlices
from omnigraph.pipeline.load.check.key_cutting import tuples_name
from omnigraph.pipeline.load.stage.staged_types import StagedType
from omnigraph.rows.references import referring
from omnigraph.storage.tables.version_diff import FragmentDelta, fragment_delta
from omnigraph.write.change.change_set import EntityType, key_texts
from omnigraph.write.load.changes import LoadMode
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.read_set import Dependency, RecordedRead, WholeTable, has_blobs
from omnigraph.write.rules.edges import ends_of, stands_at
from omnigraph.write.rules.uniqueness import constraints_of


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

    def came(self) -> pa.Array:
        """The ids of the rows that came, were changed or have only moved."""
        return _combined(self.delta.rows([ID]).column(ID))

    def went(self) -> pa.Array:
        """The ids of the rows that went, were changed or have only moved."""
        return _combined(self.delta.lost([ID]).column(ID))


@dataclass(frozen=True, slots=True)
class ReplacedRowsUnchanged:
    """The stored rows that have an id of the load's stay the same ones.

    They may change, since they are replaced as a whole, and lie elsewhere. With ``wholly`` they
    may not: a patch keeps what it does not mention.
    """

    type_key: str
    ids: KeySlices
    wholly: bool = False

    def holds(self, before: Base, after: Base) -> bool:
        """Compare the ids of the rows that came and went."""
        changed = _Changed.of(self.type_key, before, after)
        if changed is None:
            return True
        if self.wholly and not self._keeps(changed, after):
            return False
        came, went = (
            ids.filter(pa.array(self.ids.has(ids))) for ids in (changed.came(), changed.went())
        )
        return bool(came.sort().equals(went.sort()))

    def _keeps(self, changed: _Changed, after: Base) -> bool:
        """Whether rows that came and went are the same but for where they lie."""
        schema = after.table(self.type_key).table.schema
        if has_blobs(schema):
            ids = (changed.came(), changed.went())
            return not any(self.ids.has(some).any() for some in ids)
        rows = (changed.delta.rows(schema.names), changed.delta.lost(schema.names))
        came, went = (
            some.filter(pa.array(self.ids.has(_combined(some.column(ID)))))
            .select(schema.names)
            .sort_by(ID)
            .combine_chunks()
            for some in rows
        )
        return bool(came.equals(went))


@dataclass(frozen=True, slots=True)
class KeysStillAbsent:
    """Nobody adds a row that holds one of these keys, and is not ``replaced`` by the load."""

    type_key: str
    type: EntityType
    members: tuple[str, ...]
    keys: KeySlices
    replaced: KeySlices | None

    def holds(self, before: Base, after: Base) -> bool:
        """Look up the keys of the rows that came."""
        changed = _Changed.of(self.type_key, before, after)
        if changed is None:
            return True
        names = list(dict.fromkeys((ID, *self.members)))
        rows = changed.delta.rows(names).combine_chunks()
        if self.replaced is not None:
            rows = rows.filter(pa.array(~self.replaced.has(_combined(rows.column(ID)))))
        keys = key_texts(self.type, self.members, rows).drop_null()
        return not self.keys.has(keys).any()


@dataclass(frozen=True, slots=True)
class EndpointsStillPresent:
    """No stored node is deleted that staged edges lead to.

    With a ``type_id`` they call it by a reference, since nodes there may be of several types.
    """

    type_key: str
    ends: tuple[KeySlices, ...]
    type_id: int | None = None

    def holds(self, before: Base, after: Base) -> bool:
        """Look for the nodes that went and have not come again."""
        changed = _Changed.of(self.type_key, before, after)
        if changed is None:
            return True
        went = changed.went()
        went = went.filter(pc.invert(pc.is_in(went, value_set=changed.came())))
        if self.type_id is not None:
            went = referring(went, self.type_id)
        return not any(ends.has(went).any() for ends in self.ends)


@dataclass(frozen=True, slots=True)
class EdgesStillPresent:
    """No stored edge of a type is deleted: its source might have too few."""

    type_key: str

    def holds(self, before: Base, after: Base) -> bool:
        """Whether all rows are where they were."""
        changed = _Changed.of(self.type_key, before, after)
        return changed is None or not changed.delta.lost([ID]).num_rows


def claims_of(
    staged: Mapping[str, StagedType],
    keys: Mapping[str, KeySlices],
    *,
    mode: LoadMode,
    touched: Collection[str],
    base: Base,
) -> Iterator[Dependency]:
    """What must still be so when the load is published."""
    if mode == "overwrite":
        yield from _whole_tables(touched, base)
    else:
        for key, one in staged.items():
            yield from _rows(key, one, keys, wholly=mode == "patch")
    for end, node in base.catalog.nodes.items():
        key = f"node:{end}"
        is_replaced = mode == "overwrite" and key in touched
        if is_replaced or not base.table(key).table.pin.row_count:
            continue
        for type_id in (None, node.type_id):
            names = _ends(node, staged, shared=type_id is not None)
            ends = tuple(keys[name] for name in names if name in keys)
            if ends:
                yield EndpointsStillPresent(key, ends, type_id)


def _rows(
    key: str, staged: StagedType, keys: Mapping[str, KeySlices], *, wholly: bool
) -> Iterator[Dependency]:
    """What the staged rows of a type depend on among the stored ones."""
    ids = keys.get(f"ids:{key}") if staged.has_given_ids else None
    if ids is not None:
        yield ReplacedRowsUnchanged(key, ids, wholly)
    for rule in constraints_of(staged.type):
        tuples = keys.get(tuples_name(key, rule))
        if tuples is not None:
            yield KeysStillAbsent(key, rule.type, rule.members, tuples, ids)
    sources = keys.get(f"{SRC}:{key}")
    if sources is not None and isinstance(staged.type, EdgeType) and staged.type.is_bounded:
        yield KeysStillAbsent(key, staged.type, (SRC,), sources, ids)
        if staged.type.min_out:
            yield EdgesStillPresent(key)


def _ends(node: NodeType, staged: Mapping[str, StagedType], *, shared: bool) -> Iterator[str]:
    """The keys of staged edges that name nodes of a type, by their ids or by references."""
    for key, one in staged.items():
        edge = one.type
        if isinstance(edge, EdgeType):
            for column, _ in ends_of(edge):
                if stands_at(node, edge, column) and (column in edge.shared) is shared:
                    yield f"{column}:{key}"


def _whole_tables(touched: Collection[str], base: Base) -> Iterator[Dependency]:
    """What is replaced as a whole, and the stored edges of its nodes."""
    keys = set(touched)
    for name in base.catalog.nodes:
        if f"node:{name}" in touched:
            keys.update(f"edge:{edge.name}" for edge in base.catalog.incident_edges(name))
    for key in sorted(keys):
        yield RecordedRead(key, WholeTable())


def _combined(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
