"""The formats of read output: table, kv, csv, jsonl and json.

Owns how rows are written for each. Knows rows as JSON has them, whoever sent them, and
writes piece by piece, so that only a table for people has to hold all of its text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

from omnigraph.cli.render.tables import MAX_WIDTH, MIN_WIDTH, CellLayout, render_table, text_width
from omnigraph.read.output.cells import is_number, printable
from omnigraph.wire.body import encode, pretty
from omnigraph.wire.results import ReadOutput

Format = Literal["table", "kv", "csv", "jsonl", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)
_NO_ROWS = "(no rows)"


@dataclass(frozen=True, slots=True)
class TableLayout:
    """How wide columns get, and what becomes of text that is wider."""

    max_width: int = MAX_WIDTH
    cells: CellLayout = "truncate"


_USUAL = TableLayout()


def render(output: ReadOutput, wanted: Format, layout: TableLayout = _USUAL) -> Iterator[str]:
    """The output in a format, as pieces of text without their final newline."""
    match wanted:
        case "table":
            return _table(output, layout)
        case "kv":
            return _kv(output)
        case "csv":
            return _csv(output)
        case "jsonl":
            return _jsonl(output)
        case "json":
            return _json(output)


def fitting(output: ReadOutput, layout: TableLayout, columns: int) -> TableLayout:
    """The layout with columns as narrow as they have to be for a terminal of a width."""
    widths = [text_width(printable(name)) for name in output.columns]
    for row in output.rows():
        cells = (_table_cell(row.get(name)) for name in output.columns)
        shown = ("null" if cell is None else printable(str(cell)) for cell in cells)
        widths = [max(width, text_width(text)) for width, text in zip(widths, shown, strict=True)]
    left = columns - len(" | ") * (len(widths) - 1)
    limit = layout.max_width
    # The narrow ones leave the others what they do not need.
    for rank, width in enumerate(sorted(widths)):
        share = left // (len(widths) - rank)
        if width > share:
            limit = min(limit, share)
            break
        left -= width
    return replace(layout, max_width=max(limit, MIN_WIDTH))


def _table(output: ReadOutput, layout: TableLayout) -> Iterator[str]:
    yield _heading(output)
    if not output.columns:
        yield _NO_ROWS
        return
    rows = [[_table_cell(row.get(name)) for name in output.columns] for row in output.rows()]
    yield render_table(
        output.columns, rows, max_width=layout.max_width, layout=layout.cells, none="null"
    )


def _kv(output: ReadOutput) -> Iterator[str]:
    yield _heading(output)
    if not output.row_count:
        yield _NO_ROWS
    for number, row in enumerate(output.rows(), start=1):
        first = f"row {number}" if number == 1 else f"\nrow {number}"
        lines = [f"{name}: {printable(_text(row.get(name)))}" for name in output.columns]
        yield "\n".join([first, *lines])


def _csv(output: ReadOutput) -> Iterator[str]:
    yield ",".join(map(_csv_field, output.columns))
    for page in output.pages():
        if page:
            yield "\n".join(
                ",".join([_csv_cell(row.get(name)) for name in output.columns]) for row in page
            )


def _jsonl(output: ReadOutput) -> Iterator[str]:
    for page in output.pages():
        if page:
            yield b"\n".join(map(encode, page)).decode()


def _json(output: ReadOutput) -> Iterator[str]:
    yield pretty(output.whole)


def _heading(output: ReadOutput) -> str:
    snapshot = output.snapshot
    place = f"branch {output.branch}" if snapshot is None else f"snapshot {snapshot}"
    rows = "1 row" if output.row_count == 1 else f"{output.row_count} rows"
    return f"{rows} from {place} via {output.query_name}"


# -- cells -------------------------------------------------------------------------


def _text(value: object) -> str:
    """A value as text: strings as they are, anything else as compact JSON."""
    if isinstance(value, str):
        return value
    return encode(value).decode()


def _table_cell(value: object) -> object:
    """Numbers stay numbers, to be aligned, and null stays null."""
    return value if value is None or is_number(value) else _text(value)


def _csv_cell(value: object) -> str:
    """A value as a load reads it back: nothing for null, a pair of quotes for an empty text."""
    if value is None:
        return ""
    return _csv_field(_text(value)) or '""'


def _csv_field(text: str) -> str:
    if any(character in text for character in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text
