"""`omnigraph export`: the entities of a branch or a commit, as NDJSON on stdout or in files.

Owns the options and the stream; what is written is the engine's.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.query_source import state_options, view_of
from omnigraph.cli.options.scope import CommandScope, target_of
from omnigraph.cli.options.shared import spark_options, spark_settings
from omnigraph.cli.options.words import uri_argument
from omnigraph.cli.render.output import diagnose, is_terminal, write_json, write_piece, write_text

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.read.output.export import ExportReport


@click.command("export", cls=VerbCommand)
@uri_argument
@state_options
@click.option(
    "--type", "types", metavar="T", multiple=True, help="Only this type; may be given repeatedly."
)
@click.option(
    "--out", metavar="PATH", help="Write a file, or a directory if it ends in / or holds Parquet."
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["jsonl", "parquet"]),
    default="jsonl",
    help="What to write; Parquet needs --out.",
)
@click.option(
    "--engine",
    type=click.Choice(["auto", "inline", "spark"]),
    default="auto",
    help="Where to export; auto takes Spark for directories and Parquet.",
)
@spark_options
@json_option
@click.option("--jsonl", "as_jsonl", is_flag=True, hidden=True)
@click.pass_obj
def command(
    scope: CommandScope,
    *,
    uri: str | None,
    branch: str | None,
    snapshot: str | None,
    types: tuple[str, ...],
    out: str | None,
    format_: str,
    engine: str,
    master: str | None,
    remote: str | None,
    conf: tuple[str, ...],
    as_json: bool,
    as_jsonl: bool,
) -> None:
    """Write the entities of a branch, or of a commit, to stdout, one JSON object per line.

    With --out they go to a file, or to a directory with one directory for each type.
    """
    if as_jsonl:
        diagnose("warning", "`--jsonl` is deprecated: NDJSON is what is written, leave it out")
    target = target_of(scope, uri)
    branch, snapshot = view_of(branch, snapshot)
    names_spark = engine == "auto" and (master is not None or remote is not None)
    if out is None:
        if as_json or format_ != "jsonl" or engine == "spark" or names_spark:
            raise click.UsageError("stdout gets NDJSON and nothing else: name a place with --out")
        with target.read() as graph:
            _stream(graph, branch, snapshot, types)
        return
    with target.read() as graph:
        report = graph.export(
            out,
            branch=branch,
            snapshot=snapshot,
            types=types,
            format=format_,
            engine="spark" if names_spark else engine,
            spark=spark_settings(master, remote, conf),
            progress=is_terminal(sys.stderr) and not as_json,
        )
    if as_json:
        from omnigraph.wire.results import ExportBody

        write_json(ExportBody.of(report, target.uri, branch, snapshot))
    else:
        where = f"on branch {branch}" if snapshot is None else f"at commit {snapshot}"
        write_text(_line(target.uri, where, report))


def _stream(graph: Graph, branch: str, snapshot: str | None, types: tuple[str, ...]) -> None:
    for chunk in graph.export(branch=branch, snapshot=snapshot, types=types).chunks():
        write_piece(chunk.data)


def _line(uri: str, where: str, report: ExportReport) -> str:
    types = f"{len(report.nodes)} node types and {len(report.edges)} edge types"
    return (
        f"exported {uri} {where} to {report.path}: "
        f"{report.total} entities across {types}, {report.bytes:,} bytes"
    )
