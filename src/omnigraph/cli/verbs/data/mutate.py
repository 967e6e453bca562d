"""`omnigraph mutate`: run a query that changes a graph, as one commit.

Owns where the query and its parameters come from; what they do is the engine's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.asked_query import AskedQuery, source_options
from omnigraph.cli.options.query_source import max_bytes_option
from omnigraph.cli.options.scope import CommandScope
from omnigraph.cli.options.shared import (
    branch_option,
    if_commit_option,
    message_option,
    run_id_option,
)
from omnigraph.cli.render.output import (
    DONE_BEFORE,
    author_lines,
    diagnose,
    result_of,
    write_json,
    write_note,
    write_text,
)
from omnigraph.cli.render.tables import render_table, value_text

if TYPE_CHECKING:
    from omnigraph.write.change.results import MutationResult


@click.command("mutate", cls=VerbCommand)
@source_options
@branch_option
@if_commit_option
@run_id_option
@message_option
@max_bytes_option
@json_option
@click.pass_obj
def command(
    scope: CommandScope,
    *,
    asked: AskedQuery,
    branch: str,
    if_commit: str | None,
    run_id: str | None,
    message: str | None,
    max_bytes: int | None,
    as_json: bool,
) -> None:
    """Run a query that changes a graph, as one commit.

    The words are a LOCATION (a path, a URI or a graph of the project; the default graph without
    one), the NAME of a query, and its parameters. NAME chooses one of several queries, is stored
    with the graph, or is an alias.
    """
    target, given = asked.target, click.get_current_context().get_parameter_source("branch")
    branch = asked.branch(scope, None if given is ParameterSource.DEFAULT else branch)
    if target.is_served and asked.source is None:
        if max_bytes is not None:
            raise click.UsageError("the server sets the bound of memory: leave --max-bytes out")
        if message is not None:
            raise click.UsageError("a commit made over HTTP has no message: leave -m out")
        if target.graph is not None and not scope.quiet:
            write_note(f"omnigraph mutate → {target.shown} (served)")
        result = target.served().invoke_mutation(
            asked.name or "", asked.params, branch=branch, if_commit=if_commit, run_id=run_id
        )
    else:
        source = asked.written()
        # Unlike the other commands that write, this one names its target only if a file did.
        quiet = scope.quiet or target.graph is None
        with target.write("mutate", replace(scope, quiet=quiet)) as graph:
            result = graph.mutate(
                *source,
                branch=branch,
                if_commit=if_commit,
                run_id=run_id,
                max_bytes=max_bytes,
                message=message,
            )
    with result_of(None if result.commit is None else result.commit.id):
        if as_json:
            from omnigraph.wire.results import MutationBody

            write_json(MutationBody.of(result))
        else:
            write_text("\n".join(result_lines(result)))
            for warning in result.warnings:
                diagnose("warning", str(warning))
            if result.repeats_run:
                diagnose("note", DONE_BEFORE)


def result_lines(result: MutationResult) -> list[str]:
    """What a change is said to have done."""
    counts = f"{result.affected_nodes} nodes, {result.affected_edges} edges"
    lines = [f"changed {result.branch} via {result.query_name}: {counts}"]
    lines += author_lines(result.actor, result.commit)
    if result.rows:
        columns = list(result.rows[0])
        cells = [[_cell(row[name]) for name in columns] for row in result.rows]
        lines.append(render_table(columns, cells))
    return lines


def _cell(value: object) -> object:
    """A value of a returned row as a cell of a table."""
    return value_text(value) if isinstance(value, dict | list | bool) else value
