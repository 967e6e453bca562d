"""A plan in the making.

Owns what the planner collects, and what the parts of it tell each other about the columns of a
table. Never decides anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.lang.schema.catalog import Scalar as Value
from omnigraph.lang.schema.check.defaults import decode_default
from omnigraph.lang.schema.ir.document import note_value
from omnigraph.lang.schema.ir.ir import IRInterface, IRProperty, IRType, PropertyField
from omnigraph.lang.schema.migration.effects import DataCheck, DropMode, Effect
from omnigraph.lang.schema.migration.facts import DataFacts
from omnigraph.lang.schema.migration.steps import Step, UnsupportedChange, entity_of


@dataclass
class Draft:
    """Steps so far, with what they do and ask."""

    facts: DataFacts
    mode: DropMode
    steps: list[Step] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    checks: list[DataCheck] = field(default_factory=list)

    def add(self, step: Step) -> int:
        """Add a step; its place in the plan, by which effects and checks name it."""
        self.steps.append(step)
        return len(self.steps) - 1

    def refuse(self, entity: str, reason: str, code: str | None = None) -> None:
        """Add a change nobody can make."""
        self.steps.append(UnsupportedChange(entity, reason, code))

    def has_no_rows(self, owner: IRType) -> bool:
        """Whether a type is known to have no rows; an interface never has any."""
        return isinstance(owner, IRInterface) or self.facts.row_count(owner.type_id) == 0


@dataclass(frozen=True, slots=True)
class Fill:
    """A value that a step puts where no value was; ``everywhere`` in a column that is new."""

    step: int
    value: Value
    everywhere: bool


@dataclass
class ColumnChanges:
    """What happens to the columns of one table, by property id.

    ``nulls`` hold no value in any row afterwards. What a rule says about ``unreadable`` ones
    cannot be asked of the data: they are not there, or not of the type that the rule is about.
    """

    nulls: set[int] = field(default_factory=set)
    fills: dict[int, Fill] = field(default_factory=dict)
    unreadable: set[int] = field(default_factory=set)
    dropped: list[IRProperty] = field(default_factory=list)


def default_of(property_: IRProperty) -> Value | None:
    """The decoded `@default` of a property."""
    written = note_value(property_.annotations, "default")
    return None if written is None else decode_default(written, property_.type)


def key_of(owner: IRType) -> frozenset[int]:
    """The ids of the properties in the key of a type; an edge's ends are beside the point."""
    constraints = () if isinstance(owner, IRInterface) else owner.constraints
    return frozenset(
        member.property_id
        for constraint in constraints
        if constraint.kind == "key"
        for member in constraint.fields
        if isinstance(member, PropertyField)
    )


def entity(owner: IRType, property_: IRProperty | None = None) -> str:
    """How a declaration is named in a plan."""
    return entity_of(owner.kind, owner.name, None if property_ is None else property_.name)
