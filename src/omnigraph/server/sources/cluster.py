"""The graphs of a cluster, as they were applied.

Owns opening them side by side, and keeping one that cannot be served away from the others.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from omnigraph import graph
from omnigraph.cluster.revision import AppliedCluster, AppliedGraph, read_applied
from omnigraph.cluster.stored_queries import registered_queries
from omnigraph.config.cluster.document import CLUSTER
from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.errors import BadRequest, OmniGraphError
from omnigraph.graph.opening import embedded_by
from omnigraph.server.served import (
    RESERVED,
    ServedGraph,
    ServedGraphs,
    is_graph_id,
)
from omnigraph.server.stored_queries import StoredQueries, StoredQuery

AT_ONCE = 4
"""How many graphs are opened at once."""


@dataclass(frozen=True, slots=True)
class ClusterGraphs:
    """Every graph of a cluster: a directory with a `cluster.yaml`, or a storage root."""

    target: str
    require_all: bool = False
    """Whether one that cannot be served keeps the server from starting."""

    def open(self) -> ServedGraphs:
        """Open all that can be served."""
        applied = read_applied(self.target)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = dict(
                zip(
                    applied.graphs,
                    pool.map(lambda one: _opened(one, applied), applied.graphs.values()),
                    strict=True,
                )
            )
        graphs = {id_: one for id_, one in found.items() if isinstance(one, ServedGraph)}
        quarantined = {id_: one for id_, one in found.items() if isinstance(one, str)}
        told = "\n".join(f"graph {id_}: {reason}" for id_, reason in quarantined.items())
        if not graphs:
            raise BadRequest(f"cluster_no_healthy_graphs: none can be served\n{told}")
        if quarantined and self.require_all:
            raise BadRequest(f"every graph was asked for, and not every one can be served\n{told}")
        bundle = applied.bundle_of(CLUSTER)
        return ServedGraphs(
            graphs,
            quarantined,
            server_policy=None if bundle is None else bundle.policy(),
            has_policies=bool(applied.bundles),
            can_apply_schemas=False,
        )


def _opened(applied: AppliedGraph, cluster: AppliedCluster) -> ServedGraph | str:
    """A graph ready to be served, or why it is not."""
    try:
        if not is_graph_id(applied.id):
            raise BadRequest(
                "its id cannot be part of an address: 1 to 64 letters, digits and hyphens, and "
                f"none of {', '.join(sorted(RESERVED))}"
            )
        if applied.problem is not None:
            raise BadRequest(applied.problem)
        bundle = cluster.bundle_of(f"graph.{applied.id}")
        policy = None if bundle is None else bundle.policy()
        embedding = _embedding(applied.embedding, os.environ)
        opened = embedded_by(graph.open(str(applied.location)), embedding)
        queries = StoredQueries(
            {
                one.name: StoredQuery(one.name, one.source, one.syntax)
                for one in registered_queries(applied)
            }
        )
        queries.check(opened.catalog)
        return ServedGraph(applied.id, opened, policy, queries)
    except OmniGraphError as error:
        return error.message


def _embedding(
    profile: Mapping[str, str] | None, environment: Mapping[str, str]
) -> EmbedderConfig | None:
    """Who makes the vectors of a graph, with the key that the environment of now has."""
    if profile is None:
        return None
    name = profile.get("api_key", "").removeprefix("${").removesuffix("}")
    key = environment.get(name, "").strip() if name else ""
    if name and not key:
        raise BadRequest(f"its embedding provider needs {name}, which is not set")
    return EmbedderConfig(
        profile["kind"], profile.get("model"), base_url=profile.get("base_url"), api_key=key or None
    )
