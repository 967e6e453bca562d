"""Queries of any size: they run, or are refused before anything native sees them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import LanguageError, ParseError, TypeCheckError
from omnigraph.lang.query.check import bounds
from omnigraph.lang.query.format import format_queries
from omnigraph.lang.query.lint import lint_queries
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.source import Source
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


def lets(*clauses: str, shown: str) -> str:
    return (
        f"query q() {{ match {{ $p: P {' '.join(clauses)} }} return {{ $p.name, {shown} as x }} }}"
    )


def named_in_order(number: int) -> str:
    chain = (f"let $l{at} = $l{at - 1} + 1" for at in range(1, number))
    return lets("let $l0 = $p.age", *chain, shown=f"$l{number - 1} - $p.age")


def named_the_other_way_round(number: int) -> str:
    chain = (f"let $l{at} = $l{at + 1} + 1" for at in range(number - 1))
    return lets(*chain, f"let $l{number - 1} = $p.age", shown="$l0 - $p.age")


def constants(number: int) -> str:
    chain = (f"let $l{at} = $l{at - 1} + 1" for at in range(1, number))
    return lets("let $l0 = 0", *chain, shown=f"$l{number - 1}")


def asked_before_they_are_named(number: int) -> str:
    chain = (f"let $l{at} = $l{at - 1} + 1" for at in range(1, number))
    clauses = f"$p.age < $l{number - 1} $q: P {{ age: $l0 }}"
    return lets(clauses, "let $l0 = 0", *chain, shown=f"$l{number - 1}")


def branches(number: int) -> str:
    whens = " ".join(f"when $p.age = {-at - 1}: 0" for at in range(number))
    return lets(shown=f"case {{ {whens} else: {number - 1} }}")


def sums(number: int) -> str:
    return lets(shown="$p.age" + " + 1" * (number - 1) + " - $p.age")


def texts(number: int) -> str:
    joined = ", ".join(['"x"'] * (number - 1))
    return lets(shown=f"length(concat({joined}))")


def elements(number: int) -> str:
    items = ", ".join(f"$p.age - {at}" for at in range(number))
    return lets(f"for $x in [{items}]", f"$x = $p.age - {number - 1}", shown="$p.age - $x")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "number"),
    [
        (named_in_order, 1_000),
        (named_the_other_way_round, 1_000),
        (constants, 1_000),
        (asked_before_they_are_named, 1_000),
        (branches, MANY),
        (sums, MANY),
        (texts, MANY),
        (elements, MANY),
    ],
)
def test_thousands_of_parts_are_computed(
    graph: og.Graph, text: Callable[[int], str], number: int
) -> None:
    found = graph.query(text(number)).rows
    assert [row["x"] for row in found] == [number - 1] * 3
    source = Source(text(number))
    assert lint_queries(source, compile_schema(SCHEMA).catalog).findings is not None
    assert format_queries(Source(format_queries(source))) == format_queries(source)


def test_what_is_named_is_not_written_out(graph: og.Graph) -> None:
    doubled = (f"let $l{at} = $l{at - 1} + $l{at - 1}" for at in range(1, 60))
    for first in ("1", "$p.age - $p.age + 1"):
        found = graph.query(lets(f"let $l0 = {first}", *doubled, shown="$l59")).rows
        assert [row["x"] for row in found] == [2**59] * 3
        doubled = (f"let $l{at} = $l{at - 1} + $l{at - 1}" for at in range(1, 60))


def test_thousands_of_parts_of_a_union(graph: og.Graph) -> None:
    parts = " union ".join("match { $p: P } return { $p.age as x }" for _ in range(300))
    assert sorted(row["x"] for row in graph.query(f"query q() {{ {parts} }}").rows) == [0, 1, 2]


def in_a_circle(number: int) -> str:
    chain = (f"let $l{at} = $l{(at + 1) % number} + 1" for at in range(number))
    return lets(*chain, shown="$l0")


def blocks_the_other_way_round(number: int) -> str:
    chain = (f"let $l{at} = count {{ $p k $x $x.age > $l{at + 1} }}" for at in range(number))
    return lets(*chain, f"let $l{number} = 1", shown="$l0")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (in_a_circle, "depends on its own value"),
        (blocks_the_other_way_round, "name them in the order in which they are used"),
    ],
)
def test_values_that_cannot_be_typed_are_refused(
    graph: og.Graph, text: Callable[[int], str], said: str
) -> None:
    with pytest.raises(TypeCheckError, match=said):
        graph.query(text(1_000))


NESTED = {
    "parentheses": lambda depth: lets(shown="(" * depth + "$p.age" + ")" * depth),
    "functions": lambda depth: lets(shown="abs(" * depth + "$p.age" + ")" * depth),
    "choices": lambda depth: lets(shown="if(true, " * depth + "$p.age" + ", 0)" * depth),
    "cases": lambda depth: lets(
        shown="case { when $p.age = 0: 0 else: " * depth + "$p.age" + " }" * depth
    ),
    "signs": lambda depth: lets(shown="- " * (depth - depth % 2) + "$p.age"),
    "negations": lambda depth: lets("not " * (depth - depth % 2) + "$p.age >= 0", shown="$p.age"),
    "alternatives": lambda depth: lets(
        "($p.age < 0 or " * depth + "$p.age >= 0" + ")" * depth, shown="$p.age"
    ),
    "counts": lambda depth: lets("count { $_ k $p " * depth + "} >= 0 " * depth, shown="$p.age"),
}


@pytest.mark.parametrize("what", NESTED)
def test_expressions_nest_to_a_bound(graph: og.Graph, what: str) -> None:
    assert sorted(row["x"] for row in graph.query(NESTED[what](50)).rows) == [0, 1, 2]
    for depth in (2_000, 100_000):
        with pytest.raises(ParseError, match="nests deeper than 64 levels"):
            graph.query(NESTED[what](depth))


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
