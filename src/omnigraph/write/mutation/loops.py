"""Loops: the statements of a `for`, once for each element that it goes through.

Owns putting the values of elements in the place of their names. Runs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

from omnigraph.lang.query import plan
from omnigraph.lang.query.params import ParamValue, require
from omnigraph.storage.budget import look

Params = Mapping[str, ParamValue]
_STATEMENTS = 1_000
"""So many statements are made between two looks."""


def unrolled(mutation: plan.MutationPlan, params: Params) -> plan.MutationPlan:
    """A mutation without loops, in the order in which its statements run."""
    if not any(isinstance(step, plan.Loop) for step in mutation.steps):
        return mutation
    return replace(mutation, steps=tuple(_statements(mutation.steps, params, {})))


def _statements(
    steps: tuple[plan.Statement | plan.Loop, ...], params: Params, known: Params
) -> Iterator[plan.Statement]:
    for step in steps:
        if not isinstance(step, plan.Loop):
            yield _filled(step, known)
            continue
        for number, element in enumerate(_elements(step, params)):
            if number % _STATEMENTS == 0:
                look()
            yield from _statements(step.statements, params, {**known, **element})


def _elements(loop: plan.Loop, params: Params) -> Iterator[dict[str, Any]]:
    """The values of each element; a list that is null has none."""
    listed = require(params, loop.over)
    if not isinstance(listed, tuple):
        return
    if loop.fields is None:
        for value in listed:
            yield {loop.element: value}
        return
    columns = [params[plan.field_of(loop.over, name)] for name in loop.fields]
    names = [plan.field_of(loop.element, name) for name in loop.fields]
    lists = [column if isinstance(column, tuple) else () for column in columns]
    for values in zip(*lists, strict=True):
        yield dict(zip(names, values, strict=True))


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind) if one.init)


def _filled(value: Any, known: Params) -> Any:
    """A part of a statement with values in the place of the names that are known."""
    if not known:
        return value
    if isinstance(value, plan.ParamRef):
        return plan.Const(known[value.name], value.type) if value.name in known else value
    if isinstance(value, tuple):
        return tuple(_filled(each, known) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {name: getattr(value, name) for name in _names(type(value))}
        filled = {name: _filled(part, known) for name, part in parts.items()}
        if all(filled[name] is part for name, part in parts.items()):
            return value
        return replace(value, **filled)
    return value
