"""Planning annotations.

Owns which annotation is metadata for people and which is a step of its own. None of them
touches a row. Never looks at constraints, except at how they are spelled.
"""

from __future__ import annotations

from omnigraph.lang.schema.ir.document import Note, PropertyConstraint
from omnigraph.lang.schema.ir.ir import IREdge, IRNode, IRProperty, IRType
from omnigraph.lang.schema.migration.draft import Draft
from omnigraph.lang.schema.migration.steps import (
    ChangeAnnotation,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
)

_METADATA = ("description", "instruction")


def type_annotations(draft: Draft, before: IRNode | IREdge, after: IRNode | IREdge) -> None:
    """Plan the annotations of a type that stays."""
    _others(draft, after, None, before.annotations, after.annotations)
    if _metadata(before.annotations) != _metadata(after.annotations):
        draft.add(
            UpdateTypeMetadata(
                after.kind, after.name, after.annotations, tier="safe", cost="metadata"
            )
        )


def property_annotations(
    draft: Draft, owner: IRType, before: IRProperty, after: IRProperty
) -> None:
    """Plan the annotations of a property that stays."""
    _others(draft, owner, after.name, before.annotations, after.annotations)
    if _metadata(before.annotations) != _metadata(after.annotations):
        draft.add(
            UpdatePropertyMetadata(
                owner.kind, owner.name, after.name, after.annotations, tier="safe", cost="metadata"
            )
        )


def respelled(
    draft: Draft, owner: IRType, property_: IRProperty, kind: PropertyConstraint, *, is_new: bool
) -> None:
    """Plan a constraint that moves between a property and the body and stays the same."""
    written, none = (Note(kind, None),), ()
    former, notes = (none, written) if is_new else (written, none)
    draft.add(_change(owner, property_.name, former, notes))


def _others(
    draft: Draft,
    owner: IRType,
    property_name: str | None,
    before: tuple[Note, ...],
    after: tuple[Note, ...],
) -> None:
    changed = (set(before) ^ set(after)) - _metadata(before) - _metadata(after)
    for name in sorted({note.name for note in changed}):
        former, notes = (
            tuple(note for note in side if note.name == name) for side in (before, after)
        )
        draft.add(_change(owner, property_name, former, notes))


def _change(
    owner: IRType, property_name: str | None, former: tuple[Note, ...], notes: tuple[Note, ...]
) -> ChangeAnnotation:
    return ChangeAnnotation(
        owner.kind,
        owner.name,
        (*former, *notes)[0].name,
        property_name,
        former,
        notes,
        tier="safe",
        cost="metadata",
    )


def _metadata(notes: tuple[Note, ...]) -> set[Note]:
    return {note for note in notes if note.name in _METADATA}
