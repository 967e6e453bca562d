"""Migration planning: from the accepted IR to the desired one.

Owns which difference needs which step and which is refused. Compares by stable
id, so a rename is one step and touches nothing else. Never applies anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from omnigraph.lang.cursor import shorten
from omnigraph.lang.schema.ir.document import Note, PropertyConstraint
from omnigraph.lang.schema.ir.ir import (
    CheckConstraint,
    IRConstraint,
    IREdge,
    IRInterface,
    IRNode,
    IRProperty,
    IRType,
    PropertyRef,
    RangeConstraint,
    SchemaIR,
)
from omnigraph.lang.schema.ir.shape import IndexRule
from omnigraph.lang.schema.migration.steps import (
    AddIndex,
    AddProperty,
    AddType,
    DropMode,
    DropProperty,
    DropType,
    ExtendEnum,
    MigrationPlan,
    RenameProperty,
    RenameType,
    Step,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
)
from omnigraph.lang.structural import spelling

_METADATA = ("description", "instruction")
_UNCLASSIFIED = "IR difference without a classified step"

_ConstraintKey = tuple[str, ...]


def plan_migration(
    accepted: SchemaIR, desired: SchemaIR, *, allow_data_loss: bool = False
) -> MigrationPlan:
    """The steps from one schema to the next; refused changes are steps too."""
    planner = _Planner("hard" if allow_data_loss else "soft")
    planner.identity(accepted, desired)
    groups: tuple[tuple[tuple[IRType, ...], tuple[IRType, ...]], ...] = (
        (accepted.interfaces, desired.interfaces),
        (accepted.nodes, desired.nodes),
        (accepted.edges, desired.edges),
    )
    for before, after in groups:
        known = {found.type_id: found for found in before}
        for found in after:
            former = known.pop(found.type_id, None)
            if former is None:
                planner.steps.append(AddType(found.kind, found.name))
            else:
                planner.type(former, found)
        planner.gone(list(known.values()))
    return MigrationPlan((*planner.steps, *planner.drops))


@dataclass
class _Planner:
    mode: DropMode
    steps: list[Step] = field(default_factory=list)
    drops: list[Step] = field(default_factory=list)

    def refuse(self, entity: str, reason: str, code: str | None = None) -> None:
        self.steps.append(UnsupportedChange(entity, reason, code))

    def identity(self, accepted: SchemaIR, desired: SchemaIR) -> None:
        if accepted.schema_identity_domain != desired.schema_identity_domain:
            self.refuse("schema", f"{_UNCLASSIFIED}: the identity domain changes")
        if desired.next_identity_id < accepted.next_identity_id:
            self.refuse("schema", f"{_UNCLASSIFIED}: the identity counter goes back")

    def gone(self, types: list[IRType]) -> None:
        for found in types:
            if isinstance(found, IRInterface):
                self.refuse(_entity(found), "an interface cannot be removed")
            else:
                self.drops.append(DropType(found.kind, found.name, self.mode))

    # -- one type --------------------------------------------------------------------

    def type(self, before: IRType, after: IRType) -> None:
        if before.name != after.name:
            if isinstance(after, IRInterface):
                self.refuse(_entity(after), "an interface cannot be renamed")
            else:
                self.steps.append(RenameType(after.kind, before.name, after.name))
        if isinstance(before, IRNode) and isinstance(after, IRNode):
            self.node(before, after)
        elif isinstance(before, IREdge) and isinstance(after, IREdge):
            self.edge(before, after)
        dropped = self.properties(before, after)
        changed = self.constraints(before, after, {p.property_id for p in dropped})
        self.property_constraints(before, after, changed)
        self.steps += [
            DropProperty(after.kind, after.name, property_.name, self.mode) for property_ in dropped
        ]

    def node(self, before: IRNode, after: IRNode) -> None:
        self.incarnation(before, after)
        if {ref.type_id for ref in before.implements} != {ref.type_id for ref in after.implements}:
            self.refuse(_entity(after), "the interfaces of a node type cannot change")
        self.type_annotations(before, after)

    def edge(self, before: IREdge, after: IREdge) -> None:
        self.incarnation(before, after)
        endpoints = [(edge.from_type.type_id, edge.to_type.type_id) for edge in (before, after)]
        if endpoints[0] != endpoints[1]:
            self.refuse(_entity(after), "the endpoints of an edge type cannot change")
        if before.cardinality != after.cardinality:
            self.refuse(_entity(after), "the cardinality of an edge type cannot change")
        self.type_annotations(before, after)

    def incarnation(self, before: IRNode | IREdge, after: IRNode | IREdge) -> None:
        if before.table_incarnation_id != after.table_incarnation_id:
            self.refuse(_entity(after), f"{_UNCLASSIFIED}: the table incarnation changes")

    def type_annotations(self, before: IRNode | IREdge, after: IRNode | IREdge) -> None:
        self.other_annotations(_entity(after), before.annotations, after.annotations)
        if _metadata(before.annotations) != _metadata(after.annotations):
            self.steps.append(UpdateTypeMetadata(after.kind, after.name, after.annotations))

    def other_annotations(
        self, entity: str, before: tuple[Note, ...], after: tuple[Note, ...]
    ) -> None:
        changed = (set(before) ^ set(after)) - _metadata(before) - _metadata(after)
        for name in sorted({note.name for note in changed}):
            self.refuse(entity, f"the annotation `@{shorten(name)}` cannot change")

    # -- properties --------------------------------------------------------------------

    def properties(self, before: IRType, after: IRType) -> list[IRProperty]:
        """Plan what stays or is new; returns what goes."""
        known = {property_.property_id: property_ for property_ in before.properties}
        for property_ in after.properties:
            former = known.pop(property_.property_id, None)
            if former is None:
                self.new_property(after, property_)
            else:
                self.property(after, former, property_)
        return sorted(known.values(), key=lambda property_: property_.name)

    def new_property(self, owner: IRType, property_: IRProperty) -> None:
        filled = property_.type.nullable or any(
            note.name == "default" for note in property_.annotations
        )
        if filled:
            step = AddProperty(owner.kind, owner.name, property_.name, property_.prop_type)
            self.steps.append(step)
            return
        reason = (
            f"the new property `{shorten(property_.name)}` is neither nullable nor has "
            "a `@default`, so existing rows cannot be filled"
        )
        self.refuse(_entity(owner, property_), reason, "OG-MF-103")

    def property(self, owner: IRType, before: IRProperty, after: IRProperty) -> None:
        entity = _entity(owner, after)
        if before.name != after.name:
            self.steps.append(RenameProperty(owner.kind, owner.name, before.name, after.name))
        self.property_type(owner, before, after)
        if _embed_key(before) != _embed_key(after):
            self.refuse(entity, "the source and model of `@embed` cannot change")
        if before.declared_directly != after.declared_directly:
            self.refuse(entity, "a property cannot move between a node and its interface")
        elif _satisfied(before) != _satisfied(after):
            self.refuse(entity, "the interface properties a property satisfies cannot change")
        self.other_annotations(entity, before.annotations, after.annotations)
        if _metadata(before.annotations) != _metadata(after.annotations):
            self.steps.append(
                UpdatePropertyMetadata(owner.kind, owner.name, after.name, after.annotations)
            )

    def property_type(self, owner: IRType, before: IRProperty, after: IRProperty) -> None:
        if before.type == after.type:
            return
        old, new = before.type.enum_values, after.type.enum_values
        if old is not None and new is not None and before.type.nullable == after.type.nullable:
            added = tuple(value for value in new if value not in old)
            if len(new) == len(old) + len(added):
                self.steps.append(ExtendEnum(owner.kind, owner.name, after.name, added))
                return
        reason = f"the type of a property cannot change from {before.type} to {after.type}"
        self.refuse(_entity(owner, after), reason, "OG-MF-106")

    # -- constraints -------------------------------------------------------------------

    def constraints(self, before: IRType, after: IRType, dropped: set[int]) -> set[tuple[str, int]]:
        """Plan constraints; returns the kinds that changed for which property."""
        if isinstance(before, IRInterface) or isinstance(after, IRInterface):
            return set()
        old = {_constraint_key(found): found for found in before.constraints}
        new = {_constraint_key(found): found for found in after.constraints}
        added = [found for key, found in new.items() if key not in old]
        removed = [found for key, found in old.items() if key not in new]
        for constraint in removed:
            if constraint.kind == "key" or not _goes_with(constraint, dropped):
                self.refuse(_entity(after), f"{_describe(constraint)} cannot be removed")
        for constraint in added:
            if constraint.kind == "index":
                own = {property_.name for property_ in after.properties}
                names = tuple(spelling(found.name, own) for found in constraint.fields)
                self.steps.append(AddIndex(after.kind, after.name, IndexRule(names)))
            else:
                self.refuse(_entity(after), f"{_describe(constraint)} cannot be added")
        return {
            (constraint.kind, found.property_id)
            for constraint in (*added, *removed)
            for found in constraint.fields
            if isinstance(found, PropertyRef)
        }

    def property_constraints(
        self, before: IRType, after: IRType, explained: set[tuple[str, int]]
    ) -> None:
        """Account for `@key`, `@unique`, `@index` written on properties that stay."""
        former = {property_.property_id: property_ for property_ in before.properties}
        for property_ in after.properties:
            was = former.get(property_.property_id)
            if was is None:
                continue
            old, new = set(was.property_constraints), set(property_.property_constraints)
            unexplained = sorted(
                kind for kind in old ^ new if (kind, property_.property_id) not in explained
            )
            for kind in unexplained:
                self.property_constraint(after, property_, kind, added=kind in new)

    def property_constraint(
        self, owner: IRType, property_: IRProperty, kind: PropertyConstraint, *, added: bool
    ) -> None:
        if not isinstance(owner, IRInterface):
            self.refuse(_entity(owner, property_), f"{_UNCLASSIFIED}: the spelling of `@{kind}`")
        elif added and kind == "index":
            # An interface has no table: its index is intent that its nodes inherit.
            self.steps.append(AddIndex(owner.kind, owner.name, IndexRule((property_.name,))))
        else:
            verb = "added" if added else "removed"
            self.refuse(_entity(owner, property_), f"`@{kind}` cannot be {verb}")


# -- what is compared -----------------------------------------------------------------


def _entity(owner: IRType, property_: IRProperty | None = None) -> str:
    name = f"{owner.kind}:{owner.name}"
    return name if property_ is None else f"{name}.{property_.name}"


def _metadata(notes: tuple[Note, ...]) -> set[Note]:
    return {note for note in notes if note.name in _METADATA}


def _embed_key(property_: IRProperty) -> tuple[int, str | None] | None:
    embed = property_.embed_source
    return None if embed is None else (embed.source.property_id, embed.model)


def _satisfied(property_: IRProperty) -> set[int]:
    return {ref.property_id for ref in property_.satisfies}


def _constraint_key(constraint: IRConstraint) -> _ConstraintKey:
    """What makes two constraints the same whatever their members are called today."""
    members = sorted(
        str(found.property_id) if isinstance(found, PropertyRef) else found.role
        for found in constraint.fields
    )
    rest = ""
    if isinstance(constraint, RangeConstraint):
        rest = msgspec.json.encode((constraint.minimum, constraint.maximum)).decode()
    elif isinstance(constraint, CheckConstraint):
        rest = constraint.pattern
    return (constraint.kind, *members, rest)


def _goes_with(constraint: IRConstraint, dropped: set[int]) -> bool:
    """Whether every member of a constraint is a property that is dropped."""
    return all(
        isinstance(found, PropertyRef) and found.property_id in dropped
        for found in constraint.fields
    )


def _describe(constraint: IRConstraint) -> str:
    names = ", ".join(shorten(found.name) for found in constraint.fields)
    return f"`@{constraint.kind}` on {names}"
