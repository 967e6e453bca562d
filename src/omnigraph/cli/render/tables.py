"""Plain text tables: padded columns, ` | ` between them, a rule below the names.

Owns widths and the way a value is shown. Knows nothing of what the values mean.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from omnigraph.read.output.cells import is_number, printable

MAX_VALUE = 60

CellLayout = Literal["truncate", "wrap"]

MAX_WIDTH = 80
MIN_WIDTH = 8


def time_text(microseconds: int) -> str:
    """A moment, given in µs since the epoch, to the second."""
    moment = datetime.fromtimestamp(microseconds // 1_000_000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def value_text(value: Any) -> str:
    """A value as JSON, cut where it is long."""
    from omnigraph.wire.body import encode

    text = printable(encode(value).decode())
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"


def render_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    max_width: int = MAX_WIDTH,
    layout: CellLayout = "truncate",
    none: str = "",
) -> str:
    """A table as text, without a final newline; numbers stand to the right, None is ``none``.

    A cell wider than ``max_width`` (at least 8) is cut with `…`, or wrapped.
    """
    limit = max(max_width, MIN_WIDTH)
    header = [_lines(column, limit, layout) for column in columns]
    body = [[_lines(none if cell is None else cell, limit, layout) for cell in row] for row in rows]
    widths = [
        max(text_width(line) for lines in column for line in lines)
        for column in zip(header, *body, strict=True)
    ]
    numeric = [
        any(is_number(cell) for cell in column)
        and all(is_number(cell) or cell is None for cell in column)
        for column in zip(*rows, strict=True)
    ] or [False] * len(columns)
    lines = _row_lines(header, widths, numeric)
    lines.append("-+-".join("-" * width for width in widths))
    for row in body:
        lines.extend(_row_lines(row, widths, numeric))
    return "\n".join(lines)


def text_width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(_character_width(character) for character in text)


def _character_width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Cf", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def _lines(value: object, limit: int, layout: CellLayout) -> list[str]:
    """A cell as one line, or as several if it is to be wrapped."""
    text = printable(str(value))
    if text_width(text) <= limit:
        return [text]
    if layout == "truncate":
        return [_fitting(text, limit - 1) + "…"]
    lines: list[str] = []
    while text:
        line = _fitting(text, limit)
        lines.append(line)
        text = text[len(line) :]
    return lines


def _fitting(text: str, limit: int) -> str:
    """The longest beginning of a text that is no wider than the limit."""
    width = 0
    for position, character in enumerate(text):
        width += _character_width(character)
        if width > limit:
            return text[:position]
    return text


def _row_lines(
    cells: Sequence[Sequence[str]], widths: Sequence[int], numeric: Sequence[bool]
) -> list[str]:
    """One row, as high as its highest cell."""
    height = max((len(cell) for cell in cells), default=1)
    return [
        " | ".join(
            _padded(cell[line] if line < len(cell) else "", width, to_right=is_numeric)
            for cell, width, is_numeric in zip(cells, widths, numeric, strict=True)
        ).rstrip()
        for line in range(height)
    ]


def _padded(text: str, width: int, *, to_right: bool) -> str:
    space = " " * (width - text_width(text))
    return space + text if to_right else text + space
