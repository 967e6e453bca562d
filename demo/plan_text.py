"""Whole plans as text: one line a step, nested steps indented."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from omnigraph.lang.query import plan
from omnigraph.lang.query.plan_text import (
    nulls_text,
    spell,
    spell_predicate,
    spell_ranking,
    step_text,
)


def render_plan(what: plan.Plan) -> str:
    """The whole plan as text."""
    lines = _read(what) if isinstance(what, plan.ReadPlan) else _mutation(what)
    return "\n".join(lines)


# -- reads -------------------------------------------------------------------------


def _read(read: plan.ReadPlan) -> Iterator[str]:
    for number, branch in enumerate(read.branches):
        yield "union" if number else "first"
        yield from (f"  {line}" for line in _read(branch))
    yield from _steps(read.steps)
    if read.rank is not None:
        yield f"rank {spell_ranking(read.rank.ranking)}"
        for candidates in read.rank.candidates:
            yield f"  candidates ${candidates.variable}: {candidates.node_type}" + _where(
                candidates.where
            )
    columns = ", ".join(f"{column.name} := {spell(column.value)}" for column in read.columns)
    if read.group_by is not None:
        keys = ", ".join(read.group_by)
        yield f"aggregate by ({keys}): {columns}"
    else:
        yield from _steps(read.late)
        yield f"project {columns}"
    if read.distinct:
        yield "distinct"
    if read.order or read.rank is not None:
        yield f"order {', '.join(_order(read))}"
    if read.per is not None:
        per = (key if isinstance(key, str) else spell(key) for key in read.per.keys)
        yield f"limit {_count(read.per.count)} per ({', '.join(per)})"
    if read.limit is not None:
        offset = f" offset {_count(read.offset)}" if read.offset is not None else ""
        yield f"limit {_count(read.limit)}{offset}"


def _order(read: plan.ReadPlan) -> Iterator[str]:
    if read.rank is not None:
        yield "score"
    for key in read.order:
        by = key.by if isinstance(key.by, str) else spell(key.by)
        yield f"{by} {'desc' if key.descending else 'asc'}{nulls_text(key.nulls)}"
    for variable in read.tie_breakers:
        yield f"${variable}.@id"


def _count(count: plan.RowCount | None) -> str:
    return spell(count) if isinstance(count, plan.ParamRef) else str(count)


def _steps(steps: Iterable[plan.Step], indent: str = "") -> Iterator[str]:
    for step in steps:
        yield indent + " ".join(step_text(step)).rstrip()
        match step:
            case plan.AntiJoin() | plan.SemiJoin() | plan.Fold() | plan.Optional():
                yield from _steps(step.steps, f"{indent}  ")
            case plan.Union(branches):
                for branch in branches:
                    yield f"{indent}  branch"
                    yield from _steps(branch, f"{indent}    ")


def _where(predicates: tuple[plan.Predicate, ...], ends: tuple[plan.AtEnd, ...] = ()) -> str:
    said = [spell_predicate(found) for found in predicates]
    said += [f"{end.column} = {_node(end.node)}" for end in ends]
    return f" where {' and '.join(said)}" if said else ""


# -- mutations ---------------------------------------------------------------------


def _mutation(mutation: plan.MutationPlan) -> Iterator[str]:
    if mutation.match is not None:
        yield "match"
        yield from (f"  {line}" for line in _read(mutation.match))
    yield from _steps_of(mutation.steps, "")
    if mutation.returns:
        columns = (f"{one.name} := {spell(one.value)}" for one in mutation.returns)
        yield f"return {', '.join(columns)}"


def _steps_of(steps: tuple[plan.Statement | plan.Loop, ...], indent: str) -> Iterator[str]:
    for step in steps:
        if isinstance(step, plan.Loop):
            yield f"{indent}for ${step.element} in ${step.over}"
            yield from _steps_of(step.statements, f"{indent}  ")
        else:
            yield f"{indent}{_statement(step)}"


def _statement(statement: plan.Statement) -> str:
    match statement:
        case plan.InsertNode(name, assignments, verb, variable):
            return f"{verb} node {_named(variable)}{name}{_assigned(assignments)}"
        case plan.InsertEdge(name, source, target, assignments, verb, variable):
            ends = f"{_node(source)} -> {_node(target)}"
            return f"{verb} edge {_named(variable)}{name} {ends}{_assigned(assignments)}"
        case plan.UpdateMatched(entity, assignments):
            return f"update {entity.kind}s {_entity(entity)}{_assigned(assignments)}"
        case plan.DeleteMatched(entity):
            return f"delete {entity.kind}s {_entity(entity)}"
        case plan.UpdateNodes(name, assignments, where):
            return f"update nodes {name}{_assigned(assignments)}{_where(where)}"
        case plan.UpdateEdges(name, assignments, where, ends):
            return f"update edges {name}{_assigned(assignments)}{_where(where, ends)}"
        case plan.DeleteNodes(name, where, cascades):
            also = f" cascading to {', '.join(cascades)}" if cascades else ""
            return f"delete nodes {name}{_where(where)}{also}"
        case plan.DeleteEdges(name, where, ends):
            return f"delete edges {name}{_where(where, ends)}"


def _named(variable: str | None) -> str:
    return "" if variable is None else f"${variable}: "


def _entity(entity: plan.BoundEntity) -> str:
    return f"${entity.variable}: {'|'.join(entity.types)}"


def _node(node: plan.End) -> str:
    """A node by its id, by its key with the types it may be of, or by its name."""
    if isinstance(node, plan.BoundNode):
        return f"${node.variable}"
    members = ", ".join(map(spell, node.members))
    return members if node.is_id else f"{'|'.join(node.node_types)}({members})"


def _assigned(assignments: tuple[plan.Assignment, ...]) -> str:
    if not assignments:
        return ""
    return " set " + ", ".join(f"{item.property} := {spell(item.value)}" for item in assignments)
