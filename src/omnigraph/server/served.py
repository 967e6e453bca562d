"""What is served: graphs with their ids, policies and stored queries, and who may do what at boot.

Owns the states that a server can be in, and the policy of one that has tokens and no policies.
How graphs are found is for a `GraphSource` to say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from pathlib import PurePosixPath
from threading import Lock
from typing import Literal, Protocol, cast

from omnigraph.errors import BadRequest, PolicyDenied
from omnigraph.graph import Graph, Policy, Session
from omnigraph.graph.access import Action, Limiting
from omnigraph.maintain.steps import MaintenanceLimits
from omnigraph.server.stored_queries import StoredQueries

State = Literal["open", "default_deny", "policy_enabled"]

GRAPH_ID = re.compile(r"[a-zA-Z0-9-]{1,64}")
RESERVED = frozenset({"policies", "healthz", "openapi", "graphs"})


class DefaultDeny:
    """The policy of a graph without one: whoever has a token may look, and no more."""

    def authorize(self, actor: str, action: Action, branch: str | None, target: str | None) -> None:
        """Allow `read`."""
        if action != "read":
            raise PolicyDenied(denial(actor, action, branch, target))


def denial(actor: str, action: str, branch: str | None, target: str | None) -> str:
    """What somebody is told who may not do something."""
    on = "" if branch is None else f" on branch '{branch}'"
    to = "" if target is None else f" targeting branch '{target}'"
    return f"policy denied action '{action}'{on}{to} for actor '{actor}'"


class _OfQueries(Protocol):
    """A policy that tells one stored query from another."""

    def authorize(
        self, actor: str, action: Action, branch: str | None, target: str | None, *, query: str
    ) -> None:
        """As a policy does."""


class ServerPolicy(Protocol):
    """Who may do what with a server as a whole, which is to list its graphs."""

    def authorize(
        self,
        actor: str,
        action: Literal["graph_list"],
        branch: str | None,
        target: str | None,
    ) -> None:
        """Return if it is allowed; raise `PolicyDenied` if not."""


@dataclass(frozen=True, slots=True)
class ServedGraph:
    """One graph: where it is, what binds whoever uses it, and its stored queries."""

    id: str
    graph: Graph
    policy: Policy | None = None
    queries: StoredQueries = field(default_factory=StoredQueries)
    providers: Mapping[str, object] = field(default_factory=dict)
    """Who makes its vectors, by name; without any, the environment says."""
    maintenance: MaintenanceLimits = field(default_factory=MaintenanceLimits)
    """What is done in the background to keep it in order, if that is done."""
    _sessions: dict[str, Session] = field(init=False, default_factory=dict, repr=False)
    _lock: Lock = field(init=False, default_factory=Lock, repr=False)

    @property
    def location(self) -> str:
        """Where it is, as bodies name it."""
        return str(self.graph.location)

    def session(self, actor: str | None) -> Session:
        """The graph as one actor uses it: one session for each, which remembers open pages."""
        if actor is None:
            return self.graph
        with self._lock:
            found = self._sessions.get(actor)
            if found is None:
                found = self._sessions[actor] = self.graph.as_actor(actor, self.policy)
            return found

    def require(
        self, actor: str | None, action: Action, branch: str | None, target: str | None
    ) -> None:
        """Ask the policy before anything is read or admitted; the engine asks it again."""
        if self.policy is not None and actor is not None:
            self.policy.authorize(actor, action, branch, target)

    def is_limited(self, actor: str | None) -> bool:
        """Whether anything of it is hidden from somebody."""
        policy = self.policy
        if actor is None or not isinstance(policy, Limiting):
            return False
        return policy.limits(actor, None) is not None

    def require_query(self, actor: str | None, name: str) -> None:
        """Ask whether a stored query may be called; a policy may tell one from another."""
        if self.policy is None or actor is None:
            return
        if "query" in signature(self.policy.authorize).parameters:
            named = cast("_OfQueries", self.policy)
            named.authorize(actor, "invoke_query", None, None, query=name)
        else:
            self.policy.authorize(actor, "invoke_query", None, None)


@dataclass(frozen=True, slots=True)
class ServedGraphs:
    """All graphs of a server, those that could not be opened, and who may list them."""

    graphs: Mapping[str, ServedGraph]
    quarantined: Mapping[str, str] = field(default_factory=dict)
    """Why a graph is not served, by its id."""
    server_policy: ServerPolicy | None = None
    has_policies: bool = False
    """Whether any policy was given: then nobody acts without a token."""
    can_apply_schemas: bool = True
    """Whether schemas are changed here; those of a cluster are applied there."""

    def guarded(self) -> ServedGraphs:
        """The same, where a graph without a policy of its own may only be looked at."""
        graphs = {
            id_: graph if graph.policy is not None else replace(graph, policy=DefaultDeny())
            for id_, graph in self.graphs.items()
        }
        return replace(self, graphs=graphs)


class GraphSource(Protocol):
    """Where the graphs of a server come from; it can be sent to another process."""

    def open(self) -> ServedGraphs:
        """Open what there is to serve; raises if that is nothing."""


def state_of(*, has_tokens: bool, has_policies: bool, unauthenticated: bool) -> State:
    """The state that a server boots into; refuses what would let anybody in by accident."""
    if has_policies and not has_tokens:
        raise BadRequest(
            "there are policies but no bearer tokens, so that nobody could do anything: set "
            "OMNIGRAPH_SERVER_BEARER_TOKEN or OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"
        )
    if has_policies:
        return "policy_enabled"
    if has_tokens:
        return "default_deny"
    if unauthenticated:
        return "open"
    raise BadRequest(
        "there are no bearer tokens: set OMNIGRAPH_SERVER_BEARER_TOKEN or "
        "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE, or pass --unauthenticated to let everybody do "
        "everything"
    )


def is_graph_id(text: str) -> bool:
    """Whether a graph can be served under a name."""
    return GRAPH_ID.fullmatch(text) is not None and text not in RESERVED


def id_of_location(location: str) -> str:
    """The id of a graph that nobody gave one: the name of its directory."""
    stem = PurePosixPath(location.rstrip("/")).stem
    found = re.sub(r"[^a-zA-Z0-9-]+", "-", stem).strip("-")[:64]
    return found if is_graph_id(found) else "graph"


@dataclass(frozen=True, slots=True)
class OneGraph:
    """One graph, opened by its location."""

    location: str
    id: str
    queries: tuple[str, ...] = ()
    policy: str | None = None
    """The file that says who may do what with it."""

    def open(self) -> ServedGraphs:
        """Open it with its stored queries."""
        from omnigraph import graph

        if not is_graph_id(self.id):
            raise BadRequest(
                f"a graph cannot be served as {self.id!r}: an id has 1 to 64 letters, digits and "
                f"hyphens and is none of {', '.join(sorted(RESERVED))}; choose one with --graph"
            )
        policy = None
        if self.policy is not None:
            from omnigraph.policy import load

            policy = load(self.policy, "graph")
        opened = graph.open(self.location)
        queries = StoredQueries.read(self.queries)
        queries.check(opened.catalog)
        served = ServedGraph(self.id, opened, policy, queries)
        return ServedGraphs({self.id: served}, has_policies=policy is not None)
