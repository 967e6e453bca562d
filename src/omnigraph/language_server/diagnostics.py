"""Diagnostics: what lint says of a text, each with its place.

Owns where a remark about a whole query is shown: at its name. The rules are those of
`omnigraph lint`.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.lang.diagnostics import Diagnostic, Reporter
from omnigraph.lang.lint_report import Severity
from omnigraph.lang.query.lint import lint_queries
from omnigraph.lang.query.parsing.parser import parse_queries
from omnigraph.lang.schema.compile import check_schema_source, lint_schema
from omnigraph.lang.source import Source, Span


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing that is said, and where; ``code`` is the linter's."""

    span: Span
    severity: Severity
    message: str
    code: str | None = None


def schema_remarks(source: Source) -> list[Remark]:
    """What is wrong in a schema."""
    return [_mistake(found) for found in check_schema_source(source)]


def query_remarks(source: Source, schema: Source | None) -> list[Remark]:
    """What is to be said of a file of queries; without a sound schema, whether it parses."""
    reporter = Reporter(source)
    file = parse_queries(source, reporter)
    if schema is None:
        said = "no schema was found: name it in omnigraph.yaml, or put it beside this file"
        return [*map(_mistake, reporter.diagnostics), _first_line(source, said)]
    catalog, _ = lint_schema(schema)
    if catalog is None:
        said = f"{schema.name} has mistakes: until they are gone, queries are only parsed"
        return [*map(_mistake, reporter.diagnostics), _first_line(source, said)]
    report = lint_queries(source, catalog)
    names: dict[str, list[Span]] = {}
    for query in file.queries:
        names.setdefault(query.name.text, []).append(query.name.span)
    remarks = [_mistake(found) for found in report.diagnostics]
    for finding in report.findings:
        if finding.severity != "error":
            # Of a name that is declared twice the last one is too many.
            places = [names[name][-1] for name in finding.query_names if name in names]
            remarks += (
                Remark(place, finding.severity, finding.message, finding.code)
                for place in places or [Span(0, 0)]
            )
    for result in report.results:
        remarks += (
            Remark(names[result.name][-1], "warning", warning) for warning in result.warnings
        )
    return sorted(remarks, key=lambda remark: remark.span)


def _mistake(found: Diagnostic) -> Remark:
    hint = f"\n{found.hint}" if found.hint else ""
    return Remark(found.span, "error", f"{found.message}{hint}", found.stable_code)


def _first_line(source: Source, message: str) -> Remark:
    return Remark(Span(0, len(source.line(1))), "info", message)
