"""Results as people look at them: the first rows, as text, for rich and as HTML.

Owns how many rows are shown and how a value is written. Shows values as they are;
nothing in them is taken for markup.
"""

from __future__ import annotations

from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

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
    names = "".join(f"<th>{escape(name)}</th>" for name in result.columns)
    rows = "".join(
        "<tr>" + "".join(_html_cell(row[name]) for name in result.columns) + "</tr>"
        for row in _first(result)
    )
    more = f"<p>{escape(left_out(result))}</p>" if left_out(result) else ""
    return (
        f"<p>{escape(heading(result))}</p>"
        f"<table><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table>{more}"
    )


def heading(result: Result) -> str:
    """What is shown, in one line."""
    count = len(result)
    return f"{count} {'row' if count == 1 else 'rows'} from {result.target} via {result.query_name}"


def left_out(result: Result) -> str:
    """What is not shown, in one line; empty when everything is."""
    more = len(result) - MAX_ROWS
    return f"… and {more} more {'row' if more == 1 else 'rows'}" if more > 0 else ""


def _first(result: Result) -> list[dict[str, Any]]:
    return next(result.pages(MAX_ROWS), [])


def _cell(value: object) -> str:
    text = printable(value if isinstance(value, str) else msgspec.json.encode(value).decode())
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def _html_cell(value: object) -> str:
    align = ' style="text-align: right"' if is_number(value) else ""
    return f"<td{align}>{escape(_cell(value))}</td>"
