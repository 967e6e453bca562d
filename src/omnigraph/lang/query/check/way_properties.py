"""What a way has: its length, its weight, its nodes and edges, and properties of its nodes.

Owns their types. Who binds a way is for ways.py.
"""

from __future__ import annotations

from omnigraph.lang import structural
from omnigraph.lang.diagnostics import name_hint
from omnigraph.lang.query import terms
from omnigraph.lang.query.check.scope import Checker, WayBinding
from omnigraph.lang.types import Scalar, ValueType

HOPS, COST, IDS, EDGES = "@hops", "@cost", "@ids", "@edges"
WAY_PROPERTIES = (HOPS, COST, IDS, EDGES)
_TEXTS = ValueType(Scalar.STRING, is_list=True)


def way_property(checker: Checker, way: WayBinding, name: terms.Name) -> ValueType | None:
    """The type of `$way.name`: of the way itself, or of a property of its nodes, as a list."""
    match name.text:
        case "@hops":
            return ValueType(Scalar.I64)
        case "@cost" if way.weighted:
            return ValueType(Scalar.F64)
        case "@cost":
            checker.error(
                name.span,
                f"${way.name} has no weight",
                "T27",
                hint="write `by` and what a step weighs, or use `@hops`",
            )
            return None
        case "@ids" | "@edges":
            return _TEXTS
    if way.node is None:
        return None
    definition = way.node.properties.get(name.text)
    if definition is None:
        known = WAY_PROPERTIES if name.text.startswith("@") else way.node.properties
        is_id = name.text == structural.ID
        hint = f"the ids of its nodes are `{IDS}`" if is_id else name_hint(name.text, known)
        said = f"${way.name} is a way: its nodes, of type {way.node.name}, have no"
        checker.error(name.span, f"{said} `{name.text}`", "T6", hint=hint)
        return None
    if not definition.type.is_plain:
        said = f"`{name.text}` is {definition.type}, and a way has lists of single values"
        checker.error(name.span, said, "T27")
        return None
    return ValueType(definition.type.scalar, is_list=True)
