"""The stored queries of a graph of a cluster: what they are, and which would not run.

Owns the names of these bodies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import convert

from omnigraph.wire.body import Body
from omnigraph.wire.reports import ResultFieldBody

if TYPE_CHECKING:
    from omnigraph.lang.lint_report import ResultField
    from omnigraph.lang.query import syntax as ast


class DescribedQuery(Protocol):
    """A query that can be called by its name, whoever has it."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def is_mutation(self) -> bool:
        """Whether it changes something."""

    @property
    def syntax(self) -> ast.Query:
        """How it is written."""

    @property
    def params(self) -> tuple[ResultField, ...]:
        """What it takes."""


class RegisteredQueryBody(Body, frozen=True, kw_only=True):
    """A stored query as it was applied."""

    name: str
    mcp_expose: bool
    tool_name: str
    mutation: bool
    description: str | None = None
    instruction: str | None = None
    params: list[ResultFieldBody]

    @classmethod
    def of_query(cls, found: DescribedQuery) -> RegisteredQueryBody:
        """The descriptor of a query."""
        return cls(
            name=found.name,
            mcp_expose=False,
            tool_name=found.name,
            mutation=found.is_mutation,
            description=found.syntax.description,
            instruction=found.syntax.instruction,
            params=convert(list(found.params), list[ResultFieldBody], from_attributes=True),
        )


class RegisteredQueriesBody(Body, frozen=True):
    """All of them, by name."""

    queries: list[RegisteredQueryBody]


class QueryBreakageBody(Body, frozen=True):
    """What is wrong with a query, or worth knowing."""

    query: str
    message: str


class QueriesCheckedBody(Body, frozen=True):
    """Whether all of them would run."""

    ok: bool
    breakages: list[QueryBreakageBody]
    warnings: list[QueryBreakageBody]
