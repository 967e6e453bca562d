"""Checking mutations: types, properties, endpoints and the statements that a match feeds.

Owns which type a statement is about (T10), what it may name (T30, T32), and what is returned.
Assignments, conditions and ends have modules of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from omnigraph.lang import structural
from omnigraph.lang.diagnostics import name_hint
from omnigraph.lang.query import plan, resolved, terms
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query.check.blocks import check_block
from omnigraph.lang.query.check.columns import CheckedColumns, check_columns
from omnigraph.lang.query.check.mutations.assignments import (
    agree,
    check_assignments,
    check_complete,
    check_updatable,
    check_verb,
)
from omnigraph.lang.query.check.mutations.conditions import check_where, names_matched
from omnigraph.lang.query.check.mutations.edge_ends import end_node, matched_end
from omnigraph.lang.query.check.mutations.names import (
    ENDS,
    Names,
)
from omnigraph.lang.query.check.reads import CheckedRead
from omnigraph.lang.query.check.scope import Checker, Scope, WayBinding
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.types import RecordList, ValueType

_Single = ast.Insert | ast.Update | ast.Delete
_Steps = tuple[plan.Statement | plan.Loop, ...]


@dataclass(frozen=True, slots=True)
class CheckedMutation:
    """A mutation with every name resolved; the match is yet to be lowered."""

    steps: _Steps
    match: CheckedRead | None
    returns: tuple[plan.Column, ...]
    shown: tuple[plan.BoundEntity, ...]


def check_mutation(checker: Checker, mutation: ast.Mutation) -> CheckedMutation:
    """Resolve every statement; only meaningful when nothing was reported."""
    scope = Scope(checker)
    names = Names(checker, scope, mutation.clauses is not None)
    block = None if mutation.clauses is None else check_block(scope, mutation.clauses)
    matched = tuple(scope.own)
    steps = _statements(names, mutation.statements)
    returns = _returns(names, mutation)
    shown = names.shown(returns)
    if block is None:
        if scope.made:
            checker.error(
                mutation.statements[0].span,
                "a block is a value of rows, and nothing is matched",
                "T30",
                hint="write `match { … }` before the statements",
            )
        return CheckedMutation(steps, None, returns, shown)
    return CheckedMutation(steps, _fed(names, block, matched), returns, shown)


def _fed(names: Names, block: resolved.ResolvedBlock, matched: tuple[str, ...]) -> CheckedRead:
    """The read that finds the rows which statements are fed with."""
    rows = plan.Column(plan.MATCHED_ROWS, plan.Const(value=True, type=plan.CONDITION))
    columns = CheckedColumns((rows, *names.columns.values()), aggregated=False, complete=True)
    own = names.matched.own
    ways = frozenset(name for name in matched if isinstance(own[name], WayBinding))
    return CheckedRead(
        replace(block, values=tuple(names.matched.made)),
        columns,
        distinct=False,
        ranking=None,
        order=(),
        limit=None,
        offset=None,
        variables=matched,
        ways=ways,
    )


def _returns(names: Names, mutation: ast.Mutation) -> tuple[plan.Column, ...]:
    """What is told of the rows that were written: values, one by one (T30)."""
    if not mutation.projections:
        return ()
    found = check_columns(names.matched, mutation.projections)
    if found.aggregated:
        names.checker.error(
            mutation.projections[0].span,
            "a mutation returns the rows it has written, and no aggregates of them",
            "T30",
            hint="aggregate in the match: `let $n = count { … }`",
        )
    for item, column in zip(mutation.projections, found.columns, strict=False):
        if isinstance(column.value, plan.NodeRef | plan.Score):
            names.checker.error(
                item.span,
                "a mutation returns values, and no whole nodes",
                "T30",
                hint="name their properties: `$x.@id`, `$x.name`",
            )
        else:
            names.use(column.value)
    return found.columns


def _statements(names: Names, written: Sequence[ast.Statement]) -> _Steps:
    steps: list[plan.Statement | plan.Loop] = []
    for statement in written:
        match statement:
            case ast.ForEach():
                step: plan.Statement | plan.Loop | None = _for_each(names, statement)
            case ast.UpdateMatched():
                step = _update_matched(names, statement)
            case ast.DeleteMatched():
                step = _delete_matched(names, statement)
            case _:
                type_ = _target(names.checker, statement)
                step = None if type_ is None else _statement(names, statement, type_)
        if step is not None:
            steps.append(step)
    return tuple(steps)


def _for_each(names: Names, loop: ast.ForEach) -> plan.Loop | None:
    """Statements for the elements of a parameter, each under a name of its own (T32)."""
    checker, name = names.checker, loop.variable.name
    known = {*checker.params, *checker.records, *checker.elements}
    if name in known or name == terms.ANONYMOUS or names.matched.knows(name):
        checker.error(loop.variable.span, f"${name} is in use already", "T32")
    element = _element(checker, loop.over)
    if element is None:
        return None
    outer = dict(checker.elements)
    checker.elements[name] = element
    statements = _statements(names, loop.statements)
    checker.elements.clear()
    checker.elements.update(outer)
    fields = tuple(dict(element.fields)) if isinstance(element, RecordList) else None
    return plan.Loop(name, loop.over.name, fields, statements)


def _element(checker: Checker, over: terms.Variable) -> ValueType | RecordList | None:
    records = checker.records.get(over.name)
    if records is not None:
        return records
    if over.name not in checker.params:
        known = (*checker.params, *checker.records)
        checker.error(
            over.span,
            f"${over.name} is not a declared parameter",
            "T14",
            hint=name_hint(over.name, known, prefix="$"),
        )
        return None
    type_ = checker.params[over.name]
    if type_ is not None and not type_.is_list:
        checker.error(over.span, f"`for` goes through a list, ${over.name} is {type_}", "T26")
        return None
    return None if type_ is None else type_.element()


def _statement(
    names: Names, statement: _Single, type_: NodeType | EdgeType
) -> plan.Statement | None:
    match statement:
        case ast.Insert():
            return _insert(names, statement, type_)
        case ast.Update():
            return _update(names, statement, type_)
        case ast.Delete():
            return _delete(names, statement, type_)


def _target(checker: Checker, statement: _Single) -> NodeType | EdgeType | None:
    """The type a statement is about; of two with one name, endpoints tell which."""
    catalog = checker.catalog
    name = statement.type_name
    node, edge = catalog.nodes.get(name.text), catalog.edges.get(name.text)
    if node is not None and edge is not None:
        mentioned: set[str] = set()
        if not isinstance(statement, ast.Delete):
            mentioned |= {assignment.property.text for assignment in statement.assignments}
        if not isinstance(statement, ast.Insert):
            parts = terms.within(statement.where)
            mentioned |= {part.name for part in parts if isinstance(part, terms.Alias)}
        return edge if mentioned & {*ENDS, structural.SRC, structural.DST} else node
    found = node or edge
    if found is None:
        hint = name_hint(name.text, [*catalog.nodes, *catalog.edges])
        if name.text in catalog.interfaces:
            hint = "an interface has no rows of its own"
        checker.error(name.span, f"unknown type {name.text}", "T10", hint=hint)
    return found


def _insert(
    names: Names, statement: ast.Insert, type_: NodeType | EdgeType
) -> plan.InsertNode | plan.InsertEdge | None:
    checker = names.checker
    endpoints = ENDS if isinstance(type_, EdgeType) else ()
    check_verb(checker, statement, type_)
    properties = check_assignments(names, statement, type_, endpoints)
    check_complete(checker, statement, type_, endpoints)
    ends = _ends(names, statement, type_) if isinstance(type_, EdgeType) else {}
    variable = statement.variable
    if variable is not None:
        names.write(variable, type_)
    name = None if variable is None else variable.name
    if isinstance(type_, NodeType):
        return plan.InsertNode(type_.name, properties, statement.verb, name)
    if len(ends) < len(endpoints):
        return None
    return plan.InsertEdge(type_.name, ends["from"], ends["to"], properties, statement.verb, name)


def _ends(names: Names, statement: ast.Insert, edge: EdgeType) -> dict[str, plan.End]:
    """The nodes that are assigned to the ends of an edge."""
    columns = {word: column for column, word in structural.ENDPOINTS.items()}
    found: dict[str, plan.End] = {}
    for assignment in statement.assignments:
        word = assignment.property.text
        if word in columns and word not in found:
            column, value = columns[word], assignment.value
            end: plan.End | None
            if isinstance(value, terms.Variable) and names.matched.knows(value.name):
                end = matched_end(names, edge, column, value)
            else:
                end = end_node(names.matched, edge, column, value)
                if end is not None:
                    for member in end.members:
                        names.use(member)
            if end is not None:
                found[word] = end
    return found


def _update(
    names: Names, statement: ast.Update, type_: NodeType | EdgeType
) -> plan.UpdateNodes | plan.UpdateEdges | None:
    if names_matched(names, (statement.where, *(one.value for one in statement.assignments))):
        return None
    endpoints = ENDS if isinstance(type_, EdgeType) else ()
    check_updatable(names.checker, statement.assignments, type_)
    assigned = check_assignments(names, statement, type_, endpoints)
    where, ends = check_where(names, statement.where, type_)
    if isinstance(type_, EdgeType):
        return plan.UpdateEdges(type_.name, assigned, where, ends)
    return plan.UpdateNodes(type_.name, assigned, where)


def _delete(
    names: Names, statement: ast.Delete, type_: NodeType | EdgeType
) -> plan.DeleteNodes | plan.DeleteEdges | None:
    if names_matched(names, (statement.where,)):
        return None
    where, ends = check_where(names, statement.where, type_)
    if isinstance(type_, EdgeType):
        return plan.DeleteEdges(type_.name, where, ends)
    cascades = tuple(edge.name for edge in names.checker.catalog.incident_edges(type_.name))
    return plan.DeleteNodes(type_.name, where, cascades)


# -- what the match has bound ----------------------------------------------------


def _update_matched(names: Names, statement: ast.UpdateMatched) -> plan.UpdateMatched | None:
    entity = names.changed(statement.variable, "update")
    if entity is None:
        return None
    types = _types(names.checker, entity.kind, entity.types)
    for one in types:
        check_updatable(names.checker, statement.assignments, one)
    if not types or not agree(names.checker, statement.assignments, types):
        return None
    endpoints = ENDS if entity.kind == "edge" else ()
    assigned = check_assignments(names, statement, types[0], endpoints, statement.variable.name)
    return plan.UpdateMatched(entity, assigned)


def _types(checker: Checker, kind: str, members: Sequence[str]) -> tuple[NodeType | EdgeType, ...]:
    if kind == "node":
        return tuple(checker.catalog.nodes[name] for name in members)
    return tuple(checker.catalog.edges[name] for name in members)


def _delete_matched(names: Names, statement: ast.DeleteMatched) -> plan.DeleteMatched | None:
    entity = names.changed(statement.variable, "delete")
    return None if entity is None else plan.DeleteMatched(entity)
