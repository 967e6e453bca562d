"""`omnigraph fmt`: the canonical layout for schema and query files.

Owns which files are rewritten and what is said about them. The layout itself
lives in `omnigraph.lang`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from omnigraph.cli.command import VerbCommand
from omnigraph.cli.options.query_source import read_source, replace_text
from omnigraph.cli.render.output import diagnose, write_note, write_text
from omnigraph.errors import BadRequest, LanguageError
from omnigraph.lang.query.format import format_queries
from omnigraph.lang.schema.syntax.format import format_schema
from omnigraph.lang.source import Source

_FORMATTERS: dict[str, Callable[[Source], str]] = {".pg": format_schema, ".gq": format_queries}


@click.command("fmt", cls=VerbCommand)
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if a file would change.")
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
def command(*, check: bool, files: tuple[Path, ...]) -> int:
    """Rewrite .pg and .gq files in the canonical layout.

    Comments are kept. A file that does not parse is reported and left alone.
    """
    changed = failed = 0
    for path in files:
        try:
            changed += _format_file(path, check=check)
        except LanguageError as error:
            write_note(error.report)
            failed += 1
        except BadRequest as error:
            diagnose("error", str(error))
            failed += 1
    return 1 if failed or (check and changed) else 0


def _format_file(path: Path, *, check: bool) -> bool:
    """Whether the file was, or under ``check`` would be, changed."""
    formatter = _FORMATTERS.get(path.suffix)
    if formatter is None:
        raise BadRequest(f"{path}: only .pg and .gq files can be formatted")
    source = read_source(path)
    formatted = formatter(source)
    if formatted == source.text:
        return False
    if check:
        write_text(f"would reformat {path}")
    else:
        replace_text(path, formatted)
        write_text(f"reformatted {path}")
    return True
