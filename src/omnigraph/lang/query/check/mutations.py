"""Checking mutations: insert, update, delete.

Owns the rules T10 to T14, what may be assigned, what a where clause may say,
and the rule that one query either adds and changes or removes.
"""

from __future__ import annotations

from omnigraph.lang.diagnostics import name_hint
from omnigraph.lang.query import plan
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query.check.assignments import check_assignments
from omnigraph.lang.query.check.scope import Checker
from omnigraph.lang.query.check.where import check_where
from omnigraph.lang.schema.catalog import EdgeType, NodeType

ENDPOINTS = ("from", "to")


def check_mutation(checker: Checker, mutation: ast.Mutation) -> tuple[plan.Statement, ...]:
    """Resolve every statement; only meaningful when nothing was reported."""
    _check_mixing(checker, mutation)
    statements: list[plan.Statement] = []
    for statement in mutation.statements:
        type_ = _target(checker, statement)
        if type_ is None:
            continue
        checked = _statement(checker, statement, type_)
        if checked is not None:
            statements.append(checked)
    return tuple(statements)


def _statement(
    checker: Checker, statement: ast.Statement, type_: NodeType | EdgeType
) -> plan.Statement | None:
    match statement:
        case ast.Insert():
            return _insert(checker, statement, type_)
        case ast.Update():
            return _update(checker, statement, type_)
        case ast.Delete():
            return _delete(checker, statement, type_)


def _check_mixing(checker: Checker, mutation: ast.Mutation) -> None:
    deletes = [isinstance(statement, ast.Delete) for statement in mutation.statements]
    for statement, is_delete in zip(mutation.statements, deletes, strict=True):
        if is_delete != deletes[0]:
            checker.error(
                statement.span,
                "one query either inserts and updates, or deletes",
                hint="split it into two queries",
            )
            return


def _target(checker: Checker, statement: ast.Statement) -> NodeType | EdgeType | None:
    """The type a statement is about; of two with one name, endpoints tell which."""
    catalog = checker.catalog
    name = statement.type_name
    node, edge = catalog.nodes.get(name.text), catalog.edges.get(name.text)
    if node is not None and edge is not None:
        mentioned: set[str] = set()
        if not isinstance(statement, ast.Delete):
            mentioned |= {assignment.property.text for assignment in statement.assignments}
        if not isinstance(statement, ast.Insert):
            mentioned |= {atom.property.text for atom in statement.where}
        return edge if mentioned & {*ENDPOINTS, ast.SRC, ast.DST} else node
    found = node or edge
    if found is None:
        hint = name_hint(name.text, [*catalog.nodes, *catalog.edges])
        if name.text in catalog.interfaces:
            hint = "an interface has no rows of its own"
        checker.error(name.span, f"unknown type {name.text}", "T10", hint=hint)
    return found


def _insert(
    checker: Checker, statement: ast.Insert, type_: NodeType | EdgeType
) -> plan.InsertNode | plan.InsertEdge | None:
    endpoints = ENDPOINTS if isinstance(type_, EdgeType) else ()
    assigned = check_assignments(checker, statement, type_, endpoints)
    _check_complete(checker, statement, type_, endpoints)
    properties = tuple(item for item in assigned if item.property not in endpoints)
    if isinstance(type_, NodeType):
        return plan.InsertNode(type_.name, properties)
    ends = {item.property: item.value for item in assigned if item.property in endpoints}
    if len(ends) < len(endpoints):
        return None
    return plan.InsertEdge(type_.name, ends["from"], ends["to"], properties)


def _check_complete(
    checker: Checker,
    statement: ast.Insert,
    type_: NodeType | EdgeType,
    endpoints: tuple[str, ...],
) -> None:
    """Every endpoint and every property without another source must be assigned (T12)."""
    if not statement.assignments:
        return
    given = {assignment.property.text for assignment in statement.assignments}
    missing = [f"endpoint `{name}:`" for name in endpoints if name not in given]
    for name, definition in type_.properties.items():
        if name in given or not definition.is_required:
            continue
        if definition.embedding is not None and definition.embedding.source in given:
            continue
        missing.append(f"required property `{name}`")
    if missing:
        checker.error(
            statement.type_name.span, f"insert {type_.name} lacks {', '.join(missing)}", "T12"
        )


def _update(
    checker: Checker, statement: ast.Update, type_: NodeType | EdgeType
) -> plan.UpdateNodes | plan.UpdateEdges:
    if isinstance(type_, EdgeType):
        for assignment in statement.assignments:
            if assignment.property.text in ENDPOINTS:
                checker.error(
                    assignment.property.span,
                    "endpoints are immutable: delete and insert",
                    "T11",
                )
    else:
        for assignment in statement.assignments:
            name = assignment.property
            if name.text in type_.key:
                checker.error(
                    name.span,
                    f"cannot update @key property '{name.text}' — delete and re-insert instead",
                )
    endpoints = ENDPOINTS if isinstance(type_, EdgeType) else ()
    assigned = check_assignments(checker, statement, type_, endpoints)
    where = check_where(checker, statement.where, type_)
    if isinstance(type_, EdgeType):
        return plan.UpdateEdges(type_.name, assigned, where)
    return plan.UpdateNodes(type_.name, assigned, where)


def _delete(
    checker: Checker, statement: ast.Delete, type_: NodeType | EdgeType
) -> plan.DeleteNodes | plan.DeleteEdges:
    where = check_where(checker, statement.where, type_)
    if isinstance(type_, EdgeType):
        return plan.DeleteEdges(type_.name, where)
    cascades = tuple(edge.name for edge in checker.catalog.incident_edges(type_.name))
    return plan.DeleteNodes(type_.name, where, cascades)
