"""`omnigraph pipeline`: declared pipelines, run or only looked at.

Owns which graph is meant and what is said; the document and the load are the library's.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from omnigraph.cli.command import VerbCommand, VerbGroup, json_option
from omnigraph.cli.options.scope import CommandScope, Target, target_of
from omnigraph.cli.options.shared import spark_options, spark_settings
from omnigraph.cli.options.words import uri_argument, word
from omnigraph.cli.render.output import is_terminal, result_of, write_json, write_note, write_text
from omnigraph.cli.verbs.data.load import load_line, load_notes
from omnigraph.errors import BadRequest

if TYPE_CHECKING:
    from omnigraph.pipeline.declared.run import Pipeline

EXIT_INVALID = 1


@click.group("pipeline", cls=VerbGroup)
def command() -> None:
    """Load foreign tables as a document maps them onto types."""


@command.command("run", cls=VerbCommand)
@uri_argument
@word("file", metavar="FILE")
@click.option("--dry-run", is_flag=True, help="Check everything, publish nothing.")
@spark_options
@json_option
@click.pass_obj
def run(
    scope: CommandScope,
    *,
    uri: str | None,
    file: str,
    dry_run: bool,
    master: str | None,
    remote: str | None,
    conf: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run a pipeline: all that it maps is loaded as one commit.

    A document with steps makes one commit for each, in their order. A step
    whose checks find rows is not published, and ends the run.

    FILE is a YAML document. The graph is the one it names, unless the command
    line names another.
    """
    from omnigraph.pipeline.declared.run import Pipeline

    pipeline = Pipeline.of(file)
    target = _target(scope, uri, pipeline)
    document = pipeline.document
    overwrites = any(part.options.mode == "overwrite" for part in document.parts)
    if overwrites and not dry_run:
        deed = f"overwriting types of branch {document.branch}"
        target.require_consent(deed, scope, as_json=as_json)
    with target.write("pipeline run", scope) as graph:
        result = graph.run_pipeline(
            pipeline,
            dry_run=dry_run,
            spark=spark_settings(master, remote, conf),
            progress=is_terminal(sys.stderr) and not as_json,
        )
    with result_of(None if result.published is None else result.published.id):
        if as_json:
            from omnigraph.wire.pipelines import PipelineBody

            write_json(PipelineBody.of_steps(result, target.uri, file))
            return
        for step in result.steps:
            said = "" if step.name is None else f"{step.name}: "
            write_text(said + load_line(target.uri, step.load))
    for step in () if scope.quiet else result.steps:
        for line in load_notes(step.load):
            write_note(line)
        if step.checks:
            write_note(f"{len(step.checks)} checks found nothing: {', '.join(step.checks)}")


@command.command("validate", cls=VerbCommand)
@uri_argument
@word("file", metavar="FILE")
@spark_options
@json_option
@click.pass_obj
def validate(
    scope: CommandScope,
    *,
    uri: str | None,
    file: str,
    master: str | None,
    remote: str | None,
    conf: tuple[str, ...],
    as_json: bool,
) -> int | None:
    """Check a pipeline against its graph and its sources; no rows are read.

    Exits 1 when something is wrong, and tells all of it.
    """
    from omnigraph.pipeline.declared.run import Pipeline

    pipeline = Pipeline.of(file)
    target = _target(scope, uri, pipeline)
    problems = []
    try:
        with target.read() as graph:
            graph.validate_pipeline(pipeline, spark=spark_settings(master, remote, conf))
    except BadRequest as error:
        if not as_json or "problems" not in error.details:
            raise
        problems = error.details["problems"]
    if as_json:
        from omnigraph.wire.reports import PipelineCheckBody

        write_json(PipelineCheckBody.of(target.uri, file, problems))
        return EXIT_INVALID if problems else None
    document = pipeline.document
    parts = document.parts
    types = {(mapped.kind, mapped.type_name) for part in parts for mapped in part.mapped}
    sources = sum(len(part.sources) for part in parts)
    write_text(f"{file} is valid: {sources} sources, {len(types)} types")
    return None


def _target(scope: CommandScope, uri: str | None, pipeline: Pipeline) -> Target:
    """The graph that the command line names, else the document."""
    is_named = any(one is not None for one in (uri, scope.location, scope.store))
    if is_named or pipeline.document.graph is None:
        return target_of(scope, uri)
    return target_of(scope, pipeline.document.graph)
