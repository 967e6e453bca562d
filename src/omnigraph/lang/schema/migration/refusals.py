"""What stands against a plan: changes that are refused, and queries that would no longer compile.

Owns their JSON, their place in the desired schema and how all of them are told at once. Never
decides what is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from omnigraph.errors import SchemaChangeRefused
from omnigraph.lang.diagnostics import Diagnostic, Phase
from omnigraph.lang.schema.ir.document import Json
from omnigraph.lang.schema.migration.places import locate
from omnigraph.lang.schema.migration.steps import Violations
from omnigraph.lang.schema.syntax.tree import Schema
from omnigraph.lang.source import Source

_PLACE = ("path", "line", "column", "end_line", "end_column")


@dataclass(frozen=True, slots=True)
class SchemaText:
    """The desired schema as it was written, in which refusals are shown."""

    source: Source
    syntax: Schema

    def diagnose(self, entity: str, message: str, code: str | None) -> Diagnostic | None:
        """A message about an entity, where that is declared; None for what is not there."""
        span = locate(entity, self.syntax)
        if span is None:
            return None
        return Diagnostic(self.source, span, Phase.CATALOG, message, code or _default_code())


@dataclass(frozen=True, slots=True)
class BrokenQuery:
    """A query that the desired schema breaks.

    ``source`` names its text; a text that does not even parse has no ``name`` of a query.
    """

    source: str
    name: str | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def entity(self) -> str:
        """How it is named beside types and properties."""
        return f"query:{self.source if self.name is None else self.name}"

    @property
    def summary(self) -> str:
        """The query and its text, in a few words."""
        where = self.source if self.name is None else f"query `{self.name}` of {self.source}"
        return f"{where} does not compile against this schema"

    @property
    def report(self) -> str:
        """Every mistake, with its place in the query."""
        return "\n".join(diagnostic.render() for diagnostic in self.diagnostics)

    def to_json(self) -> Json:
        """The query and its mistakes as plain data."""
        found: Json = {"source": self.source}
        if self.name is not None:
            found["query"] = self.name
        found["diagnostics"] = [diagnostic.to_json() for diagnostic in self.diagnostics]
        return found


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a plan cannot be applied: a change nobody can make, or one that rows or queries forbid.

    ``place`` is where the desired schema declares what it is about, if it still does.
    """

    entity: str
    reason: str
    code: str | None = None
    violations: Violations | None = None
    place: Diagnostic | None = None
    query: BrokenQuery | None = None

    @property
    def message(self) -> str:
        """What is refused and why, after its code if it has one."""
        is_named = self.violations is not None or self.query is not None
        told = self.reason if is_named else f"{self.entity}: {self.reason}"
        return told if self.code is None else f"[{self.code}] {told}"

    @property
    def report(self) -> str:
        """The reason with the line of the schema and a caret, or with the mistakes of a query."""
        if self.place is not None:
            return self.place.render()
        heading = f"error[{self.code or _default_code()}]: {self.reason}"
        return heading if self.query is None else f"{heading}\n{self.query.report}"

    def to_json(self) -> Json:
        """The refusal as plain data; what it does not have is left out."""
        found: Json = {"entity": self.entity, "reason": self.reason}
        if self.code is not None:
            found["code"] = self.code
        if self.violations is not None:
            found["violations"] = self.violations.to_json()
        if self.place is not None:
            place = self.place.to_json()
            found["place"] = {name: place[name] for name in _PLACE}
        return found


def report_of(refusals: Iterable[Refusal]) -> str:
    """Every refusal, a blank line between two."""
    return "\n\n".join(refusal.report for refusal in refusals)


def _default_code() -> str:
    return SchemaChangeRefused.default_code
