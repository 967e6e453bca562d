"""Computed values of generated queries: their shape, their text and what each means of a row.

Part of the small AST and of the naive evaluator. Shares nothing with the product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Arith:
    """`left op right`."""

    left: Any
    op: str
    right: Any


@dataclass(frozen=True)
class Choice:
    """`case { when test: chosen else: otherwise }`."""

    test: Any
    chosen: Any
    otherwise: Any


@dataclass(frozen=True)
class Logic:
    """Conditions joined by `and` or `or`."""

    op: str
    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Deny:
    """`not condition`."""

    part: Any


@dataclass(frozen=True)
class Worth:
    """`exists { … }`, `not { … }` or an aggregate of a block."""

    function: str
    argument: Any
    clauses: tuple[Any, ...]


@dataclass(frozen=True)
class Where:
    """A condition that is a clause."""

    condition: Any


@dataclass(frozen=True)
class Let:
    """`let $name = value`."""

    name: str
    value: Any


COMPUTED = (Arith, Choice, Logic, Deny, Worth)


def parts_of(value: Any) -> Iterator[Any]:
    """What a computed value is made of; of a block, what it aggregates."""
    match value:
        case Arith(left, _, right):
            yield from (left, right)
        case Choice(test, chosen, otherwise):
            yield from (test, chosen, otherwise)
        case Logic(_, parts):
            yield from parts
        case Deny(part) | Where(part) | Let(_, part):
            yield part
        case Worth(_, argument, _) if argument is not None:
            yield argument


def value_text(value: Any, text: Callable[[Any], str], block: Callable[[Any], str]) -> str:
    """A computed value as somebody would write it, with more parentheses."""
    match value:
        case Arith(left, op, right):
            return f"({text(left)} {op} {text(right)})"
        case Choice(test, chosen, otherwise):
            return f"case {{ when {text(test)}: {text(chosen)} else: {text(otherwise)} }}"
        case Logic(op, parts):
            return "(" + f" {op} ".join(map(text, parts)) + ")"
        case Deny(part):
            return f"not ({text(part)})"
        case Worth(function, argument, clauses):
            head = function if argument is None else f"{function}({text(argument)})"
            return f"{head} {block(clauses)}"
        case Where(condition):
            # In parentheses, so that no clause before goes on with it.
            return text(condition)
        case Let(name, found):
            return f"let ${name} = {text(found)}"
    raise AssertionError(f"no computed value: {value}")


def arithmetic(left: Any, op: str, right: Any) -> Any:
    """Null of null, of a division by zero and of what is no finite number."""
    if left is None or right is None or (op in "/%" and right == 0):
        return None
    match op:
        case "+":
            found = left + right
        case "-":
            found = left - right
        case "*":
            found = left * right
        case "/":
            found = float(left) / float(right)
        case _:
            found = left % right
    return found if isinstance(found, int) or math.isfinite(found) else None


def joined(op: str, truths: list[bool | None]) -> bool | None:
    """Kleene's tables."""
    decides = op == "or"
    if decides in truths:
        return decides
    return None if None in truths else not decides
