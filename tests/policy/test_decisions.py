"""Decisions: generated policies against an evaluator that says once more what rules mean."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Literal

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.graph.access import Access, Need
from omnigraph.manifest.limits import Grant
from omnigraph.policy import CompiledPolicy, Request
from omnigraph.policy.rules import GRAPH_ACTIONS, SCOPED_BY, PolicyFile, Rule
from tests import profile
from tests.film_graph import SCHEMA
from tests.graph.test_policy import ADD, Calls

ACTORS = ("ann", "ben", "zoe", 'o"dd\\', "\u00e9ve", "nobody")
BRANCHES = ("main", "dev", "caf\u00e9", "a/b")
QUERIES = ("one", 'two"', "three")
POLICIES = {"test": 60, "soak": 400}[profile.NAME]
REQUESTS = 100
"""Of each policy; with those of the façade and of the routes more than ten thousand decisions."""

HIDES = {
    *("schema", "catalog", "schema_at", "snapshot", "lint", "query", "explain", "table"),
    *("export", "plan_schema", "branches.list", "branches.delete", "commits.list", "commits.get"),
    *("commits.changes", "changes.poll", "changes.baseline", "mutate", "blob"),
    *("tags.list", "tags.delete", "history", "blame", "to_networkx", "to_igraph", "to_pyg"),
}
"""The methods that are not denied to those from whom something is hidden."""
SAME_LIMITS = {"branches.create", "branches.rename", "tags.create"}
"""Those that are not, if both branches show them the same."""


# -- what rules mean -------------------------------------------------------------------------


def _normal(branch: str | None) -> str | None:
    return None if branch is None else unicodedata.normalize("NFC", branch).strip()


def _covers(rule: Rule, protected: frozenset[str], branch: str | None) -> bool:
    if rule.scope == "any":
        return True
    if branch is None:
        return False
    return (branch in protected) if rule.scope == "protected" else (branch not in protected)


def _matching(file: PolicyFile, asked: Request) -> list[Rule]:
    """The rules that allow a request."""
    branch, target = _normal(asked.branch), _normal(asked.target)
    found = []
    for rule in file.rules:
        if asked.actor not in file.groups[rule.group] or asked.action not in rule.actions:
            continue
        on = target if rule.scope_key == "target_branch_scope" else branch
        if not _covers(rule, file.protected, on):
            continue
        if rule.queries is not None and asked.query not in rule.queries:
            continue
        found.append(rule)
    return found


def _seen(file: PolicyFile, actor: str, branch: str | None) -> list[Grant] | None:
    """What an actor sees of a branch: None for all, else what some rules show of it."""
    reading = [r for r in file.rules if actor in file.groups[r.group] and "read" in r.actions]
    if all(r.grant == Grant() for r in reading):
        return None
    on = [r for r in reading if branch is None or _covers(r, file.protected, branch)]
    if branch is not None and any(r.grant == Grant() for r in on):
        return None
    return [r.grant for r in on if r.grant != Grant()]


# -- generated policies ------------------------------------------------------------------------


def _policy(rng: Random) -> PolicyFile:
    groups = {
        name: tuple(rng.sample(ACTORS[:-1], rng.randint(1, 4))) for name in ("team", "x y", 'q"')
    }
    protected = frozenset(rng.sample(BRANCHES, rng.randint(0, 2)))
    rules = [_rule(rng, f"rule {number}", list(groups)) for number in range(rng.randint(1, 6))]
    return PolicyFile("generated", groups, protected, tuple(rules))


def _rule(rng: Random, id_: str, groups: list[str]) -> Rule:
    group = rng.choice(groups)
    if rng.random() < 0.15:
        queries = tuple(rng.sample(QUERIES, rng.randint(1, 2))) if rng.random() < 0.7 else None
        return Rule(id_, group, ("invoke_query",), queries=queries)
    key: Any = rng.choice((None, "branch_scope", "target_branch_scope"))
    fitting = [one for one in GRAPH_ACTIONS if key is None or SCOPED_BY.get(one) == key]
    actions = tuple(rng.sample(fitting, rng.randint(1, len(fitting))))
    scope: Any = "any" if key is None else rng.choice(("any", "protected", "unprotected"))
    grant = Grant()
    if "read" in actions and rng.random() < 0.5:
        grant = rng.choice(
            (
                Grant(types=frozenset({"Person", "Film"})),
                Grant(hide=(("Person", frozenset({"born"})),)),
                Grant(rows=(("Person", 'name starts_with "A"'),)),
            )
        )
    return Rule(id_, group, actions, scope, key, None, grant)


def _spelled(rng: Random, branch: str) -> str:
    """A branch in any of the ways in which it may be written."""
    forms: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD")
    form = rng.choice(forms)
    return rng.choice(("{}", " {}", "{} ", "\t{}\n")).format(unicodedata.normalize(form, branch))


@pytest.mark.soak
def test_decisions_are_those_of_the_rules(record_property: Callable[[str, object], None]) -> None:
    rng = Random(21)  # noqa: S311 - for tests, not for secrets
    decided = 0
    for _ in range(POLICIES):
        file = _policy(rng)
        policy = CompiledPolicy.of(file)
        for _ in range(REQUESTS):
            branch, target = (
                _spelled(rng, rng.choice(BRANCHES)) if rng.random() < 0.7 else None for _ in "bt"
            )
            query = rng.choice((*QUERIES, None))
            asked = Request(rng.choice(ACTORS), rng.choice(GRAPH_ACTIONS), branch, target, query)
            matching = _matching(file, asked)
            found = policy.decide(asked)
            assert found.is_allowed == bool(matching), (file, asked)
            assert found.matched_rule == min((rule.id for rule in matching), default=None)
            seen = _seen(file, asked.actor, _normal(branch))
            limits = policy.limits(asked.actor, branch)
            assert (None if limits is None else list(limits.grants)) == seen, (file, asked)
            decided += 1
    record_property("decisions compared", decided)
    assert decided == REQUESTS * POLICIES


# -- every method of the façade -----------------------------------------------------------------


class _Allowed(errors.OmniGraphError):
    """A call was allowed, and would go on."""

    default_code = "internal_error"


@pytest.mark.slow
@pytest.mark.soak
def test_every_method_is_allowed_to_whom_the_rules_allow_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    graph = og.init(tmp_path / "film.omni", SCHEMA, actor="owner")
    graph.branches.create("dev")
    graph.mutate(ADD, branch="dev")
    calls = Calls(graph, tmp_path).all()
    ask = Need.ask

    def stopping(need: Need, access: Access, given: dict[str, Any]) -> None:
        ask(need, access, given)
        if need.when is None or need.when(access, given):
            raise _Allowed("allowed")

    monkeypatch.setattr(Need, "ask", stopping)
    rng = Random(22)  # noqa: S311 - as above
    decided = 0
    for _ in range(POLICIES):
        file = _policy(rng)
        policy = CompiledPolicy.of(file)
        for actor in rng.sample(ACTORS, 2):
            session = graph.as_actor(actor, policy)
            for name, (call, (action, branch, target)) in calls.items():
                allowed = bool(_matching(file, Request(actor, action, branch, target)))
                hidden = [
                    _seen(file, actor, one)
                    for one in ([b for b in (branch, target) if b is not None] or [None])
                ]
                if name in SAME_LIMITS:
                    first, second = hidden
                    allowed = allowed and first == second
                elif name not in HIDES:
                    allowed = allowed and all(one is None for one in hidden)
                with pytest.raises((errors.PolicyDenied, _Allowed)) as raised:
                    call(session)
                assert (raised.type is _Allowed) == allowed, (name, actor, file)
                decided += 1
    record_property("decisions of the façade compared", decided)
    assert decided == 2 * POLICIES * len(calls)
