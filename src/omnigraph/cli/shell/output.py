"""What the shell shows: rows that fit the terminal, a pager for many, and results as files.

Owns the choice between terminal and pager, and the format of a file by its name. The formats are
those of `query`.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from omnigraph.cli.render.formats import Format, TableLayout, fitting, render
from omnigraph.cli.render.output import is_terminal, write_data, write_text
from omnigraph.errors import BadRequest
from omnigraph.storage.objects.files import replaced_file
from omnigraph.wire.results import ReadOutput

if TYPE_CHECKING:
    from omnigraph.read.output.result import Result

SUFFIXES: dict[str, Format] = {".csv": "csv", ".jsonl": "jsonl", ".json": "json"}
PARQUET = ".parquet"


def show_result(result: Result, format_: Format, layout: TableLayout) -> None:
    """Print rows in a format; a table fits the terminal."""
    output = ReadOutput.of(result)
    if format_ == "table" and is_terminal(sys.stdout):
        layout = fitting(output, layout, shutil.get_terminal_size().columns)
    pieces = render(output, format_, layout)
    if is_terminal(sys.stdout):
        show_text("\n".join(pieces))
        return
    write = write_text if format_ in ("table", "kv") else write_data
    for piece in pieces:
        write(piece)


def show_text(text: str) -> None:
    """Print a text, in a pager if it is longer than the terminal."""
    size = shutil.get_terminal_size()
    if not is_terminal(sys.stdout) or text.count("\n") + 3 < size.lines:
        write_text(text)
        return
    # Unless somebody has said otherwise: keep colours, cut long lines, leave the text there.
    os.environ.setdefault("LESS", "-FRXS")
    click.echo_via_pager(f"{text}\n")


def save_result(result: Result, path: Path) -> None:
    """Write rows into a file, whole or not at all; its name says how."""
    format_, is_parquet = SUFFIXES.get(path.suffix), path.suffix == PARQUET
    if format_ is None and not is_parquet:
        known = ", ".join([*SUFFIXES, PARQUET])
        raise BadRequest(f"{path}: the end of the name says the format, one of {known}")
    try:
        with replaced_file(path) as file:
            if format_ is None:
                from pyarrow import parquet

                parquet.write_table(result.to_arrow(), file)
            else:
                file.writelines(_lines(render(ReadOutput.of(result), format_)))
    except OSError as error:
        raise BadRequest(f"cannot write {path}: {error.strerror or error}") from error


def _lines(pieces: Iterable[str]) -> Iterable[bytes]:
    return (f"{piece}\n".encode() for piece in pieces)
