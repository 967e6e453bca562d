"""Applying a schema: one more change, from its plan to the publish that makes it visible.

Owns what is done to tables and in which order: check, create, write columns, then one publish
that registers, renames, drops and advances tables and carries the schema. Rows that others
write meanwhile are checked and given their columns, what was written for the others stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from omnigraph.evolve.checks import RowsObey, StillEmpty
from omnigraph.evolve.contract import refresh_copies
from omnigraph.evolve.edge_ids import rekey_edges
from omnigraph.evolve.genesis import CONCURRENCY, create_tables, registrations
from omnigraph.evolve.planning import PlannedSchema, Reserve, plan_schema
from omnigraph.lang.schema.migration.effects import CreateTable, DropTable, KeyEdges, RenameTable
from omnigraph.lang.schema.migration.plan import MigrationPlan
from omnigraph.lang.schema.migration.steps import Step
from omnigraph.lang.source import Source
from omnigraph.manifest import publish_request
from omnigraph.manifest.entries import MAIN, Commit, TableIdentity
from omnigraph.manifest.publish_request import (
    PendingCommit,
    PublishRequest,
    RegisterTable,
    TableChange,
)
from omnigraph.manifest.snapshot import stored_columns_of
from omnigraph.rows.stored_columns import AS_NAMED
from omnigraph.storage.tables.new_columns import (
    NewColumn,
    WrittenColumns,
    commit_columns,
    fragments_without,
    write_columns,
)
from omnigraph.storage.tables.table import Table, TablePin
from omnigraph.write.change.protocol import Change, Effects, WriteOutcome, WriteTxn
from omnigraph.write.publish.base import Base, BaseTable
from omnigraph.write.publish.driver import Target, run
from omnigraph.write.publish.failpoints import reach
from omnigraph.write.publish.staging import OperationClass, TableEffect
from omnigraph.write.recovery.intent_scope import IntentScope
from omnigraph.write.recovery.intents import WriterKind

STEPS = "schema_steps"
"""Where a commit notes the steps that changed its schema."""

WriteColumns = Callable[[Table, Sequence[NewColumn], Sequence[int]], Mapping[str, str]]
"""Writes new columns of some fragments: in this process, or in many."""

# What is assumed of a value that is written, to tell a small change from a large one.
_VALUE_BYTES = 16


@dataclass(frozen=True, slots=True)
class SchemaResult:
    """What became of a schema change; ``commit`` is None when there was nothing to change."""

    branch: str
    plan: MigrationPlan
    commit: Commit | None = None
    repeats: bool = False

    @property
    def supported(self) -> bool:
        """Always true: what is not supported is refused with an error."""
        return self.plan.supported

    @property
    def applied(self) -> bool:
        """Whether the branch has got another schema."""
        return self.commit is not None

    @property
    def steps(self) -> tuple[Step, ...]:
        """What was done."""
        return self.plan.steps

    @property
    def step_count(self) -> int:
        """How many steps it took."""
        return len(self.plan.steps)

    @property
    def manifest_version(self) -> int | None:
        """The version of the manifest that has the change."""
        return None if self.commit is None else self.commit.manifest_version


def apply_schema(change: SchemaChange, target: Target) -> SchemaResult:
    """Run a schema change; the copies of the schema beside the manifest follow that of main."""
    result = run(change, target)
    if result.applied and target.branch == MAIN:
        reach("copies_lagging", target.branch)
        refresh_copies(target.root, target.manifest.view(MAIN).state.schema)
    return result


@dataclass(frozen=True, slots=True)
class ColumnsEffect(TableEffect):
    """A table with more columns, or with other ids."""

    columns: tuple[NewColumn, ...] = ()
    files: WrittenColumns = field(default_factory=WrittenColumns)


class SchemaChange(Change[SchemaResult]):
    """A schema on its way to a branch."""

    kind: ClassVar[WriterKind] = "SchemaApply"
    operation_class: ClassVar[OperationClass] = "schema"

    def __init__(
        self,
        source: Source,
        reserve: Reserve,
        *,
        allow_data_loss: bool = False,
        actor: str | None = None,
        write: WriteColumns = write_columns,
    ) -> None:
        self.source = source
        self.allow_data_loss = allow_data_loss
        self.commit = PendingCommit.mint(actor)
        self.notes: dict[str, Any] = {}
        self._reserve = reserve
        self._write = write
        self._planned: PlannedSchema | None = None
        self._created: tuple[RegisterTable, ...] = ()

    @property
    def planned(self) -> PlannedSchema:
        """The plan on the base that it was prepared on."""
        if self._planned is None:
            raise AssertionError("a schema is planned before it is applied")
        return self._planned

    def prepare(self, txn: WriteTxn) -> bool:
        """Plan it; a schema that means the same changes nothing."""
        planned = self._planned = plan_schema(
            txn.base.snapshot,
            self.source,
            allow_data_loss=self.allow_data_loss,
            looks=True,
            reserve=self._reserve,
        )
        planned.plan.require_supported()
        self.notes = {STEPS: planned.plan.to_json()["steps"]}
        return bool(planned.plan.steps)

    def check(self, txn: WriteTxn) -> None:
        """Refuse what the rows do not obey, all of it at once."""
        planned = self.planned
        self._planned = replace(planned, plan=planned.checked())
        self.planned.plan.require_supported()
        for type_id, accepted in planned.facts.types.items():
            found = planned.facts.table(type_id)
            checks = planned.plan.checks_on(type_id)
            key = found.table.type_key
            if not found.pin.row_count and planned.changes(accepted):
                txn.reads.claim(StillEmpty(key, found.identity))
            elif checks:
                after = planned.type_after(type_id)
                txn.reads.claim(RowsObey(key, found.identity, after, checks))

    def stage(self, txn: WriteTxn) -> Effects:
        """Create tables, and write columns, all tables side by side."""
        base, files = txn.base, txn.files
        columns = {key: new for key, new in self._new_columns().items() if new}
        rekeyed = self._rekeyed(base)
        touched = sorted({*columns, *rekeyed})
        if touched:
            files.begin(touched, base, self._size(base, columns, rekeyed))
        self._created = self._create(base)
        reach("tables_created", base.view.state.branch)

        def stage(key: str) -> TableEffect:
            found = base.table(key)
            return self._stage(
                found, columns.get(key, ()), files, rekeys=key in rekeyed, known=WrittenColumns()
            )

        if not touched:
            return ()
        with ThreadPoolExecutor(min(CONCURRENCY, len(touched))) as pool:
            effects = tuple(pool.map(stage, touched))
        written = {
            effect.type_key: (*effect.files.names, *effect.written.files)
            for effect in effects
            if isinstance(effect, ColumnsEffect)
        }
        files.name(written, base)
        return effects

    def _stage(
        self,
        found: BaseTable,
        columns: tuple[NewColumn, ...],
        files: IntentScope,
        *,
        rekeys: bool,
        known: WrittenColumns,
    ) -> TableEffect:
        table = found.table
        missing = fragments_without(table, known)
        written = known.joined(self._write(table, columns, missing))
        reach("columns_written", found.type_key)
        pin = commit_columns(table, columns, written, files.stamp())
        effect = ColumnsEffect(
            found.type_key,
            found.identity,
            found.version,
            table.pin,
            pin,
            columns=columns,
            files=written,
        )
        if rekeys:
            after = self._table_after(found, pin)
            edge = self.planned.desired_type(found.identity.table_id)
            rows, pin = rekey_edges(edge, after, files.stamp())
            effect = replace(effect, written=rows, pin=pin)
        reach("table_staged", found.type_key)
        return effect

    def restage(self, effects: Effects, newer: Base, files: IntentScope) -> Effects | None:
        """The same on a newer base: columns of fragments that are there already stay."""
        rekeyed = self._rekeyed(newer)
        staged: list[TableEffect] = []
        for effect in effects:
            found = newer.table(effect.type_key)
            if found.table.pin == effect.base_pin:
                staged.append(replace(effect, base_version=found.version))
            elif isinstance(effect, ColumnsEffect):
                rekeys = effect.type_key in rekeyed
                staged.append(
                    self._stage(found, effect.columns, files, rekeys=rekeys, known=effect.files)
                )
        return tuple(staged)

    def publish(self, base: Base, effects: Effects) -> PublishRequest:
        """Tables that come, change their names, advance and go, and the schema, in one step."""
        changes: list[TableChange] = list(self._created)
        for effect in self.planned.plan.effects:
            match effect:
                case RenameTable(type_id=type_id, kind=kind, name=name):
                    identity = self._identity(type_id)
                    changes.append(publish_request.RenameTable(identity, f"{kind}:{name}"))
                case DropTable(type_id=type_id, incarnation=incarnation):
                    identity = TableIdentity(type_id, incarnation)
                    version = base.snapshot.by_identity[identity].version
                    changes.append(publish_request.DropTable(identity, version))
        changes += [effect.advance for effect in effects if not effect.is_nothing]
        commit = replace(self.commit, metadata=self.notes)
        return PublishRequest(commit, tuple(changes), self.planned.contract)

    def result(self, written: WriteOutcome) -> SchemaResult:
        """What was planned, and the commit that did it."""
        return SchemaResult(written.branch, self.planned.plan, written.commit, written.repeats)

    # -- tables --------------------------------------------------------------------------

    def _identity(self, type_id: int) -> TableIdentity:
        return self.planned.facts.table(type_id).identity

    def _create(self, base: Base) -> tuple[RegisterTable, ...]:
        planned = self.planned
        types = [
            planned.desired_type(effect.type_id)
            for effect in planned.plan.effects
            if isinstance(effect, CreateTable)
        ]
        tables = registrations(types)
        names = stored_columns_of(planned.contract)
        pins = create_tables(base.root, planned.schema.catalog, tables, names)
        return tuple(RegisterTable(table, pins[table.identity]) for table in tables)

    def _new_columns(self) -> dict[str, tuple[NewColumn, ...]]:
        """The columns to write, by type key."""
        planned, found = self.planned, {}
        names = stored_columns_of(planned.contract)
        for type_id in {effect.type_id for effect in planned.plan.effects}:
            if type_id not in planned.facts.types or self._is_dropped(type_id):
                continue
            shown = planned.facts.table(type_id)
            after = names.get(shown.identity, AS_NAMED)
            found[shown.table.type_key] = planned.type_after(type_id).new_columns(
                shown.pinned.columns, after
            )
        return found

    def _is_dropped(self, type_id: int) -> bool:
        return any(
            isinstance(effect, DropTable) and effect.type_id == type_id
            for effect in self.planned.plan.effects
        )

    def _rekeyed(self, base: Base) -> frozenset[str]:
        """The edge tables with rows whose ids change, by type key."""
        tables = (
            self.planned.facts.table(effect.type_id).table.type_key
            for effect in self.planned.plan.effects
            if isinstance(effect, KeyEdges)
        )
        return frozenset(key for key in tables if base.table(key).table.pin.row_count)

    def _table_after(self, found: BaseTable, pin: TablePin) -> Table:
        """A table with its new columns, read by the names of the desired schema."""
        names = stored_columns_of(self.planned.contract).get(found.identity, AS_NAMED)
        return replace(found.table, pin=pin, columns=names)

    def _size(
        self, base: Base, columns: Mapping[str, tuple[NewColumn, ...]], rekeyed: frozenset[str]
    ) -> int:
        """About how many bytes are written."""
        size = 0
        for key, new in columns.items():
            made = sum(column.is_written for column in new)
            size += _VALUE_BYTES * made * base.table(key).table.pin.row_count
        for key in rekeyed:
            table = base.table(key).table
            size += _VALUE_BYTES * len(table.schema) * table.pin.row_count
        return size
