"""`for` in mutations: statements for each element of a list, and lists of records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import KeyConflict, ParamError
from tests.write.writing import unchanged

SCHEMA = """\
node Person { name: String @key  age: I32? }
node University { number: I64 @key }
edge StudyAt: Person -> University { year: I32? }
edge Knows: Person -> Person
"""
ENROL = """
query enrol($me: String, $study: [{ university: I64, year: I32? }]?) {
    upsert Person { name: $me }
    for $s in $study {
        upsert University { number: $s.university }
        insert StudyAt { from: $me, to: $s.university, year: $s.year }
    }
}
query befriend($a: [String], $b: [String]) {
    for $x in $a {
        create Person { name: $x, age: 1 }
        update Person set { age: 2 } where name = $x
        for $y in $b {
            insert Knows { from: $x, to: $y }
        }
    }
}
query forget($names: [String]) {
    for $name in $names {
        delete Person where name = $name
    }
}
"""


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "graph", SCHEMA)


def asked(graph: og.Graph, body: str) -> list[list[Any]]:
    return [list(row.values()) for row in graph.query(f"query q() {{ {body} }}").rows]


def test_every_record_runs_the_statements(graph: og.Graph) -> None:
    study = [{"university": 7, "year": 2001}, {"university": 9}, {"university": 7, "year": None}]
    done = graph.mutate(ENROL, "enrol", {"me": "ann", "study": study})
    assert (done.affected_nodes, done.affected_edges) == (4, 3)
    found = "match { $p $s:studyAt $u } return { $p.name, $u.number, $s.year }"
    assert asked(graph, f"{found} order {{ $u.number, $s.year }}") == [
        ["ann", 7, None],
        ["ann", 7, 2001],
        ["ann", 9, None],
    ]
    empty: list[Any] = []
    for nothing in (empty, None):
        done = graph.mutate(ENROL, "enrol", {"me": "ben", "study": nothing})
        assert (done.affected_nodes, done.affected_edges) == (1, 0)
    assert graph.mutate(ENROL, "enrol", {"me": "cat"}).affected_nodes == 1


def test_statements_of_an_element_see_those_before(graph: og.Graph) -> None:
    graph.mutate(ENROL, "befriend", {"a": ["ann", "ben"], "b": []})
    graph.mutate(ENROL, "befriend", {"a": ["cat", "dan"], "b": ["ann", "ben"]})
    assert asked(graph, "match { $p: Person } return { $p.name, $p.age } order { $p.name }") == [
        [name, 2] for name in ("ann", "ben", "cat", "dan")
    ]
    knows = "match { $p knows $q } return { $p.name, $q.name } order { $p.name, $q.name }"
    assert asked(graph, knows) == [[p, q] for p in ("cat", "dan") for q in ("ann", "ben")]
    with unchanged(graph), pytest.raises(KeyConflict):
        graph.mutate(ENROL, "befriend", {"a": ["eve", "ann"], "b": []})
    done = graph.mutate(ENROL, "forget", {"names": ["ann", "nobody", "cat"]})
    assert (done.affected_nodes, done.affected_edges) == (2, 3)


def test_many_elements_are_one_batch(graph: og.Graph) -> None:
    study = [{"university": number} for number in range(2000)]
    done = graph.mutate(ENROL, "enrol", {"me": "ann", "study": study})
    assert (done.affected_nodes, done.affected_edges) == (2001, 2000)


@pytest.mark.parametrize(
    ("study", "said"),
    [
        (
            {"university": 1},
            "expected an array for [{ university: I64, year: I32? }]?, found an object",
        ),
        ([1], "element 0: expected an object, found an integer"),
        ([{"university": 1}, {"year": 2}], "element 1 lacks the field 'university'"),
        ([{"university": 1, "yaer": 2}], "element 0 has no field 'yaer': did you mean 'year'?"),
        ([{"university": None}], "param 'study[0].university': null is not a value of I64"),
        (
            [{"university": 1, "year": 2**40}],
            "param 'study[0].year': 1099511627776 is out of range",
        ),
    ],
)
def test_what_is_no_list_of_records(graph: og.Graph, study: object, said: str) -> None:
    with pytest.raises(ParamError) as refused:
        graph.mutate(ENROL, "enrol", {"me": "ann", "study": study})
    assert said in str(refused.value)


def test_a_missing_list_is_asked_for(graph: og.Graph) -> None:
    with pytest.raises(ParamError, match="parameter 'names' not provided"):
        graph.mutate(ENROL, "forget")
