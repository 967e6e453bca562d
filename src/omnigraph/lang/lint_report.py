"""Lint reports: what lint says of a schema or a query file, as data.

Owns the report's shape and its counts. The rules that fill it live beside the
language they speak of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from omnigraph.lang.diagnostics import Diagnostic

Severity = Literal["error", "warning", "info"]
_SEVERITY_ORDER: dict[Severity, int] = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What lint says of one query; ``diagnostics`` is empty for a sound one."""

    name: str
    kind: Literal["read", "mutation"]
    diagnostics: tuple[Diagnostic, ...] = ()
    warnings: tuple[str, ...] = ()
    operation: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """The entry of the report."""
        entry: dict[str, Any] = {
            "name": self.name,
            "kind": self.kind,
            "status": "error" if self.diagnostics else "ok",
        }
        if self.warnings:
            entry["warnings"] = list(self.warnings)
        if self.diagnostics:
            entry["error"] = self.diagnostics[0].summary
        if self.operation is not None:
            entry["operation"] = self.operation
        return entry


@dataclass(frozen=True, slots=True)
class Finding:
    """A remark about the file as a whole."""

    severity: Severity
    code: str
    message: str
    type_name: str | None = None
    property_name: str | None = None
    query_names: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[int, str, str, str]:
        """Severity, type, property, message."""
        return (
            _SEVERITY_ORDER[self.severity],
            self.type_name or "",
            self.property_name or "",
            self.message,
        )

    def to_json(self) -> dict[str, Any]:
        """The entry of the report."""
        entry: dict[str, Any] = {
            "severity": self.severity,
            "code": self.code,
            "message": self.message,
        }
        if self.type_name is not None:
            entry["type_name"] = self.type_name
        if self.property_name is not None:
            entry["property"] = self.property_name
        if self.query_names:
            entry["query_names"] = list(self.query_names)
        return entry


@dataclass(frozen=True, slots=True)
class LintReport:
    """What lint says of a file.

    When the file does not parse, no query counts as processed: ``results`` is
    empty and ``diagnostics`` still holds all mistakes that were found, those of
    the queries that do parse included.
    """

    results: tuple[QueryResult, ...]
    findings: tuple[Finding, ...]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def errors(self) -> int:
        """Failed queries and error findings."""
        failed = sum(1 for result in self.results if result.diagnostics)
        return failed + self._found("error")

    @property
    def warnings(self) -> int:
        """Warnings of queries and warning findings."""
        return sum(len(result.warnings) for result in self.results) + self._found("warning")

    @property
    def infos(self) -> int:
        """Info findings."""
        return self._found("info")

    @property
    def ok(self) -> bool:
        """Whether there is nothing to mend."""
        return self.errors == 0

    def _found(self, severity: Severity) -> int:
        return sum(1 for finding in self.findings if finding.severity == severity)

    def to_json(self, *, schema_source: dict[str, str], query_path: str | None) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "status": "ok" if self.ok else "error",
            "schema_source": schema_source,
            "query_path": query_path,
            "queries_processed": len(self.results),
            "errors": self.errors,
            "warnings": self.warnings,
            "infos": self.infos,
            "results": [result.to_json() for result in self.results],
            "findings": [finding.to_json() for finding in self.findings],
            "diagnostics": [diagnostic.to_json() for diagnostic in self.diagnostics],
        }
