"""Strict reading of JSON documents: every field expected, every value of its type.

Owns the walk and its complaints, which name the path to what is wrong. Never
knows what a document means.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from omnigraph.errors import SchemaError

MAX_ID = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a document, with the path that leads to it."""

    raw: Any
    path: str
    document: str

    def fail(self, problem: str) -> NoReturn:
        """Raise what is wrong with this value."""
        where = f" at {self.path}" if self.path else ""
        raise SchemaError(f"invalid {self.document}{where}: {problem}")

    def fields(self, *names: str, optional: tuple[str, ...] = ()) -> tuple[Value, ...]:
        """The values of exactly these fields, then of the optional ones (null if absent)."""
        if not isinstance(self.raw, dict):
            self.fail("expected an object")
        for name in names:
            if name not in self.raw:
                self.fail(f"the field `{name}` is missing")
        for name in self.raw:
            if name not in names and name not in optional:
                self.fail(f"unknown field `{name}`")
        return tuple(self._child(name) for name in (*names, *optional))

    def _child(self, name: str) -> Value:
        path = f"{self.path}.{name}" if self.path else name
        return Value(self.raw.get(name), path, self.document)

    def is_null(self) -> bool:
        """Whether it is null."""
        return self.raw is None

    def has(self, name: str) -> bool:
        """Whether it is an object with this field."""
        return isinstance(self.raw, dict) and name in self.raw

    def get(self, name: str) -> Value:
        """One field, whatever else the object has."""
        if not self.has(name):
            self.fail(f"the field `{name}` is missing")
        return self._child(name)

    def items(self) -> Iterator[Value]:
        """The elements of an array."""
        if not isinstance(self.raw, list):
            self.fail("expected an array")
        for index, item in enumerate(self.raw):
            yield Value(item, f"{self.path}[{index}]", self.document)

    def string(self) -> str:
        """A string."""
        if not isinstance(self.raw, str):
            self.fail("expected a string")
        text = str(self.raw)
        # A lone surrogate can be spelled in JSON, but never stored or hashed.
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            self.fail("the string is not valid Unicode")
        return text

    def optional_string(self) -> str | None:
        """A string or null."""
        return None if self.is_null() else self.string()

    def boolean(self) -> bool:
        """A bool."""
        if not isinstance(self.raw, bool):
            self.fail("expected true or false")
        return bool(self.raw)

    def integer(self, low: int, high: int) -> int:
        """An integer between two bounds, both included."""
        if not isinstance(self.raw, int) or isinstance(self.raw, bool):
            self.fail("expected an integer")
        value = int(self.raw)
        if not low <= value <= high:
            self.fail(f"{value} is out of range")
        return value

    def identity(self) -> int:
        """A stable id; zero is never one."""
        value = self.integer(0, MAX_ID)
        if value == 0:
            self.fail("an identity is never zero")
        return value

    def one_of(self, *choices: str) -> str:
        """One of these strings."""
        value = self.string()
        if value not in choices:
            self.fail(f"expected one of {', '.join(choices)}")
        return value


def read_document(text: str | bytes, document: str) -> Value:
    """Parse JSON text; SchemaError when it is none."""
    try:
        raw = json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"invalid {document}: {error}") from None
    return Value(raw, "", document)


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field stands twice in one object")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number JSON knows")
