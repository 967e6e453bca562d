"""Planning the constraints of one type.

Owns which constraint is new or gone, whether rows may break one that is new, and which of those
that stay they may break because a step fills nulls. Never looks at what becomes of a column.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from omnigraph.errors import quoted
from omnigraph.lang.schema.ir.document import PropertyConstraint
from omnigraph.lang.schema.ir.ir import (
    CheckConstraint,
    IRConstraint,
    IREdge,
    IRInterface,
    IRNode,
    IRProperty,
    IRType,
    PropertyField,
    RangeConstraint,
)
from omnigraph.lang.schema.ir.shape import MEMBER_RULES
from omnigraph.lang.schema.migration.annotation_steps import respelled
from omnigraph.lang.schema.migration.codes import Tier
from omnigraph.lang.schema.migration.describe import rule_text
from omnigraph.lang.schema.migration.draft import ColumnChanges, Draft, entity
from omnigraph.lang.schema.migration.effects import (
    Column,
    DataCheck,
    End,
    InRange,
    KeyEdges,
    MatchesPattern,
    UniqueEdges,
    UniqueMembers,
)
from omnigraph.lang.schema.migration.rules import (
    bound_value,
    constraint_key,
    is_implied,
    members,
    range_admits,
    rule_of,
)
from omnigraph.lang.schema.migration.steps import (
    AddConstraint,
    ConstraintForm,
    Cost,
    RemoveConstraint,
)

_ENDS: dict[str, End] = {"src": "@src", "dst": "@dst"}


def plan_constraints(
    draft: Draft, before: IRNode | IREdge, after: IRNode | IREdge, columns: ColumnChanges
) -> None:
    """Plan the constraints of a table, given what becomes of its columns."""
    planner = _Constraints(draft, before, after, columns)
    old = {constraint_key(found): found for found in before.constraints}
    new = {constraint_key(found): found for found in after.constraints}
    removed = [found for key, found in old.items() if key not in new]
    added = [found for key, found in new.items() if key not in old]
    planner.keys(
        [found for found in removed if found.kind == "key"],
        [found for found in added if found.kind == "key"],
    )
    for constraint in removed:
        if constraint.kind != "key" and not planner.goes_with_members(constraint):
            planner.remove(constraint)
    for constraint in added:
        if constraint.kind != "key":
            planner.add(constraint)
    for key, constraint in new.items():
        if key in old:
            planner.keep(constraint)
    planner.spellings([*removed, *added])


def plan_interface_constraints(draft: Draft, before: IRInterface, after: IRInterface) -> None:
    """Plan what an interface asks of its nodes, each of which has steps of its own."""
    for property_, kind, is_new in _written(before, after):
        step = AddConstraint if is_new else RemoveConstraint
        rule = MEMBER_RULES[kind]((property_.name,))
        form = ConstraintForm.of(rule)
        draft.add(step(after.kind, after.name, form, tier="safe", cost="metadata"))


def _written(
    before: IRType, after: IRType
) -> Iterable[tuple[IRProperty, PropertyConstraint, bool]]:
    """Constraints that are written on a property that stays and were not, or were and are not."""
    former = {property_.property_id: property_ for property_ in before.properties}
    for property_ in after.properties:
        was = former.get(property_.property_id)
        if was is not None:
            old, new = set(was.property_constraints), set(property_.property_constraints)
            for kind in sorted(old ^ new):
                yield property_, kind, kind in new


@dataclass
class _Constraints:
    draft: Draft
    before: IRNode | IREdge
    owner: IRNode | IREdge
    columns: ColumnChanges

    def __post_init__(self) -> None:
        self.names = {property_.property_id: property_.name for property_ in self.owner.properties}
        self.types = {property_.property_id: property_.type for property_ in self.owner.properties}

    # -- keys --------------------------------------------------------------------------

    def keys(self, removed: list[IRConstraint], added: list[IRConstraint]) -> None:
        """Plan another key, of which a type has at most one."""
        is_keyed_edge = bool(added) and not removed and isinstance(self.owner, IREdge)
        if added and not is_keyed_edge and not self.draft.has_no_rows(self.owner):
            rules = [rule_of(found, self.names) for found in (*removed, *added)]
            texts = [quoted(rule_text(rule)) for rule in rules]
            change = f"become {texts[1]}" if removed else "be added"
            reason = (
                f"{texts[0]} cannot {change} while there are rows: their ids would change; "
                "create another type with this key and copy the rows"
            )
            self.draft.refuse(entity(self.owner), reason)
            return
        for constraint in removed:
            self.remove(constraint)
        for constraint in added:
            if is_keyed_edge:
                self.key_edges(constraint)
            else:
                self.step(constraint, "safe", "metadata")

    def key_edges(self, constraint: IRConstraint) -> None:
        step = self.step(constraint, "validated", "columns")
        properties = [found for found in constraint.fields if isinstance(found, PropertyField)]
        if self.is_readable(constraint):
            ids = sorted(found.property_id for found in properties)
            found = tuple(Column(id_, self.types[id_]) for id_ in ids)
            self.draft.checks.append(UniqueEdges(step, self.owner.type_id, found))
            self.draft.effects.append(KeyEdges(step, self.owner.type_id, found))

    # -- other constraints -------------------------------------------------------------

    def goes_with_members(self, constraint: IRConstraint) -> bool:
        """Whether every member of a constraint is a property that is dropped."""
        return members(constraint) <= {found.property_id for found in self.columns.dropped}

    def remove(self, constraint: IRConstraint) -> None:
        rule = rule_of(constraint, self.names)
        self.draft.add(
            RemoveConstraint(
                self.owner.kind,
                self.owner.name,
                ConstraintForm.of(rule),
                tier="safe",
                cost="metadata",
            )
        )

    def add(self, constraint: IRConstraint) -> None:
        if self.always_holds(constraint):
            self.step(constraint, "safe", "metadata")
            return
        step = self.step(constraint, "validated", "scan")
        if self.is_readable(constraint):
            self.draft.checks.append(self.check(step, constraint))

    def keep(self, constraint: IRConstraint) -> None:
        """Ask again what a step may break that fills nulls, from which it was exempt."""
        if constraint.kind in ("key", "index") or not self.is_readable(constraint):
            return
        for id_ in sorted(members(constraint) & self.columns.fills.keys(), key=str):
            fill = self.columns.fills[int(id_)]
            admitted = isinstance(constraint, RangeConstraint) and range_admits(
                constraint, fill.value, self.types[int(id_)]
            )
            if not admitted:
                self.draft.checks.append(self.check(fill.step, constraint))

    def always_holds(self, constraint: IRConstraint) -> bool:
        """Whether no row can break a constraint, whatever it holds."""
        about = members(constraint)
        if constraint.kind == "index" or about & self.columns.nulls:
            return True
        filled = [fill for id_, fill in self.columns.fills.items() if id_ in about]
        if not filled:
            return is_implied(constraint, self.before.constraints)
        if not isinstance(constraint, RangeConstraint):
            return False
        (fill,), (id_,) = filled, about
        return range_admits(constraint, fill.value, self.types[int(id_)]) and (
            fill.everywhere or is_implied(constraint, self.before.constraints)
        )

    def step(self, constraint: IRConstraint, tier: Tier, cost: Cost) -> int:
        rule = rule_of(constraint, self.names)
        return self.draft.add(
            AddConstraint(
                self.owner.kind, self.owner.name, ConstraintForm.of(rule), tier=tier, cost=cost
            )
        )

    def is_readable(self, constraint: IRConstraint) -> bool:
        return members(constraint).isdisjoint(self.columns.unreadable)

    def check(self, step: int, constraint: IRConstraint) -> DataCheck:
        table = self.owner.type_id
        if isinstance(constraint, RangeConstraint):
            (id_,) = map(int, members(constraint))
            low, high = bound_value(constraint.minimum), bound_value(constraint.maximum)
            return InRange(step, table, id_, self.types[id_], low, high)
        if isinstance(constraint, CheckConstraint):
            (id_,) = map(int, members(constraint))
            return MatchesPattern(step, table, id_, constraint.pattern)
        return UniqueMembers(
            step,
            table,
            tuple(
                Column(found.property_id, self.types[found.property_id])
                if isinstance(found, PropertyField)
                else _ENDS[found.role]
                for found in constraint.fields
            ),
        )

    # -- spelling ----------------------------------------------------------------------

    def spellings(self, changed: list[IRConstraint]) -> None:
        """Plan constraints that stay and are written elsewhere: on a property or in the body."""
        explained = {(found.kind, *members(found)) for found in changed}
        for property_, kind, is_new in _written(self.before, self.owner):
            if (kind, property_.property_id) not in explained:
                respelled(self.draft, self.owner, property_, kind, is_new=is_new)
