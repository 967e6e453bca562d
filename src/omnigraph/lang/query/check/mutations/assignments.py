"""Checking what statements assign: which properties, each once, and all that are needed.

Owns the rules T10 to T13 and T35 about assignments. Whether a value fits is for assigned.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.lang.query import plan
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query.check.mutations.assigned import assigned_value
from omnigraph.lang.query.check.mutations.names import ENDS, Names, own_columns, report_missing
from omnigraph.lang.query.check.scope import Checker, Scope
from omnigraph.lang.schema.catalog import EdgeType, NodeType


def check_assignments(
    names: Names,
    statement: ast.Insert | ast.Update | ast.UpdateMatched,
    type_: NodeType | EdgeType,
    endpoints: tuple[str, ...],
    variable: str = plan.ROW,
) -> tuple[plan.Assignment, ...]:
    """The assignments of properties that are sound; ``endpoints`` may be assigned as well.

    The values of an update may be made of those that the row has, under their own names.
    """
    checker = names.checker
    if not statement.assignments:
        at = statement.variable if isinstance(statement, ast.UpdateMatched) else statement.type_name
        checker.error(at.span, "nothing is assigned", "T10")
    own = {} if isinstance(statement, ast.Insert) else own_columns(type_, variable)
    # A statement with `where` runs once, and sees nothing of the match.
    is_fed = not isinstance(statement, ast.Update)
    seen: set[str] = set()
    sound: list[plan.Assignment] = []
    for assignment in statement.assignments:
        name = assignment.property
        if name.text in seen:
            checker.error(name.span, f"`{name.text}` is assigned twice", "T13")
            continue
        seen.add(name.text)
        scope = names.matched if is_fed else Scope(checker)
        scope.columns = own
        target = plan.TEXT
        if name.text not in endpoints:
            definition = type_.properties.get(name.text)
            if definition is None:
                report_missing(checker, name, type_, endpoints)
                continue
            target = definition.type
        elif isinstance(statement, ast.Insert):
            continue
        value = assigned_value(scope, name.text, assignment.value, target)
        scope.columns = {}
        if value is not None and name.text not in endpoints:
            if is_fed:
                names.use(value)
            sound.append(plan.Assignment(name.text, value))
    return tuple(sound)


def check_verb(checker: Checker, statement: ast.Insert, type_: NodeType | EdgeType) -> None:
    """Only a key tells whether a row exists already (T35)."""
    if statement.verb != "insert" and not type_.key:
        checker.error(
            statement.type_name.span,
            f"`{statement.verb}` needs a key, and {type_.kind} type {type_.name} has none",
            "T35",
            hint=f"`insert` always adds a new {type_.kind}",
        )


def check_complete(
    checker: Checker,
    statement: ast.Insert,
    type_: NodeType | EdgeType,
    endpoints: tuple[str, ...],
) -> None:
    """Every endpoint and every property without another source must be assigned (T12).

    An upsert has to name its row, no more: what else a new row needs shows when it runs.
    """
    if not statement.assignments:
        return
    needed = type_.properties
    if statement.verb == "upsert":
        needed = {name: one for name, one in needed.items() if name in type_.key}
    given = {assignment.property.text for assignment in statement.assignments}
    missing = [f"endpoint `{name}:`" for name in endpoints if name not in given]
    for name, definition in needed.items():
        if name in given or not definition.is_required:
            continue
        if definition.embedding is not None and definition.embedding.source in given:
            continue
        missing.append(f"required property `{name}`")
    if missing:
        checker.error(
            statement.type_name.span,
            f"{statement.verb} {type_.name} lacks {', '.join(missing)}",
            "T12",
        )


def check_updatable(
    checker: Checker, assignments: Sequence[ast.Assignment], type_: NodeType | EdgeType
) -> None:
    """Keys and ends of rows stay what they are."""
    for assignment in assignments:
        name = assignment.property
        if isinstance(type_, EdgeType) and name.text in ENDS:
            checker.error(name.span, "endpoints are immutable: delete and insert", "T11")
        elif name.text in type_.key:
            checker.error(
                name.span,
                f"cannot update @key property '{name.text}' — delete and re-insert instead",
            )


def agree(
    checker: Checker,
    assignments: Sequence[ast.Assignment],
    types: Sequence[NodeType | EdgeType],
) -> bool:
    """Whether every type that a variable may be of has the properties, of one type each (T28)."""
    for assignment in assignments:
        name = assignment.property.text
        if name not in types[0].properties:
            continue  # said where its value is checked
        wanted = types[0].properties[name].type
        for one in types[1:]:
            if name not in one.properties or one.properties[name].type != wanted:
                checker.error(
                    assignment.property.span,
                    f"`{name}` is not the same in {types[0].name} and {one.name}",
                    "T28",
                    hint="narrow the variable to one type",
                )
                return False
    return True
