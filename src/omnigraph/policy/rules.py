"""A policy as plain data: groups of actors, protected branches, and rules that allow things.

Owns the words of a policy file and which of them go together. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from omnigraph.graph.access import Action
from omnigraph.manifest.limits import Grant

PolicyAction = Action | Literal["graph_list", "config_manage"]
PolicyKind = Literal["graph", "server"]
Scope = Literal["any", "protected", "unprotected"]
ScopeKey = Literal["branch_scope", "target_branch_scope"]

GRAPH_ACTIONS: Final[tuple[str, ...]] = get_args(Action)
SERVER_ACTIONS: Final[tuple[str, ...]] = ("graph_list", "config_manage")
"""`config_manage` is read for files that have it; no call of our server asks for it."""
ACTIONS: Final = (*GRAPH_ACTIONS, *SERVER_ACTIONS)
SCOPES: Final[tuple[str, ...]] = get_args(Scope)

SCOPED_BY: Final[Mapping[str, ScopeKey]] = {
    "read": "branch_scope",
    "export": "branch_scope",
    "change": "branch_scope",
    "schema_apply": "target_branch_scope",
    "branch_create": "target_branch_scope",
    "branch_delete": "target_branch_scope",
    "branch_merge": "target_branch_scope",
}
"""Which branch of a request can limit an action; the others are on no branch."""


def kind_of(action: str) -> PolicyKind:
    """Whether an action is on a graph or on the server that has it."""
    return "server" if action in SERVER_ACTIONS else "graph"


@dataclass(frozen=True, slots=True)
class Rule:
    """What a group may do, and on which branches.

    ``queries`` limits `invoke_query` to some stored queries, ``grant`` what `read` shows.
    """

    id: str
    group: str
    actions: tuple[str, ...]
    scope: Scope = "any"
    scope_key: ScopeKey | None = None
    queries: tuple[str, ...] | None = None
    grant: Grant = field(default_factory=Grant)

    def covers(self, branch: str | None, protected: frozenset[str]) -> bool:
        """Whether its scope holds on a branch; on none only where it is not limited."""
        if self.scope == "any":
            return True
        return branch is not None and (branch in protected) == (self.scope == "protected")


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """One policy file: a bundle of rules for graphs, or for a server."""

    name: str
    groups: Mapping[str, tuple[str, ...]]
    protected: frozenset[str]
    rules: tuple[Rule, ...]

    @property
    def kind(self) -> PolicyKind:
        """What its actions are on; one without rules is for graphs."""
        return kind_of(self.rules[0].actions[0]) if self.rules else "graph"

    @property
    def actors(self) -> frozenset[str]:
        """Everybody who is in a group."""
        return frozenset(actor for members in self.groups.values() for actor in members)

    def groups_of(self, actor: str) -> tuple[str, ...]:
        """The groups that somebody is in."""
        return tuple(group for group, members in self.groups.items() if actor in members)
