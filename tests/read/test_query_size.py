"""Queries of any size: they run, or are refused before anything native sees them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import LanguageError, ParseError, TypeCheckError
from omnigraph.lang.query.check import bounds
from omnigraph.read.access import entities
from omnigraph.rows.filters import MOST_TERMS

SCHEMA = """\
node P { name: String @key  age: I32?  u: U64?  tags: [String]? }
edge K: P -> P
"""
MANY = 10_000


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    made = og.init(tmp_path_factory.mktemp("size") / "graph", SCHEMA)
    made.load(
        [
            {"type": "P", "data": {"name": name, "age": age, "u": age, "tags": ["x"]}}
            for age, name in enumerate("abc")
        ]
        + [{"edge": "K", "from": "a", "to": "b"}],
        mode="append",
    )
    return made


def matching(clauses: str) -> str:
    return f"query q() {{ match {{ $p: P {clauses} }} return {{ $p.name }} order {{ $p.name }} }}"


def filters(number: int) -> str:
    return matching(" ".join(f"$p.age != {at}" for at in range(2, number + 2)))


def filters_of_numbers_without_sign(number: int) -> str:
    return matching(" ".join(f"$p.u != {at}" for at in range(2, number + 2)))


def filters_in_memory(number: int) -> str:
    return matching(" ".join(f"{at} != $p.age" for at in range(2, number + 2)))


def memberships(number: int) -> str:
    return matching("$p.age < 2 " + '$p.tags contains "x" ' * number)


def alternatives(number: int) -> str:
    return matching("any " + " or ".join(f"{{ $p.age = {-at} }}" for at in range(-1, number)))


def choices(number: int) -> str:
    return matching(f"$p.age in [{', '.join(map(str, range(-1, -number - 2, -1)))}, 0, 1]")


def blocks(number: int) -> str:
    return matching("$p.age < 2 " + "not { $p k $x $x.age > 5 } " * (number // 20))


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [filters, filters_of_numbers_without_sign, filters_in_memory, memberships, alternatives,
     choices, blocks],
)  # fmt: skip
def test_thousands_of_conditions_are_decided(graph: og.Graph, text: Callable[[int], str]) -> None:
    assert [row["p.name"] for row in graph.query(text(MANY)).rows] == ["a", "b"]


@pytest.mark.slow
def test_thousands_of_terms_choose_rows(graph: og.Graph) -> None:
    where = " and ".join(f"age != {at}" for at in range(2, MANY))
    statement = "query q() { update P set { u: 7 } where "
    assert graph.mutate(f"{statement}{where} }}", branch="main").affected_nodes == 2


def test_storage_is_handed_only_so_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entities, "MANY", 0)  # no table is so small that it is read whole
    graph = og.init(tmp_path / "graph", SCHEMA)
    graph.load([{"type": "P", "data": {"name": "a", "age": 1}}], mode="append")
    assert len(graph.query(filters(200)).rows) == 1
    assert len(graph.query(alternatives(200)).rows) == 1
    graph.load([{"type": "P", "data": {"name": "b", "age": 250}}], mode="append")
    assert len(graph.query(filters(100)).rows) == 2
    assert len(graph.query(filters(260)).rows) == 1
    scan = graph.explain(filters(200)).to_json()["operators"][0]
    assert (len(scan["pushed"]), len(scan["in_memory"])) == (MOST_TERMS, 200 - MOST_TERMS)
    scan = graph.explain(alternatives(200)).to_json()["operators"][0]
    assert (len(scan["pushed"]), len(scan["in_memory"])) == (0, 1)


def too_many_columns() -> str:
    columns = " ".join(f"$p.age as c{at}" for at in range(bounds.MAX_COLUMNS + 1))
    return f"query q() {{ match {{ $p: P }} return {{ {columns} }} }}"


def too_many_keys() -> str:
    keys = ", ".join(["$p.age"] * (bounds.MAX_ORDER_KEYS + 1))
    return f"query q() {{ match {{ $p: P }} return {{ $p.name }} order {{ {keys} }} }}"


def too_many_parameters() -> str:
    declared = ", ".join(f"$x{at}: I32?" for at in range(bounds.MAX_PARAMS + 1))
    return f"query q({declared}) {{ match {{ $p: P }} return {{ $p.name }} }}"


def too_many_bindings() -> str:
    return matching(" ".join(f"$p{at}: P" for at in range(bounds.MAX_PATTERNS)))


def too_many_conditions_of_a_binding() -> str:
    return matching(f"$q: P {{ {'age: 1, ' * bounds.MAX_CONDITIONS} }}")


def too_many_terms() -> str:
    terms = " and ".join(["age = 1"] * (bounds.MAX_CONDITIONS + 1))
    return "query q() { delete P where " + terms + " }"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (lambda: filters(bounds.MAX_CONDITIONS), "at most 20,000 clauses"),
        (lambda: alternatives(bounds.MAX_CONDITIONS), "at most 20,000 clauses"),
        (too_many_conditions_of_a_binding, "at most 20,000 clauses"),
        (too_many_bindings, "at most 1,000 bindings and traversals"),
        (too_many_columns, "at most 20,000 columns"),
        (too_many_keys, "at most 1,000 keys"),
        (too_many_parameters, "at most 20,000 parameters"),
        (too_many_terms, "at most 20,000 terms"),
    ],
)
def test_more_is_refused_where_it_stands(
    graph: og.Graph, text: Callable[[], str], said: str
) -> None:
    call = graph.mutate if text is too_many_terms else graph.query
    with pytest.raises(TypeCheckError, match=said) as refused:
        call(text())
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize("opening", ["not { $p k $x ", "exists { $p k $x ", "optional { $p k $x "])
@pytest.mark.parametrize("depth", [65, 100_000])
def test_blocks_nest_to_a_bound(graph: og.Graph, opening: str, depth: int) -> None:
    with pytest.raises(ParseError, match="nests deeper than 64 levels"):
        graph.query(matching(opening * depth + "}" * depth))


@pytest.mark.parametrize(
    "text",
    [
        matching("$p.age = " + "count(" * 100_000),
        matching("$p.age in " + "[" * 100_000),
        "query q() " * 20_000,
        "query q() { match { " * 20_000,
        "query q($x: " + "[" * 100_000,
        "(" * 100_000,
        "{" * 100_000,
    ],
)
def test_whatever_else_nests_is_refused(graph: og.Graph, text: str) -> None:
    with pytest.raises(LanguageError):
        graph.query(text)


@pytest.mark.parametrize("hops", ["{1,1000000000000}", "{9000000000000000000,9100000000000000000}"])
def test_any_number_of_hops(graph: og.Graph, hops: str) -> None:
    found = graph.query(f"query q() {{ match {{ $p: P $p k {hops} $q }} return {{ $q.name }} }}")
    assert len(found.rows) == (1 if hops.startswith("{1,") else 0)
