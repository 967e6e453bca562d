"""The members of a class that users may rely on: attributes with what they mean, and methods.

Owns how they are found. An attribute is told by the text below it, in the source.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from textwrap import dedent
from typing import Any

from tests.docs.reference.shown import PARTS, Class, Functions

Function = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Attribute:
    """A field or a property."""

    name: str
    type: str
    text: str


def methods(shown: Class) -> dict[str, Function]:
    """The public methods that stand in the class itself, in its order."""
    found: dict[str, Function] = {}
    for name, value in vars(shown.type).items():
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        is_public = not name.startswith("_") and name not in shown.internal
        if is_public and inspect.isfunction(function):
            found[name] = function
    return found


def attributes(shown: Class) -> list[Attribute]:
    """The public fields and properties, in their order."""
    found = [*_fields(shown.type), *_properties(shown.type)]
    return [one for one in found if not one.name.startswith("_") and one.name not in shown.internal]


def documented() -> Iterator[tuple[str, Function]]:
    """Every function and method of the reference, by the name it has there."""
    for part in PARTS:
        for item in part.items:
            if isinstance(item, Functions):
                yield from ((f"{item.module}.{one.__name__}", one) for one in item.functions)
            else:
                owner = item.name or item.type.__name__
                yield from ((f"{owner}.{name}", one) for name, one in methods(item).items())


def signature(function: Function) -> str:
    """What a call takes and gives, a line each if that is long."""
    given = inspect.signature(function)
    words: list[str] = []
    was_keyword = False
    for name, one in given.parameters.items():
        if name in ("self", "cls"):
            continue
        if one.kind is one.KEYWORD_ONLY and not was_keyword:
            words.append("*")
            was_keyword = True
        words.append(_parameter(one))
    result = "" if given.return_annotation is given.empty else f" -> {given.return_annotation}"
    line = f"({', '.join(words)}){result}"
    if len(line) <= 78:
        return line
    return "(" + "".join(f"\n    {word}," for word in words) + f"\n){result}"


def _parameter(one: inspect.Parameter) -> str:
    typed = f"{one.name}: {one.annotation}" if one.annotation is not one.empty else one.name
    if one.default is one.empty:
        return typed
    # The name of a function says what it is; its address is another one every time.
    shown = getattr(one.default, "__name__", None) or repr(one.default)
    return f"{typed} = {shown}"


def _fields(shown: type) -> Iterator[Attribute]:
    """The annotated names of a class, with those of its bases before; and what `__init__` sets."""
    for base in reversed(shown.__mro__):
        if base.__module__.startswith("omnigraph.") and (base is shown or _is_record(shown)):
            node = ast.parse(dedent(inspect.getsource(base))).body[0]
            assert isinstance(node, ast.ClassDef)
            yield from _annotated(node.body)
    if not _is_record(shown) and "__init__" in vars(shown):
        inside = ast.parse(dedent(inspect.getsource(vars(shown)["__init__"]))).body[0]
        assert isinstance(inside, ast.FunctionDef)
        yield from _annotated(inside.body)


def _annotated(body: list[ast.stmt]) -> Iterator[Attribute]:
    for node, after in zip(body, [*body[1:], None], strict=True):
        text = ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            text = inspect.cleandoc(str(after.value.value))
        if isinstance(node, ast.AnnAssign):
            target = node.target
            name = target.id if isinstance(target, ast.Name) else ""
            if isinstance(target, ast.Attribute):
                name = target.attr
            yield Attribute(name, ast.unparse(node.annotation), text)
        elif isinstance(node, ast.Assign) and text and isinstance(node.targets[0], ast.Attribute):
            yield Attribute(node.targets[0].attr, "", text)


def _properties(shown: type) -> Iterator[Attribute]:
    for name, value in vars(shown).items():
        getter: Any = None
        if isinstance(value, property):
            getter = value.fget
        elif isinstance(value, cached_property):
            getter = value.func
        if getter is not None:
            result = str(inspect.signature(getter).return_annotation)
            yield Attribute(name, result, inspect.getdoc(getter) or "")


def _is_record(shown: type) -> bool:
    return hasattr(shown, "__dataclass_fields__")
