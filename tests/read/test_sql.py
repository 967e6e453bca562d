"""SQL over the types of a branch or commit."""

from __future__ import annotations

import datetime as dt

import pytest

import omnigraph as og
from omnigraph.errors import QueryError

pytest.importorskip("duckdb")

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    seen: DateTime?
    tags: [String]?
    place: Vector(2)?
}
node Knows { id: String @key }
edge Knows: Person -> Person { since: I32? }
edge Likes: Person -> Person
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.init(tmp_path_factory.mktemp("sql") / "g.omni", SCHEMA)
    seen = "2020-01-01T12:00:00Z"
    graph.mutate(
        'insert Person { name: "ann", age: 1, seen: $seen, tags: ["a", "b"], place: [1.0, 0.5] } '
        'insert Person { name: "ben", age: 2 } insert Likes { from: "ann", to: "ben" } '
        'insert Knows { from: "ann", to: "ben", since: 2001 } insert Knows { id: "k" }',
        {"seen": seen},
    )
    graph.branches.create("dev")
    graph.apply_schema(SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")'), branch="dev")
    graph.mutate('update Person set { years: 9 } where name = "ben"', branch="dev")
    return graph


def test_types_are_views(graph: og.Graph) -> None:
    found = graph.sql(
        'select p.name, q.name as friend from Person p join Likes l on l."from" = p.id '
        'join Person q on l."to" = q.id'
    )
    assert found.rows == [{"name": "ann", "friend": "ben"}]
    assert graph.sql('select since, "from", "to" from "edge:Knows"').rows == [
        {"since": 2001, "from": "ann", "to": "ben"}
    ]
    assert graph.sql("select id from Knows")["id"] == ["k"]


def test_values_are_what_they_are(graph: og.Graph) -> None:
    (row,) = graph.sql("select seen, tags, place from Person where age = ?", [1]).to_dicts()
    assert row["seen"].astimezone(dt.UTC) == dt.datetime(2020, 1, 1, 12, tzinfo=dt.UTC)
    assert (row["tags"], row["place"]) == (["a", "b"], [1.0, 0.5])
    assert graph.sql("select count(*) as n from Person where name = $n", {"n": "ben"}).scalar() == 1


def test_branches_and_commits(graph: og.Graph) -> None:
    assert graph.sql("select sum(age) from Person").scalar() == 3
    assert graph.sql("select sum(years) from Person", branch="dev").scalar() == 10
    assert graph.sql("select sum(years) from Person", snapshot="dev~1").scalar() == 3
    assert graph.sql("select count(*) from Person", snapshot="main~1").scalar() == 0


def test_mistakes_and_writes(graph: og.Graph) -> None:
    with pytest.raises(QueryError, match="nope"):
        graph.sql("select nope from Person")
    with pytest.raises(QueryError):
        graph.sql("delete from Person")
    assert graph.sql("select count(*) from Person").scalar() == 2
