"""`omnigraph load`: entities from files, as one commit.

Owns where the data comes from and what is said about it; the formats, the modes and the
engines are the library's.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.scope import CommandScope, target_of
from omnigraph.cli.options.shared import (
    branch_option,
    engine_of,
    message_option,
    run_id_option,
    spark_options,
    spark_settings,
    together,
)
from omnigraph.cli.options.words import uri_argument
from omnigraph.cli.render.output import is_terminal, result_of, write_json, write_note, write_text

if TYPE_CHECKING:
    from omnigraph.write.change.results import LoadResult
    from omnigraph.write.load.csv_options import CsvOptions

_STDIN = "-"
_TYPED = re.compile(r"(?P<type>((node|edge):)?[A-Za-z_]\w*)=(?P<path>.+)")
csv_options = together(
    click.option("--null", metavar="TEXT", help="An unquoted value of CSV that is null, too."),
    click.option(
        "--delimiter", metavar="C", help="Between the values of CSV; a comma if not given."
    ),
    click.option("--quote", metavar="C", help='Around values of CSV; " if not given.'),
    click.option("--columns", metavar="A,B,…", help="The columns of CSV, whatever its first line."),
    click.option(
        "--rename",
        metavar="[TYPE.]OLD=NEW",
        multiple=True,
        help="What a column of CSV stands for; may be given several times.",
    ),
    click.option("--no-header", is_flag=True, help="The first line of CSV is a row, too."),
    click.option(
        "--ignore-extra",
        is_flag=True,
        help="Leave out columns of CSV and Parquet that are no property of their type.",
    ),
    click.option("--encoding", metavar="NAME", help="Of CSV, like latin-1 or cp1252."),
)


def csv_of(
    null: str | None,
    delimiter: str | None,
    quote: str | None,
    columns: str | None,
    encoding: str | None,
    *,
    rename: Sequence[str] = (),
    ignore_extra: bool = False,
    has_header: bool,
) -> CsvOptions | None:
    """What options say about CSV; None if they say nothing."""
    named = {
        "null": null,
        "delimiter": {"\\t": "\t", "tab": "\t"}.get(delimiter or "", delimiter),
        "quote": quote,
        "columns": None if columns is None else [one.strip() for one in columns.split(",")],
        "encoding": encoding,
    }
    given: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    if rename:
        pairs = [one.partition("=") for one in rename]
        if not all(old and sign and new for old, sign, new in pairs):
            raise click.UsageError("--rename says what a column stands for: OLD=NEW")
        given["rename"] = {old: new for old, _, new in pairs}
    if ignore_extra:
        given["ignore_extra"] = True
    if not given and has_header:
        return None
    from omnigraph.write.load.csv_options import CsvOptions

    return CsvOptions(**given, header=has_header)


@click.command("load", cls=VerbCommand)
@uri_argument
@click.option(
    "--data",
    metavar="[TYPE=]PATH",
    required=True,
    multiple=True,
    help="A file, directory or glob, of one type if that is named; - is NDJSON from stdin.",
)
@click.option(
    "--mode",
    type=click.Choice(["overwrite", "append", "merge", "patch"]),
    required=True,
    help="What becomes of entities that are there already.",
)
@branch_option
@click.option(
    "--from", "from_branch", metavar="BASE", help="Fork the branch from this one if it is missing."
)
@click.option(
    "--engine",
    type=click.Choice(["auto", "inline", "spark"]),
    default="auto",
    help="Where to load; auto takes Spark for more than 512 MiB of files.",
)
@click.option(
    "--on-error",
    type=click.Choice(["fail", "skip"]),
    default="fail",
    help="What to do about rows that are wrong; fail loads nothing.",
)
@click.option("--rejects", metavar="DIR", help="List the rows that were left out there.")
@click.option(
    "--max-rejects",
    metavar="N",
    type=click.IntRange(min=0),
    help="With --on-error skip: fail if more than so many rows are wrong.",
)
@run_id_option
@message_option
@csv_options
@click.option(
    "--order-by",
    metavar="keys|TYPE=A,B",
    multiple=True,
    help="Write rows in the order of their keys, or of these properties.",
)
@click.option("--report", metavar="FILE", help="Write a page (HTML) about the load there.")
@click.option("--dry-run", is_flag=True, help="Check everything, publish nothing.")
@spark_options
@json_option
@click.pass_obj
def command(
    scope: CommandScope,
    *,
    uri: str | None,
    data: tuple[str, ...],
    mode: str,
    branch: str,
    from_branch: str | None,
    engine: str,
    on_error: str,
    rejects: str | None,
    max_rejects: int | None,
    run_id: str | None,
    message: str | None,
    null: str | None,
    delimiter: str | None,
    quote: str | None,
    columns: str | None,
    no_header: bool,
    encoding: str | None,
    rename: tuple[str, ...],
    ignore_extra: bool,
    order_by: tuple[str, ...],
    report: str | None,
    dry_run: bool,
    master: str | None,
    remote: str | None,
    conf: tuple[str, ...],
    as_json: bool,
) -> None:
    """Load entities from files, as one commit.

    --mode append refuses ids that exist, merge replaces those entities, patch changes
    only what the files mention of them, and overwrite replaces everything of the types
    that the files have.
    """
    target = target_of(scope, uri)
    if mode == "overwrite" and not dry_run:
        target.require_consent(f"overwriting types of branch {branch}", scope, as_json=as_json)
    with target.write("load", scope) as graph:
        result = graph.load(
            _content(data),
            mode=mode,
            branch=branch,
            from_branch=from_branch,
            engine=engine_of(engine, master, remote),
            on_error=on_error,
            rejects=rejects,
            max_rejects=max_rejects,
            run_id=run_id,
            message=message,
            dry_run=dry_run,
            csv=csv_of(
                null,
                delimiter,
                quote,
                columns,
                encoding,
                rename=rename,
                ignore_extra=ignore_extra,
                has_header=not no_header,
            ),
            report=report,
            order_by=_order(order_by),
            spark=spark_settings(master, remote, conf),
            progress=is_terminal(sys.stderr) and not as_json,
        )
    with result_of(None if result.published is None else result.published.id):
        if as_json:
            from omnigraph.wire.results import LoadBody

            write_json(LoadBody.of(result, uri=target.uri))
        else:
            write_text(load_line(target.uri, result))
            for line in () if scope.quiet else load_notes(result):
                write_note(line)


def _order(given: Sequence[str]) -> bool | dict[str, list[str]] | None:
    if not given:
        return None
    if "keys" in given:
        if len(given) > 1:
            raise click.UsageError("--order-by keys is about all types: name no others")
        return True
    found = {}
    for text in given:
        name, separator, columns = text.partition("=")
        if not separator or name in found:
            raise click.UsageError(f"--order-by takes keys, or TYPE=A,B once a type: {text!r}")
        found[name] = [one.strip() for one in columns.split(",")]
    return found


def _content(data: Sequence[str]) -> object:
    if _STDIN in data:
        if len(data) > 1:
            raise click.UsageError("--data - is all there is to load: name no other files")
        return sys.stdin.buffer
    named = [_TYPED.fullmatch(one) for one in data]
    if all(one is None or Path(one.string).exists() for one in named):
        paths = [_path(one) for one in data]
        return paths[0] if len(paths) == 1 else paths
    by_type: dict[str, list[str | Path]] = {}
    for text, one in zip(data, named, strict=True):
        if one is None:
            raise click.UsageError(f"--data {text} names no type, but others do: name all of them")
        by_type.setdefault(one["type"], []).append(_path(one["path"]))
    return by_type


def _path(text: str) -> str | Path:
    return text if "://" in text else Path(text)


def load_line(uri: str, result: LoadResult) -> str:
    """What is said about a load, in one line."""
    if result.repeats_run:
        return f"nothing to do: this run was loaded before, as commit {result.commit.id}"
    types = f"{len(result.nodes)} node types and {len(result.edges)} edge types"
    done = "would load" if result.is_dry_run else "loaded"
    said = (
        f"{done} {uri} on branch {result.branch} with {result.mode}: "
        f"{result.total} entities across {types}"
    )
    if not result.rejected:
        return said
    codes = ", ".join(f"{count} {code}" for code, count in result.rejects.items())
    return f"{said}; {result.rejected} rows left out ({codes})"


def load_notes(result: LoadResult) -> list[str]:
    """What else a person may want to know about a load."""
    notes = []
    if result.is_dry_run:
        notes += [f"{key}: {changes}" for key, changes in result.changes.items()]
    if result.rejects_file is not None:
        notes.append(f"the rows left out are listed in {result.rejects_file}")
    if result.work is not None:
        spent = ", ".join(f"{stage} {took:.1f} s" for stage, took in result.work.seconds.items())
        notes.append(f"{result.work.fragments} fragments, {result.work.bytes:,} bytes: {spent}")
    return notes
