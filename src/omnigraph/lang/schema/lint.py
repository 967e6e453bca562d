"""Lint of schemas.

Owns the step from a schema's mistakes to a report. Never raises for what is
wrong in the text.
"""

from __future__ import annotations

from omnigraph.lang.lint_report import Finding, LintReport
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.compile import check_schema_source, compile_schema
from omnigraph.lang.source import Source


def lint_schema(source: Source) -> tuple[Catalog | None, LintReport]:
    """The catalog of a sound schema, and the report in any case."""
    diagnostics = check_schema_source(source)
    findings = tuple(Finding("error", found.stable_code, found.summary) for found in diagnostics)
    catalog = compile_schema(source).catalog if not diagnostics else None
    return catalog, LintReport((), findings, diagnostics)
