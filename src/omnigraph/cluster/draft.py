"""The next ledger in the making: what an operation knows by now.

Owns putting it together from what was applied; the digest of a graph always is that of its parts
as they stand. Nothing of it is written before the operation has done what it says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from omnigraph.cluster.desired import Resource
from omnigraph.cluster.ledger import (
    AppliedResource,
    AppliedRevision,
    Ledger,
    Observation,
    ResourceStatus,
    Status,
)
from omnigraph.config.cluster.digests import graph_digest


@dataclass(slots=True)
class Draft:
    """A ledger that can still be changed."""

    before: Ledger
    config_digest: str | None
    resources: dict[str, AppliedResource]
    statuses: dict[str, ResourceStatus]
    observations: dict[str, Observation]
    approvals: dict[str, str]
    recoveries: dict[str, str]

    @classmethod
    def of(cls, ledger: Ledger) -> Draft:
        """What is applied now."""
        return cls(
            ledger,
            ledger.applied_revision.config_digest,
            dict(ledger.resources),
            dict(ledger.resource_statuses),
            dict(ledger.observations),
            dict(ledger.approval_records),
            dict(ledger.recovery_records),
        )

    @property
    def ledger(self) -> Ledger:
        """The ledger as it stands; the one from before, where nothing is different."""
        found = Ledger(
            self.before.version,
            self.before.state_revision,
            AppliedRevision(self.config_digest, dict(self.resources)),
            dict(self.statuses),
            dict(self.approvals),
            dict(self.recoveries),
            dict(self.observations),
        )
        if found == self.before:
            return self.before
        return msgspec.structs.replace(found, state_revision=self.before.state_revision + 1)

    @property
    def graphs(self) -> list[str]:
        """The ids of the graphs that there are."""
        return [one.partition(".")[2] for one in self.resources if one.startswith("graph.")]

    def apply(self, resource: Resource) -> None:
        """A resource is as it is wanted."""
        kept: dict[str, Any] = dict(resource.metadata)
        self.resources[resource.address] = msgspec.convert(
            {"digest": resource.digest, **kept}, AppliedResource
        )

    def has_graph(self, id_: str, schema: str, seen: Observation) -> None:
        """A graph has a schema; nothing else is known of it, if it is new."""
        self.resources[f"schema.{id_}"] = AppliedResource(schema)
        self.resources.setdefault(f"graph.{id_}", AppliedResource(""))
        self.observations[f"graph.{id_}"] = seen
        self.compose(id_)

    def compose(self, id_: str) -> None:
        """Give a graph the digest of what it is made up of."""
        address = f"graph.{id_}"
        graph, schema = self.resources.get(address), self.resources.get(f"schema.{id_}")
        if graph is None or schema is None:
            return
        prefix = f"query.{id_}."
        queries = {
            name.removeprefix(prefix): one.digest
            for name, one in self.resources.items()
            if name.startswith(prefix)
        }
        name = graph.embedding_provider
        known = None if name is None else self.resources.get(name)
        provider = None if name is None or known is None else (name, known.digest)
        digest = graph_digest(id_, schema.digest, queries, provider, graph.external_blob_policy)
        self.resources[address] = msgspec.structs.replace(graph, digest=digest)

    def drop_graph(self, id_: str) -> None:
        """A graph is gone, and all that belonged to it."""
        for address in list(self.resources):
            kind, _, rest = address.partition(".")
            if kind in ("graph", "schema", "query") and rest.partition(".")[0] == id_:
                del self.resources[address]
        self.observations.pop(f"graph.{id_}", None)

    def say(
        self, address: str, status: Status, message: str | None = None, *conditions: str
    ) -> None:
        """How a resource stands."""
        self.statuses[address] = ResourceStatus(status, conditions, message)
