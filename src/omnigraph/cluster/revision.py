"""The applied revision: what a cluster serves, from its ledger and its catalog alone.

Owns finding a cluster by what somebody calls it, and refusing one whose ledger or catalog is not
what was applied. Never reads the working tree, but for where the storage is. Opens no graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from omnigraph.cluster import catalog
from omnigraph.cluster.desired import find_root, policy_of
from omnigraph.cluster.layout import STATE, Root
from omnigraph.cluster.ledger import AppliedResource, Ledger, read_ledger
from omnigraph.config.cluster.diagnostics import Diagnostics
from omnigraph.config.cluster.digests import digest_of_values, graph_digest
from omnigraph.config.cluster.document import CLUSTER
from omnigraph.config.cluster.parse import FILE
from omnigraph.errors import BadRequest, OmniGraphError
from omnigraph.lang.diagnostics import name_hint
from omnigraph.policy.compiled import CompiledPolicy
from omnigraph.storage.objects.location import Location


@dataclass(frozen=True, slots=True)
class Bundle:
    """An applied policy, and what it is bound to."""

    name: str
    bindings: tuple[str, ...]
    text: str

    @property
    def is_of_cluster(self) -> bool:
        """Whether it is on the server as a whole."""
        return CLUSTER in self.bindings

    def policy(self) -> CompiledPolicy:
        """Its rules, ready to be asked; an error if it is not sound."""
        return policy_of(
            self.text, f"policy.{self.name}", self.name, is_of_cluster=self.is_of_cluster
        )


@dataclass(frozen=True, slots=True)
class AppliedGraph:
    """A graph of the applied revision."""

    id: str
    location: Location
    queries: Mapping[str, str] = field(default_factory=dict)
    """The texts of stored queries, by the name of the one that is registered."""
    embedding: Mapping[str, str] | None = None
    """Who makes its vectors; a key is the name of an environment variable."""
    problem: str | None = None
    """Why it cannot be served, as the ledger tells it."""


@dataclass(frozen=True, slots=True)
class AppliedCluster:
    """A cluster as it was applied."""

    root: Location
    graphs: Mapping[str, AppliedGraph]
    bundles: tuple[Bundle, ...]

    def bundle_of(self, binding: str) -> Bundle | None:
        """The policy of a graph's address, or of the cluster."""
        return next((one for one in self.bundles if binding in one.bindings), None)


def require_graph(applied: AppliedCluster, id_: str | None) -> AppliedGraph:
    """The graph that is meant; without an id the only one there is."""
    ids = sorted(applied.graphs)
    if id_ is None:
        if len(ids) == 1:
            return applied.graphs[ids[0]]
        raise BadRequest(
            f"{applied.root} has the graphs {', '.join(ids)}: choose one with --graph"
            if ids
            else f"cluster_empty: no graph was applied to {applied.root}"
        )
    if id_ not in applied.graphs:
        hint = name_hint(id_, ids) or "none was applied"
        raise BadRequest(f"graph_not_applied: {applied.root} has no graph {id_!r}; {hint}")
    return applied.graphs[id_]


def find_cluster(target: str, found: Diagnostics) -> Root | None:
    """The cluster of a directory or of a storage root."""
    if "://" in target:
        try:
            return Root(Location.parse(target))
        except OmniGraphError as error:
            found.error("storage_root_invalid", target, error.message)
            return None
    directory = Path(target)
    if (directory / FILE).is_file() or not (directory / STATE).is_file():
        return find_root(directory, found)
    return Root(Location.parse(target))


def read_applied(target: str) -> AppliedCluster:
    """The applied revision of a cluster; one error for everything that is wrong with it."""
    found = Diagnostics()
    root = find_cluster(target, found)
    applied = None if root is None else _read(root, found)
    if applied is None or found.has_errors:
        wrong = [one for one in found.found if one.severity == "error"]
        lines = [f"{one.code} {one.path}: {one.message}" for one in wrong]
        raise BadRequest("\n".join(lines), details={"codes": [one.code for one in wrong]})
    return applied


def _read(root: Root, found: Diagnostics) -> AppliedCluster | None:
    held = read_ledger(root, found)
    if held is None:
        if not found.has_errors:
            found.error(
                "cluster_state_missing",
                str(root.location),
                "nothing was applied here: run `omnigraph cluster import` and `cluster apply`",
            )
        return None
    ledger = held.ledger
    if not ledger.graphs:
        found.error("cluster_empty", str(root.location), "no graph was applied")
        return None
    bundles = tuple(_bundles(root, ledger, found))
    graphs = {id_: _graph(root, id_, ledger, found) for id_ in ledger.graphs}
    return AppliedCluster(root.location, graphs, bundles)


def _bundles(root: Root, ledger: Ledger, found: Diagnostics) -> list[Bundle]:
    bound: dict[str, str] = {}
    bundles = []
    for address, applied in sorted(ledger.resources.items()):
        kind, _, name = address.partition(".")
        if kind != "policy":
            continue
        if not applied.applies_to:
            found.error(
                "policy_bindings_missing", address, "the ledger does not say what it is bound to"
            )
        for binding in applied.applies_to:
            if binding in bound:
                found.error(
                    "duplicate_policy_binding", address, f"{binding} has {bound[binding]} already"
                )
            bound.setdefault(binding, name)
        text = catalog.read_blob(root, address, applied.digest, found)
        if text is not None:
            bundles.append(Bundle(name, applied.applies_to, text))
    return bundles


def _graph(root: Root, id_: str, ledger: Ledger, found: Diagnostics) -> AppliedGraph:
    prefix = f"query.{id_}."
    queries, digests = {}, {}
    for address, applied in sorted(ledger.resources.items()):
        if not address.startswith(prefix):
            continue
        name = address.removeprefix(prefix)
        digests[name] = applied.digest
        text = catalog.read_blob(root, address, applied.digest, found)
        if text is not None:
            queries[name] = text
    graph = ledger.resources[f"graph.{id_}"]
    profile, problem = _profile(graph, ledger)
    return AppliedGraph(
        id_,
        root.graph(id_),
        queries,
        profile,
        problem or _tampered(id_, graph, digests, ledger),
    )


def _profile(graph: AppliedResource, ledger: Ledger) -> tuple[Mapping[str, str] | None, str | None]:
    """Who makes the vectors of a graph, and what is wrong with what the ledger says of it."""
    name = graph.embedding_provider
    if name is None:
        return None, None
    provider = ledger.resources.get(name)
    if provider is None:
        return None, f"embedding_provider_missing: {name} is not in the ledger, apply again"
    profile = provider.embedding_profile
    if profile is None:
        return None, f"embedding_provider_profile_missing: the ledger only names {name}"
    if digest_of_values(profile) != provider.digest:
        return None, f"embedding_provider_digest_mismatch: {name} is not what was applied"
    return profile, None


def _tampered(
    id_: str, graph: AppliedResource, queries: Mapping[str, str], ledger: Ledger
) -> str | None:
    """What is said where the parts of a graph are not those that its digest is of."""
    blobs = graph.external_blob_policy
    schema = ledger.resources.get(f"schema.{id_}")
    name = graph.embedding_provider
    provider = None if name is None else ledger.resources.get(name)
    if blobs is None or schema is None or (name is not None and provider is None):
        return None
    named = None if name is None or provider is None else (name, provider.digest)
    if graph_digest(id_, schema.digest, queries, named, blobs) == graph.digest:
        return None
    return (
        "external_blob_policy_digest_mismatch: what the ledger says of blobs elsewhere is not what "
        "was applied"
    )
