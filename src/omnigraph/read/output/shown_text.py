"""Results as people look at them: the first rows, as text, for rich and as HTML.

Owns how many rows are shown and how a value is written. Shows values as they are;
nothing in them is taken for markup.
"""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from omnigraph.display.markup import first_of, joined, paragraph, table
from omnigraph.read.output.cells import is_number, printable

if TYPE_CHECKING:
    from omnigraph.read.output.result import Result

MAX_ROWS = 20
MAX_TEXT = 200
WIDTH = 100


def text_of(result: Result) -> str:
    """A plain text table of the first rows."""
    out = StringIO()
    console = Console(file=out, width=WIDTH, color_system=None, force_terminal=False)
    console.print(rich_text(result))
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip().split("\n"))


def rich_text(result: Result) -> Group:
    """A table between two lines, for rich."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    rows = _first(result)
    for name in result.columns:
        is_numeric = any(is_number(row[name]) for row in rows)
        table.add_column(Text(_cell(name)), justify="right" if is_numeric else "left")
    for row in rows:
        table.add_row(*(Text(_cell(row[name])) for name in result.columns))
    return Group(Text(heading(result)), table, Text(left_out(result)))


def html_of(result: Result) -> str:
    """A table for a notebook."""
    rows = _first(result)
    numbers = [
        at for at, name in enumerate(result.columns) if any(is_number(row[name]) for row in rows)
    ]
    cells = ([_cell(row[name]) for name in result.columns] for row in rows)
    shown = table(result.columns, cells, numbers)
    return joined([paragraph(heading(result)), shown, first_of(len(result), "row", MAX_ROWS)])


def heading(result: Result) -> str:
    """What is shown, in one line."""
    count = len(result)
    return f"{count} {'row' if count == 1 else 'rows'} from {result.target} via {result.query_name}"


def left_out(result: Result) -> str:
    """What is not shown, in one line; empty when everything is."""
    more = len(result) - MAX_ROWS
    return f"… and {more} more {'row' if more == 1 else 'rows'}" if more > 0 else ""


def _first(result: Result) -> list[dict[str, Any]]:
    rows = next(result.pages(MAX_ROWS), [])
    ways = [field.name for field in result.table.schema if _holds_ways(field.type)]
    return [{**row, **{name: way_text(row[name]) for name in ways}} for row in rows]


def _holds_ways(type_: pa.DataType) -> bool:
    """Whether a column has ways: their nodes beside their edges."""
    if not pa.types.is_struct(type_) or [field.name for field in type_] != ["nodes", "edges"]:
        return False
    return all(
        pa.types.is_list(part.type)
        and pa.types.is_struct(part.type.value_type)
        and part.type.value_type.get_field_index("@id") >= 0
        for part in type_
    )


def way_text(way: dict[str, Any] | None) -> object:
    """A way as it is walked: `Ayr -[Road]-> Bute`."""
    if way is None:
        return None
    first, *others = way["nodes"]
    parts = [str(first["@id"])]
    for edge, here, there in zip(way["edges"], way["nodes"][:-1], others, strict=True):
        is_along = edge["from"] == here["@id"] and edge["to"] == there["@id"]
        arrow = f"-[{edge['@type']}]->" if is_along else f"<-[{edge['@type']}]-"
        parts += [arrow, str(there["@id"])]
    return " ".join(parts)


def _cell(value: object) -> str:
    text = printable(value if isinstance(value, str) else msgspec.json.encode(value).decode())
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
