"""Planning the properties of one type.

Owns which change of a property is which step, and what becomes of its column: at most one
effect writes it, whatever changes at once. Never looks at constraints.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from omnigraph.errors import quoted
from omnigraph.lang.cursor import shorten
from omnigraph.lang.schema.ir.document import property_type
from omnigraph.lang.schema.ir.ir import EmbedSource, IRInterface, IRProperty, IRType
from omnigraph.lang.schema.ir.shape import EmbedShape
from omnigraph.lang.schema.migration.annotation_steps import property_annotations
from omnigraph.lang.schema.migration.codes import CANNOT_FILL, NULLS_REMAIN, OTHER_TYPE, Tier
from omnigraph.lang.schema.migration.draft import (
    ColumnChanges,
    Draft,
    Fill,
    default_of,
    entity,
    key_of,
)
from omnigraph.lang.schema.migration.effects import (
    AddColumn,
    ColumnIsEmpty,
    FillNulls,
    InEnum,
    NotNull,
    ReplaceColumn,
    SetNullable,
    WidenColumn,
)
from omnigraph.lang.schema.migration.steps import (
    AddProperty,
    ChangeEmbed,
    ChangeNullability,
    ChangePropertyType,
    Cost,
    ExtendEnum,
    RenameProperty,
)
from omnigraph.lang.schema.migration.value_types import TypeRelation, keeps_key_text, relation

_OLD_VECTORS = "vectors are those of the old source until `embed` makes them again"
_GIVEN_VECTORS = "vectors are those that were given until `embed` makes them again"


def plan_properties(draft: Draft, before: IRType, after: IRType) -> ColumnChanges:
    """Plan the properties that stay or are new; tells what becomes of all columns."""
    planner = _Properties(draft, before, after)
    known = {property_.property_id: property_ for property_ in before.properties}
    for property_ in after.properties:
        former = known.pop(property_.property_id, None)
        if former is None:
            planner.new(property_)
        else:
            planner.changed(former, property_)
    planner.columns.dropped = sorted(known.values(), key=lambda property_: property_.name)
    return planner.columns


@dataclass
class _Properties:
    draft: Draft
    before: IRType
    owner: IRType
    columns: ColumnChanges = field(default_factory=ColumnChanges)

    @property
    def has_table(self) -> bool:
        return not isinstance(self.owner, IRInterface)

    def place(self, property_: IRProperty) -> tuple[str, str]:
        return self.owner.name, property_.name

    # -- new ones ----------------------------------------------------------------------

    def new(self, property_: IRProperty) -> None:
        type_, default = property_.type, default_of(property_)
        fill = None if type_.nullable else default
        if fill is None and not type_.nullable and not self.draft.has_no_rows(self.owner):
            self.columns.unreadable.add(property_.property_id)
            reason = _unfilled(property_, is_key=property_.property_id in key_of(self.owner))
            self.draft.refuse(entity(self.owner, property_), reason, CANNOT_FILL)
            return
        cost: Cost = "metadata" if fill is None or not self.has_table else "columns"
        step = self.draft.add(
            AddProperty(
                self.owner.kind,
                *self.place(property_),
                property_.prop_type,
                tier="safe",
                cost=cost,
            )
        )
        if self.has_table:
            self.draft.effects.append(
                AddColumn(step, self.owner.type_id, property_.property_id, type_, fill)
            )
        if fill is None:
            self.columns.nulls.add(property_.property_id)
        else:
            self.columns.fills[property_.property_id] = Fill(step, fill, everywhere=True)

    # -- those that stay ---------------------------------------------------------------

    def changed(self, before: IRProperty, after: IRProperty) -> None:
        if before.name != after.name:
            step = RenameProperty(
                self.owner.kind,
                self.owner.name,
                before.name,
                after.name,
                tier="safe",
                cost="metadata",
            )
            self.draft.add(step)
        if before.type != after.type:
            self.values(before, after)
        if _embed_key(before) != _embed_key(after):
            self.embed(before, after)
        property_annotations(self.draft, self.owner, before, after)

    def values(self, before: IRProperty, after: IRProperty) -> None:
        """Plan another type and another nullability, which share one column."""
        typed = self.type(before, after)
        nulled = self.nullability(before, after)
        if not self.has_table or after.property_id in self.columns.unreadable:
            return
        fill = self.columns.fills.get(after.property_id)
        value = None if fill is None else fill.value
        table, id_ = self.owner.type_id, after.property_id
        effects = self.draft.effects
        how = relation(before.type, after.type)
        if typed is not None and how is TypeRelation.WIDER:
            effects.append(WidenColumn(typed, table, id_, before.type, after.type, value))
        elif typed is not None and how is TypeRelation.OTHER:
            effects.append(ReplaceColumn(typed, table, id_, before.type, after.type, value))
        elif nulled is not None and value is not None:
            effects.append(FillNulls(nulled, table, id_, after.type, value))
        elif nulled is not None:
            effects.append(SetNullable(nulled, table, id_, after.type.nullable))

    # -- types -------------------------------------------------------------------------

    def type(self, before: IRProperty, after: IRProperty) -> int | None:
        """Plan another type; the place of its step, None if there is none."""
        how = relation(before.type, after.type)
        if how is TypeRelation.SAME:
            return None
        if how is TypeRelation.OTHER or (
            how is TypeRelation.WIDER
            and self.in_kept_key(after)
            and not keeps_key_text(before.type)
        ):
            return self.retyped(before, after, how)
        added = _added_values(before, after)
        if how is TypeRelation.MORE_TEXTS and added is not None:
            return self.draft.add(
                ExtendEnum(self.owner.kind, *self.place(after), added, tier="safe", cost="metadata")
            )
        if how is TypeRelation.OTHER_TEXTS and self.has_table:
            step = self.draft.add(self.type_step(before, after, "scan", "validated"))
            values = after.type.enum_values or ()
            self.draft.checks.append(InEnum(step, self.owner.type_id, after.property_id, values))
            return step
        cost: Cost = "columns" if how is TypeRelation.WIDER and self.has_table else "metadata"
        return self.draft.add(self.type_step(before, after, cost))

    def retyped(self, before: IRProperty, after: IRProperty, how: TypeRelation) -> int | None:
        """Plan a type that stored values do not survive, so that there must be none."""
        if self.draft.has_no_rows(self.owner):
            if how is TypeRelation.OTHER:
                self.columns.nulls.add(after.property_id)
            return self.draft.add(self.type_step(before, after, "metadata"))
        ids = (self.owner.type_id, after.property_id)
        is_empty = self.draft.facts.is_empty_column(*ids) if how is TypeRelation.OTHER else False
        if is_empty:
            self.columns.nulls.add(after.property_id)
            step = self.draft.add(self.type_step(before, after, "scan", "validated", OTHER_TYPE))
            self.draft.checks.append(ColumnIsEmpty(step, *ids))
            return step
        change = f"from {quoted(before.type)} to {quoted(after.type)}"
        if how is TypeRelation.WIDER:
            reason = (
                f"the type of a key's member cannot change {change} while there are rows: "
                "their ids would change"
            )
        else:
            unseen = " (a check tells whether it has any)" if is_empty is None else ""
            reason = (
                f"the type of a property cannot change {change} while it has values{unseen}: "
                "add another property, copy them, then drop this one"
            )
        self.columns.unreadable.add(after.property_id)
        self.draft.refuse(entity(self.owner, after), reason, OTHER_TYPE)
        return None

    def type_step(
        self,
        before: IRProperty,
        after: IRProperty,
        cost: Cost,
        tier: Tier = "safe",
        code: str | None = None,
    ) -> ChangePropertyType:
        # Nullability is a step of its own, so neither side of this one differs in it.
        type_ = replace(after.type, nullable=before.type.nullable)
        return ChangePropertyType(
            self.owner.kind,
            *self.place(after),
            before.prop_type,
            property_type(type_),
            tier=tier,
            cost=cost,
            code=code,
        )

    def in_kept_key(self, property_: IRProperty) -> bool:
        """Whether ids are made of a property before and after."""
        return all(property_.property_id in key_of(owner) for owner in (self.before, self.owner))

    # -- nullability -------------------------------------------------------------------

    def nullability(self, before: IRProperty, after: IRProperty) -> int | None:
        """Plan another nullability; the place of its step, None if there is none."""
        nullable, id_ = after.type.nullable, after.property_id
        if before.type.nullable == nullable:
            return None
        place = (self.owner.kind, *self.place(after))
        if nullable or not self.has_table:
            step = ChangeNullability(*place, nullable, tier="safe", cost="metadata")
            return self.draft.add(step)
        fill = default_of(after)
        cost: Cost = "scan" if fill is None else "columns"
        at = self.draft.add(
            ChangeNullability(
                *place, nullable, fill, tier="validated", cost=cost, code=NULLS_REMAIN
            )
        )
        if fill is None:
            self.draft.checks.append(NotNull(at, self.owner.type_id, id_))
        else:
            everywhere = id_ in self.columns.nulls
            self.columns.nulls.discard(id_)
            self.columns.fills[id_] = Fill(at, fill, everywhere=everywhere)
        return at

    # -- embeddings --------------------------------------------------------------------

    def embed(self, before: IRProperty, after: IRProperty) -> None:
        names = {property_.property_id: property_.name for property_ in self.owner.properties}
        former, embed = before.embed_source, after.embed_source
        note = None
        if embed is not None and self.has_table:
            note = _GIVEN_VECTORS if former is None else _OLD_VECTORS
        self.draft.add(
            ChangeEmbed(
                self.owner.kind,
                *self.place(after),
                None if former is None else _embed_shape(former, names),
                None if embed is None else _embed_shape(embed, names),
                note,
                tier="safe",
                cost="metadata",
            )
        )


def _unfilled(property_: IRProperty, *, is_key: bool) -> str:
    name, type_ = shorten(property_.name), property_.type
    if property_.embed_source is not None:
        ways = "make it nullable, let `embed` fill it, then make it non-nullable"
    elif not type_.is_plain:
        ways = "make it nullable"
    elif is_key:
        ways = "give it a `@default`"
    else:
        ways = "make it nullable or give it a `@default`"
    return (
        f"the new property `{name}` is neither nullable nor has a `@default`, "
        f"so existing rows cannot be filled: {ways}"
    )


def _added_values(before: IRProperty, after: IRProperty) -> tuple[str, ...] | None:
    """The values an enum has more than before; None if either is no enum."""
    old, new = before.type.enum_values, after.type.enum_values
    if old is None or new is None:
        return None
    return tuple(value for value in new if value not in old)


def _embed_key(property_: IRProperty) -> tuple[int, str | None] | None:
    embed = property_.embed_source
    return None if embed is None else (embed.source.property_id, embed.model)


def _embed_shape(embed: EmbedSource, names: dict[int, str]) -> EmbedShape:
    """A source under the name it has afterwards, if it stays."""
    name = names.get(embed.source.property_id, embed.source.property_name)
    return EmbedShape(name, embed.model)
