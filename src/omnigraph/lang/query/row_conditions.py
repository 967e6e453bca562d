"""Row conditions: which rows of a type somebody sees, said as the `where` of a mutation says it.

Owns reading such a condition against a schema, with the id of its actor in the place of `$actor`.
One that does not fit the schema shows nothing: it is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from omnigraph.errors import LanguageError, PolicyDenied
from omnigraph.lang.expressions import Const, Now, ParamRef
from omnigraph.lang.query import plan
from omnigraph.lang.query.compile import compile_query
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType

ACTOR = "actor"
Predicates = tuple[plan.Predicate, ...]


def condition_groups(
    groups: Sequence[Sequence[str]], type_: NodeType | EdgeType, catalog: Catalog, actor: str
) -> tuple[Predicates, ...]:
    """The predicates of each group of conditions; of a group all have to hold."""
    return tuple(
        tuple(one for text in group for one in _predicates(text, type_, catalog, actor))
        for group in groups
    )


def together(groups: tuple[Predicates, ...]) -> Predicates:
    """Predicates that hold where those of one of the groups do."""
    return groups[0] if len(groups) == 1 else (plan.Either(groups),)


def _predicates(
    condition: str, type_: NodeType | EdgeType, catalog: Catalog, actor: str
) -> Predicates:
    text = f"query rows(${ACTOR}: String) {{\n    delete {type_.name} where\n{condition}\n}}"
    try:
        statements = compile_query(text, catalog, path="<policy>").require_mutation().statements
    except LanguageError as error:
        raise _misfit(type_) from error
    match statements:
        case (plan.DeleteNodes(name, where, _),) if (type_.kind, type_.name) == ("node", name):
            pass
        case (plan.DeleteEdges(name, where, ()),) if (type_.kind, type_.name) == ("edge", name):
            if isinstance(type_, EdgeType) and type_.shared and _names_ends(where, type_.shared):
                raise _misfit(type_)
        case _:
            raise _misfit(type_)
    found: Predicates = _named(where, type_, actor)
    return found


def _names_ends(value: Any, columns: tuple[str, ...]) -> bool:
    """Whether a part of a condition looks at one of these columns."""
    if isinstance(value, plan.Property):
        return value.name in columns
    if isinstance(value, tuple):
        return any(_names_ends(each, columns) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        return any(_names_ends(getattr(value, one.name), columns) for one in fields(value))
    return False


def _named(value: Any, type_: NodeType | EdgeType, actor: str) -> Any:
    """A part of a condition with the actor in its place; one that depends on time is refused."""
    if isinstance(value, Now):
        raise _misfit(type_)
    if isinstance(value, ParamRef):
        return Const(actor, value.type)
    if isinstance(value, tuple):
        return tuple(_named(each, type_, actor) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {one.name: getattr(value, one.name) for one in fields(value) if one.init}
        return replace(value, **{name: _named(one, type_, actor) for name, one in parts.items()})
    return value


def _misfit(type_: NodeType | EdgeType) -> PolicyDenied:
    return PolicyDenied(
        f"the policy has a condition on {type_.name} that the schema does not allow, so nothing is "
        "shown: it compares properties of a row with values, $actor among them, and no time"
    )
