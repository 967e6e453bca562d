"""The rules of body constraints: what each may name and which types it takes.

Owns `@key(…)`, `@unique(…)`, `@index(…)`, `@range(…)`, `@check(…)` and how many
keys a node has. Sees the effective properties of one type, nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.lang.cursor import shorten
from omnigraph.lang.diagnostics import Phase, Reporter, did_you_mean
from omnigraph.lang.literals import number_value
from omnigraph.lang.schema.check.annotations import BODY_FORMS, Owner
from omnigraph.lang.schema.check.effective import annotation_named
from omnigraph.lang.schema.check.patterns import PatternMistake, pattern_mistake
from omnigraph.lang.schema.syntax.tree import Argument, Bounds, Constraint, Property
from omnigraph.lang.source import Span

_ENDS = ("src", "dst")
"""The ends of an edge, which its constraints may name."""


@dataclass(frozen=True, slots=True)
class ConstraintScope:
    """What the constraints of one type may refer to.

    Without ``complete`` some property may be missing only because its own
    declaration is broken, so an unknown name is no separate mistake. ``stored``
    is true for a schema accepted long ago: it must open even where admission is
    stricter today.
    """

    owner: Owner
    properties: Mapping[str, Property]
    complete: bool = True
    stored: bool = False


def check_constraint(constraint: Constraint, scope: ConstraintScope, reporter: Reporter) -> None:
    """Check one body constraint."""
    name = constraint.name
    if scope.owner == "edge" and name in ("range", "check"):
        _refuse(reporter, constraint.span, f"edges take no `@{name}`")
        return
    if name == "range":
        _check_range(constraint, scope, reporter)
    elif name == "check":
        _check_pattern(constraint, scope, reporter)
    else:
        _check_members(constraint, scope, reporter)


def _refuse(reporter: Reporter, span: Span, message: str, *, hint: str | None = None) -> None:
    reporter.report(span, message, phase=Phase.PARSE, hint=hint)


def _check_members(constraint: Constraint, scope: ConstraintScope, reporter: Reporter) -> None:
    if not constraint.arguments:
        message = f"`@{constraint.name}` names no property"
        _refuse(reporter, constraint.span, message, hint=f"write {BODY_FORMS[constraint.name]}")
    for argument in constraint.arguments:
        property_ = _named(argument, constraint, scope, reporter)
        if property_ is not None:
            _check_member(constraint, argument, property_, scope, reporter)
    if constraint.name == "key" and scope.owner == "edge":
        _check_edge_key(constraint, scope, reporter)


def _check_edge_key(constraint: Constraint, scope: ConstraintScope, reporter: Reporter) -> None:
    """Refuse a key that does not name both ends."""
    names = {a.text for a in constraint.arguments if isinstance(a, Argument) and a.kind == "name"}
    missing = [
        end
        for end in _ENDS
        if f"@{end}" not in names and (end not in names or end in scope.properties)
    ]
    if not missing:
        return
    ends = [f"@{end}" if end in scope.properties else end for end in _ENDS]
    hint = f"write `@key({', '.join(ends)}, …)`"
    shadowed = [end for end in missing if end in names]
    if shadowed:
        hint = f"`{shadowed[0]}` is a property here, the end is `@{shadowed[0]}`: {hint}"
    _refuse(reporter, constraint.span, "the key of an edge names both its ends", hint=hint)


def _check_member(
    constraint: Constraint,
    argument: Argument | Bounds,
    property_: Property,
    scope: ConstraintScope,
    reporter: Reporter,
) -> None:
    name, value_type = shorten(property_.name.text), property_.type
    if constraint.name == "key":
        if not value_type.is_plain:
            message = f"`{name}` of type {value_type} cannot be part of a key"
            _refuse(reporter, argument.span, message)
        elif value_type.nullable:
            _refuse(reporter, argument.span, f"the key member `{name}` cannot be nullable")
    elif constraint.name == "unique":
        if not value_type.is_plain and not scope.stored:
            message = f"`{name}` of type {value_type} cannot be part of `@unique`"
            _refuse(reporter, argument.span, message)
    elif value_type.is_blob:
        _refuse(reporter, argument.span, f"`{name}` of type {value_type} cannot be indexed")


def _named(
    argument: Argument | Bounds, constraint: Constraint, scope: ConstraintScope, reporter: Reporter
) -> Property | None:
    """The property an argument names; reports what names none."""
    if isinstance(argument, Bounds) or argument.kind != "name":
        message = f"an argument of `@{constraint.name}` must be the plain name of a property"
        _refuse(reporter, argument.span, message)
        return None
    property_ = scope.properties.get(argument.text)
    if property_ is not None or _is_end(argument.text, scope.owner):
        return property_
    end = argument.text.removeprefix("@") in _ENDS
    if argument.text == "@id":
        message = f"`@id` needs no `@{constraint.name}`: it is unique and indexed in every table"
        _refuse(reporter, argument.span, message)
    elif end and scope.owner == "node" and (scope.complete or argument.text.startswith("@")):
        message = f"unknown property `{argument.text}` in `@{constraint.name}`"
        hint = "only edges have ends that a constraint may name"
        _refuse(reporter, argument.span, message, hint=hint)
    elif scope.complete and not reporter.full:
        _refuse(
            reporter,
            argument.span,
            f"unknown property `{shorten(argument.text)}` in `@{constraint.name}`",
            hint=did_you_mean(argument.text, scope.properties),
        )
    return None


def _is_end(name: str, owner: Owner) -> bool:
    return owner == "edge" and name.removeprefix("@") in _ENDS


def _first(constraint: Constraint, scope: ConstraintScope, reporter: Reporter) -> Property | None:
    """The property a `@range` or `@check` is about."""
    if not constraint.arguments:
        message = f"`@{constraint.name}` names no property"
        _refuse(reporter, constraint.span, message, hint=f"write {BODY_FORMS[constraint.name]}")
        return None
    return _named(constraint.arguments[0], constraint, scope, reporter)


def _starts_with_name(constraint: Constraint) -> bool:
    """Whether the arguments begin as they should, so that the next one can be judged."""
    match constraint.arguments:
        case (Argument("name"), *_):
            return True
        case _:
            return False


def _too_many(constraint: Constraint, reporter: Reporter) -> None:
    for argument in constraint.arguments[2:]:
        message = f"`@{constraint.name}` takes two arguments: {BODY_FORMS[constraint.name]}"
        _refuse(reporter, argument.span, message)


def _check_range(constraint: Constraint, scope: ConstraintScope, reporter: Reporter) -> None:
    property_ = _first(constraint, scope, reporter)
    if property_ is not None and not property_.type.is_numeric:
        message = f"`@range` needs a number; `{shorten(property_.name.text)}` is {property_.type}"
        _refuse(reporter, constraint.arguments[0].span, message)
    if not _starts_with_name(constraint):
        return
    bounds = constraint.arguments[1] if len(constraint.arguments) > 1 else None
    if not isinstance(bounds, Bounds):
        span = constraint.span if bounds is None else bounds.span
        _refuse(reporter, span, "`@range` needs bounds", hint=f"write {BODY_FORMS['range']}")
        return
    _check_bounds(bounds, reporter)
    _too_many(constraint, reporter)


def _check_bounds(bounds: Bounds, reporter: Reporter) -> None:
    for bound in (bounds.low, bounds.high):
        if bound is not None and bound_value(bound) is None:
            _refuse(reporter, bound.span, f"the bound {shorten(bound.text)} is too large")
    low, high = (
        None if bound is None else bound_value(bound) for bound in (bounds.low, bounds.high)
    )
    if low is not None and high is not None and low > high:
        _refuse(reporter, bounds.span, "the lower bound lies above the upper bound")


def bound_value(bound: Argument) -> int | float | None:
    """The number a bound of `@range` names, or None when it is too large to store."""
    return number_value(bound.text)


def _check_pattern(constraint: Constraint, scope: ConstraintScope, reporter: Reporter) -> None:
    property_ = _first(constraint, scope, reporter)
    if property_ is not None and not property_.type.is_text:
        message = f"`@check` needs a String; `{shorten(property_.name.text)}` is {property_.type}"
        _refuse(reporter, constraint.arguments[0].span, message)
    if not _starts_with_name(constraint):
        return
    pattern = constraint.arguments[1] if len(constraint.arguments) > 1 else None
    if not isinstance(pattern, Argument) or pattern.kind != "string":
        span = constraint.span if pattern is None else pattern.span
        message = "`@check` needs a pattern in quotes"
        _refuse(reporter, span, message, hint=f"write {BODY_FORMS['check']}")
        return
    mistake = None if scope.stored else pattern_mistake(pattern.text)
    if mistake is not None:
        span = _within(pattern.span, reporter.source.text, mistake)
        reporter.report(span, f"`@check`: {mistake.message}", phase=Phase.CATALOG)
    _too_many(constraint, reporter)


def _within(literal: Span, source: str, mistake: PatternMistake) -> Span:
    """Where a part of a string literal's text is written; an escape takes two characters."""
    places = [literal.start + 1]
    while places[-1] < literal.end - 1:
        places.append(places[-1] + 1 + (source[places[-1]] == "\\"))
    start, end = (places[min(at, len(places) - 1)] for at in (mistake.start, mistake.end))
    return Span(start, max(start, end))


def check_one_key(keys: list[Span], owner: Owner, reporter: Reporter) -> None:
    """Refuse every key of a type after the first, whichever way they are written."""
    hints = {
        "node": "a key of several properties is `@key(a, b)`",
        "edge": "a key with properties is `@key(src, dst, a, b)`",
    }
    article = "an" if owner == "edge" else "a"
    for span in sorted(keys)[1:]:
        _refuse(reporter, span, f"{article} {owner} has one key", hint=hints.get(owner))


def check_default_ranges(
    constraints: tuple[Constraint, ...],
    scope: ConstraintScope,
    span_of: Mapping[str, Span],
    reporter: Reporter,
) -> None:
    """Refuse defaults that their own type's `@range` would reject.

    ``span_of`` gives the place to report for properties that come from an interface.
    """
    for constraint in constraints:
        match constraint.arguments:
            case (Argument("name", name), Bounds(low, high), *_) if constraint.name == "range":
                property_ = scope.properties.get(name)
            case _:
                continue
        default = annotation_named(property_.annotations, "default") if property_ else None
        if property_ is None or default is None or default.value is None:
            continue
        if not property_.type.is_numeric or default.value.kind not in ("integer", "float"):
            continue
        value = number_value(default.value.text)
        lowest = None if low is None else bound_value(low)
        highest = None if high is None else bound_value(high)
        if value is None:
            continue
        if (lowest is not None and value < lowest) or (highest is not None and value > highest):
            message = f"the default {default.value.text} of `{name}` lies outside its `@range`"
            _refuse(reporter, span_of.get(name, default.value.span), message)
