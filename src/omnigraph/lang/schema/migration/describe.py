"""Plans in words: a line per step, grouped by tier.

Owns the wording for people, as text and as HTML. Programs read the JSON of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from textwrap import indent

from omnigraph.errors import quoted
from omnigraph.lang.literals import quote
from omnigraph.lang.schema.ir.document import Cardinality, Note, PropertyType
from omnigraph.lang.schema.ir.shape import CheckRule, EmbedShape, RangeRule, Rule
from omnigraph.lang.schema.migration.refusals import BrokenQuery, Refusal
from omnigraph.lang.schema.migration.steps import (
    AddConstraint,
    AddProperty,
    AddType,
    AppliedStep,
    ChangeAnnotation,
    ChangeCardinality,
    ChangeEmbed,
    ChangeEndpoints,
    ChangeImplements,
    ChangeNullability,
    ChangePropertyType,
    DropProperty,
    DropType,
    Ends,
    ExtendEnum,
    RemoveConstraint,
    RenameProperty,
    RenameType,
    Step,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
    Violations,
)

_GROUPS = ("refused", "destructive", "validated", "safe")
_ENDS = {"src": 0, "dst": 1}
_COSTS = {"metadata": "metadata only", "columns": "writes columns", "scan": "scans rows"}


Style = Callable[[str, str], str]
"""How a tier, or what is said of it, looks: from its name and a text to the text that is shown."""


def plain(_: str, text: str) -> str:
    """Text as it is."""
    return text


def text_of(
    steps: Sequence[Step],
    refusal_of: Callable[[Step], Refusal | None],
    queries: Sequence[BrokenQuery] = (),
    style: Style = plain,
) -> str:
    """A plan for people; what stands against it is shown with its place in the schema."""
    if not steps:
        return "no change"
    groups = {group: [step for step in steps if _group(step) == group] for group in _GROUPS}
    counts = [style(group, f"{len(found)} {group}") for group, found in groups.items() if found]
    lines = [f"{_count(len(steps), 'step')}: {', '.join(counts)}"]
    for group, found in groups.items():
        lines += [style(group, group)] if found else []
        for step in found:
            lines.append(f"  {_line(step)}")
            lines += [f"    {fact}" for fact in _facts(step)]
            refusal = refusal_of(step)
            if refusal is not None and refusal.place is not None:
                lines.append(indent(refusal.place.frame(), "    "))
    lines += [style("refused", "broken queries")] if queries else []
    for query in queries:
        lines += [f"  {query.summary}", indent(query.report, "    ")]
    return "\n".join(lines)


def html_of(steps: Sequence[Step], queries: Sequence[BrokenQuery] = ()) -> str:
    """A plan as a small table."""
    if not steps:
        return "<p>no change</p>"
    rows = [
        (_group(step), step.entity, _outcome(step), _cost(step), "\n".join(_facts(step)))
        for step in sorted(steps, key=lambda step: _GROUPS.index(_group(step)))
    ]
    for query in queries:
        mistakes = "\n".join(found.summary for found in query.diagnostics)
        rows.append(("broken query", query.entity, query.summary, "", mistakes))
    heads = ("tier", "what", "change", "cost", "data")
    cells = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    head = f"<tr>{_cells('th', heads)}</tr>"
    return f"<table><thead>{head}</thead><tbody>{cells}</tbody></table>"


def _cells(tag: str, texts: Iterable[str]) -> str:
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)


def _group(step: Step) -> str:
    return "refused" if isinstance(step, UnsupportedChange) else step.tier


def _line(step: Step) -> str:
    if isinstance(step, UnsupportedChange):
        return f"{step.entity}: {_outcome(step)}"
    return f"{step.entity} {_outcome(step)} ({_cost(step)})"


def _cost(step: Step) -> str:
    return "" if isinstance(step, UnsupportedChange) else _COSTS[step.cost]


def _facts(step: Step) -> list[str]:
    """What the data says about a step."""
    if isinstance(step, UnsupportedChange):
        return []
    found = []
    if step.rows_losing_value is not None:
        rows, is_one = _count(step.rows_losing_value, "row"), step.rows_losing_value == 1
        if isinstance(step, DropType):
            found.append(f"{rows} {'goes' if is_one else 'go'} with it")
        else:
            found.append(f"{rows} {'loses' if is_one else 'lose'} a value")
    if step.violations is not None:
        found.append(violations_text(step.violations))
    return found


def violations_text(violations: Violations) -> str:
    """How many rows break a step, and which, as far as they are named."""
    if not violations.count:
        return "no row breaks it"
    verb = "breaks" if violations.count == 1 else "break"
    shown = ", ".join(quoted(found) for found in violations.ids)
    more = ", …" if violations.count > len(violations.ids) else ""
    return f"{_count(violations.count, 'row')} {verb} it: {shown}{more}"


def summary(step: AppliedStep) -> str:
    """A step in one line, with what it is about."""
    return f"{step.entity} {_change(step)}"


def _outcome(step: Step) -> str:
    if isinstance(step, UnsupportedChange):
        return step.reason if step.code is None else f"{step.reason} [{step.code}]"
    return _change(step)


# -- one step --------------------------------------------------------------------------


def _change(step: AppliedStep) -> str:
    match step:
        case AddType():
            return "is added"
        case RenameType() | RenameProperty():
            return f"is renamed from {step.former}"
        case DropType() | DropProperty():
            return "is dropped" if step.mode == "soft" else "is dropped with its history"
        case UpdateTypeMetadata():
            return "has another description or instruction"
        case UpdatePropertyMetadata():
            return "has another description"
        case ChangeImplements():
            return _implements(step)
        case ChangeEndpoints():
            return f"connects {ends_text(step.ends)} instead of {ends_text(step.former)}"
        case ChangeCardinality():
            return f"has {_card(step.cardinality)} instead of {_card(step.former)}"
        case AddConstraint():
            return f"gets {rule_text(step.constraint.rule)}"
        case RemoveConstraint():
            return f"loses {rule_text(step.constraint.rule)}"
        case ChangeAnnotation():
            return _instead(_notes(step.notes), _notes(step.former))
        case AddProperty():
            return f"is added as {_type(step.property_type)}"
        case ExtendEnum():
            return f"takes {', '.join(step.added_values)} too"
        case ChangePropertyType():
            return f"becomes {_type(step.property_type)}, from {_type(step.former)}"
        case ChangeNullability():
            return _nullability(step)
        case ChangeEmbed():
            note = "" if step.note is None else f"; {step.note}"
            return f"{_instead(_embed(step.embed), _embed(step.former))}{note}"


def rule_text(rule: Rule) -> str:
    """A constraint as it is written in a body."""
    if isinstance(rule, RangeRule):
        ends = (rule.range.minimum, rule.range.maximum)
        low, high = ("" if end is None else str(end.value) for end in ends)
        return f"@range({rule.range.property}, {low}..{high})"
    if isinstance(rule, CheckRule):
        return f"@check({rule.check.property}, {quote(rule.check.pattern)})"
    ends_first = sorted(
        rule.members, key=lambda name: _ENDS.get(name.removeprefix("@"), len(_ENDS))
    )
    return f"@{rule.kind}({', '.join(ends_first)})"


def ends_text(ends: Ends) -> str:
    """What an edge connects, as it is written."""
    return f"{ends.from_type} -> {ends.to_type}"


def _implements(step: ChangeImplements) -> str:
    parts = [
        f"{verb} {', '.join(names)}"
        for verb, names in (
            ("implements", step.added),
            ("no longer implements", step.removed),
        )
        if names
    ]
    if step.properties:
        parts.append(f"has {', '.join(step.properties)} from elsewhere")
    return "; ".join(parts)


def _nullability(step: ChangeNullability) -> str:
    if step.nullable:
        return "becomes nullable"
    if step.fill is None:
        return "becomes non-nullable"
    return f"becomes non-nullable, nulls become {quoted(step.fill)}"


def _card(cardinality: Cardinality) -> str:
    maximum = "" if cardinality.maximum is None else cardinality.maximum
    return f"@card({cardinality.minimum}..{maximum})"


def _instead(now: str, former: str) -> str:
    if now and former:
        return f"has {now} instead of {former}"
    return f"gets {now}" if now else f"loses {former}"


def _notes(notes: tuple[Note, ...]) -> str:
    values = ("" if note.value is None else f"({quoted(note.value)})" for note in notes)
    return " ".join(f"@{note.name}{value}" for note, value in zip(notes, values, strict=True))


def _embed(embed: EmbedShape | None) -> str:
    if embed is None:
        return ""
    model = "" if embed.model is None else f", model={quote(embed.model)}"
    return f"@embed({embed.property_name}{model})"


def _type(property_type: PropertyType) -> str:
    return str(property_type.value_type)


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
