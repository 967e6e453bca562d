"""`omnigraph load`: entities from files, as one commit.

Owns where the data comes from and what is said about it; the formats, the modes and the
engines are the library's.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.scope import CommandScope, target_of, uri_argument
from omnigraph.cli.options.shared import (
    branch_option,
    engine_of,
    run_id_option,
    spark_options,
    spark_settings,
)
from omnigraph.cli.render.output import is_terminal, result_of, write_json, write_note, write_text

if TYPE_CHECKING:
    from omnigraph.write.change.results import LoadResult

_STDIN = "-"


@click.command("load", cls=VerbCommand)
@uri_argument
@click.option(
    "--data",
    metavar="PATH",
    required=True,
    multiple=True,
    help="A file, directory or glob; - reads NDJSON from stdin. May be repeated.",
)
@click.option(
    "--mode",
    type=click.Choice(["overwrite", "append", "merge"]),
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
    help="Where to load; auto takes Spark for large or many files, CSV and Parquet.",
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
    dry_run: bool,
    master: str | None,
    remote: str | None,
    conf: tuple[str, ...],
    as_json: bool,
) -> None:
    """Load entities from files, as one commit.

    --mode append refuses ids that exist, merge replaces those entities, and
    overwrite replaces everything of the types that the files have.
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
            dry_run=dry_run,
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


def _content(data: Sequence[str]) -> object:
    if _STDIN in data:
        if len(data) > 1:
            raise click.UsageError("--data - is all there is to load: name no other files")
        return sys.stdin.buffer
    paths = [one if "://" in one else Path(one) for one in data]
    return paths[0] if len(paths) == 1 else paths


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
    if result.rejects_file is not None:
        notes.append(f"the rows left out are listed in {result.rejects_file}")
    if result.work is not None:
        spent = ", ".join(f"{stage} {took:.1f} s" for stage, took in result.work.seconds.items())
        notes.append(f"{result.work.fragments} fragments, {result.work.bytes:,} bytes: {spent}")
    return notes
