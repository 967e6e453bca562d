"""What is in sight while a query is generated: its variables and their properties."""

from __future__ import annotations

from dataclasses import dataclass

from tests.read.model import PropType, Schema
from tests.read.query_ast import Prop

TEXT = PropType("String", nullable=False)


@dataclass(frozen=True)
class Known:
    """What a variable is."""

    is_node: bool
    type: str
    is_optional: bool = False


Scope = dict[str, Known]


def properties(
    schema: Schema,
    scope: Scope,
    kinds: tuple[str, ...],
    *,
    lists: bool = False,
    summed: bool = False,
) -> list[tuple[Prop, PropType]]:
    """The properties in sight of some kinds."""
    found = []
    for var, known in scope.items():
        types = schema.nodes if known.is_node else schema.edges
        for name, type_ in types[known.type].props.items():
            fits = type_.base in kinds and type_.is_list == lists
            if fits and not (summed and type_.wide):
                found.append((Prop(var, name), type_))
        if "String" in kinds and not lists:
            system = ("@id",) if known.is_node else ("@id", "@src", "@dst")
            found += [(Prop(var, name), TEXT) for name in system]
    return found
