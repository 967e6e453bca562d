"""Actors from whom something is hidden, over HTTP: what a server adds tells of it no more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from starlette.testclient import TestClient

import omnigraph as og
from omnigraph.lang.source import Source
from omnigraph.policy import parse_policy
from omnigraph.server.app import Application
from omnigraph.server.served import ServedGraph, ServedGraphs
from omnigraph.server.stored_queries import StoredQueries
from omnigraph.server.tokens import Tokens

SCHEMA = """
node Person { name: String @key salary: I32? photo: Blob? plan: Blob? }
node Budget { title: String @key amount: I32 }
edge Pays: Budget -> Person { share: I32? }
edge Knows: Person -> Person
"""
ROWS: list[Any] = [
    {"type": "Person", "data": {"name": "Ann", "salary": 70, "photo": "base64:aGk="}},
    {"type": "Person", "data": {"name": "Ben", "salary": 60, "plan": "base64:aG8="}},
    {"type": "Person", "data": {"name": "Zoe", "salary": 50, "photo": "base64:aGk="}},
    {"type": "Budget", "data": {"title": "secretplan", "amount": 7}},
    {"edge": "Pays", "from": "secretplan", "to": "Ann", "data": {"share": 3}},
    {"edge": "Knows", "from": "Ann", "to": "Ben", "data": {"id": "e"}},
    {"edge": "Knows", "from": "Ann", "to": "Zoe", "data": {}},
]
SHOWN_SCHEMA = """
node Person { name: String @key photo: Blob? }
edge Knows: Person -> Person
"""
SHOWN_ROWS: list[Any] = [
    {"type": "Person", "data": {"name": "Ann", "photo": "base64:aGk="}},
    {"type": "Person", "data": {"name": "Ben"}},
    {"edge": "Knows", "from": "Ann", "to": "Ben", "data": {"id": "e"}},
]
QUERIES = """
query people() { match { $p: Person } return { $p.name as name } order { name } }
query earning($salary: I32) @description("Who earns that salary.") {
    match { $p: Person { salary: $salary } } return { $p.name as name }
}
query spend($amount: I32) { update Budget set { amount: $amount } where title = "secretplan" }
query befriend($who: String) { insert Knows { from: $who, to: "Ann" } }
"""
SHOWN_QUERIES = "\n".join(QUERIES.strip().splitlines()[i] for i in (0, 5))
POLICY = """
version: 1
groups: {owners: [olga], readers: [ann], outsiders: [tom], keepers: [kim]}
protected_branches: [private]
rules:
  - id: all
    allow: {actors: {group: owners}, actions: [read, export, change, invoke_query, branch_create,
            admin]}
  - id: some
    allow:
      actors: {group: readers}
      actions: [read, export, change]
      branch_scope: unprotected
      types: [Person, Knows]
      hide: {Person: [salary, plan]}
      rows: {Person: 'name != "Zoe"'}
  - id: call
    allow: {actors: {group: readers}, actions: [invoke_query]}
  - id: look
    allow: {actors: {group: readers}, actions: [read], types: [Person, Knows],
            hide: {Person: [salary, plan]}, rows: {Person: 'name != "Zoe"'}}
  - id: keep
    allow: {actors: {group: keepers}, actions: [admin]}
"""
NAMES = ("olga", "ann", "tom", "kim")


@dataclass(frozen=True)
class Side:
    """A server and how to ask it."""

    graph: og.Graph
    client: TestClient

    def ask(self, who: str, method: str, path: str, **more: Any) -> Any:
        headers = {"Authorization": f"Bearer token-of-{who}", **more.pop("headers", {})}
        return self.client.request(method, f"/graphs/work{path}", headers=headers, **more)


def side(graph: og.Graph, queries: str) -> Iterator[Side]:
    stored = StoredQueries.of(iter([Source(queries, "stored.gq")]))
    policy = parse_policy(POLICY)
    served = ServedGraph("work", graph, policy, stored)
    tokens = Tokens.of([(name, f"token-of-{name}") for name in NAMES])
    graphs = ServedGraphs({"work": served}, has_policies=True)
    app = Application(graphs, "policy_enabled", tokens)
    with TestClient(app, raise_server_exceptions=False) as client:
        yield Side(graph, client)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    graph = og.init(tmp_path_factory.mktemp("whole") / "g", SCHEMA)
    graph.load(ROWS, mode="append")
    graph.branches.create("private")
    add = 'query q() { insert Budget { title: "more", amount: 1 } }'
    graph.mutate(add, branch="private")
    yield from side(graph, QUERIES)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """The graph from which everything was deleted that is hidden from ann in the other."""
    graph = og.init(tmp_path_factory.mktemp("small") / "g", SHOWN_SCHEMA)
    graph.load(SHOWN_ROWS, mode="append")
    graph.branches.create("private")
    yield from side(graph, SHOWN_QUERIES)


def test_a_stored_query_that_names_hidden_things_is_not_there(whole: Side) -> None:
    listed = [one["name"] for one in whole.ask("ann", "GET", "/queries").json()["queries"]]
    assert listed == ["befriend", "people"]
    every = [one["name"] for one in whole.ask("olga", "GET", "/queries").json()["queries"]]
    assert every == ["befriend", "earning", "people", "spend"]
    found = whole.ask("ann", "POST", "/queries/people").json()
    assert found["rows"] == [{"name": "Ann"}, {"name": "Ben"}]
    unknown = whole.ask("ann", "POST", "/queries/nothing")
    for name, body in (
        ("earning", {"params": {"salary": 70}}),
        ("earning", {"params": {"salary": "x"}}),
        ("earning", {"branch": "private"}),
        ("spend", {"params": {"amount": 1}}),
        ("spend", {"expect_mutation": False}),
        ("spend", {"branch": "private"}),
    ):
        hidden = whole.ask("ann", "POST", f"/queries/{name}", json=body)
        assert (hidden.status_code, hidden.json()) == (404, unknown.json()), (name, body)
    conditional = {"headers": {"Omnigraph-If-Graph-Commit": "01A"}, "json": {}}
    hidden = whole.ask("ann", "POST", "/queries/spend/if-graph-commit", **conditional)
    assert hidden.json() == unknown.json()
    asked = {"params": {"salary": 70}}
    assert whole.ask("olga", "POST", "/queries/earning", json=asked).json()["row_count"] == 1


def test_a_commit_that_was_seen_is_no_question_about_others(whole: Side) -> None:
    """Who may read nothing learns of no commit, and who may not read a branch of none there."""
    main = whole.graph.snapshot().commit_id
    asked = {"query": "query q() { match { $p: Person } return { count($p) as c } }"}

    def fresh(who: str, commit: str) -> tuple[int, str]:
        headers = {"Omnigraph-Min-Commit": commit}
        answer = whole.ask(who, "POST", "/query", json=asked, headers=headers)
        return answer.status_code, answer.text.replace(commit, "it")

    assert fresh("ann", main)[0] == 200
    assert fresh("tom", main) == fresh("tom", "01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert fresh("tom", main)[0] == 403
    assert fresh("kim", main) == fresh("kim", "01ARZ3NDEKTSV4RRFFQ69G5FAV")


def test_figures_are_for_those_from_whom_nothing_is_hidden(whole: Side) -> None:
    seen = {}
    for who in NAMES:
        headers = {"Authorization": f"Bearer token-of-{who}"}
        seen[who] = whole.client.get("/metrics", headers=headers).status_code
    assert seen == {"olga": 200, "kim": 200, "ann": 403, "tom": 403}


PEOPLE = "query q() { match { $p: Person } return { $p.name as n } order { n } }"


def questions() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """What somebody asks who looks for what is hidden."""
    for text in (
        PEOPLE,
        PEOPLE.replace("$p.name as n", "$p.salary as n"),
        PEOPLE.replace("$p.name as n", "$p.salry as n"),
        PEOPLE.replace("$p: Person", "$p: Budget"),
        PEOPLE.replace("$p: Person", "$p: Budgt"),
        PEOPLE.replace("$p: Person", "$p: Person $b pays $p"),
        PEOPLE.replace("$p: Person", "$p: Person $q knows $p"),
        PEOPLE.replace("$p.name as n", "count($p) as n"),
        PEOPLE.replace("$p.name as n", "$p as n"),
        'query q() { match { $p: Person { name: "Zoe" } } return { $p.name as n } }',
        "query q() { match { $p: Person not { $p knows $x } } return { $p.name as n } }",
        "query q() { match { $a: Person $a knows{1,3} $x } return { $x.name as n } order { n } }",
    ):
        yield "POST", "/query", {"json": {"query": text}}
        yield "POST", "/read", {"json": {"query_source": text}}
    yield "GET", "/schema", {}
    yield "GET", "/queries", {}
    yield "POST", "/export", {"json": {}}
    for types in (["Budget"], ["Budgt"], ["Person", "Pays"]):
        yield "POST", "/export", {"json": {"type_names": types}}
        yield "POST", "/changes/baseline", {"json": {"type": types}}
        yield "GET", "/changes", {"params": [("start", "now"), *(("type", one) for one in types)]}
    for selector in (
        {"type": "Person", "id": "Ann", "property": "photo"},
        {"type": "Person", "id": "Zoe", "property": "photo"},
        {"type": "Person", "id": "Nobody", "property": "photo"},
        {"type": "Person", "id": "Ben", "property": "plan"},
        {"type": "Person", "id": "Ben", "property": "nothing"},
        {"type": "Budget", "id": "secretplan", "property": "photo"},
    ):
        yield "GET", "/blob", {"params": {"entity": "node", **selector}}
        yield "HEAD", "/blob", {"params": {"entity": "node", **selector}}
    for text in (
        'query q() { update Person set { salary: 1 } where name = "Ann" }',
        "query q() { update Person set { photo: null } where salary = 70 }",
        'query q() { insert Budget { title: "x", amount: 1 } }',
        'query q() { insert Person { name: "Zoe" } }',
        'query q() { delete Person where name = "Zoe" }',
        'query q() { delete Person where name = "Nobody" }',
        'query q() { insert Knows { from: "Ann", to: "Zoe" } }',
    ):
        yield "POST", "/mutate", {"json": {"query": text}}
    for path in ("/status", "/commits/01ARZ3NDEKTSV4RRFFQ69G5FAV/changes", "/branches"):
        yield "GET", path, {}
    yield "POST", "/load", {"json": {"data": '{"type": "Budget", "data": {"title": "x"}}'}}
    yield "POST", "/schema/apply", {"json": {"schema_source": SHOWN_SCHEMA}}
    yield "POST", "/maintain", {"json": {"dry_run": True}}
    yield "POST", "/embed", {"json": {"type": "Budget"}}
    for name in ("earning", "spend", "people"):
        yield "POST", f"/queries/{name}", {"json": {"params": {}}}


def heard(answer: Any, graph: og.Graph) -> object:
    """An answer without what tells graphs and moments apart."""
    text = answer.text
    for commit in [one for name in ("main", "private") for one in graph.commits.list(name)]:
        text = text.replace(commit.id, "COMMIT")
    known = ("content-type", "content-length", "etag", "content-range", "allow")
    headers = {name: answer.headers[name] for name in known if name in answer.headers}
    if "resume_cursor" in text or '"cursor"' in text:
        lines = [json.loads(line) for line in text.splitlines()]
        for line in lines:
            line.pop("cursor", None)
            line.get("baseline", {}).pop("resume_cursor", None)
        text = json.dumps(lines)
        headers.pop("content-length", None)
    return answer.status_code, text, headers


@pytest.mark.parametrize("number", range(len(list(questions()))))
def test_what_is_hidden_is_not_there(whole: Side, small: Side, number: int) -> None:
    method, path, more = list(questions())[number]
    said = [heard(one.ask("ann", method, path, **more), one.graph) for one in (whole, small)]
    assert said[0] == said[1], (method, path, more)
