"""The formats of read output: table, kv, csv, jsonl and json.

Owns how rows are written for each. Knows rows as JSON has them, whoever sent them, and
writes piece by piece, so that only a table for people has to hold all of its text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from omnigraph.cli.render.bodies import read_body
from omnigraph.cli.render.tables import printable, render_table

if TYPE_CHECKING:
    from omnigraph.read.output.result import Result

Format = Literal["table", "kv", "csv", "jsonl", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)

Row = Mapping[str, Any]
_NO_ROWS = "(no rows)"


@dataclass(frozen=True)
class ReadOutput:
    """What a read returned, in pages of rows, each of which can be had again."""

    query_name: str
    branch: str | None
    snapshot: str | None
    row_count: int
    columns: Sequence[str]
    pages: Callable[[], Iterable[Sequence[Row]]]
    commit_id: str | None = None

    @classmethod
    def of(cls, result: Result) -> ReadOutput:
        """The output of a query that ran here."""
        return cls(
            result.query_name,
            result.branch,
            result.snapshot,
            len(result),
            result.columns,
            result.pages,
            result.commit_id,
        )

    @classmethod
    def of_body(cls, body: Mapping[str, Any]) -> ReadOutput:
        """The output as a server sends it; without `columns` the names of the rows, sorted."""
        rows: Sequence[Row] = body["rows"]
        columns = body.get("columns") or sorted({name for row in rows for name in row})
        target = body["target"]
        return cls(
            body["query_name"],
            target["branch"],
            target["snapshot"],
            body["row_count"],
            columns,
            lambda: [rows],
            body.get("graph_commit_id"),
        )

    @cached_property
    def target(self) -> dict[str, str | None]:
        """The branch or the snapshot."""
        return {"branch": self.branch, "snapshot": self.snapshot}

    @cached_property
    def heading(self) -> str:
        """What was read, for people."""
        place = f"branch {self.branch}" if self.snapshot is None else f"snapshot {self.snapshot}"
        return f"{self.row_count} rows from {place} via {self.query_name}"

    def rows(self) -> Iterator[Row]:
        """All rows."""
        return (row for page in self.pages() for row in page)


def render(output: ReadOutput, wanted: Format) -> Iterator[str]:
    """The output in a format, as pieces of text without their final newline."""
    match wanted:
        case "table":
            return _table(output)
        case "kv":
            return _kv(output)
        case "csv":
            return _csv(output)
        case "jsonl":
            return _jsonl(output)
        case "json":
            return _json(output)


def _table(output: ReadOutput) -> Iterator[str]:
    yield output.heading
    if not output.columns:
        yield _NO_ROWS
        return
    rows = [[_table_cell(row.get(name)) for name in output.columns] for row in output.rows()]
    yield render_table(output.columns, rows, none="null")


def _kv(output: ReadOutput) -> Iterator[str]:
    yield output.heading
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
                ",".join([_csv_field(_text(row.get(name))) for name in output.columns])
                for row in page
            )


def _jsonl(output: ReadOutput) -> Iterator[str]:
    encode = msgspec.json.Encoder().encode
    yield encode(
        {
            "kind": "metadata",
            "query_name": output.query_name,
            "target": output.target,
            "row_count": output.row_count,
        }
    ).decode()
    for page in output.pages():
        if page:
            yield b"\n".join(map(encode, page)).decode()


def _json(output: ReadOutput) -> Iterator[str]:
    encoded = msgspec.json.encode(read_body(output))
    yield msgspec.json.format(encoded, indent=2).decode()


# -- cells -------------------------------------------------------------------------


def _text(value: object) -> str:
    """A value as text: strings as they are, anything else as compact JSON."""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def _table_cell(value: object) -> object:
    """Numbers stay numbers, to be aligned, and null stays null."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    return _text(value)


def _csv_field(text: str) -> str:
    if any(character in text for character in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text
