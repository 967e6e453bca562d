"""Plans as text, the way `explain` shows them.

Owns the spelling of steps and of what they work on, each on one line.
"""

from __future__ import annotations

from datetime import date, datetime
from json import dumps

from omnigraph.lang import structural
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
        case plan.Scan(variable, node_type, where, joins):
            on = f" joined on {' and '.join(map(spell_predicate, joins))}" if joins else ""
            return f"scan {_variable(variable)}: {node_type}{_where(where)}{on}"
        case plan.Expand():
            return _expand(step)
        case plan.WalkWay(way, left, right, undirected):
            spelt = f"<${way}>" if undirected else f"${way}"
            return f"steps {_variable(left)} {spelt} {_variable(right)}"
        case plan.Filter(where):
            return f"filter {' and '.join(map(spell_predicate, where))}"
        case plan.AntiJoin():
            return "anti-join"
        case plan.SemiJoin():
            return "semi-join"
        case plan.Union():
            return "union"
        case plan.Let(name, value):
            return f"let {_computed(name)} := {spell(value)}"
        case plan.ForEach(name, items):
            return f"for {_computed(name)} in {spell(items)}"
        case plan.Fold(name, value):
            once = "" if step.is_correlated else " once"
            found = spell(value) if isinstance(value, plan.Aggregate) else value
            return f"fold{once} {_computed(name)} := {found}"
        case plan.Optional(_, introduces):
            return f"optional {', '.join(map(_variable, introduces))}".rstrip()


def _expand(step: plan.Expand) -> str:
    before, after = _ARROWS[step.direction]
    edge = "|".join(step.edge_types)
    named = step.edge_variable if step.way is None else step.way.variable
    if named:
        edge = f"${named}:{edge}"
    farthest = "" if step.max_hops is None else step.max_hops
    is_one = (step.min_hops, step.max_hops) == (1, 1) and step.way is None
    hops = "" if is_one else f"{{{step.min_hops},{farthest}}}"
    verb = "join" if step.closes else "expand"
    target = _variable(step.target) + ("" if step.closes else f": {step.target_type}")
    where = _where((*step.where, *step.edge_where))
    every = "every " if step.way is not None and step.way.every else ""
    walked = f"{_variable(step.source)} {every}{before}[{edge}{hops}]{after} {target}"
    return f"{verb} {walked}{where}{_each(step)}"


def _each(step: plan.Expand) -> str:
    said = ""
    if step.each is not None:
        inside = ", ".join(map(_line, step.each.steps))
        names = f"{_variable(step.each.edge)}, {_variable(step.each.node)}"
        said = f" each {names} {{ {inside} }}"
    if step.way is not None and step.way.weight is not None:
        said += f" by {spell(step.way.weight)}"
    return said


def _where(predicates: tuple[plan.Predicate, ...]) -> str:
    return f" where {' and '.join(map(spell_predicate, predicates))}" if predicates else ""


def _computed(name: str) -> str:
    return name if name.startswith("#") else f"${name}"


def _variable(name: str) -> str:
    return "$_" if name.startswith("#") else f"${name}"


def spell(value: plan.Output, tightness: int = 0) -> str:
    """An expression of a plan, in parentheses where it holds together too loosely."""
    text = _spell(value)
    return f"({text})" if _tightness(value) < tightness else text


# How tightly an expression holds together.
_OR, _AND, _COMPARED, _SUM, _PRODUCT, _WHOLE = range(6)


def _tightness(value: plan.Output) -> int:
    match value:
        case plan.Either(groups):
            return _WHOLE if len(groups) > 1 else _AND
        case plan.Arithmetic(_, rest):
            return _SUM if rest[0][0] in ("+", "-") else _PRODUCT
        case (
            plan.Comparison()
            | plan.Contains()
            | plan.StartsWith()
            | plan.EndsWith()
            | plan.InList()
            | plan.IsNull()
            | plan.Not()
        ):
            return _COMPARED
    return _WHOLE


def _spell(value: plan.Output) -> str:
    match value:
        case plan.Property(variable, structural.TYPE, _):
            return f"type({_variable(variable)})"
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
        case plan.Computed(name):
            return _computed(name)
        case plan.Aggregate():
            return _aggregate(value)
        case plan.Score(ranking):
            return f"score {spell_ranking(ranking)}"
        case plan.Negative(operand):
            return f"-{spell(operand, _WHOLE)}"
        case plan.Arithmetic(first, rest):
            inside = _tightness(value) + 1
            more = (f" {op} {spell(operand, inside)}" for op, operand in rest)
            return spell(first, inside) + "".join(more)
        case plan.Call(name, arguments):
            return f"{name}({', '.join(map(spell, arguments))})"
        case plan.Case(branches, otherwise):
            written = [f"when {spell(test)}: {spell(chosen)}" for test, chosen in branches]
            written += [] if otherwise is None else [f"else: {spell(otherwise)}"]
            return f"case {{ {' '.join(written)} }}"
        case plan.ListOf(items):
            return f"[{', '.join(map(spell, items))}]"
        case _:
            return _spell_condition(value)


def _aggregate(value: plan.Aggregate) -> str:
    inside = "" if value.argument is None else spell(value.argument)
    if value.fields:
        inside = f"{{ {', '.join(f'{name}: {spell(found)}' for name, found in value.fields)} }}"
    if value.distinct:
        inside = f"distinct {inside}"
    if value.fraction is not None:
        inside += f", {spell(value.fraction)}"
    if value.order:
        keys = (
            f"{spell(key.by)} {'desc' if key.descending else 'asc'}{nulls_text(key.nulls)}"
            for key in value.order
        )
        inside += f" order {', '.join(keys)}"
    if value.limit is not None:
        inside += f" limit {spell(value.limit)}"
    return f"{value.function}({inside})"


def nulls_text(nulls: plan.NullPlace | None) -> str:
    """Where nulls stand, if that was said."""
    return "" if nulls is None else f" nulls {nulls}"


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
    return spell(predicate)


def _spell_condition(condition: plan.Predicate) -> str:
    match condition:
        case plan.Comparison(left, op, right):
            return f"{spell(left, _SUM)} {op} {spell(right, _SUM)}"
        case plan.Contains(left, right):
            return f"{spell(left, _SUM)} contains {spell(right, _SUM)}"
        case plan.StartsWith(left, right):
            return f"{spell(left, _SUM)} starts_with {spell(right, _SUM)}"
        case plan.EndsWith(left, right):
            return f"{spell(left, _SUM)} ends_with {spell(right, _SUM)}"
        case plan.InList(operand, choices):
            return f"{spell(operand, _SUM)} in {spell(choices, _SUM)}"
        case plan.IsNull(operand, negated):
            return f"{spell(operand, _SUM)} is {'not ' if negated else ''}null"
        case plan.Not(operand):
            return f"not {spell(operand, _SUM)}"
        case plan.TextMatch(mode, subject, _, query, edits):
            more = f", {spell(edits)}" if edits is not None else ""
            return f"{mode}({spell(subject)}, {spell(query)}{more})"
        case plan.Either(groups):
            joined = " or ".join(" and ".join(map(spell, group)) for group in groups)
            return f"({joined})" if len(groups) > 1 else joined
    raise AssertionError(f"{condition} is no condition")
