"""JSON text: one line read strictly, with numbers kept as they are written.

Owns what is JSON and what is not, down to duplicate members and lone surrogates.
Knows nothing of graphs.
"""

from __future__ import annotations

import json
import re
from typing import Any

from omnigraph.errors import quoted
from omnigraph.write.load.ndjson.lines import find_duplicate

_CONSTANT = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|(-?Infinity|NaN)')
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)")


class BadLineError(Exception):
    """A line that cannot be read; ``column`` is where, counted from 1."""

    def __init__(self, text: str, column: int | None) -> None:
        super().__init__(text)
        self.text = text
        self.column = column


class Integer(str):
    """A JSON number without a fraction or an exponent, as it is written."""

    __slots__ = ()


class Decimal(str):
    """Any other JSON number, as it is written."""

    __slots__ = ()


class _DuplicateError(Exception):
    pass


class _ConstantError(Exception):
    pass


def read_json(line: bytes) -> Any:
    """The value of a line: dict, list, str, Integer, Decimal, bool or None."""
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        before = line[: error.start].decode(errors="replace")
        raise BadLineError("the line is not UTF-8", len(before) + 1) from None
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        said = error.msg[:1].lower() + error.msg[1:]
        raise BadLineError(f"not valid JSON: {said}", error.pos + 1) from None
    except _ConstantError as error:
        found = next(m for m in _CONSTANT.finditer(text) if m.group(1))
        raise BadLineError(f"not valid JSON: {error} is no number", found.start() + 1) from None
    except _DuplicateError as error:
        raise BadLineError(f"duplicate JSON member '{quoted(error)}'", _duplicate(text)) from None
    except RecursionError:
        raise BadLineError("not valid here: the JSON is nested too deeply", None) from None
    if "\\u" in text:
        _refuse_lone_surrogates(text)
    return value


def _duplicate(text: str) -> int | None:
    try:
        return find_duplicate(text)
    except RecursionError:
        return None


def _refuse_lone_surrogates(text: str) -> None:
    high_at = None
    for escape in _ESCAPE.finditer(text):
        code = int(escape.group(1) or "0", 16)
        if 0xDC00 <= code < 0xE000 and high_at == escape.start() - 6:
            high_at = None
            continue
        if high_at is not None or 0xDC00 <= code < 0xE000:
            at = escape.start() if high_at is None else high_at
            break
        high_at = escape.start() if 0xD800 <= code < 0xDC00 else None
    else:
        if high_at is None:
            return
        at = high_at
    said = f"not valid JSON: {text[at : at + 6]} alone is no character"
    raise BadLineError(said, at + 1)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _DuplicateError(name)
            seen.add(name)
    return members


def _constant(name: str) -> None:
    raise _ConstantError(name)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=Integer, parse_float=Decimal, parse_constant=_constant
)
