"""Planning: from a schema text to what it takes to bring one state of a branch there.

Owns the order: compile under the identities that are there, plan with what the data says, and
give out identities for what is new. Changes nothing but the count of identities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from omnigraph.evolve.contract import judge_patterns
from omnigraph.evolve.stored_queries import StoredQueries, broken_queries
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.columns import ColumnNames, carried
from omnigraph.lang.schema.compile import CompiledSchema, compile_schema
from omnigraph.lang.schema.ir.identity import new_identities
from omnigraph.lang.schema.ir.ir import IREdge, IRNode
from omnigraph.lang.schema.migration.plan import MigrationPlan
from omnigraph.lang.schema.migration.planner import plan_migration
from omnigraph.lang.schema.migration.refusals import SchemaText
from omnigraph.lang.schema.migration.steps import MAX_SHOWN_IDS, Violations
from omnigraph.lang.source import Source
from omnigraph.manifest.entries import SchemaContract
from omnigraph.manifest.schema_contract import AcceptedSchema, accepted_schema, contract_of
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.write.reshape.checks import find_violations
from omnigraph.write.reshape.facts import SnapshotFacts
from omnigraph.write.reshape.rows_after import TypeAfter

Reserve = Callable[[int, int], int]
"""Gives out so many identities, at the earliest from a number on; the first of them."""


@dataclass(frozen=True)
class PlannedSchema:
    """A schema that is wanted, and the way there from one state of a branch."""

    snapshot: Snapshot
    accepted: AcceptedSchema
    schema: CompiledSchema
    columns: ColumnNames
    plan: MigrationPlan

    @cached_property
    def contract(self) -> SchemaContract:
        """What the manifest holds afterwards."""
        return contract_of(self.schema, self.columns)

    @cached_property
    def facts(self) -> SnapshotFacts:
        """What the state says, its columns included."""
        return SnapshotFacts(self.snapshot, self.accepted.ir, looks=True)

    def changes(self, accepted: IRNode | IREdge) -> bool:
        """Whether a type is another afterwards, or gone."""
        return accepted not in (*self.schema.ir.nodes, *self.schema.ir.edges)

    def type_after(self, type_id: int) -> TypeAfter:
        """A type that stays, before and after."""
        return TypeAfter(
            self.facts.types[type_id], self.desired_type(type_id), self.plan.effects_on(type_id)
        )

    def desired_type(self, type_id: int) -> NodeType | EdgeType:
        """A type of the desired schema."""
        catalog = self.schema.catalog
        types: tuple[NodeType | EdgeType, ...] = (
            *catalog.nodes.values(),
            *catalog.edges.values(),
        )
        return next(found for found in types if found.type_id == type_id)

    def checked(self) -> MigrationPlan:
        """The plan with the rows that break it, and how many would lose a value."""
        found: dict[int, Violations] = {}
        for check in self.plan.checks:
            table = self.facts.table(check.type_id).pinned
            broken = find_violations(check, self.type_after(check.type_id), table)
            known = found.get(check.step, broken)
            ids = sorted({*known.ids, *broken.ids})[:MAX_SHOWN_IDS]
            found[check.step] = Violations(max(known.count, broken.count), tuple(ids))
        return self.plan.with_findings(found)


def plan_schema(
    snapshot: Snapshot,
    source: Source,
    *,
    allow_data_loss: bool = False,
    looks: bool = False,
    reserve: Reserve | None = None,
    queries: StoredQueries | None = None,
    force_queries: bool = False,
) -> PlannedSchema:
    """Plan the way from a state to a schema.

    With ``looks`` what depends on values is decided by them. Without ``reserve`` new things
    have identities that nobody has given out, so the plan is to be read and not applied.
    ``queries`` that would no longer compile refuse it, unless it is forced on them.
    """
    accepted = accepted_schema(snapshot.schema)
    facts = SnapshotFacts(snapshot, accepted.ir, looks=looks)

    def compiled(first_id: int | None) -> tuple[CompiledSchema, MigrationPlan]:
        schema = compile_schema(source, accepted=accepted.ir, first_id=first_id)
        plan = plan_migration(accepted.ir, schema.ir, allow_data_loss=allow_data_loss, facts=facts)
        return schema, replace(plan, text=SchemaText(schema.source, schema.syntax))

    schema, plan = compiled(None)
    judge_patterns(schema)
    rewritten = sorted(plan.rewritten)
    new = new_identities(accepted.ir, schema.ir)
    first = accepted.ir.next_identity_id
    if reserve is not None and plan.supported and new + len(rewritten):
        first = reserve(new + len(rewritten), first)
        schema, plan = compiled(first)
    if plan.supported:
        plan = plan.with_findings(rows_losing_value=facts.rows_losing_value(plan))
    if queries and plan.steps:
        broken = broken_queries(queries, schema.catalog)
        plan = replace(plan, broken_queries=broken, forced=force_queries)
    fresh = {identity: first + new + at for at, identity in enumerate(rewritten)}
    columns = carried(accepted.columns, schema.ir, fresh)
    return PlannedSchema(snapshot, accepted, schema, columns, plan)
