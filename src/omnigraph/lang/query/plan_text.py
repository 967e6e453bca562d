"""Plans as text, the way `explain` shows them.

Owns the spelling of steps. One line a step, nested steps indented.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, datetime
from json import dumps

from omnigraph.lang.query import plan

_ARROWS: dict[plan.Direction, tuple[str, str]] = {
    "out": ("-", "->"),
    "in": ("<-", "-"),
    "both": ("-", "-"),
}


def render_plan(what: plan.Plan) -> str:
    """The whole plan as text."""
    lines = _read(what) if isinstance(what, plan.ReadPlan) else _mutation(what)
    return "\n".join(lines)


# -- reads -------------------------------------------------------------------------


def _read(read: plan.ReadPlan) -> Iterator[str]:
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
        yield f"project {columns}"
    if read.distinct:
        yield "distinct"
    if read.order or read.rank is not None:
        yield f"order {', '.join(_order(read))}"
    if read.limit is not None:
        offset = f" offset {_count(read.offset)}" if read.offset is not None else ""
        yield f"limit {_count(read.limit)}{offset}"


def _order(read: plan.ReadPlan) -> Iterator[str]:
    if read.rank is not None:
        yield "score"
    for key in read.order:
        by = key.by if isinstance(key.by, str) else spell(key.by)
        yield f"{by} desc" if key.descending else f"{by} asc"
    for variable in read.tie_breakers:
        yield f"${variable}.@id"


def _count(count: plan.RowCount | None) -> str:
    return spell(count) if isinstance(count, plan.ParamRef) else str(count)


def _steps(steps: Iterable[plan.Step], indent: str = "") -> Iterator[str]:
    for step in steps:
        for line in _step(step):
            yield indent + line


def step_text(step: plan.Step) -> tuple[str, str]:
    """The name of a step and what it works on, in one line."""
    first = next(_step(step))
    name, _, detail = first.partition(" ")
    return name, detail


def _step(step: plan.Step) -> Iterator[str]:
    match step:
        case plan.Scan(variable, node_type, where):
            yield f"scan {_variable(variable)}: {node_type}{_where(where)}"
        case plan.Expand():
            yield _expand(step)
        case plan.Filter(where):
            yield f"filter {' and '.join(map(spell_predicate, where))}"
        case plan.AntiJoin(steps):
            yield "anti-join"
            yield from _steps(steps, "  ")
        case plan.SemiJoin(steps):
            yield "semi-join"
            yield from _steps(steps, "  ")
        case plan.Union(branches):
            yield "union"
            for branch in branches:
                yield "  branch"
                yield from _steps(branch, "    ")
        case plan.CountJoin():
            argument = f"({spell(step.argument)})" if step.argument is not None else ""
            yield f"count-join {step.function}{argument} {step.op} {spell(step.value)}"
            yield from _steps(step.steps, "  ")
        case plan.Optional(steps, introduces):
            yield f"optional {', '.join(map(_variable, introduces))}".rstrip()
            yield from _steps(steps, "  ")


def _expand(step: plan.Expand) -> str:
    before, after = _ARROWS[step.direction]
    edge = f"${step.edge_variable}:{step.edge_type}" if step.edge_variable else step.edge_type
    hops = (
        "" if (step.min_hops, step.max_hops) == (1, 1) else f"{{{step.min_hops},{step.max_hops}}}"
    )
    verb = "join" if step.closes else "expand"
    target = _variable(step.target) + ("" if step.closes else f": {step.target_type}")
    where = _where((*step.where, *step.edge_where))
    return f"{verb} {_variable(step.source)} {before}[{edge}{hops}]{after} {target}{where}"


def _where(predicates: tuple[plan.Predicate, ...]) -> str:
    return f" where {' and '.join(map(spell_predicate, predicates))}" if predicates else ""


def _variable(name: str) -> str:
    return "$_" if name.startswith("#") else f"${name}"


# -- mutations ---------------------------------------------------------------------


def _mutation(mutation: plan.MutationPlan) -> Iterator[str]:
    for statement in mutation.statements:
        yield _statement(statement)


def _statement(statement: plan.Statement) -> str:
    match statement:
        case plan.InsertNode(name, assignments, verb):
            return f"{verb} node {name}{_assigned(assignments)}"
        case plan.InsertEdge(name, source, target, assignments):
            return f"insert edge {name} {spell(source)} -> {spell(target)}{_assigned(assignments)}"
        case plan.UpdateNodes(name, assignments, where):
            return f"update nodes {name}{_assigned(assignments)}{_where(where)}"
        case plan.UpdateEdges(name, assignments, where):
            return f"update edges {name}{_assigned(assignments)}{_where(where)}"
        case plan.DeleteNodes(name, where, cascades):
            also = f" cascading to {', '.join(cascades)}" if cascades else ""
            return f"delete nodes {name}{_where(where)}{also}"
        case plan.DeleteEdges(name, where):
            return f"delete edges {name}{_where(where)}"


def _assigned(assignments: tuple[plan.Assignment, ...]) -> str:
    if not assignments:
        return ""
    return " set " + ", ".join(f"{item.property} := {spell(item.value)}" for item in assignments)


# -- expressions -------------------------------------------------------------------


def spell(value: plan.Output) -> str:
    """An expression of a plan."""
    match value:
        case plan.Property(variable, name, _):
            return f"{_variable(variable)}.{name}"
        case plan.NodeRef(variable):
            return _variable(variable)
        case plan.ParamRef(name, type_):
            return f"${name}:{type_}"
        case plan.Const(constant):
            return _constant(constant)
        case plan.Now():
            return "now()"
        case plan.Aggregate(function, argument):
            return f"{function}({spell(argument)})"
        case plan.Score(ranking):
            return f"score {spell_ranking(ranking)}"


def _constant(value: plan.Constant) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_constant, value))}]"
    if isinstance(value, datetime):
        return f'datetime("{value.isoformat()}")'
    if isinstance(value, date):
        return f'date("{value.isoformat()}")'
    return dumps(value, ensure_ascii=False)


def spell_ranking(ranking: plan.Ranking) -> str:
    """A ranking call of a plan."""
    match ranking:
        case plan.Nearest(variable, _, name):
            return f"nearest(${variable}.{name}, {spell(ranking.query)})"
        case plan.Bm25(variable, _, name):
            return f"bm25(${variable}.{name}, {spell(ranking.query)})"
        case plan.Fusion(primary, secondary, k):
            return f"rrf({spell_ranking(primary)}, {spell_ranking(secondary)}, {spell(k)})"


def spell_predicate(predicate: plan.Predicate) -> str:
    """A predicate of a plan."""
    match predicate:
        case plan.Comparison(left, op, right):
            return f"{spell(left)} {op} {spell(right)}"
        case plan.Contains(left, right):
            return f"{spell(left)} contains {spell(right)}"
        case plan.StartsWith(left, right):
            return f"{spell(left)} starts_with {spell(right)}"
        case plan.InList(operand, choices):
            return f"{spell(operand)} in {spell(choices)}"
        case plan.IsNull(operand, negated):
            return f"{spell(operand)} is {'not ' if negated else ''}null"
        case plan.TextMatch(mode, subject, _, query, edits):
            more = f", {spell(edits)}" if edits is not None else ""
            return f"{mode}({spell(subject)}, {spell(query)}{more})"
        case plan.Either(groups):
            joined = " or ".join(" and ".join(map(spell_predicate, group)) for group in groups)
            return f"({joined})"
