"""Mutations by actors who do not see everything: nothing that they learn tells of the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.graph import Session
from omnigraph.policy import parse_policy

SCHEMA = """
node Team { name: String @key }
node Task { title: String team: String state: String? cost: I32? }
node Page { slug: String @key team: String text: String? tag: String? @unique }
node Person { name: String @key salary: I32? phone: String? }
edge Owns: Person -> Task
edge Likes: Person -> Person { since: I32? private: Bool? }
edge Links: Page -> Page
edge Knows: Person -> Team @card(1..)
"""
POLICY = parse_policy(
    """
version: 1
groups: {red: [ann]}
rules:
  - id: red
    allow:
      actors: {group: red}
      actions: [read, change, export]
      types: [Team, Task, Page, Person, Owns, Likes, Links]
      hide: {Person: [salary]}
      rows:
        Task: team = "red"
        Page: team = "red"
        Likes: private is null
"""
)
SHOWN: list[Any] = [
    {"type": "Team", "data": {"name": "red"}},
    {"type": "Task", "data": {"title": "a", "team": "red", "state": "open"}},
    {"type": "Page", "data": {"slug": "p1", "team": "red", "tag": "x"}},
    {"type": "Person", "data": {"name": "ann", "salary": 7}},
    {"type": "Person", "data": {"name": "ben", "salary": 9}},
    {"edge": "Likes", "from": "ann", "to": "ben", "data": {"since": 1}},
    {"edge": "Knows", "from": "ann", "to": "red", "data": {}},
    {"edge": "Knows", "from": "ben", "to": "red", "data": {}},
]
HIDDEN: list[Any] = [
    {"type": "Task", "data": {"title": "b", "team": "blue", "state": "open", "cost": 9}},
    {"type": "Page", "data": {"slug": "p2", "team": "blue", "tag": "y"}},
    {"edge": "Likes", "from": "ben", "to": "ann", "data": {"since": 2, "private": True}},
]

ALLOWED = {
    'update Task set { state: "done" } where state = "open"': 1,
    'update Task set { cost: 3 } where team = "blue"': 0,
    'update Page set { text: "t" } where slug = "p2"': 0,
    'update Page set { text: "t" } where slug in ["p1", "p2"]': 1,
    'update Person set { phone: "1" } where name = "ann"': 1,
    "update Likes set { since: 5 } where since > 0": 1,
    "delete Likes where since > 0": 1,
    'delete Task where state = "open"': None,
    'insert Task { title: "c", team: "red" }': 1,
    'insert Team { name: "green" }': 1,
    'match { $t: Task { state: "open" } } update $t set { cost: 3 }': 1,
    "match { $t: Task } update $t set { cost: coalesce($t.cost, 1) + 1 }": 1,
    "match { $a $e:likes $b } update $e set { since: $e.since + 1 }": 1,
    "match { $a $e:likes $b } delete $e": 1,
    "match { $t: Task } insert Team { name: $t.title }": 1,
    'update Task set { cost: length(title) } where length(title) > 0 or team = "blue"': 1,
    "update Task set { cost: 2 } where coalesce(cost, 1) * 9223372036854775807 > 0": 1,
}
"""What may be done, and how many entities it affects; None for what is refused after all."""

DENIED = (
    'insert Task { title: "c", team: "blue" }',
    'update Task set { team: "blue" } where title = "a"',
    'insert Page { slug: "p2", team: "red" }',
    'insert Page { slug: "p3", team: "red" }',
    'create Page { slug: "p2", team: "red" }',
    'upsert Page { slug: "p3", team: "red" }',
    'update Page set { tag: "y" } where slug = "p1"',
    'update Page set { tag: "z" } where slug = "p1"',
    'insert Person { name: "ben" }',
    'insert Person { name: "new" }',
    'delete Person where name = "ben"',
    'delete Person where name = "nobody"',
    'delete Task where title = "b"',
    'delete Page where slug = "p1"',
    'insert Links { from: "p1", to: "p2" }',
    'insert Links { from: "p1", to: "p9" }',
    'insert Owns { from: "ann", to: "x" }',
    'insert Likes { from: "ann", to: "ben", private: true }',
    'delete Links where from = "p1"',
    'match { $t: Task } update $t set { team: "blue" }',
    "match { $p: Person } delete $p",
    "match { $p: Page } delete $p",
    'match { $p: Page } update $p set { tag: "z" }',
    'match { $p: Person } insert Page { slug: $p.name, team: "red" }',
)
UNKNOWN = (
    'update Person set { salary: 1 } where name = "ann"',
    'update Person set { phone: "1" } where salary = 7',
    'insert Knows { from: "ann", to: "red" }',
    'delete Knows where from = "ann"',
    "match { $p: Person } update $p set { phone: to_string($p.salary) }",
    'update Person set { phone: "1" } where salary + 1 > 0',
)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """Both branches show the actor the same; one of them hides nothing."""
    root = tmp_path_factory.mktemp("limited") / "graph"
    graph = og.init(root, SCHEMA)
    graph.load(SHOWN, mode="append")
    graph.branches.create("bare")
    graph.load(HIDDEN, mode="append")
    return graph


def said(session: Session, statement: str, branch: str) -> object:
    try:
        done = session.mutate(f"query q() {{ {statement} }}", branch=branch)
    except errors.OmniGraphError as error:
        return (type(error), error.code, error.message, error.details)
    return done.affected_nodes + done.affected_edges


@pytest.mark.parametrize("statement", ALLOWED)
def test_only_what_is_shown_is_changed(graph: og.Graph, statement: str) -> None:
    session = graph.as_actor("ann", POLICY)
    for branch in ("full", "none"):
        graph.branches.create(branch, "main" if branch == "full" else "bare")
    try:
        hidden = set(graph.export(branch="full")) - set(session.export(branch="full"))
        count = ALLOWED[statement]
        if count is not None:
            assert said(session, statement, "full") == said(session, statement, "none") == count
        else:
            assert said(session, statement, "full") == said(session, statement, "none")
        whole, shown = set(graph.export(branch="full")), set(session.export(branch="full"))
        kept = {line for line in hidden if '"Person"' not in line}
        assert kept <= whole - shown
        salaries = [row["s"] for row in graph.query(SALARIES, branch="full").rows]
        assert salaries == [7, 9]
    finally:
        for branch in ("full", "none"):
            graph.branches.delete(branch)


SALARIES = "query s() { match { $p: Person } return { $p.salary as s } order { $p.name asc } }"


def test_a_refusal_is_the_same_whatever_is_hidden(graph: og.Graph) -> None:
    session = graph.as_actor("ann", POLICY)
    before = [graph.snapshot(branch).commit_id for branch in ("main", "bare")]
    for statement in DENIED:
        refused = said(session, statement, "main")
        assert refused == said(session, statement, "bare"), statement
        assert isinstance(refused, tuple), statement
        assert refused[0] is errors.PolicyDenied, (statement, refused)
        assert "salary" not in refused[2]
        assert "Knows" not in refused[2]
    for statement in UNKNOWN:
        refused = said(session, statement, "main")
        assert refused == said(session, statement, "bare"), statement
        assert isinstance(refused, tuple), statement
        assert refused[0] is errors.TypeCheckError, (statement, refused)
    assert before == [graph.snapshot(branch).commit_id for branch in ("main", "bare")]


def test_a_match_is_read_by_those_who_may_read(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", SCHEMA)
    graph.load(SHOWN, mode="append")
    policy = parse_policy(
        """
version: 1
groups: {red: [ann]}
rules:
  - id: red
    allow: {actors: {group: red}, actions: [change]}
"""
    )
    session = graph.as_actor("ann", policy)
    session.mutate('query q() { update Task set { cost: 1 } where title = "a" }')
    with pytest.raises(errors.PolicyDenied, match="'read'"):
        session.mutate("query q() { match { $t: Task } update $t set { cost: 2 } }")


def test_other_writes_are_denied(graph: og.Graph) -> None:
    session = graph.as_actor("ann", POLICY)
    for call in (
        lambda: session.load(SHOWN, mode="merge"),
        lambda: session.embed("Person"),
        session.ensure_indices,
    ):
        with pytest.raises(errors.PolicyDenied, match="hidden from this actor"):
            call()


def test_a_run_of_somebody_else_is_not_repeated(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", SCHEMA)
    graph.load(SHOWN + HIDDEN, mode="append")
    text = 'query q() { update Task set { state: "done" } where state = "open" }'
    assert graph.mutate(text, run_id="r").affected_nodes == 2
    with pytest.raises(errors.Conflict):
        graph.as_actor("ann", POLICY).mutate(text, run_id="r")
