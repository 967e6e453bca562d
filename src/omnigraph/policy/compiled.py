"""A compiled policy: what a session asks before it does anything.

Owns the one decision, made by Cedar over rules that were parsed once, with the rule that made
it; and what an actor sees of a branch. Never looks into a graph.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from omnigraph.errors import InternalError, PolicyDenied
from omnigraph.graph.access import Action
from omnigraph.manifest.branches import normalise_branch
from omnigraph.manifest.limits import ReadLimits
from omnigraph.policy.rules import PolicyFile, PolicyKind, Rule

if TYPE_CHECKING:
    import cedarpy

DECISIONS_KEPT = 4_096
"""So many decisions are at hand; the same few are asked for again and again."""
_RESOURCES = {"graph": ("Graph", "graph"), "server": ("Server", "root")}


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody wants to do; ``branch`` and ``target`` as the façade hands them over."""

    actor: str
    action: str
    branch: str | None = None
    target: str | None = None
    query: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether it is allowed, by which rule, and how that is said."""

    is_allowed: bool
    message: str
    matched_rule: str | None = None


@dataclass(frozen=True, eq=False)
class CompiledPolicy:
    """The rules of a file, parsed; asked by sessions of any number of graphs and threads."""

    file: PolicyFile
    _policies: cedarpy.PolicySet = field(repr=False)
    _entities: cedarpy.Entities = field(repr=False)

    @classmethod
    def of(cls, file: PolicyFile) -> CompiledPolicy:
        """Compile the rules of a file."""
        import cedarpy

        policies = cedarpy.PolicySet.from_str("\n".join(_permits(file)))
        return cls(file, policies, cedarpy.Entities.from_json_str(_entities(file)))

    @property
    def kind(self) -> PolicyKind:
        """What its actions are on."""
        return self.file.kind

    def authorize(
        self,
        actor: str,
        action: Action | str,
        branch: str | None = None,
        target: str | None = None,
        *,
        query: str | None = None,
    ) -> None:
        """Return if it is allowed; raise `PolicyDenied` if not.

        ``query`` names the stored query that is to be invoked.
        """
        decision = self.decide(Request(actor, action, branch, target, query))
        if not decision.is_allowed:
            raise PolicyDenied(decision.message)

    def authorize_query(self, actor: str, name: str) -> None:
        """Return if a stored query may be called; raise `PolicyDenied` if not."""
        self.authorize(actor, "invoke_query", query=name)

    def may_list_graphs(self, actor: str | None) -> bool:
        """Whether somebody may see which graphs a server has."""
        return actor is not None and self.decide(Request(actor, "graph_list")).is_allowed

    def __reduce__(self) -> tuple[object, ...]:
        """It goes to another process as its rules."""
        return CompiledPolicy.of, (self.file,)

    def decide(self, request: Request) -> Decision:
        """Whether something is allowed, and by which rule."""
        return _decided(self, _normal(request))

    def limits(self, actor: str, branch: str | None) -> ReadLimits | None:
        """What an actor may see of a branch: None for everything.

        It is what all rules together show by which the actor may read the branch. Without a
        branch, an actor that is limited on any is limited. Whoever may read no branch at all is
        limited by nothing: other actions than reading say what they show.
        """
        return _limits(self, actor, None if branch is None else normalise_branch(branch))

    def _reading(self, actor: str) -> list[Rule]:
        groups = self.file.groups_of(actor)
        rules = self.file.rules
        return [rule for rule in rules if rule.group in groups and "read" in rule.actions]


def _normal(request: Request) -> Request:
    """With the names that branches have, however they were written."""
    branch, target = (
        None if name is None else normalise_branch(name)
        for name in (request.branch, request.target)
    )
    return Request(request.actor, request.action, branch, target, request.query)


@lru_cache(maxsize=DECISIONS_KEPT)
def _limits(policy: CompiledPolicy, actor: str, branch: str | None) -> ReadLimits | None:
    reading = policy._reading(actor)  # noqa: SLF001 - its own
    if not any(rule.grant.is_limited for rule in reading):
        return None
    protected = policy.file.protected
    holding = [rule for rule in reading if branch is None or rule.covers(branch, protected)]
    limited = [rule.grant for rule in holding if rule.grant.is_limited]
    if branch is not None and len(limited) < len(holding):
        return None
    return ReadLimits(actor, tuple(limited))


@lru_cache(maxsize=DECISIONS_KEPT)
def _decided(policy: CompiledPolicy, request: Request) -> Decision:
    import cedarpy

    file, actor, action = policy.file, request.actor, request.action
    if not file.groups_of(actor):
        return Decision(
            is_allowed=False, message=f"policy denied action '{action}' for unknown actor '{actor}'"
        )
    kind, id_ = _RESOURCES[file.kind]
    given = {"branch": request.branch, "target": request.target, "query": request.query}
    asked: dict[str, Any] = {
        "principal": {"type": "Actor", "id": actor},
        "action": {"type": "Action", "id": action},
        "resource": {"type": kind, "id": id_},
        "context": {name: value for name, value in given.items() if value is not None},
    }
    answer = cedarpy.is_authorized(asked, policy._policies, policy._entities)  # noqa: SLF001 - its own
    if answer.diagnostics.errors:
        raise InternalError(f"a policy could not be evaluated: {answer.diagnostics.errors[0]}")
    if not answer.allowed:
        return Decision(is_allowed=False, message=_denied(request))
    matched = answer.diagnostics.id_annotations_by_reason.values()
    rule = min(file.rules[int(number)].id for number in matched)
    message = f"policy allowed action '{action}' for actor '{actor}'"
    return Decision(is_allowed=True, message=message, matched_rule=rule)


def _denied(request: Request) -> str:
    branch = "" if request.branch is None else f" on branch '{request.branch}'"
    target = "" if request.target is None else f" targeting branch '{request.target}'"
    return f"policy denied action '{request.action}'{branch}{target} for actor '{request.actor}'"


# -- Cedar -----------------------------------------------------------------------------


def _permits(file: PolicyFile) -> Iterator[str]:
    """A permit for each rule. What people wrote is data of the entities, never text of a permit."""
    kind, id_ = _RESOURCES[file.kind]
    numbers = {group: number for number, group in enumerate(file.groups)}
    for number, rule in enumerate(file.rules):
        actions = ", ".join(f'Action::"{action}"' for action in rule.actions)
        yield (
            f'@id("{number}") permit (principal in Group::"{numbers[rule.group]}", '
            f'action in [{actions}], resource == {kind}::"{id_}"){_when(number, rule)};'
        )


def _when(number: int, rule: Rule) -> str:
    conditions: list[str] = []
    if rule.scope != "any":
        name = "branch" if rule.scope_key == "branch_scope" else "target"
        listed = f"resource.protected.contains(context.{name})"
        negated = "" if rule.scope == "protected" else "!"
        conditions.append(f"context has {name} && {negated}{listed}")
    if rule.queries is not None:
        conditions.append(f"context has query && resource.queries{number}.contains(context.query)")
    return f" when {{ {' && '.join(conditions)} }}" if conditions else ""


def _entities(file: PolicyFile) -> str:
    kind, id_ = _RESOURCES[file.kind]
    numbers = {group: str(number) for number, group in enumerate(file.groups)}
    groups = [{"uid": {"type": "Group", "id": number}} for number in numbers.values()]
    actors = [
        {
            "uid": {"type": "Actor", "id": actor},
            "parents": [{"type": "Group", "id": numbers[group]} for group in file.groups_of(actor)],
        }
        for actor in sorted(file.actors)
    ]
    queries = {
        f"queries{number}": list(rule.queries)
        for number, rule in enumerate(file.rules)
        if rule.queries is not None
    }
    resource = {
        "uid": {"type": kind, "id": id_},
        "attrs": {"protected": sorted(file.protected), **queries},
    }
    every: list[dict[str, Any]] = [*groups, *actors, resource]
    return json.dumps([{"attrs": {}, "parents": [], **one} for one in every])
