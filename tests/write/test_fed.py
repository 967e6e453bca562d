"""Mutations that a match feeds, values made of other values, and what a mutation returns."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph as og
from omnigraph import errors
from tests import profile
from tests.write.writing import mutate, overtaken, rows, unchanged

SCHEMA = """
interface Named { title: String }
node Person {
    name: String @key
    age: I32?
    visits: I64 @default(0)
    born: Date?
    seen: DateTime?
    code: String? @unique
    tags: [String]?
    about: String?
    meaning: Vector(4)? @embed(about)
}
node Post implements Named { number: I64 @key  title: String  likes: I32? }
node Page implements Named { slug: String @key  title: String  likes: I32? }
node Badge { code: String @key  level: F64?  ratio: F32? }
node Note { text: String }
edge Knows: Person -> Person { since: I32? }
edge Wears: Person -> Badge
edge Likes: Person -> Named
edge Owns: Person -> Badge { n: I32?  @key(src, dst) }
"""
PEOPLE = {"Ann": 30, "Ben": 40, "Cid": None}
PREPARED = "changes_checked"
KNOWS = (("Ann", "Ben", 1), ("Ann", "Cid", 2), ("Ben", "Cid", 3))


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> og.Graph:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    return people(tmp_path / "graph")


def people(path: Path) -> og.Graph:
    graph = og.init(path, SCHEMA)
    lines: list[dict[str, Any]] = [
        {"type": "Person", "data": {"name": name, "age": age}} for name, age in PEOPLE.items()
    ]
    lines += [
        {"edge": "Knows", "from": one, "to": other, "data": {"since": since}}
        for one, other, since in KNOWS
    ]
    graph.load(lines, mode="append")
    return graph


def person(graph: og.Graph, name: str, what: str) -> Any:
    return rows(graph, "Person")[name][what]


def asked(graph: og.Graph, query: str) -> list[dict[str, Any]]:
    return graph.query(query).rows


# -- values made of the row's own ------------------------------------------------------


def test_a_row_counts_up(graph: og.Graph) -> None:
    done = mutate(graph, "update Person set { visits: visits + 1, age: age * 2 } where true")
    assert done.affected_nodes == 3
    assert {name: one["visits"] for name, one in rows(graph, "Person").items()} == dict.fromkeys(
        PEOPLE, 1
    )
    assert person(graph, "Ben", "age") == 80
    assert person(graph, "Cid", "age") is None


def test_statements_see_each_other(graph: og.Graph) -> None:
    mutate(
        graph,
        'update Person set { visits: visits + 1 } where name = "Ann" '
        "update Person set { visits: visits * 10 } where visits = 1",
    )
    assert person(graph, "Ann", "visits") == 10


def test_values_of_one_statement_are_of_before(graph: og.Graph) -> None:
    mutate(graph, 'update Person set { visits: age, age: visits } where name = "Ann"')
    assert (person(graph, "Ann", "visits"), person(graph, "Ann", "age")) == (30, 0)


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ("age = 30 or age = 40", "Ann Ben"),
        ("not (age = 30)", "Ben"),
        ("age is null or not (age > 30)", "Ann Cid"),
        ("length(name) > 2 and age + 10 > visits + 45", "Ben"),
        ("40 <= age", "Ben"),
        ('upper(name) ends_with "ID"', "Cid"),
        ('any { age = 30 visits = 0 } or { name = "Cid" }', "Ann Cid"),
        ("true", "Ann Ben Cid"),
        ("false", ""),
        ("age > visits", "Ann Ben"),
        ("age in [visits + 30, 7]", "Ann"),
        ("@id = name and age = 30", "Ann"),
        ("case { when age is null: true else: false }", "Cid"),
    ],
)
def test_conditions_choose_rows(graph: og.Graph, where: str, names: str) -> None:
    done = mutate(graph, f"delete Person where {where}")
    assert done.affected_nodes == len(names.split())
    assert sorted(rows(graph, "Person")) == sorted(set(PEOPLE) - set(names.split()))


def test_conditions_see_rows_that_are_not_stored_yet(graph: og.Graph) -> None:
    mutate(graph, 'insert Person { name: "Dorothy" } delete Person where length(name) > 3')
    assert sorted(rows(graph, "Person")) == ["Ann", "Ben", "Cid"]


def test_edges_are_chosen_by_their_values(graph: og.Graph) -> None:
    mutate(graph, 'delete Knows where since * 2 > 4 or from = "Ann" and since = 1')
    assert asked(graph, "match { $p $e:knows $q } return { $e.since }") == [{"e.since": 2}]


@pytest.mark.parametrize(
    ("statement", "code", "said"),
    [
        ("update Person set { visits: visits + 9223372036854775807 } where age > 1", None, None),
        (
            "update Person set { visits: (age + 1) * 9223372036854775807 } where age > 1",
            "query_error",
            "I64",
        ),
        ("update Person set { age: age * 1000000000 } where age > 1", "validation_error", "age"),
        ("update Person set { visits: age } where true", "validation_error", "visits"),
        ('update Person set { code: lower("A") } where true', "unique_violation", "code"),
    ],
)
def test_what_does_not_fit_changes_nothing(
    graph: og.Graph, statement: str, code: str | None, said: str | None
) -> None:
    if code is None:
        mutate(graph, statement)
        return
    with unchanged(graph), pytest.raises(errors.OmniGraphError) as caught:
        mutate(graph, statement)
    assert said is not None
    assert said in str(caught.value)


def test_computed_parameters(graph: og.Graph) -> None:
    graph.mutate(
        'query q($n: I32, $t: String) { upsert Person { name: concat($t, "!"), age: $n * 2 } }',
        params={"n": 4, "t": "Zed"},
    )
    assert person(graph, "Zed!", "age") == 8


# -- fed by a match --------------------------------------------------------------------


def test_matched_nodes_are_updated_with_their_values(graph: og.Graph) -> None:
    done = mutate(
        graph, 'match { $p knows $q  $q.name = "Cid" } update $p set { visits: $p.age + 1 }'
    )
    assert (done.affected_nodes, done.affected_edges) == (2, 0)
    assert {name: one["visits"] for name, one in rows(graph, "Person").items()} == {
        "Ann": 31,
        "Ben": 41,
        "Cid": 0,
    }


def test_matched_edges_are_updated_and_deleted(graph: og.Graph) -> None:
    mutate(graph, "match { $p $e:knows $q  $q.age is null } update $e set { since: since + 10 }")
    assert asked(graph, "match { $p $e:knows $q } return { $e.since } order { $e.since }") == [
        {"e.since": 1},
        {"e.since": 12},
        {"e.since": 13},
    ]
    done = mutate(graph, "match { $p $e:knows $q  $e.since > 10 } delete $e")
    assert done.affected_edges == 2


def test_a_deleted_node_takes_its_edges_along(graph: og.Graph) -> None:
    done = mutate(graph, "match { $p knows $q  $q.age is null } delete $q")
    assert (done.affected_nodes, done.affected_edges) == (1, 2)
    assert asked(graph, "match { $p knows $q } return { $p.name, $q.name }") == [
        {"p.name": "Ann", "q.name": "Ben"}
    ]


def test_rows_are_inserted_for_each_row(graph: og.Graph) -> None:
    done = mutate(
        graph,
        "match { $p: Person } create $b: Badge { code: lower($p.name), level: $p.age / 4, "
        "ratio: 0.1 } insert Wears { from: $p, to: $b } insert Note { text: $p.name }",
    )
    assert (done.affected_nodes, done.affected_edges) == (6, 3)
    assert asked(
        graph, "match { $p wears $b } return { $p.name, $b.code, $b.level } order { $p.name }"
    ) == [
        {"p.name": "Ann", "b.code": "ann", "b.level": 7.5},
        {"p.name": "Ben", "b.code": "ben", "b.level": 10.0},
        {"p.name": "Cid", "b.code": "cid", "b.level": None},
    ]
    assert len(asked(graph, "match { $n: Note } return { $n.text }")) == 3


def test_ends_of_an_interface_and_by_keys(graph: og.Graph) -> None:
    mutate(graph, 'insert Post { number: 1, title: "a" } insert Page { slug: "s", title: "a" }')
    mutate(
        graph,
        'match { $n: Named { title: "a" }  $p: Person { name: "Ann" } } '
        "insert Likes { from: $p, to: $n }",
    )
    mutate(graph, 'match { $n: Post } insert Likes { from: "Ben", to: Post($n.number) }')
    found = asked(graph, "match { $p likes $n } return { $p.name, type($n) as kind }")
    assert sorted((one["p.name"], one["kind"]) for one in found) == [
        ("Ann", "Page"),
        ("Ann", "Post"),
        ("Ben", "Post"),
    ]
    mutate(graph, "match { $n: Named } update $n set { likes: length($n.title) + 1 } ")
    done = mutate(graph, "match { $n: Named  $n.likes = 2 } delete $n")
    assert (done.affected_nodes, done.affected_edges) == (2, 3)


def test_a_null_variable_is_skipped(graph: og.Graph) -> None:
    done = mutate(
        graph,
        "match { $p: Person  optional { $p knows $q  $q.age is null } } "
        "update $q set { visits: visits + 1 }",
    )
    assert done.affected_nodes == 1
    assert person(graph, "Cid", "visits") == 1


def test_rows_that_agree_are_one_and_others_contradict(graph: og.Graph) -> None:
    mutate(graph, "match { $p knows $q } update $q set { visits: $q.visits + 5 }")
    assert person(graph, "Cid", "visits") == 5
    with (
        unchanged(graph),
        pytest.raises(errors.QueryError, match="'Cid' different values of `age`"),
    ):
        mutate(graph, "match { $p knows $q } update $q set { age: $p.age }")
    mutate(graph, "match { $p knows $q } create Badge { code: $q.name, level: 1.0 }")
    assert len(asked(graph, "match { $b: Badge } return { $b.code }")) == 2
    with unchanged(graph), pytest.raises(errors.QueryError, match="different values of `level`"):
        mutate(graph, "match { $p knows $q } upsert Badge { code: $q.name, level: $p.age / 2 }")


def test_edges_with_a_key_are_one(graph: og.Graph) -> None:
    mutate(graph, 'insert Badge { code: "x" }')
    done = mutate(
        graph, "match { $p knows $q  $b: Badge } upsert Owns { from: $p, to: $b, n: $p.age }"
    )
    assert done.affected_edges == 2
    with unchanged(graph), pytest.raises(errors.KeyConflict):
        mutate(
            graph,
            'match { $p: Person { name: "Ann" }  $b: Badge } create Owns { from: $p, to: $b }',
        )


def test_the_match_reads_what_was_before(graph: og.Graph) -> None:
    mutate(
        graph,
        'match { $p: Person { name: "Ann" } } update $p set { age: 1 } '
        "update $p set { visits: $p.age } "
        "update Person set { about: to_string(age) } where age = 1",
    )
    assert (person(graph, "Ann", "visits"), person(graph, "Ann", "about")) == (30, "1")


def test_a_row_that_was_deleted_is_not_updated(graph: og.Graph) -> None:
    done = mutate(graph, "match { $p: Person } delete $p update $p set { visits: 1 }")
    assert (done.affected_nodes, done.affected_edges) == (3, 3)
    assert not rows(graph, "Person")


def test_blocks_and_loops(graph: og.Graph) -> None:
    mutate(graph, "match { $p: Person } update $p set { visits: count { $p knows $q } }")
    assert {name: one["visits"] for name, one in rows(graph, "Person").items()} == {
        "Ann": 2,
        "Ben": 1,
        "Cid": 0,
    }
    graph.mutate(
        "query q($l: [{ n: String, by: F64? }]) { match { $p: Person } "
        "for $x in $l { create Badge { code: concat($p.name, $x.n), level: $x.by } } }",
        params={"l": [{"n": "1", "by": 2.5}, {"n": "2"}]},
    )
    assert len(asked(graph, "match { $b: Badge  $b.level = 2.5 } return { $b.code }")) == 3


def test_nothing_matched_is_nothing_done(graph: og.Graph) -> None:
    for statements in (
        "update $p set { age: 1 }",
        "delete $p",
        'create Badge { code: "x" }',
        "insert Knows { from: $p, to: $p }",
    ):
        with unchanged(graph):
            done = mutate(graph, f'match {{ $p: Person {{ name: "X" }} }} {statements}')
        assert (done.affected_nodes, done.affected_edges, done.commit) == (0, 0, None)


def test_vectors_follow_their_texts(graph: og.Graph) -> None:
    mutate(graph, 'update Person set { about: concat("I am ", name) } where true')
    first = person(graph, "Ann", "meaning")
    assert first is not None
    mutate(graph, 'match { $p: Person } update $p set { about: concat($p.about, "!") }')
    assert person(graph, "Ann", "meaning") not in (None, first)


def test_rules_are_judged_on_the_final_state(graph: og.Graph) -> None:
    mutate(graph, "match { $p: Person } update $p set { code: $p.name }")
    # Codes go around in a ring: no two are the same at the end.
    mutate(
        graph,
        'match { $p: Person } update $p set { code: case { when $p.name = "Ann": "Ben" '
        'when $p.name = "Ben": "Cid" else: "Ann" } }',
    )
    assert person(graph, "Ann", "code") == "Ben"
    with unchanged(graph), pytest.raises(errors.OmniGraphError):
        mutate(graph, 'match { $p: Person } update $p set { code: "same" }')


# -- what is returned ------------------------------------------------------------------


def test_what_was_written_is_returned(graph: og.Graph) -> None:
    done = mutate(
        graph,
        'match { $p: Person { name: "Ann" } } update $p set { visits: $p.visits + 3 } '
        'insert $n: Note { text: concat("hi ", $p.name) } '
        "return { $p.name, $p.visits, $n.text, $n.@id is not null as has_id, $p.age + 1 as next }",
    )
    assert done.rows == [
        {"p.name": "Ann", "p.visits": 3, "n.text": "hi Ann", "has_id": True, "next": 31}
    ]
    assert mutate(graph, 'insert $b: Badge { code: "b" } return { $b.@id as id }').rows == [
        {"id": "b"}
    ]
    assert mutate(graph, 'insert Badge { code: "c" }').rows is None
    gone = mutate(graph, 'match { $p: Person { name: "Ben" } } delete $p return { $p.age }')
    assert gone.rows == [{"p.age": 40}]


def test_a_repeated_run_returns_the_same(graph: og.Graph) -> None:
    text = (
        "match { $p: Person } update $p set { visits: $p.visits + 1 } return { $p.name, $p.visits }"
    )
    first = graph.mutate(text, run_id="once")
    again = graph.mutate(text, run_id="once")
    assert again.repeats_run
    assert again.rows == first.rows
    assert person(graph, "Ann", "visits") == 1


# -- beside others ---------------------------------------------------------------------


def rival(text: str) -> Callable[[og.Graph], object]:
    return lambda other: mutate(other, text)


def test_inserts_are_made_of_the_newest_rows(graph: og.Graph) -> None:
    other = rival('insert Person { name: "Dan" }')
    with overtaken(graph, PREPARED, other):
        done = mutate(graph, "match { $p: Person } create Badge { code: $p.name }")
    assert done.affected_nodes == 4


def test_an_update_of_rows_that_others_changed_is_refused(graph: og.Graph) -> None:
    other = rival('update Person set { visits: 7 } where name = "Ann"')
    with overtaken(graph, PREPARED, other), pytest.raises(errors.ReadSetChanged):
        mutate(graph, "match { $p: Person } update $p set { visits: $p.visits + 1 }")
    assert person(graph, "Ann", "visits") == 7


def test_an_update_stands_where_others_changed_something_else(graph: og.Graph) -> None:
    other = rival('insert Badge { code: "z" } update Person set { about: "x" } where name = "Ben"')
    with overtaken(graph, PREPARED, other):
        mutate(graph, 'match { $p: Person { name: "Ann" } } update $p set { visits: 1 }')
    assert person(graph, "Ann", "visits") == 1


COUNTING = """
import sys
import omnigraph
from omnigraph import errors
graph, done = omnigraph.open(sys.argv[1]), 0
while done < 10:
    try:
        graph.mutate('match { $p: Person { name: "Ann" } } update $p set { visits: $p.visits + 1 }')
        done += 1
    except (errors.ReadSetChanged, errors.Conflict):
        pass
"""


@pytest.mark.slow
def test_processes_that_count_lose_nothing(graph: og.Graph) -> None:
    command = [sys.executable, "-c", COUNTING, str(graph.location)]
    counting = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait(timeout=300) for process in counting] == [0, 0, 0]
    assert person(graph, "Ann", "visits") == 30


# -- against a model -------------------------------------------------------------------

_edges = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")), max_size=8)
_ages = st.fixed_dictionaries({name: st.none() | st.integers(0, 9) for name in "abcd"})


@pytest.mark.slow
@profile.dear
@given(_ages, _edges, st.integers(0, 9))
def test_against_rows_one_by_one(
    tmp_path_factory: pytest.TempPathFactory,
    ages: dict[str, int | None],
    edges: list[tuple[str, str]],
    bound: int,
) -> None:
    graph = og.init(tmp_path_factory.mktemp("fed") / "graph", SCHEMA)
    lines: list[dict[str, Any]] = [
        {"type": "Person", "data": {"name": name, "age": age}} for name, age in ages.items()
    ]
    lines += [{"edge": "Knows", "from": one, "to": other} for one, other in edges]
    graph.load(lines, mode="append")
    visits = {
        name: sum(1 for one, other in edges if one == name and (ages[other] or -1) > bound)
        for name in ages
    }
    graph.mutate(
        "query q($n: I32) { match { $p: Person } "
        "update $p set { visits: count { $p $e:knows $q  $q.age > $n } } "
        "update Person set { age: coalesce(age, 0) + 1 } where visits > 0 or age is null "
        "delete Person where age > 9 }",
        params={"n": bound},
    )
    expected = {}
    for name, age in ages.items():
        now = (age or 0) + 1 if visits[name] > 0 or age is None else age
        if now <= 9:
            expected[name] = (now, visits[name])
    found = {name: (one["age"], one["visits"]) for name, one in rows(graph, "Person").items()}
    assert found == expected
    kept = [(one, other) for one, other in edges if one in expected and other in expected]
    left = graph.query("match { $p $e:knows $q } return { $p.name as a, $q.name as b }").rows
    assert sorted((one["a"], one["b"]) for one in left) == sorted(kept)
