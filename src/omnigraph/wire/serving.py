"""What a server tells of itself and of what it serves: health, graphs, stored queries.

Owns the names of these bodies.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import convert

from omnigraph.maintain.health import GraphStatus
from omnigraph.maintain.reports import IndexState, IndexStatus
from omnigraph.wire.body import Body
from omnigraph.wire.health import StatusBody
from omnigraph.wire.reports import ResultFieldBody

if TYPE_CHECKING:
    from omnigraph.lang.lint_report import ResultField


class HealthBody(Body, frozen=True):
    """The health of a server, and what program it is."""

    status: str
    version: str
    internal_schema_version: int
    source_version: str | None = None


class ReadyBody(Body, frozen=True):
    """Whether requests are taken."""

    status: str


class GraphBody(Body, frozen=True):
    """A graph that is served, and where it is."""

    graph_id: str
    uri: str


class QuarantinedBody(Body, frozen=True):
    """A graph that is not served, and why."""

    graph_id: str
    reason: str


class GraphsBody(Body, frozen=True):
    """All graphs by id; those that could not be opened only where there are any."""

    graphs: list[GraphBody]
    quarantined: tuple[QuarantinedBody, ...] = ()


class StoredQueryBody(Body, frozen=True, kw_only=True):
    """A stored query and what it takes."""

    name: str
    tool_name: str
    description: str | None = None
    instruction: str | None = None
    mutation: bool
    params: list[ResultFieldBody]

    @classmethod
    def of(
        cls,
        name: str,
        params: Iterable[ResultField],
        *,
        description: str | None,
        instruction: str | None,
        mutation: bool,
    ) -> StoredQueryBody:
        """The descriptor of a query."""
        return cls(
            name=name,
            tool_name=name,
            description=description,
            instruction=instruction,
            mutation=mutation,
            params=convert(list(params), list[ResultFieldBody], from_attributes=True),
        )


class StoredQueriesBody(Body, frozen=True):
    """All stored queries of a graph, by name."""

    queries: list[StoredQueryBody]


class ServedStatusBody(StatusBody, frozen=True, kw_only=True):
    """The status of a graph, and what its indexes cover.

    It is `ready` when nothing that is wanted of them is still to be built.
    """

    ready: bool
    indexes: tuple[IndexState, ...]

    @classmethod
    def of_served(cls, status: GraphStatus, indexes: IndexStatus, uri: str) -> ServedStatusBody:
        """The status with the indexes of the same branch."""
        known = StatusBody.of(status, uri)
        members = {name: getattr(known, name) for name in known.__struct_fields__}
        return cls(**members, ready=are_ready(indexes), indexes=indexes.indexes)


def are_ready(indexes: IndexStatus) -> bool:
    """Whether nothing of the indexes is still to be built; one with a reason not to be is not."""
    return not any(
        index.state == "partial" or (index.state == "pending" and index.reason is None)
        for index in indexes.indexes
    )
