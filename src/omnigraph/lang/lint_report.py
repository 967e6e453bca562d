"""Lint reports: what lint says of a schema or a query file, as data.

Owns the report's shape and its counts, and the shape of what is said of one query: what it
returns, reads and writes. The rules that fill it live beside the
language they speak of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from omnigraph.lang.diagnostics import Diagnostic

Severity = Literal["error", "warning", "info"]
_SEVERITY_ORDER: dict[Severity, int] = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True, slots=True, order=True)
class Touched:
    """A type that an operation reads or writes; nodes sort before edges."""

    is_edge: bool
    type_name: str


@dataclass(frozen=True, slots=True)
class ResultField:
    """One result column as a client sees it."""

    name: str
    kind: str
    nullable: bool
    item_kind: str | None = None
    vector_dim: int | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """Result columns, and the types read and written, sorted and without repetition."""

    result: tuple[ResultField, ...]
    reads: tuple[Touched, ...]
    writes: tuple[Touched, ...]


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What lint says of one query; ``diagnostics`` is empty for a sound one."""

    name: str
    kind: Literal["read", "mutation"]
    diagnostics: tuple[Diagnostic, ...] = ()
    warnings: tuple[str, ...] = ()
    operation: Operation | None = None


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
