"""What a side says at one place, as `.pg` writes it.

Owns the texts of single elements in conflicts. Never decides what is one.
"""

from __future__ import annotations

from omnigraph.lang.schema.merge.merging import Place
from omnigraph.lang.schema.merge.model import (
    Aspect,
    DeclaredType,
    Element,
    Model,
    members_of,
)
from omnigraph.lang.schema.syntax.format import annotation_text, cardinality_text, member_text
from omnigraph.lang.schema.syntax.tree import Cardinality
from omnigraph.lang.structural import spelling


def subject(aspect: Aspect) -> str:
    """An element as a message names it."""
    match aspect:
        case ("note", name):
            return f"`@{name}`"
        case ("card" | "embed" | "key" | "range" | "check" as kind, *_):
            return f"`@{kind}`"
        case ("nullable",):
            return "the nullability"
        case (kind, *_):
            return f"the {kind}"
    raise AssertionError("an element has a kind")


def shown(model: Model, place: Place, element: Element | None) -> str | None:
    """The text of an element of this model; None where it has none."""
    owner = model.types.get(place.type_id)
    if element is None or owner is None:
        return None
    match place.aspect, element.meaning:
        case (("type",) | ("nullable",), _):
            found = None if place.property_id is None else owner.properties.get(place.property_id)
            return None if found is None else str(found.syntax.type)
        case (("note", _), _):
            return " ".join(map(annotation_text, element.written))
        case (("embed",), _):
            return annotation_text(element.written)
        case (("range" | "check", _), _):
            return " ".join(map(member_text, element.written))
        case (("key",), _):
            return f"@key({', '.join(member_names(place.aspect, element, owner))})"
        case (("card",), (int() as minimum, maximum)):
            limit = maximum if isinstance(maximum, int) else None
            return cardinality_text(Cardinality(minimum, limit))
        case (("ends",), (int() as start, int() as end)):
            return f"{model.types[start].name} -> {model.types[end].name}"
    return str(element.meaning)


def member_names(aspect: Aspect, element: Element, owner: DeclaredType) -> list[str]:
    """The members of a constraint as a body names them: ends first, then properties by name."""
    names = {found.name for found in owner.properties.values()}
    members = members_of(aspect, element)
    ends = [spelling(end, names) for end in ("@src", "@dst") if end in members]
    properties = [owner.properties[each].name for each in members if isinstance(each, int)]
    return [*ends, *sorted(properties)]
