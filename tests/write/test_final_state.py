"""Statements of all kinds in one mutation: each sees what was before, the rules see the end."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.lang.structural import DST, SRC
from tests.write.writing import image, mutate, rows, unchanged

SCHEMA = """
node Person { name: String @key  u: String? @unique  age: I32?  @range(age, 0..150) }
node Team { name: String @key }
node Fact { text: String }
edge Leads: Person -> Team @card(1..1) { note: String? }
edge Knows: Person -> Person { tag: String? @unique  @unique(src, dst) }
"""


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "graph", SCHEMA)
    graph.load(
        [
            {"type": "Person", "data": {"name": "a", "u": "1", "age": 1}},
            {"type": "Person", "data": {"name": "b", "u": "2", "age": 2}},
            {"type": "Person", "data": {"name": "c"}},
            {"type": "Team", "data": {"name": "s"}},
            {"type": "Team", "data": {"name": "t"}},
            {"edge": "Leads", "from": "a", "to": "s", "data": {"id": "l1"}},
            {"edge": "Knows", "from": "a", "to": "b", "data": {"id": "k1", "tag": "x"}},
            {"edge": "Knows", "from": "b", "to": "a", "data": {"id": "k2"}},
        ],
        mode="append",
    )
    return graph


def leads(graph: og.Graph) -> list[tuple[str, str]]:
    return sorted((row[SRC], row[DST]) for row in rows(graph, "Leads").values())


# -- rules are judged on the final state ---------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        'update Person set { u: "x" } where age >= 1 update Person set { u: "y" } where name = "b"',
        'insert Person { name: "d" u: "1" } update Person set { u: null } where name = "a"',
        'insert Person { name: "d" u: "1" } delete Person where name = "a"',
        'insert Person { name: "d" u: "1" } insert Person { name: "d" u: "4" }',
        'create Person { name: "d" u: "1" } upsert Person { name: "a" u: "4" }',
        'update Person set { u: "2" } where age = 1 update Person set { u: "1" } where age = 2',
        'update Person set { age: -1 } where name = "a" update Person set { age: 3 } where age < 0',
        'update Person set { age: 900 } where name = "c" delete Person where name = "c"',
    ],
)
def test_a_rule_that_is_broken_in_between(graph: og.Graph, body: str) -> None:
    assert mutate(graph, body).commit is not None


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ('update Person set { u: "x" } where age >= 1', "unique"),
        (
            'update Person set { u: "y" } where name = "b" insert Person { name: "d" u: "y" }',
            "unique",
        ),
        ('delete Person where name = "a" insert Person { name: "a" u: "2" }', "unique"),
        ('delete Leads where from = "a"', "cardinality"),
        ('delete Leads where from = "a" insert Leads { from: "b" to: "t" }', "cardinality"),
        ('insert Leads { from: "a" to: "t" } delete Leads where to = "nobody"', "cardinality"),
        # Its edge went with it, and nobody gives it another.
        ('delete Person where name = "a" insert Person { name: "a" }', "cardinality"),
        ('delete Team where name = "t" insert Leads { from: "b" to: "t" }', "endpoint"),
        ('insert Person { name: "d" } insert Knows { from: "e" to: "d" }', "endpoint"),
    ],
)
def test_a_rule_that_is_broken_in_the_end(graph: og.Graph, body: str, rule: str) -> None:
    with unchanged(graph), pytest.raises(errors.ValidationError) as caught:
        mutate(graph, body)
    assert caught.value.rule == rule


def test_the_only_edge_is_exchanged(graph: og.Graph) -> None:
    result = mutate(graph, 'delete Leads where from = "a" insert Leads { from: "a" to: "t" }')
    assert (result.affected_nodes, result.affected_edges) == (0, 2)
    assert leads(graph) == [("a", "t")]
    mutate(graph, 'insert Leads { from: "a" to: "s" } delete Leads where to = "t"')
    assert leads(graph) == [("a", "s")]


@pytest.mark.slow
def test_ends_that_come_later_and_ends_that_come_back(graph: og.Graph) -> None:
    mutate(
        graph,
        'insert Knows { from: "e" to: "d" } create Person { name: "d" } '
        'upsert Person { name: "e" }',
    )
    mutate(
        graph,
        'delete Person where name = "a" insert Knows { from: "b" to: "a" } '
        'insert Person { name: "a" } insert Leads { from: "a" to: "t" }',
    )
    ends = {(row[SRC], row[DST]) for row in rows(graph, "Knows").values()}
    assert ends == {("e", "d"), ("b", "a")}
    assert leads(graph) == [("a", "t")]


# -- statements see what was done before them ----------------------------------------------------


def test_a_delete_sees_what_was_written(graph: og.Graph) -> None:
    result = mutate(
        graph,
        'insert Person { name: "d" age: 7 } insert Fact { text: "x" } '
        'update Person set { age: 7 } where name = "c" '
        'insert Knows { from: "d" to: "c" } '
        'delete Person where age = 7 delete Fact where text = "x"',
    )
    assert (result.affected_nodes, result.affected_edges) == (3 + 3, 1 + 1)
    found = image(graph)
    assert found["node:Person"].keys() == {"a", "b"}
    assert found["node:Fact"] == {}
    assert found["edge:Knows"].keys() == {"k1", "k2"}


def test_what_was_changed_is_not_deleted_for_what_it_was(graph: og.Graph) -> None:
    result = mutate(
        graph,
        'update Person set { age: 9 } where name = "a" delete Person where age = 1 '
        'update Knows set { tag: "y" } where tag = "x" delete Knows where tag = "x"',
    )
    assert (result.affected_nodes, result.affected_edges) == (1, 1)
    assert rows(graph, "Person")["a"]["age"] == 9


def test_what_was_deleted_is_gone(graph: og.Graph) -> None:
    result = mutate(
        graph,
        'delete Person where name = "b" update Person set { age: 8 } where age >= 0 '
        'update Knows set { tag: "y" } where from = "a" delete Person where name = "b"',
    )
    assert (result.affected_nodes, result.affected_edges) == (1 + 1, 2)
    assert rows(graph, "Knows") == {}
    assert rows(graph, "Person")["a"]["age"] == 8


def test_a_row_that_is_deleted_and_made_again_is_the_same_row(graph: og.Graph) -> None:
    before = graph.snapshot().commit_id
    result = mutate(graph, 'delete Person where name = "c" insert Person { name: "c" age: 4 }')
    assert (result.affected_nodes, result.warnings) == (2, ())
    assert rows(graph, "Person")["c"] == {"name": "c", "u": None, "age": 4}
    (change,) = graph.diff(before, "main")
    assert (change.op, change.id) == ("update", "c")


def test_what_comes_to_nothing_is_no_commit(graph: og.Graph) -> None:
    with unchanged(graph):
        result = mutate(graph, 'insert Fact { text: "x" } delete Fact where text = "x"')
    assert (result.affected_nodes, result.commit) == (2, None)


def test_everything_in_one_mutation(graph: og.Graph) -> None:
    result = mutate(
        graph,
        'delete Knows where tag = "x" create Person { name: "d" age: 4 } '
        'upsert Person { name: "d" u: "4" } update Person set { age: 5 } where u = "4" '
        'insert Leads { from: "d" to: "u" } insert Team { name: "u" } delete Team where name = "t" '
        'update Leads set { note: "n" } where to = "u" upsert Person { name: "a" age: 6 }',
    )
    assert (result.affected_nodes, result.affected_edges) == (6, 3)
    found = image(graph)
    assert found["node:Person"]["d"] == {"name": "d", "u": "4", "age": 5}
    assert found["node:Person"]["a"] == {"name": "a", "u": "1", "age": 6}
    assert found["node:Team"].keys() == {"s", "u"}
    assert found["edge:Knows"].keys() == {"k2"}
    assert leads(graph) == [("a", "s"), ("d", "u")]


def test_a_null_is_refused_where_it_enters(graph: og.Graph) -> None:
    """Also when nobody gets it, or something else in the end."""
    source = 'query q($t: String?) { update Fact set { text: $t } where text = "nobody" }'
    with unchanged(graph), pytest.raises(errors.ValidationError) as caught:
        graph.mutate(source)
    assert caught.value.rule == "required"
    source = (
        'query q($t: String?) { insert Fact { text: $t } update Fact set { text: "x" } '
        "where text is null }"
    )
    with unchanged(graph), pytest.raises(errors.ValidationError) as caught:
        graph.mutate(source)
    assert caught.value.rule == "required"
