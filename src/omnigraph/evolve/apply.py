"""Applying a schema: one more change, from its plan to the publish that makes it visible.

Owns what is done to tables and in which order: check, create, write columns, then one publish
that registers, renames, drops and advances tables and carries the schema. Rows that others
write meanwhile are checked and given their columns, what was written for the others stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from omnigraph.evolve.genesis import CONCURRENCY, create_tables, registrations
from omnigraph.evolve.planning import PlannedSchema, Reserve, plan_schema
from omnigraph.evolve.stored_queries import StoredQueries
from omnigraph.lang.schema.migration.effects import CreateTable, DropTable, KeyEdges, RenameTable
from omnigraph.lang.schema.migration.plan import MigrationPlan
from omnigraph.lang.schema.migration.steps import (
    AppliedStep,
    Step,
    UnsupportedChange,
    steps_from_json,
)
from omnigraph.lang.source import Source
from omnigraph.manifest import publish_request
from omnigraph.manifest.entries import MAIN, SCHEMA_STEPS, Commit, TableIdentity
from omnigraph.manifest.publish_request import (
    PendingCommit,
    PublishRequest,
    RegisterTable,
    TableChange,
)
from omnigraph.manifest.root_copies import refresh_copies
from omnigraph.manifest.schema_contract import HARD_DROP
from omnigraph.manifest.snapshot import stored_columns_of
from omnigraph.rows.stored_columns import AS_NAMED
from omnigraph.storage.tables.new_columns import write_columns
from omnigraph.write.change.protocol import Change, Effects, WriteOutcome, WriteTxn
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.driver import Target, run
from omnigraph.write.publish.failpoints import reach
from omnigraph.write.publish.run_ids import RunId
from omnigraph.write.publish.staging import OperationClass
from omnigraph.write.recovery.intent_scope import IntentScope
from omnigraph.write.recovery.intents import WriterKind
from omnigraph.write.reshape.checks import RowsObey, StillEmpty
from omnigraph.write.reshape.column_effects import (
    ReshapeEffect,
    TableReshape,
    WriteColumns,
    restage_reshape,
    stage_reshape,
)


@dataclass(frozen=True, slots=True)
class SchemaResult:
    """What became of a schema change; ``commit`` is None when there was nothing to change.

    With ``repeats_run`` it was done before, by an earlier call with the same run id.
    """

    branch: str
    plan: MigrationPlan
    commit: Commit | None = None
    repeats_run: bool = field(default=False, compare=False)

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

    def __repr__(self) -> str:
        if self.commit is None:
            return f"{self.branch} has this schema already: nothing was changed"
        return f"changed the schema of {self.branch}, commit {self.commit.id}\n{self.plan}"

    def _repr_html_(self) -> str:
        return self.plan._repr_html_()


def apply_schema(change: SchemaChange, target: Target) -> SchemaResult:
    """Run a schema change; the copies of the schema beside the manifest follow that of main."""
    result = run(change, target)
    if result.applied and target.branch == MAIN:
        reach("copies_lagging", target.branch)
        refresh_copies(target.root, target.manifest.view(MAIN).state.schema)
    return result


def _taken(planned: PlannedSchema) -> list[AppliedStep]:
    return [step for step in planned.plan.steps if not isinstance(step, UnsupportedChange)]


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
        queries: StoredQueries | None = None,
        force_queries: bool = False,
        actor: str | None = None,
        run: RunId | None = None,
        write: WriteColumns = write_columns,
    ) -> None:
        self.source = source
        self.allow_data_loss = allow_data_loss
        self.queries = queries
        self.force_queries = force_queries
        self.commit = PendingCommit.mint(actor)
        self.notes: dict[str, Any] = {}
        self.run = run
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
            queries=self.queries,
            force_queries=self.force_queries,
        )
        if not planned.plan.supported:
            # Whatever else rows stand against is told with it.
            planned.checked().require_supported()
        self.notes = {"operation": "schema_apply", SCHEMA_STEPS: planned.plan.to_json()["steps"]}
        if self.allow_data_loss and any(step.tier == "destructive" for step in _taken(planned)):
            self.notes[HARD_DROP] = True
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
        reshaped = self._reshapes()
        if reshaped:
            sizes = (one.size(base.table(key).table) for key, one in reshaped.items())
            files.begin(reshaped, base, sum(sizes))
        self._created = self._create(base, files)
        reach("tables_created", base.view.state.branch)

        def stage(key: str) -> ReshapeEffect:
            return stage_reshape(base.table(key), reshaped[key], files, write=self._write)

        with ThreadPoolExecutor(CONCURRENCY) as pool:
            effects = tuple(pool.map(stage, sorted(reshaped)))
        files.name({effect.type_key: effect.all_files for effect in effects}, base)
        return effects

    def restage(self, effects: Effects, newer: Base, files: IntentScope) -> Effects | None:
        """The same on a newer base: columns of fragments that are there already stay."""
        return tuple(
            restage_reshape(effect, newer.table(effect.type_key), files, self._write)
            for effect in effects
            if isinstance(effect, ReshapeEffect)
        )

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

    @property
    def outcome(self) -> Mapping[str, Any]:
        """The steps that were taken."""
        return {SCHEMA_STEPS: self.planned.plan.to_json()["steps"]}

    def result(self, written: WriteOutcome) -> SchemaResult:
        """What was planned, and the commit that did it."""
        if written.repeats:
            done = MigrationPlan(steps_from_json(written.first[SCHEMA_STEPS]))
            return SchemaResult(written.branch, done, written.commit, repeats_run=True)
        return SchemaResult(written.branch, self.planned.plan, written.commit)

    # -- tables --------------------------------------------------------------------------

    def _identity(self, type_id: int) -> TableIdentity:
        return self.planned.facts.table(type_id).identity

    def _create(self, base: Base, files: IntentScope) -> tuple[RegisterTable, ...]:
        planned = self.planned
        types = [
            planned.desired_type(effect.type_id)
            for effect in planned.plan.effects
            if isinstance(effect, CreateTable)
        ]
        tables = registrations(types)
        if not tables:
            return ()
        files.cover(tables)
        names = stored_columns_of(planned.contract)
        pins = create_tables(base.root, planned.schema.catalog, tables, names)
        return tuple(RegisterTable(table, pins[table.identity]) for table in tables)

    def _reshapes(self) -> dict[str, TableReshape]:
        """What is done to tables that stay, by type key; others are not touched."""
        planned, found = self.planned, {}
        names = stored_columns_of(planned.contract)
        effects = planned.plan.effects
        dropped = {one.type_id for one in effects if isinstance(one, DropTable)}
        keyed = {one.type_id for one in effects if isinstance(one, KeyEdges)}
        for type_id in {one.type_id for one in effects} - dropped:
            if type_id not in planned.facts.types:
                continue
            shown = planned.facts.table(type_id)
            after = names.get(shown.identity, AS_NAMED)
            reshape = TableReshape(
                planned.type_after(type_id).new_columns(shown.pinned.columns, after),
                after,
                planned.desired_type(type_id) if type_id in keyed else None,
            )
            if not reshape.is_nothing:
                found[shown.table.type_key] = reshape
        return found
