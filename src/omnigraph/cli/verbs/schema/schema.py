"""`omnigraph schema`: the schema of a branch, and changing it.

Owns the options and which exit code is whose. What a change takes, and whether it can be made,
is the engine's to say.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from omnigraph.cli.command import VerbCommand, VerbGroup, json_option
from omnigraph.cli.options.completed import refs
from omnigraph.cli.options.project_schema import schema_of
from omnigraph.cli.options.query_source import read_source
from omnigraph.cli.options.scope import CommandScope, target_of
from omnigraph.cli.options.shared import (
    BranchOption,
    branch_option,
    engine_of,
    if_commit_option,
    message_option,
    run_id_option,
    spark_options,
    spark_settings,
    together,
)
from omnigraph.cli.options.words import uri_argument, word
from omnigraph.cli.render.output import (
    DONE_BEFORE,
    author_lines,
    diagnose,
    is_terminal,
    result_of,
    write_json,
    write_text,
)
from omnigraph.cli.render.plans import log_text, plan_text

if TYPE_CHECKING:
    from omnigraph.evolve.apply import SchemaResult

_FILE = click.Path(path_type=Path)

_change_options = together(
    branch_option,
    click.option(
        "--allow-data-loss",
        is_flag=True,
        help="Drop for good: cleanup takes it from older commits, too.",
    ),
    click.option(
        "--queries",
        type=_FILE,
        multiple=True,
        help="A .gq file that must go on compiling; may be given repeatedly.",
    ),
)


@click.group("schema", cls=VerbGroup, aliases={"get": "show"})
def command() -> None:
    """Look at the schema of a branch, and change it."""


@command.command("show", cls=VerbCommand)
@uri_argument
@click.option(
    "--branch",
    metavar="B",
    cls=BranchOption,
    help="The branch; main if not given, and nothing else is configured.",
)
@click.option("--commit", metavar="ID", help="A commit: the schema that it was made with.")
@json_option
@click.pass_obj
def show_schema(
    scope: CommandScope, *, uri: str | None, branch: str | None, commit: str | None, as_json: bool
) -> None:
    """Print the schema as it was accepted, comments included."""
    if branch is not None and commit is not None:
        raise click.UsageError("give --branch B or --commit ID, not both")
    if commit is not None and not commit.strip():
        # A script whose variable is unset means something else.
        raise click.UsageError("the commit id of --commit is empty")
    target = target_of(scope, uri)
    with target.read() as graph:
        at = None if commit is None else commit.strip()
        if not target.is_served:
            source = graph.snapshot("main" if branch is None else branch, commit=at).schema.source
        elif at is None and branch in (None, "main"):
            source = graph.schema
        else:
            source = graph.schema_at(at or branch or "main")
    if as_json:
        from omnigraph.wire.schemas import SchemaBody

        write_json(SchemaBody(source))
    else:
        write_text(source.removesuffix("\n"))


@command.command("plan", cls=VerbCommand)
@uri_argument
@click.option(
    "--schema", type=_FILE, help="The new schema, a .pg file; that of the project if not given."
)
@_change_options
@click.option("--check", is_flag=True, help="Try what depends on the rows on the rows.")
@click.option("--exit-code", is_flag=True, help="Exit with 1 if it cannot be applied.")
@json_option
@click.pass_obj
def plan_schema(
    scope: CommandScope,
    *,
    uri: str | None,
    schema: Path | None,
    branch: str,
    allow_data_loss: bool,
    queries: Sequence[Path],
    check: bool,
    exit_code: bool,
    as_json: bool,
) -> int:
    """Show what it takes to give a branch another schema, and change nothing."""
    target = target_of(scope, uri)
    path = schema_of(scope, target, schema)
    source, texts = read_source(path), _texts(queries)
    with target.read() as graph:
        plan = graph.plan_schema(
            source,
            branch=branch,
            allow_data_loss=allow_data_loss,
            check=check,
            queries=texts,
        )
    if as_json:
        from omnigraph.wire.schemas import SchemaPlanBody

        write_json(SchemaPlanBody.of(plan, target.uri, branch.strip()))
    else:
        write_text(plan_text(plan))
    return 1 if exit_code and not plan.supported else 0


@command.command("apply", cls=VerbCommand)
@uri_argument
@click.option("--schema", type=_FILE, required=True, help="The new schema, a .pg file.")
@_change_options
@click.option("--force-queries", is_flag=True, help="Apply it although it breaks such queries.")
@if_commit_option
@run_id_option
@message_option
@click.option(
    "--engine",
    type=click.Choice(["auto", "inline", "spark"]),
    default="auto",
    help="Where columns are written; auto takes Spark for tables of many millions of rows.",
)
@spark_options
@json_option
@click.pass_obj
def apply_schema(
    scope: CommandScope,
    *,
    uri: str | None,
    schema: Path,
    branch: str,
    allow_data_loss: bool,
    queries: Sequence[Path],
    force_queries: bool,
    if_commit: str | None,
    run_id: str | None,
    message: str | None,
    engine: str,
    master: str | None,
    remote: str | None,
    conf: tuple[str, ...],
    as_json: bool,
) -> None:
    """Give a branch another schema, as one commit, or say all that stands against it."""
    target = target_of(scope, uri)
    if not target.is_served:
        from omnigraph.cli.options.cluster import refuse_in_cluster

        refuse_in_cluster(target.uri, "change its .pg file, and run `omnigraph cluster apply`")
    source, texts = read_source(schema), _texts(queries)
    with target.write("schema apply", scope) as graph:
        result = graph.apply_schema(
            source,
            branch=branch,
            allow_data_loss=allow_data_loss,
            queries=texts,
            force_queries=force_queries,
            if_commit=if_commit,
            run_id=run_id,
            message=message,
            engine=engine_of(engine, master, remote),
            spark=spark_settings(master, remote, conf),
            progress=is_terminal(sys.stderr) and not as_json,
        )
    with result_of(None if result.commit is None else result.commit.id):
        if as_json:
            from omnigraph.wire.schemas import SchemaAppliedBody

            write_json(SchemaAppliedBody.of(result, target.uri, scope.actor))
        else:
            write_text("\n".join(_applied_lines(result, scope.actor)))
            if result.repeats_run:
                diagnose("note", DONE_BEFORE)


@command.command("diff", cls=VerbCommand)
@uri_argument
@word("before", metavar="A", shell_complete=refs)
@word("after", metavar="B", shell_complete=refs)
@json_option
@click.pass_obj
def diff_schemas(
    scope: CommandScope, *, before: str, after: str, uri: str | None, as_json: bool
) -> None:
    """Show what leads from the schema of A to that of B.

    A and B are names of branches or ids of commits.
    """
    target = target_of(scope, uri)
    with target.read() as graph:
        plan = graph.schema_diff(before, after)
    if as_json:
        from omnigraph.wire.schemas import SchemaDiffBody

        write_json(SchemaDiffBody.of(plan, target.uri, before.strip(), after.strip()))
    else:
        write_text(plan_text(plan))


@command.command("log", cls=VerbCommand)
@uri_argument
@branch_option
@json_option
@click.pass_obj
def log_schema(scope: CommandScope, *, uri: str | None, branch: str, as_json: bool) -> None:
    """List the commits that changed the schema, newest first, with their steps."""
    target = target_of(scope, uri)
    with target.read() as graph:
        log = graph.schema_log(branch)
    if as_json:
        from omnigraph.wire.schemas import SchemaLogBody

        write_json(SchemaLogBody.of(log, target.uri, branch.strip()))
    else:
        write_text(log_text(log))


def _texts(paths: Sequence[Path]) -> Mapping[str, str]:
    """The texts of query files, by their paths."""
    return {source.name: source.text for source in map(read_source, paths)}


def _applied_lines(result: SchemaResult, actor: str | None) -> list[str]:
    if not result.applied:
        return [repr(result)]
    done = f"changed the schema of {result.branch}"
    return [done, plan_text(result.plan), *author_lines(actor, result.commit)]
