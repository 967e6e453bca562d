"""Checking mutations: insert, create, upsert, update, delete.

Owns the rules T10 to T14 and T35, T3 and T7 for assigned values, and what a where clause
may say. Integers become floats where the property is a float; nothing else is converted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from omnigraph.lang import structural
from omnigraph.lang.diagnostics import name_hint
from omnigraph.lang.query import plan, terms
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query.check.edge_ends import end_node, is_node
from omnigraph.lang.query.check.predicates import comparison, membership
from omnigraph.lang.query.check.scope import Checker
from omnigraph.lang.query.check.values import constant, fit_literal
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.types import FLOATS, INTEGERS, RecordList, Scalar, ValueType, compatible

_Single = ast.Insert | ast.Update | ast.Delete
_ENDS = tuple(structural.ENDPOINTS.values())
_EDGE_COLUMNS = {
    "from": structural.SRC,
    "to": structural.DST,
    structural.SRC: structural.SRC,
    structural.DST: structural.DST,
}


def check_mutation(
    checker: Checker, mutation: ast.Mutation
) -> tuple[plan.Statement | plan.Loop, ...]:
    """Resolve every statement; only meaningful when nothing was reported."""
    return _statements(checker, mutation.statements)


def _statements(
    checker: Checker, written: Sequence[ast.Statement]
) -> tuple[plan.Statement | plan.Loop, ...]:
    statements: list[plan.Statement | plan.Loop] = []
    for statement in written:
        if isinstance(statement, ast.ForEach):
            loop = _for_each(checker, statement)
            if loop is not None:
                statements.append(loop)
            continue
        type_ = _target(checker, statement)
        if type_ is None:
            continue
        checked = _statement(checker, statement, type_)
        if checked is not None:
            statements.append(checked)
    return tuple(statements)


def _for_each(checker: Checker, loop: ast.ForEach) -> plan.Loop | None:
    """Statements for the elements of a parameter, each under a name of its own (T32)."""
    name = loop.variable.name
    known = {*checker.params, *checker.records, *checker.elements}
    if name in known or name == terms.ANONYMOUS:
        checker.error(loop.variable.span, f"${name} is in use already", "T32")
    element = _element(checker, loop.over)
    if element is None:
        return None
    outer = dict(checker.elements)
    checker.elements[name] = element
    statements = _statements(checker, loop.statements)
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
    checker: Checker, statement: _Single, type_: NodeType | EdgeType
) -> plan.Statement | None:
    match statement:
        case ast.Insert():
            return _insert(checker, statement, type_)
        case ast.Update():
            return _update(checker, statement, type_)
        case ast.Delete():
            return _delete(checker, statement, type_)


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
            mentioned |= {atom.property.text for atom in statement.where}
        return edge if mentioned & {*_ENDS, structural.SRC, structural.DST} else node
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
    endpoints = _ENDS if isinstance(type_, EdgeType) else ()
    _check_verb(checker, statement, type_)
    properties = _assignments(checker, statement, type_, endpoints)
    _check_complete(checker, statement, type_, endpoints)
    if isinstance(type_, NodeType):
        return plan.InsertNode(type_.name, properties, statement.verb)
    ends = _ends(checker, statement, type_)
    if len(ends) < len(endpoints):
        return None
    return plan.InsertEdge(type_.name, ends["from"], ends["to"], properties, statement.verb)


def _ends(checker: Checker, statement: ast.Insert, edge: EdgeType) -> dict[str, plan.NodeByKey]:
    """The nodes that are assigned to the ends of an edge."""
    columns = {word: column for column, word in structural.ENDPOINTS.items()}
    found: dict[str, plan.NodeByKey] = {}
    for assignment in statement.assignments:
        word = assignment.property.text
        if word in columns and word not in found:
            column, value_of = columns[word], partial(_assigned_value, checker)
            node = end_node(checker, edge, column, assignment.value, value_of)
            if node is not None:
                found[word] = node
    return found


def _check_verb(checker: Checker, statement: ast.Insert, type_: NodeType | EdgeType) -> None:
    """Only a key tells whether a row exists already (T35)."""
    if statement.verb != "insert" and not type_.key:
        checker.error(
            statement.type_name.span,
            f"`{statement.verb}` needs a key, and {type_.kind} type {type_.name} has none",
            "T35",
            hint=f"`insert` always adds a new {type_.kind}",
        )


def _check_complete(
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


def _update(
    checker: Checker, statement: ast.Update, type_: NodeType | EdgeType
) -> plan.UpdateNodes | plan.UpdateEdges:
    endpoints = _ENDS if isinstance(type_, EdgeType) else ()
    for assignment in statement.assignments:
        name = assignment.property
        if name.text in endpoints:
            checker.error(name.span, "endpoints are immutable: delete and insert", "T11")
        elif name.text in type_.key:
            checker.error(
                name.span,
                f"cannot update @key property '{name.text}' — delete and re-insert instead",
            )
    assigned = _assignments(checker, statement, type_, endpoints)
    where, ends = _where(checker, statement.where, type_)
    if isinstance(type_, EdgeType):
        return plan.UpdateEdges(type_.name, assigned, where, ends)
    return plan.UpdateNodes(type_.name, assigned, where)


def _delete(
    checker: Checker, statement: ast.Delete, type_: NodeType | EdgeType
) -> plan.DeleteNodes | plan.DeleteEdges:
    where, ends = _where(checker, statement.where, type_)
    if isinstance(type_, EdgeType):
        return plan.DeleteEdges(type_.name, where, ends)
    cascades = tuple(edge.name for edge in checker.catalog.incident_edges(type_.name))
    return plan.DeleteNodes(type_.name, where, cascades)


# -- assigned values -------------------------------------------------------------


def _assignments(
    checker: Checker,
    statement: ast.Insert | ast.Update,
    type_: NodeType | EdgeType,
    endpoints: tuple[str, ...],
) -> tuple[plan.Assignment, ...]:
    """The assignments of properties that are sound; ``endpoints`` may be assigned as well."""
    if not statement.assignments:
        checker.error(statement.type_name.span, "nothing is assigned", "T10")
    seen: set[str] = set()
    sound: list[plan.Assignment] = []
    for assignment in statement.assignments:
        name = assignment.property
        if name.text in seen:
            checker.error(name.span, f"`{name.text}` is assigned twice", "T13")
            continue
        seen.add(name.text)
        if name.text in endpoints:
            if isinstance(statement, ast.Update):
                _assigned_value(checker, name.text, assignment.value, plan.TEXT)
            continue
        target = _assigned_type(checker, name, type_, endpoints)
        if target is None:
            continue
        value = _assigned_value(checker, name.text, assignment.value, target)
        if value is not None:
            sound.append(plan.Assignment(name.text, value))
    return tuple(sound)


def _assigned_type(
    checker: Checker, name: terms.Name, type_: NodeType | EdgeType, endpoints: tuple[str, ...]
) -> ValueType | None:
    definition = type_.properties.get(name.text)
    if definition is None:
        _report_missing(checker, name, type_, endpoints)
        return None
    return definition.type


def _report_missing(
    checker: Checker, name: terms.Name, type_: NodeType | EdgeType, extra: tuple[str, ...]
) -> None:
    """Report a property that a mutation names and the type does not have."""
    hint = name_hint(name.text, [*type_.properties, *extra])
    if name.text.startswith("@"):
        is_edge = isinstance(type_, EdgeType)
        hint = name_hint(name.text, terms.SYSTEM_PROPERTIES if is_edge else (structural.ID,))
    elif name.text == "id":
        hint = "the id is `@id`, and only `where` may name it"
    checker.error(
        name.span,
        f"{type_.kind} type {type_.name} has no property `{name.text}`",
        "T11",
        hint=hint,
    )


def _declared_param(checker: Checker, value: terms.Variable | terms.Access) -> plan.ParamRef | None:
    """A parameter, or an element of one, used as a value of a mutation (T14 for any other)."""
    if isinstance(value, terms.Access):
        return _field(checker, value)
    variable = value
    element = checker.elements.get(variable.name)
    if isinstance(element, ValueType):
        return plan.ParamRef(variable.name, element)
    if isinstance(element, RecordList):
        example = element.fields[0][0]
        checker.error(
            variable.span,
            f"${variable.name} is a record and has no value of its own",
            "T7",
            hint=f"use a field: `${variable.name}.{example}`",
        )
        return None
    if variable.name not in checker.params:
        checker.error(
            variable.span,
            f"${variable.name} is not a declared parameter",
            "T14",
            hint=name_hint(variable.name, checker.params, prefix="$"),
        )
        return None
    type_ = checker.params[variable.name]
    return plan.ParamRef(variable.name, type_) if type_ is not None else None


def _field(checker: Checker, access: terms.Access) -> plan.ParamRef | None:
    """`$s.year`: a field of the record that a `for` is at."""
    name, field = access.variable.name, access.property
    element = checker.elements.get(name)
    if not isinstance(element, RecordList):
        checker.error(
            access.span,
            f"${name} is no record that a `for` goes through",
            "T14",
            hint=_no_record_hint(checker, name),
        )
        return None
    type_ = element.field(field.text)
    if type_ is None:
        known = [known for known, _ in element.fields]
        hint = name_hint(field.text, known)
        checker.error(field.span, f"${name} has no field `{field.text}`", "T6", hint=hint)
        return None
    return plan.ParamRef(plan.field_of(name, field.text), type_)


def _no_record_hint(checker: Checker, name: str) -> str | None:
    if name in checker.elements:
        return f"it is one value: write `${name}`"
    if name in checker.records:
        return f"write `for $x in ${name} {{ … }}`"
    records = [each for each, one in checker.elements.items() if isinstance(one, RecordList)]
    return name_hint(name, records, prefix="$") if records else None


def _assigned_value(
    checker: Checker, name: str, value: terms.Assigned, target: ValueType
) -> plan.Fixed | None:
    match value:
        case terms.NodeKey():
            checker.error(value.span, f"`{name}` is {target}, and a node is no value", "T7")
            return None
        case terms.Now():
            if target.scalar is Scalar.DATETIME and not target.is_list:
                return plan.Now()
            checker.error(value.span, f"`now()` is a DateTime, `{name}` is {target}", "T7")
            return None
        case terms.Variable() | terms.Access():
            param = _declared_param(checker, value)
            if param is None or _storable(param.type, target):
                return param
            checker.error(value.span, f"`{name}` is {target}, ${param.name} is {param.type}", "T7")
            return None
        case _:
            return fit_literal(checker, value, target, f"`{name}`", storing=True)


def _storable(source: ValueType, target: ValueType) -> bool:
    """Whether every value of the parameter type can be stored in the property."""
    if target.is_blob:
        return source.scalar in (Scalar.BLOB, Scalar.STRING) and not source.is_list
    if source.scalar in FLOATS and target.scalar in INTEGERS:
        return False
    return compatible(source, target)


# -- where clauses ---------------------------------------------------------------


def _where(
    checker: Checker, atoms: tuple[ast.Atom, ...], type_: NodeType | EdgeType
) -> tuple[tuple[plan.Predicate, ...], tuple[plan.AtEnd, ...]]:
    """The conditions that are sound, all of which must hold, and those that name a node."""
    predicates: list[plan.Predicate] = []
    ends: list[plan.AtEnd] = []
    for atom in atoms:
        if isinstance(type_, EdgeType) and _names_node(checker, atom, type_):
            found = _at_end(checker, atom, type_)
            if found is not None:
                ends.append(found)
            continue
        column = _column(checker, atom.property, type_, presence=isinstance(atom, ast.IsNull))
        if column is None:
            continue
        predicate = _predicate(checker, atom, column)
        if predicate is not None:
            predicates.append(predicate)
    return tuple(predicates), tuple(ends)


def _names_node(checker: Checker, atom: ast.Atom, edge: EdgeType) -> bool:
    """Whether an atom is about the node at an end, and not about its id alone."""
    column = _EDGE_COLUMNS.get(atom.property.text)
    if column is None or isinstance(atom, ast.IsNull):
        return False
    names_key = isinstance(atom, ast.Compare) and is_node(checker, atom.value)
    return names_key or column in edge.shared


def _at_end(checker: Checker, atom: ast.Atom, edge: EdgeType) -> plan.AtEnd | None:
    column = _EDGE_COLUMNS[atom.property.text]
    if not isinstance(atom, ast.Compare) or atom.op != "=":
        checker.error(
            atom.property.span,
            f"`{atom.property.text}` is compared by `=` with one node",
            "T28",
            hint=f"write `{atom.property.text} = Type(…)`",
        )
        return None
    node = end_node(checker, edge, column, atom.value, partial(_assigned_value, checker))
    return None if node is None else plan.AtEnd(column, node)


def _column(
    checker: Checker, name: terms.Name, type_: NodeType | EdgeType, *, presence: bool
) -> plan.Property | None:
    """The column a condition looks at; a Blob only where its ``presence`` is all it asks."""
    if name.text == structural.ID:
        return plan.Property(plan.ROW, structural.ID, plan.TEXT)
    if isinstance(type_, EdgeType) and name.text in _EDGE_COLUMNS:
        return plan.Property(plan.ROW, _EDGE_COLUMNS[name.text], plan.TEXT)
    definition = type_.properties.get(name.text)
    if definition is None:
        extra = _ENDS if isinstance(type_, EdgeType) else ()
        _report_missing(checker, name, type_, extra)
        return None
    if definition.type.is_blob and not presence:
        checker.error(name.span, f"`{name.text}` is a Blob; rows cannot be chosen by it", "T11")
        return None
    return plan.Property(plan.ROW, name.text, definition.type)


def _predicate(checker: Checker, atom: ast.Atom, column: plan.Property) -> plan.Predicate | None:
    match atom:
        case ast.IsNull(_, negated):
            return plan.IsNull(column, negated)
        case ast.IsIn(_, choices):
            listed = (
                _declared_param(checker, choices)
                if isinstance(choices, terms.Variable | terms.Access)
                else constant(checker, choices)
            )
            if listed is None:
                return None
            return membership(checker, atom.property.span.to(choices.span), column, listed)
        case ast.Compare():
            value = _compared_value(checker, atom, column)
            if value is None:
                return None
            span = atom.property.span.to(atom.value.span)
            return comparison(checker, span, column, atom.op, value)


def _compared_value(
    checker: Checker, atom: ast.Compare, column: plan.Property
) -> plan.Fixed | None:
    value = atom.value
    match value:
        case terms.NodeKey():
            checker.error(value.span, f"`{atom.property.text}` is no end of an edge", "T7")
            return None
        case terms.Now():
            return plan.Now()
        case terms.Variable() | terms.Access():
            return _declared_param(checker, value)
        case _:
            # The operand rules of `contains`, `starts_with` and of lists and vectors are
            # T7 whatever the literal; only a plain comparison asks that it fit (T3).
            plain = column.type.is_plain and atom.op not in ("contains", "starts_with")
            if not plain:
                return constant(checker, value)
            what = f"`{atom.property.text}`"
            return fit_literal(checker, value, column.type, what, storing=False)
