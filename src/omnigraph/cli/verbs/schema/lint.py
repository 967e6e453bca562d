"""`omnigraph lint`: check a schema, and queries against it or against a graph.

Owns how a lint report is shown. The rules live in `omnigraph.lang`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.configured import project_file
from omnigraph.cli.options.project_queries import query_path, query_sources
from omnigraph.cli.options.project_schema import default_graph_with_schema
from omnigraph.cli.options.query_source import read_source, state_options, view_of
from omnigraph.cli.options.scope import CommandScope, target_of
from omnigraph.cli.options.words import uri_argument
from omnigraph.cli.render.output import write_json, write_text
from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.lint_report import LintReport
from omnigraph.lang.query.lint import lint_queries
from omnigraph.lang.schema.compile import lint_schema
from omnigraph.lang.source import Source
from omnigraph.wire.reports import LintBody, SchemaSourceBody

_FILE = click.Path(path_type=Path)


@click.command("lint", cls=VerbCommand)
@uri_argument
@click.option("--schema", type=_FILE, help="The schema, a .pg file; no graph is opened then.")
@click.option("--query", type=_FILE, help="The queries, a .gq file.")
@state_options
@json_option
@click.pass_obj
def command(
    scope: CommandScope,
    *,
    uri: str | None,
    schema: Path | None,
    query: Path | None,
    branch: str | None,
    snapshot: str | None,
    as_json: bool,
) -> int:
    """Check a schema, and queries against it, without running them.

    Prints every mistake with its place. Exits with 1 if there is one. Without
    --schema the queries are checked against the schema that the project names, with the stored
    queries of the project if none are given; else against that of a graph: of a branch, or the
    one that a commit was made with.
    """
    is_of_state = snapshot is not None or _is_given("branch")
    if schema is not None and is_of_state:
        raise click.UsageError("--schema is a file: leave out --branch and --snapshot")
    meant = None if uri is not None or is_of_state else default_graph_with_schema(scope)
    if schema is not None:
        schema_source = SchemaSourceBody("file", path=str(schema))
        report = _lint_files(schema, _sources(scope, query))
    elif meant is not None:
        project, of_project, path = meant
        schema_source = SchemaSourceBody("file", path=str(path))
        given = _sources(scope, query)
        report = _lint_files(path, given or query_sources(project, of_project))
    elif query is not None:
        target = target_of(scope, uri)
        schema_source = SchemaSourceBody("graph", uri=target.uri)
        (source,) = _sources(scope, query)
        with target.read() as graph:
            shown, commit = view_of(branch, snapshot)
            report = graph.lint(source, branch=shown, snapshot=commit)
    else:
        raise click.UsageError("nothing to check: give --schema FILE, --query FILE or both")
    if as_json:
        query_path = str(query) if query is not None else None
        write_json(LintBody.of(report, schema_source, query_path))
    else:
        write_text("\n".join(_lines(report)))
    return 0 if report.ok else 1


def _is_given(option: str) -> bool:
    """Whether an option stands on the command line."""
    source = click.get_current_context().get_parameter_source(option)
    return source is ParameterSource.COMMANDLINE


def _sources(scope: CommandScope, query: Path | None) -> list[Source]:
    return [] if query is None else [read_source(query_path(query, project_file(scope)))]


def _lint_files(schema: Path, queries: Sequence[Source]) -> LintReport:
    catalog, report = lint_schema(read_source(schema))
    if catalog is None or not queries:
        return report
    found = [lint_queries(source, catalog) for source in queries]
    return found[0] if len(found) == 1 else _united(found)


def _united(reports: Sequence[LintReport]) -> LintReport:
    """The reports on several files as one."""
    return LintReport(
        results=tuple(one for report in reports for one in report.results),
        findings=tuple(one for report in reports for one in report.findings),
        diagnostics=tuple(one for report in reports for one in report.diagnostics),
    )


def _lines(report: LintReport) -> Iterator[str]:
    in_results = {found for result in report.results for found in result.diagnostics}
    for diagnostic in report.diagnostics:
        if diagnostic not in in_results:
            yield from _error(diagnostic.summary, diagnostic)
    for result in report.results:
        if not result.diagnostics:
            yield f"OK    query `{result.name}` ({result.kind})"
        for diagnostic in result.diagnostics:
            yield from _error(f"query `{result.name}`: {diagnostic.summary}", diagnostic)
        for warning in result.warnings:
            yield f"WARN  {warning}"
    for finding in report.findings:
        if finding.severity == "warning":
            yield f"WARN  {finding.code}: {finding.message}"
    yield f"INFO  Lint complete: {_counts(report)}"


def _error(heading: str, diagnostic: Diagnostic) -> Iterator[str]:
    yield f"ERROR {heading}"
    yield diagnostic.frame()


def _counts(report: LintReport) -> str:
    counted = [
        (len(report.results), "query", "queries"),
        (len(report.diagnostics), "error", "errors"),
        (report.warnings, "warning", "warnings"),
    ]
    return ", ".join(f"{count} {one if count == 1 else many}" for count, one, many in counted)
