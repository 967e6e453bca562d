"""`omnigraph infer`: propose a schema for CSV and Parquet files, and the commands that load them.

Owns the options and where the proposal goes; what is proposed is `omnigraph.inference`'s.
"""

from __future__ import annotations

from pathlib import Path

import click

from omnigraph.cli.command import VerbCommand
from omnigraph.cli.render.output import write_note, write_text
from omnigraph.errors import BadRequest


@click.command("infer", cls=VerbCommand)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o", "--out", metavar="FILE", type=click.Path(path_type=Path), help="Write the schema there."
)
@click.option("--null", metavar="TEXT", help="An unquoted value of CSV that is null, too.")
@click.option(
    "--delimiter", metavar="C", default=",", help="Between the values of CSV; a comma if not given."
)
def command(*, files: tuple[Path, ...], out: Path | None, null: str | None, delimiter: str) -> None:
    """Propose a schema for CSV and Parquet files, and how to load them.

    Every choice has its reason in a comment. The schema goes to stdout, or to a file; the commands
    that load the files go to stderr. Nothing is loaded.
    """
    from omnigraph.inference.proposal import infer

    separator = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
    found = infer(list(files), null=null, delimiter=separator)
    if out is None:
        write_text(found.schema.rstrip())
    else:
        try:
            with out.open("x", encoding="utf-8") as file:
                file.write(found.schema)
        except FileExistsError as error:
            raise BadRequest(f"{out} exists: give another name, or remove it first") from error
        write_text(f"wrote {out}")
    write_note("next:")
    for line in found.commands:
        write_note(f"  {line.replace('schema.pg', str(out)) if out is not None else line}")
