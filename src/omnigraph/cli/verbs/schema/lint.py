"""`omnigraph lint`: check a schema, and queries against it or against a graph.

Owns how a lint report is shown. The rules live in `omnigraph.lang`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.query_source import read_source, state_options, view_of
from omnigraph.cli.options.scope import CommandScope, target_of, uri_argument
from omnigraph.cli.render.output import write_json, write_text
from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.lint_report import LintReport
from omnigraph.lang.query.lint import lint_queries
from omnigraph.lang.schema.compile import lint_schema
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
    --schema the queries are checked against the schema of a graph: that of a branch, or the one
    that a commit was made with.
    """
    if schema is not None and (branch is not None or snapshot is not None):
        raise click.UsageError("--schema is a file: leave out --branch and --snapshot")
    if schema is not None:
        schema_source = SchemaSourceBody("file", path=str(schema))
        report = _lint_files(schema, query)
    elif query is not None:
        target = target_of(scope, uri)
        schema_source = SchemaSourceBody("graph", uri=target.uri)
        source = read_source(query)
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


def _lint_files(schema: Path, query: Path | None) -> LintReport:
    source = read_source(schema)
    queries = read_source(query) if query is not None else None
    catalog, report = lint_schema(source)
    if catalog is None or queries is None:
        return report
    return lint_queries(queries, catalog)


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
