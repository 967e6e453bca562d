"""Plans as text, the way `explain` shows them.

Owns the spelling of steps and of what they work on, each on one line.
"""

from __future__ import annotations

from datetime import date, datetime
from json import dumps

from omnigraph.lang.query import plan

_ARROWS: dict[plan.Direction, tuple[str, str]] = {
    "out": ("-", "->"),
    "in": ("<-", "-"),
    "both": ("-", "-"),
}


def step_text(step: plan.Step) -> tuple[str, str]:
    """The name of a step and what it works on, without the steps inside it."""
    name, _, detail = _line(step).partition(" ")
    return name, detail


def _line(step: plan.Step) -> str:
    match step:
        case plan.Scan(variable, node_type, where):
            return f"scan {_variable(variable)}: {node_type}{_where(where)}"
        case plan.Expand():
            return _expand(step)
        case plan.Filter(where):
            return f"filter {' and '.join(map(spell_predicate, where))}"
        case plan.AntiJoin():
            return "anti-join"
        case plan.SemiJoin():
            return "semi-join"
        case plan.Union():
            return "union"
        case plan.CountJoin():
            argument = f"({spell(step.argument)})" if step.argument is not None else ""
            return f"count-join {step.function}{argument} {step.op} {spell(step.value)}"
        case plan.Optional(_, introduces):
            return f"optional {', '.join(map(_variable, introduces))}".rstrip()


def _expand(step: plan.Expand) -> str:
    before, after = _ARROWS[step.direction]
    edge = "|".join(step.edge_types)
    if step.edge_variable:
        edge = f"${step.edge_variable}:{edge}"
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
