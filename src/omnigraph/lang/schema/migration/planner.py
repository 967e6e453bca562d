"""Migration planning: from the accepted IR to the desired one.

Owns the order of steps and what concerns whole types. Compares by stable id, so a rename is one
step and touches nothing else, and either schema may be the older one. Never applies anything.
"""

from __future__ import annotations

from omnigraph.errors import quoted
from omnigraph.lang.schema.catalog import EntityKind
from omnigraph.lang.schema.ir.ir import IREdge, IRInterface, IRNode, IRProperty, IRType, SchemaIR
from omnigraph.lang.schema.migration.annotation_steps import type_annotations
from omnigraph.lang.schema.migration.constraint_steps import (
    plan_constraints,
    plan_interface_constraints,
)
from omnigraph.lang.schema.migration.describe import ends_text
from omnigraph.lang.schema.migration.draft import Draft, entity
from omnigraph.lang.schema.migration.effects import (
    CardinalityWithin,
    CreateTable,
    DropColumn,
    DropTable,
    RenameTable,
)
from omnigraph.lang.schema.migration.facts import UNKNOWN, DataFacts
from omnigraph.lang.schema.migration.plan import MigrationPlan
from omnigraph.lang.schema.migration.property_steps import plan_properties
from omnigraph.lang.schema.migration.steps import (
    AddType,
    ChangeCardinality,
    ChangeEndpoints,
    ChangeImplements,
    DropProperty,
    DropType,
    Ends,
    RenameType,
)


def plan_migration(
    accepted: SchemaIR,
    desired: SchemaIR,
    *,
    allow_data_loss: bool = False,
    facts: DataFacts = UNKNOWN,
) -> MigrationPlan:
    """The steps from one schema to the next; refused changes are steps too."""
    draft = Draft(facts, "hard" if allow_data_loss else "soft")
    if accepted.schema_identity_domain != desired.schema_identity_domain:
        draft.refuse("schema", "the schemas belong to two graphs: their identity domains differ")
    groups: tuple[tuple[tuple[IRType, ...], tuple[IRType, ...]], ...] = (
        (accepted.interfaces, desired.interfaces),
        (accepted.nodes, desired.nodes),
        (accepted.edges, desired.edges),
    )
    gone: list[IRType] = []
    for before, after in groups:
        known = {found.type_id: found for found in before}
        for found in after:
            former = known.pop(found.type_id, None)
            if former is None:
                _new_type(draft, found)
            else:
                _type(draft, former, found)
        gone += known.values()
    for found in gone:
        _drop_type(draft, found)
    _lost_ends(draft, accepted, desired)
    return MigrationPlan(tuple(draft.steps), tuple(draft.effects), tuple(draft.checks))


# -- whole types -----------------------------------------------------------------------


def _new_type(draft: Draft, found: IRType) -> None:
    step = draft.add(AddType(found.kind, found.name, tier="safe", cost="metadata"))
    if not isinstance(found, IRInterface):
        kind, incarnation = _table_kind(found), found.table_incarnation_id
        draft.effects.append(CreateTable(step, found.type_id, kind, incarnation, found.name))


def _drop_type(draft: Draft, found: IRType) -> None:
    if isinstance(found, IRInterface):
        # Nothing is lost with it: what its nodes had from it, they have or drop themselves.
        draft.add(DropType(found.kind, found.name, "soft", tier="safe", cost="metadata"))
        return
    step = draft.add(
        DropType(
            found.kind,
            found.name,
            draft.mode,
            tier="destructive",
            cost="metadata",
            rows_losing_value=draft.facts.row_count(found.type_id),
        )
    )
    draft.effects.append(
        DropTable(step, found.type_id, _table_kind(found), found.table_incarnation_id, draft.mode)
    )


def _table_kind(found: IRNode | IREdge) -> EntityKind:
    return "node" if isinstance(found, IRNode) else "edge"


# -- one type --------------------------------------------------------------------------


def _type(draft: Draft, before: IRType, after: IRType) -> None:
    if before.name != after.name:
        _rename(draft, before, after)
    if isinstance(before, IRInterface) and isinstance(after, IRInterface):
        dropped = plan_properties(draft, before, after).dropped
        plan_interface_constraints(draft, before, after)
    elif not isinstance(before, IRInterface) and not isinstance(after, IRInterface):
        dropped = _table(draft, before, after)
    else:
        raise AssertionError("a type never becomes one of another kind")
    for property_ in dropped:
        _drop_property(draft, after, property_)


def _rename(draft: Draft, before: IRType, after: IRType) -> None:
    step = draft.add(RenameType(after.kind, before.name, after.name, tier="safe", cost="metadata"))
    if not isinstance(after, IRInterface):
        draft.effects.append(
            RenameTable(step, after.type_id, _table_kind(after), before.name, after.name)
        )


def _table(draft: Draft, before: IRNode | IREdge, after: IRNode | IREdge) -> list[IRProperty]:
    """Plan a type that has rows; the properties that go."""
    if before.table_incarnation_id != after.table_incarnation_id:
        draft.refuse(entity(after), "the rows of a type cannot be exchanged for others")
    if isinstance(before, IRNode) and isinstance(after, IRNode):
        _implements(draft, before, after)
    if isinstance(before, IREdge) and isinstance(after, IREdge):
        _endpoints(draft, before, after)
        _cardinality(draft, before, after)
    type_annotations(draft, before, after)
    columns = plan_properties(draft, before, after)
    plan_constraints(draft, before, after, columns)
    return columns.dropped


def _drop_property(draft: Draft, owner: IRType, property_: IRProperty) -> None:
    if isinstance(owner, IRInterface):
        draft.add(
            DropProperty(
                owner.kind, owner.name, property_.name, "soft", tier="safe", cost="metadata"
            )
        )
        return
    step = draft.add(
        DropProperty(
            owner.kind,
            owner.name,
            property_.name,
            draft.mode,
            tier="destructive",
            cost="metadata",
            rows_losing_value=0 if draft.has_no_rows(owner) else None,
        )
    )
    draft.effects.append(DropColumn(step, owner.type_id, property_.property_id, draft.mode))


# -- parts of one type -----------------------------------------------------------------


def _implements(draft: Draft, before: IRNode, after: IRNode) -> None:
    """Plan other interfaces, and properties that a node has from elsewhere than before."""
    old = {ref.type_id: ref.type_name for ref in before.implements}
    new = {ref.type_id: ref.type_name for ref in after.implements}
    origins = {property_.property_id: _origin(property_) for property_ in before.properties}
    moved = [
        property_.name
        for property_ in after.properties
        if origins.get(property_.property_id, _origin(property_)) != _origin(property_)
    ]
    if old.keys() != new.keys() or moved:
        draft.add(
            ChangeImplements(
                after.kind,
                after.name,
                tuple(sorted(name for id_, name in new.items() if id_ not in old)),
                tuple(sorted(name for id_, name in old.items() if id_ not in new)),
                tuple(moved),
                tier="safe",
                cost="metadata",
            )
        )


def _origin(property_: IRProperty) -> tuple[bool, frozenset[int]]:
    return (
        property_.declared_directly,
        frozenset(ref.property_id for ref in property_.satisfies),
    )


def _endpoints(draft: Draft, before: IREdge, after: IREdge) -> None:
    ids = [(edge.from_type.type_id, edge.to_type.type_id) for edge in (before, after)]
    if ids[0] == ids[1]:
        return
    former, ends = (
        Ends(edge.from_type.type_name, edge.to_type.type_name) for edge in (before, after)
    )
    if not draft.has_no_rows(after):
        was, is_now = (quoted(ends_text(found)) for found in (former, ends))
        reason = (
            f"the ends of an edge type cannot change from {was} to {is_now} "
            "while there are edges: create another edge type"
        )
        draft.refuse(entity(after), reason)
        return
    draft.add(ChangeEndpoints(after.kind, after.name, former, ends, tier="safe", cost="metadata"))


def _lost_ends(draft: Draft, accepted: SchemaIR, desired: SchemaIR) -> None:
    """Nodes that edges may lead to because of an interface keep it while there are such edges."""
    kept = {found.type_id: found for found in desired.nodes}
    edges = [edge for edge in desired.edges if not draft.has_no_rows(edge)]
    for before in accepted.nodes:
        after = kept.get(before.type_id)
        still = set() if after is None else {ref.type_id for ref in after.implements}
        for lost in before.implements:
            for edge in edges:
                ends = (edge.from_type.type_id, edge.to_type.type_id)
                if lost.type_id in ends and lost.type_id not in still:
                    draft.refuse(
                        entity(after or before),
                        f"edges of type {edge.name} may lead to a {before.name} because it "
                        f"implements {lost.type_name}: while there are any, it has to",
                    )


def _cardinality(draft: Draft, before: IREdge, after: IREdge) -> None:
    old, new = before.cardinality, after.cardinality
    if old == new:
        return
    is_tighter = new.minimum > old.minimum or (
        new.maximum is not None and (old.maximum is None or new.maximum < old.maximum)
    )
    step = draft.add(
        ChangeCardinality(
            after.kind,
            after.name,
            old,
            new,
            tier="validated" if is_tighter else "safe",
            cost="scan" if is_tighter else "metadata",
        )
    )
    if is_tighter:
        draft.checks.append(CardinalityWithin(step, after.type_id, new.minimum, new.maximum))
