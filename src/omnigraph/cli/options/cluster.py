"""Clusters as the targets of commands.

Owns the way from a name, a directory or a storage root to the applied graph that is meant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omnigraph.cli.options.configured import layers_of, operator_config
from omnigraph.cli.options.scope import CommandScope, Target, storage_target
from omnigraph.errors import BadRequest

if TYPE_CHECKING:
    from omnigraph.cluster.revision import AppliedCluster, Bundle


def cluster_named(target: str) -> str:
    """What a cluster's configured name stands for; anything else stands for itself."""
    return operator_config().clusters.get(target, target)


def clustered_target(target: str, graph: str | None) -> Target:
    """The graph of a cluster, as it was applied."""
    from omnigraph.cluster.revision import read_applied, require_graph

    found = require_graph(read_applied(cluster_named(target)), graph)
    return storage_target(str(found.location))


def configured_cluster(scope: CommandScope) -> str | None:
    """The cluster that is named by the options or the profile; None if nothing names one."""
    if scope.cluster is not None:
        return cluster_named(scope.cluster)
    place = layers_of(scope).place
    if place is None or place.kind != "cluster":
        return None
    return cluster_named(place.target)


def applied_cluster(scope: CommandScope) -> AppliedCluster:
    """The cluster that a command is about, as it was applied."""
    from omnigraph.cluster.revision import read_applied

    target = configured_cluster(scope)
    if target is None:
        raise click.UsageError("which cluster? give --cluster DIR|URI, or a profile that names one")
    return read_applied(target)


def bundle_of(scope: CommandScope) -> Bundle:
    """The policy that a command is about: that of a graph, or the only one there is.

    What a graph has no policy for, that of the cluster says.
    """
    applied = applied_cluster(scope)
    found = list(applied.bundles)
    if scope.graph is not None:
        own = applied.bundle_of(f"graph.{scope.graph}") or applied.bundle_of("cluster")
        found = [] if own is None else [own]
    if len(found) == 1:
        return found[0]
    if not found:
        raise BadRequest(f"{applied.root} has no policy for that: apply one")
    names = ", ".join(f"{one.name} ({', '.join(one.bindings)})" for one in found)
    raise BadRequest(f"which policy of {names}? choose with --graph ID, or --graph cluster")


def refuse_in_cluster(uri: str, instead: str) -> None:
    """Refuse to do to a graph of a cluster what only the cluster does."""
    from omnigraph.cluster.layout import cluster_of

    found = cluster_of(uri)
    if found is not None:
        root, id_ = found
        raise BadRequest(f"{uri} is graph {id_} of the cluster at {root.location}: {instead}")
