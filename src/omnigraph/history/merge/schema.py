"""The schema of a merge: three schemas become one, and every table is seen under it.

Owns the way from three snapshots to the tables of a merge: which of the target's tables are
reshaped, which come, go and change their names, and what rows of either side have to obey that
they did not before. Rows are merged elsewhere, as if all sides had always had this schema.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from omnigraph.errors import MergeConflict
from omnigraph.history.merge.conflicts import Conflicts, Resolve
from omnigraph.history.merge.delta import MergeTables
from omnigraph.history.merge.schema_sides import MergeSide, TouchedRows, as_made
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.columns import ColumnNames, carried
from omnigraph.lang.schema.compile import CompiledSchema, compile_schema
from omnigraph.lang.schema.ir.identity import table_path
from omnigraph.lang.schema.merge.conflicts import SchemaConflict, concerns_schema
from omnigraph.lang.schema.merge.model import SchemaVersion
from omnigraph.lang.schema.merge.operation import SchemaMerge, merge_schemas
from omnigraph.lang.schema.migration.effects import (
    AddColumn,
    ColumnIsEmpty,
    DataCheck,
    FillNulls,
    KeyEdges,
    ReplaceColumn,
    WidenColumn,
)
from omnigraph.lang.schema.migration.plan import MigrationPlan
from omnigraph.lang.schema.migration.planner import plan_migration
from omnigraph.lang.source import Source
from omnigraph.manifest.entries import Registration, SchemaContract, TableIdentity
from omnigraph.manifest.publish_request import DropTable, RenameTable, TableChange
from omnigraph.manifest.schema_contract import accepted_schema, contract_of
from omnigraph.manifest.snapshot import SOURCE_NAME, Snapshot, stored_columns_of
from omnigraph.rows.stored_columns import AS_NAMED, StoredColumns
from omnigraph.storage.tables.table import Table
from omnigraph.write.change.change_set import EntityType
from omnigraph.write.publish.base import Base
from omnigraph.write.reshape.column_effects import TableReshape
from omnigraph.write.reshape.rows_after import TypeAfter

UNIFIED = "unified_identities"
"""Where the commit of a merge notes which identities became one."""

Reserve = Callable[[int, int], int]
_COLUMN_EFFECTS = (AddColumn, ReplaceColumn, WidenColumn, FillNulls)


@dataclass(frozen=True)
class MergedSchema:
    """The schema that the target gets, and how all sides are seen under it."""

    schema: CompiledSchema
    base: MergeSide
    source: MergeSide
    target: MergeSide
    unified: Mapping[int, int]
    reserve: Reserve | None = field(default=None, compare=False)

    @property
    def catalog(self) -> Catalog:
        """The types of the merged schema."""
        return self.schema.catalog

    @cached_property
    def plan(self) -> MigrationPlan:
        """What leads from the target's schema to the merged one."""
        return self._plan(self.target)

    @cached_property
    def source_plan(self) -> MigrationPlan:
        """What leads there from the source's schema."""
        return self._plan(self.source)

    @cached_property
    def _base_plan(self) -> MigrationPlan:
        return self._plan(self.base)

    def _plan(self, side: MergeSide) -> MigrationPlan:
        """What leads there from a side; types that were resolved to take whatever fits them."""
        plan = plan_migration(side.ir, self.schema.ir, facts=side)
        for type_id, accepted in side.types.items():
            desired = self.types.get(type_id)
            table = side.table(type_id)
            if desired is None or table is None:
                continue
            after = TypeAfter(accepted, desired, plan.effects_on(type_id))
            for former, name in after.misfits():
                kind = desired.properties[name].type
                if not side.fits(table, former.name, kind):
                    continue
                widened = WidenColumn(-1, type_id, former.property_id, former.type, kind, None)
                entity = f"{desired.kind}:{desired.name}.{name}"
                plan = replace(
                    plan,
                    effects=(*plan.effects, widened),
                    steps=tuple(step for step in plan.steps if step.entity != entity),
                )
        return plan

    # -- tables --------------------------------------------------------------------------

    @cached_property
    def types(self) -> Mapping[int, EntityType]:
        """The types that have tables, by id."""
        catalog = self.catalog
        types: list[EntityType] = [*catalog.nodes.values(), *catalog.edges.values()]
        return {found.type_id: found for found in types}

    def adopts(self, type_id: int) -> bool:
        """Whether the source's table can stand for the target's: that one has no row of its own."""
        theirs, ours = self.source.table(type_id), self.target.table(type_id)
        if theirs is None or self._writes(self.source_plan, type_id):
            return False
        if ours is None:
            return True
        old = self.base.table(type_id)
        return (
            old is not None
            and theirs.pin != old.pin
            and (theirs.location, ours.location) == (old.location, old.location)
            and ours.pin == old.pin
        )

    def _writes(self, plan: MigrationPlan, type_id: int) -> bool:
        kinds = (*_COLUMN_EFFECTS, KeyEdges)
        return any(isinstance(effect, kinds) for effect in plan.effects_on(type_id))

    @cached_property
    def columns(self) -> ColumnNames:
        """The columns of all tables after the merge."""
        rewritten = [
            effect.property_id
            for effect in self.plan.effects
            if isinstance(effect, _COLUMN_EFFECTS)
            and effect.type_id in self.target.types
            and not self.adopts(effect.type_id)
        ]
        fresh: dict[int, int] = {}
        if rewritten:
            following = self.schema.ir.next_identity_id
            first = following if self.reserve is None else self.reserve(len(rewritten), following)
            fresh = {identity: first + at for at, identity in enumerate(rewritten)}
        ours = carried(ColumnNames(self.target.columns), self.schema.ir, fresh)
        theirs = carried(ColumnNames(self.source.columns), self.schema.ir)
        return ColumnNames(
            {type_id: (theirs if self.adopts(type_id) else ours)[type_id] for type_id in self.types}
        )

    @cached_property
    def contract(self) -> SchemaContract:
        """What the manifest of the target holds afterwards."""
        return contract_of(self.schema, self.columns)

    def names(self, type_id: int) -> StoredColumns:
        """The stored columns of a table after the merge."""
        found = self.types[type_id]
        identity = TableIdentity(type_id, found.incarnation)
        return stored_columns_of(self.contract).get(identity, AS_NAMED)

    def view(self, side: MergeSide, plan: MigrationPlan, type_id: int) -> Table | None:
        """The table of a side as the merged schema has it."""
        table = side.table(type_id)
        if table is None:
            return None
        after = TypeAfter(side.types[type_id], self.types[type_id], plan.effects_on(type_id))
        shown = after.view(table.columns)
        left = self._left_behind(side, type_id)
        pairs = tuple((name, column or left.get(name)) for name, column in shown.pairs)
        return replace(table, columns=replace(shown, pairs=pairs))

    def silent(self, side: MergeSide, type_id: int) -> tuple[str, ...]:
        """The properties that a side has dropped and the merge keeps: it says nothing of them."""
        before, after = self.base.types.get(type_id), side.types.get(type_id)
        if before is None or after is None:
            return ()
        dropped = {one.property_id for one in before.properties}
        dropped -= {one.property_id for one in after.properties}
        properties = self.types[type_id].properties.items()
        return tuple(name for name, found in properties if found.property_id in dropped)

    def _left_behind(self, side: MergeSide, type_id: int) -> dict[str, str]:
        """The columns of such properties, which still have the values of rows nobody changed."""
        table, silent = side.table(type_id), self.silent(side, type_id)
        if table is None or not silent:
            return {}
        stored = set(table.dataset().schema.names)
        columns, properties = self.base.columns[type_id], self.types[type_id].properties
        found = {name: columns[properties[name].property_id] for name in silent}
        return {name: column for name, column in found.items() if column in stored}

    def reshape(self, side: MergeSide, plan: MigrationPlan, type_id: int) -> TableReshape:
        """What is done to the table of a side so that it is one of the merged schema."""
        effects = plan.effects_on(type_id)
        table = side.table(type_id)
        if table is None:
            raise AssertionError("a side has no table to reshape")
        after = TypeAfter(side.types[type_id], self.types[type_id], effects)
        names = self.names(type_id)
        keyed = self.types[type_id] if _is_keyed(plan, type_id) else None
        left = self._left_behind(side, type_id)
        sources = {names.of(name): column for name, column in left.items()}
        planned = after.new_columns(table.columns, names)
        # The columns of the target get names that nothing has had. Another side that has dropped
        # a property may have its column still, and nobody keeps what is made of such a side.
        is_kept = side is self.target or not planned
        stored = set() if is_kept else set(table.dataset().schema.names)
        written = {one.field.name: _unlike(stored, one.field.name) for one in planned}
        columns = tuple(
            replace(
                one,
                field=one.field.with_name(written[one.field.name]),
                source=one.source or sources.get(one.field.name),
            )
            for one in planned
        )
        # What is not written stays in the column that the side has for it.
        pairs = (
            (name, written.get(names.of(name), column))
            for name, column in after.view(table.columns).pairs
        )
        return TableReshape(columns, StoredColumns(tuple(pairs)), keyed)

    def tables(self, target: Base) -> dict[str, MergeTables]:
        """All three sides of every type of the merged schema, by type key."""
        found: dict[str, MergeTables] = {}
        for type_id, type_ in self.types.items():
            key = f"{type_.kind}:{type_.name}"
            theirs = self.view(self.source, self.source_plan, type_id)
            if self.target.table(type_id) is not None:
                found[key] = self._of_both(target, type_id, key, theirs)
            elif theirs is not None:
                found[key] = self._of_source(type_id, key, theirs)
        return found

    def _of_source(self, type_id: int, key: str, theirs: Table) -> MergeTables:
        """A table that the target does not have: as if it had always been empty there."""
        type_, identity = self.types[type_id], self.source.identity(type_id)
        path = table_path(type_.kind, identity.table_id, identity.incarnation)
        empty = as_made(theirs)
        return MergeTables(
            key,
            type_,
            empty,
            theirs,
            empty,
            Registration(identity, key, path),
            self.names(type_id),
            adopts=True,
        )

    def _of_both(self, target: Base, type_id: int, key: str, theirs: Table | None) -> MergeTables:
        base = self.view(self.base, self._base_plan, type_id)
        ours = self.view(self.target, self.plan, type_id)
        if ours is None:
            raise AssertionError("the target has the table")
        shown = target.snapshot.by_identity[self.target.identity(type_id)]
        is_compared = theirs is not None
        if theirs is None:
            theirs = base = ours
        elif base is None:
            base = as_made(ours)
        return MergeTables(
            key,
            self.types[type_id],
            base,
            theirs,
            ours,
            replace(shown.table, type_key=key),
            self.names(type_id),
            shown.version,
            shown.table.type_key,
            adopts=self.adopts(type_id),
            silent=(self.silent(self.source, type_id), self.silent(self.target, type_id)),
            reshape=self.reshape(self.target, self.plan, type_id),
            keyed={
                name: self.reshape(side, plan, type_id)
                for name, side, plan in (
                    ("base", self.base, self._base_plan),
                    ("source", self.source, self.source_plan),
                )
                if is_compared and side.table(type_id) is not None and _is_keyed(plan, type_id)
            },
        )

    def changes(self, target: Base) -> tuple[TableChange, ...]:
        """The tables of the target that change their names, and those that go."""
        found: list[TableChange] = []
        for type_id, before in self.target.types.items():
            identity = self.target.identity(type_id)
            after = self.types.get(type_id)
            if after is None:
                version = target.snapshot.by_identity[identity].version
                found.append(DropTable(identity, version))
            elif after.name != before.name:
                found.append(RenameTable(identity, f"{after.kind}:{after.name}"))
        return tuple(found)

    def checks(self, type_id: int) -> tuple[DataCheck, ...]:
        """What rows of a type have to obey that one of the sides did not know."""
        found = (*self.plan.checks_on(type_id), *self.source_plan.checks_on(type_id))
        # Whether a column is empty was looked at when the plans were made.
        return tuple(check for check in found if not isinstance(check, ColumnIsEmpty))

    @property
    def is_stricter(self) -> bool:
        """Whether rows of the source may break what only the target asks of them, or differ."""
        return self.base.ir != self.target.ir


def merged_schema(
    base: Snapshot,
    source: Snapshot,
    target: Snapshot,
    conflicts: Conflicts,
    *,
    resolve: Resolve,
    unified: Iterable[tuple[int, int]],
    reserve: Reserve | None,
) -> MergedSchema | None:
    """Merge three schemas; what stands is noted among the conflicts.

    While something stands, the result is what it would be if the target won there, so that
    the conflicts of rows can be told as well; None where even that makes no schema.
    """
    snapshots = (base, source, target)
    schemas = [accepted_schema(one.schema) for one in snapshots]
    versions = [
        SchemaVersion(one.schema.source, schema.ir)
        for one, schema in zip(snapshots, schemas, strict=True)
    ]
    pairs = tuple(unified)
    touched = TouchedRows(*snapshots, pairs)

    def merge(wanted: Resolve) -> SchemaMerge:
        return merge_schemas(*versions, touched=touched, unified=pairs, resolve=wanted)

    found = merge(about_schemas(resolve))
    conflicts.standing += map(_conflict, found.conflicts)
    conflicts.settled += [(_conflict(one), side) for one, side in found.resolved]
    conflicts.unused_elements += found.unused
    if found.ir is None:
        found = merge("target")
    if found.ir is None or found.source_text is None:
        return None
    schema = compile_schema(Source(found.source_text, SOURCE_NAME), accepted=found.ir)
    numbers = [_numbers(ids) for ids in (found.ids.base, found.ids.source, found.ids.target)]
    sides = [
        MergeSide(shown, accepted, own)
        for shown, accepted, own in zip(snapshots, schemas, numbers, strict=True)
    ]
    before, theirs, ours = sides
    return MergedSchema(schema, before, theirs, ours, found.unified, reserve)


def _is_keyed(plan: MigrationPlan, type_id: int) -> bool:
    """Whether the edges of a type get the ids of a key."""
    return any(isinstance(one, KeyEdges) for one in plan.effects_on(type_id))


def _unlike(taken: Container[str], name: str) -> str:
    """A name like this one that is not taken."""
    while name in taken:
        name += "@"
    return name


def _numbers(ids: Mapping[int, int]) -> dict[int, int]:
    """From the identities of a side to those of the merge, where the two differ."""
    return {own: merged for merged, own in ids.items() if merged != own}


def about_schemas(resolve: Resolve) -> Resolve:
    """The part of a resolution that is about schemas."""
    if resolve is None or isinstance(resolve, str):
        return resolve
    return {name: side for name, side in resolve.items() if concerns_schema(name)}


def _conflict(found: SchemaConflict) -> MergeConflict:
    return MergeConflict(
        found.kind,
        found.entity_kind,
        found.type_name,
        "",
        found.message,
        found.property,
        found.base,
        found.source,
        found.target,
    )
