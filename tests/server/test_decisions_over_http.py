"""Every route decides as the rules of a policy say: generated policies against the small evaluator.

The evaluator is that of `tests/policy/test_decisions.py`; what each route asks for stands here once
more, as the contract has it, and shares nothing with the routes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

import omnigraph as og
from omnigraph.lang.source import Source
from omnigraph.policy import CompiledPolicy, Request
from omnigraph.policy.rules import PolicyFile
from omnigraph.server.app import Application
from omnigraph.server.routes import all_routes
from omnigraph.server.served import ServedGraph, ServedGraphs
from omnigraph.server.settings import Limits
from omnigraph.server.stored_queries import StoredQueries
from omnigraph.server.tokens import Tokens
from tests import profile
from tests.policy.test_decisions import (
    ACTORS,
    BRANCHES,
    _matching,
    _policy,
    _seen,
    _spelled,
)

DECISIONS = {"test": 1_500, "soak": 12_000}[profile.NAME]
SCHEMA = """
node Person { name: String @key age: I32? born: I32? photo: Blob? }
node Film { title: String @key }
edge ActedIn: Person -> Film
"""
QUERIES = """
query people() { match { $p: Person } return { $p.name as n } }
query age() { update Person set { age: 1 } where name = "nobody" }
"""
ALL = "query q() { match { $p: Person } return { $p.name as n } }"
CHANGE = 'query q() { update Person set { age: 1 } where name = "nobody" }'
GONE = "gone"
TARGETS = (*BRANCHES, GONE)


@dataclass(frozen=True)
class Asked:
    """A request, and what has to be allowed for it."""

    operation: str
    method: str
    path: str
    needs: tuple[tuple[str, str | None, str | None], ...]
    options: dict[str, Any]
    hides: bool = True
    """Whether it answers those from whom something is hidden."""
    query: str | None = None
    """The stored query that it calls."""


class Draw:
    """Requests with branches in any spelling; none of them changes what is asked for later."""

    def __init__(self, rng: Random, heads: dict[str, str]) -> None:
        self._rng = rng
        self._heads = heads

    def _branch(self) -> tuple[str, str]:
        """A branch, and how it is written."""
        branch = self._rng.choice(BRANCHES)
        return branch, _spelled(self._rng, branch)

    def all(self) -> Iterator[Asked]:
        """A request of each route of a graph."""
        for build in (self._looks, self._streams, self._writes, self._stored, self._moves):
            yield from build()

    def _looks(self) -> Iterator[Asked]:
        for operation, path, hides in (
            ("getSnapshot", "/snapshot", True),
            ("listCommits", "/commits", True),
            ("pollChanges", "/changes", True),
            ("getStatus", "/status", False),
        ):
            branch, written = self._branch()
            need = (("read", branch, None),)
            yield Asked(operation, "GET", path, need, {"params": {"branch": written}}, hides)
        for operation, path in (
            ("getSchema", "/schema"),
            ("listBranches", "/branches"),
            ("getCommit", f"/commits/{self._heads['dev']}"),
        ):
            yield Asked(operation, "GET", path, (("read", None, None),), {})
        yield Asked("listQueries", "GET", "/queries", (("read", "main", None),), {})
        branch, _ = self._branch()
        path, need = f"/commits/{self._heads[branch]}/changes", (("read", branch, None),)
        yield Asked("listCommitChanges", "GET", path, need, {})
        for operation, path, member in (
            ("query", "/query", "query"),
            ("read", "/read", "query_source"),
        ):
            branch, written = self._branch()
            where = self._rng.choice(({"branch": written}, {"snapshot": self._heads[branch]}))
            need = (("read", branch, None),)
            yield Asked(operation, "POST", path, need, {"json": {member: ALL, **where}})
        for operation, method in (("getBlob", "GET"), ("headBlob", "HEAD")):
            branch, written = self._branch()
            where = self._rng.choice(({"branch": written}, {"snapshot": self._heads[branch]}))
            selector = {"entity": "node", "type": "Person", "id": "nobody", "property": "photo"}
            need = (("read", branch, None),)
            yield Asked(operation, method, "/blob", need, {"params": selector | where})

    def _streams(self) -> Iterator[Asked]:
        for operation, path in (
            ("export", "/export"),
            ("captureChangeBaseline", "/changes/baseline"),
        ):
            branch, written = self._branch()
            need = (("export", branch, None),)
            yield Asked(operation, "POST", path, need, {"json": {"branch": written}})

    def _writes(self) -> Iterator[Asked]:
        for operation, path, member in (
            ("mutate", "/mutate", "query"),
            ("change", "/change", "query_source"),
            ("mutateIfGraphCommit", "/mutate/if-graph-commit", "query"),
        ):
            branch, written = self._branch()
            options = {"json": {member: CHANGE, "branch": written}} | self._condition(path, branch)
            yield Asked(operation, "POST", path, (("change", branch, None),), options)
        for operation, path in (("load", "/load"), ("ingest", "/ingest")):
            branch, written = self._branch()
            base, from_ = self._branch()
            more = self._rng.choice(({}, {"from": from_}))
            needs: tuple[Any, ...] = (("change", branch, None),)
            body = {"data": "", "branch": written, **more}
            yield Asked(operation, "POST", path, needs, {"json": body}, hides=False)
        base, from_ = self._branch()
        needs = (("branch_create", base, GONE), ("change", GONE, None))
        where = {"branch": GONE, "from": from_, "mode": "merge"}
        lines = {"content": b"nothing", "headers": {"content-type": "application/x-ndjson"}}
        yield Asked("loadNdjson", "POST", "/load/ndjson", needs, {"params": where, **lines}, False)
        branch, written = self._branch()
        needs = (("admin", branch, None), ("change", branch, None))
        body = {"type": "Person", "branch": written}
        yield Asked("embed", "POST", "/embed", needs, {"json": body}, hides=False)
        maintained = self._rng.choice(((branch, written), (None, None)))
        dry: dict[str, Any] = {"dry_run": True, "branch": maintained[1]}
        needs = (("admin", maintained[0], None),)
        yield Asked("maintain", "POST", "/maintain", needs, {"json": dry}, hides=False)
        branch, written = self._branch()
        body = {"schema_source": SCHEMA, "branch": written}
        needs = (("schema_apply", None, branch),)
        yield Asked("applySchema", "POST", "/schema/apply", needs, {"json": body}, hides=False)

    def _stored(self) -> Iterator[Asked]:
        for name, action in (("people", "read"), ("age", "change")):
            branch, written = self._branch()
            path, need = f"/queries/{name}", ((action, branch, None),)
            body = {"json": {"branch": written}}
            yield Asked("invokeQuery", "POST", path, need, body, query=name)
        branch, written = self._branch()
        path, need = "/queries/age/if-graph-commit", (("change", branch, None),)
        options = {"json": {"branch": written}} | self._condition(path, branch)
        yield Asked("invokeQueryIfGraphCommit", "POST", path, need, options, query="age")

    def _moves(self) -> Iterator[Asked]:
        base, from_ = self._branch()
        name, written = self._branch()
        body = {"name": written, "from": from_}
        need = (("branch_create", base, name),)
        yield Asked("createBranch", "POST", "/branches", need, {"json": body})
        name = self._rng.choice(("main", GONE))
        path = f"/branches/{quote(_spelled(self._rng, name), safe='')}"
        yield Asked("deleteBranch", "DELETE", path, (("branch_delete", None, name),), {})
        target, written = self._branch()
        body = {"source": GONE, "target": written}
        need = (("branch_merge", GONE, target),)
        yield Asked("mergeBranches", "POST", "/branches/merge", need, {"json": body}, hides=False)

    def _condition(self, path: str, branch: str) -> dict[str, Any]:
        if not path.endswith("if-graph-commit"):
            return {}
        return {"headers": {"Omnigraph-If-Graph-Commit": self._heads[branch]}}


class Changing:
    """A policy that is another one for each round."""

    def __init__(self) -> None:
        self.now: CompiledPolicy

    def authorize(self, *args: Any, query: str | None = None) -> None:
        self.now.authorize(*args, query=query)

    def limits(self, actor: str, branch: str | None) -> Any:
        return self.now.limits(actor, branch)


def expected(file: PolicyFile, actor: str, asked: Asked) -> str:
    """What a request comes to: `done`, `denied`, or `hidden` where nothing seems to be there."""

    def allows(
        action: str, branch: str | None, target: str | None, query: str | None = None
    ) -> bool:
        return bool(_matching(file, Request(actor, action, branch, target, query)))

    if asked.query is not None:
        if not allows("invoke_query", None, None, asked.query):
            return "hidden"
        branch = asked.needs[0][1]
        if _seen(file, actor, None) is not None and not allows("read", branch, None):
            return "hidden" if asked.query == "age" else "denied"
    allowed = all(allows(*need) for need in asked.needs)
    for _, branch, target in asked.needs:
        named: list[str | None] = [one for one in (branch, target) if one is not None]
        named = named or [None]
        seen = [_seen(file, actor, one) for one in named]
        if asked.operation == "createBranch":
            allowed = allowed and seen[0] == seen[1]
        elif not asked.hides:
            allowed = allowed and all(one is None for one in seen)
    if allowed:
        return "done"
    return "hidden" if asked.operation == "listCommitChanges" else "denied"


def outcome(asked: Asked, answer: Any) -> str:
    """What it came to."""
    if answer.status_code == 403:
        return "denied"
    if answer.status_code == 404 and (asked.query or asked.operation == "listCommitChanges"):
        return "hidden"
    assert answer.status_code < 500, (asked, answer.text)
    return "done"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.init(tmp_path_factory.mktemp("decided") / "g", SCHEMA)
    graph.load([{"type": "Person", "data": {"name": "Ann", "born": 1980}}], mode="append")
    for branch in BRANCHES[1:]:
        graph.branches.create(branch)
    for number, branch in enumerate(BRANCHES):
        graph.mutate(f'query q() {{ insert Film {{ title: "{number}" }} }}', branch=branch)
    return graph


@pytest.mark.slow
@pytest.mark.soak
def test_every_route_decides_as_the_rules_do(
    graph: og.Graph, record_property: Callable[[str, object], None]
) -> None:
    rng = Random(23)  # noqa: S311 - for tests, not for secrets
    policy = Changing()
    stored = StoredQueries.of(iter([Source(QUERIES, "stored.gq")]))
    tokens = Tokens.of([(name, f"token-of-{number}") for number, name in enumerate(ACTORS)])
    served = ServedGraphs(
        {"film": ServedGraph("film", graph, policy, stored)},
        has_policies=True,
    )
    app = Application(served, "policy_enabled", tokens, Limits(wait_seconds=0.01))
    heads = {branch: graph.snapshot(branch).commit_id for branch in BRANCHES}
    draw, decided, seen = Draw(rng, heads), 0, set[tuple[str, str]]()
    with TestClient(app, raise_server_exceptions=False) as client:
        while decided < DECISIONS:
            file = _policy(rng)
            protected = frozenset(rng.sample(TARGETS, rng.randint(0, 3)))
            file = replace(file, protected=protected)
            policy.now = CompiledPolicy.of(file)
            number = rng.randrange(len(ACTORS))
            token = {"Authorization": f"Bearer token-of-{number}"}
            for asked in draw.all():
                headers = {**asked.options.get("headers", {}), **token}
                answer = client.request(
                    asked.method,
                    f"/graphs/film{asked.path}",
                    **{**asked.options, "headers": headers},
                )
                found = outcome(asked, answer)
                wanted = expected(file, ACTORS[number], asked)
                assert found == wanted, (ACTORS[number], asked, file, answer.text)
                seen.add((asked.operation, found))
                decided += 1
    record_property("decisions of routes compared", decided)
    operations = {route.operation for route in all_routes() if route.is_of_graph}
    assert {operation for operation, found in seen if found == "done"} == operations
    assert {operation for operation, found in seen if found != "done"} == operations
