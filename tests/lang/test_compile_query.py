"""Compiling queries: caching, choosing a query, errors as objects, plans as data."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from omnigraph.errors import LanguageError, NotFound, ParamError, ParseError, TypeCheckError
from omnigraph.lang.query import plan
from omnigraph.lang.query.compile import compile_query, parse_source, select_query
from omnigraph.lang.query.params import coerce_params, require
from omnigraph.lang.query.unnamed import compile_given
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.source import Source
from omnigraph.lang.types import Scalar, ValueType

SCHEMA = """
node Person { name: String @key  age: I32?  bio: String? }
node Memo { code: String @key  text: String  v: Vector(2) @embed(text, model="m1") }
edge Knows: Person -> Person
"""
READ = "query all() { match { $p: Person } return { $p.name } }"
WRITE = "query add($n: String) { insert Person { name: $n } }"
BROKEN = "query all() {\n  match { $p Person }\n  return { $p.name }\n}\n"


@pytest.fixture
def catalog() -> Catalog:
    return compile_schema(SCHEMA).catalog


# -- the cache -----------------------------------------------------------------------


def test_the_same_text_and_schema_compile_once(catalog: Catalog) -> None:
    again = compile_schema(SCHEMA).catalog
    assert compile_query(READ, catalog) is compile_query(READ, again)


def test_another_schema_compiles_anew(catalog: Catalog) -> None:
    other = compile_schema(SCHEMA.replace("age: I32?", "age: I64?")).catalog
    assert other.schema_hash != catalog.schema_hash
    assert compile_query(READ, catalog) is not compile_query(READ, other)


def test_another_name_compiles_anew(catalog: Catalog) -> None:
    text = f"{READ}\n{WRITE}"
    assert compile_query(text, catalog, "all").name == "all"
    assert compile_query(text, catalog, "add").name == "add"


def test_a_failure_is_raised_every_time(catalog: Catalog) -> None:
    for _ in range(2):
        with pytest.raises(ParseError):
            compile_query(BROKEN, catalog)


# -- choosing a query ----------------------------------------------------------------


def test_the_only_query_needs_no_name(catalog: Catalog) -> None:
    assert compile_query(READ, catalog).name == "all"


def test_several_queries_need_a_name() -> None:
    file = parse_source(Source(f"{READ}\n{WRITE}"))
    with pytest.raises(NotFound, match=r"2 queries \(all, add\)") as caught:
        select_query(file, None)
    assert caught.value.details == {"queries": ["all", "add"]}


def test_an_unknown_name_is_answered_with_a_near_one() -> None:
    file = parse_source(Source(f"{READ}\n{WRITE}"))
    with pytest.raises(NotFound, match="there is no query `ad`; did you mean `add`"):
        select_query(file, "ad")


def test_a_text_without_queries_says_so() -> None:
    with pytest.raises(NotFound, match="the text holds no query"):
        select_query(parse_source(Source("// nothing")), None)


def test_a_mistake_in_another_query_does_not_matter(catalog: Catalog) -> None:
    text = f"{READ}\nquery bad() {{ match {{ $p: Nobody }} return {{ $p.name }} }}"
    assert compile_query(text, catalog, "all").kind == "read"
    with pytest.raises(TypeCheckError):
        compile_query(text, catalog, "bad")


# -- reads and mutations -------------------------------------------------------------


def test_a_read_is_required_to_be_a_read(catalog: Catalog) -> None:
    query = compile_query(READ, catalog)
    assert query.require_read() is query.plan
    with pytest.raises(TypeCheckError, match="`all` is a read"):
        query.require_mutation()


def test_a_mutation_is_required_to_be_a_mutation(catalog: Catalog) -> None:
    query = compile_query(WRITE, catalog)
    assert query.kind == "mutation"
    assert query.require_mutation() is query.plan
    with pytest.raises(TypeCheckError, match="`add` is a mutation"):
        query.require_read()


def test_parameters_and_notes_are_kept(catalog: Catalog) -> None:
    notes = '@description("what") @instruction("how")'
    text = f"query q($n: [I32]?) {notes} {{ match {{ $p: Person }} return {{ $n }} }}"
    query = compile_query(text, catalog)
    assert query.params == {"n": ValueType(Scalar.I32, nullable=True, is_list=True)}
    assert (query.description, query.instruction) == ("what", "how")


def test_a_missing_parameter_fails_where_it_is_used(catalog: Catalog) -> None:
    values = coerce_params(compile_query(WRITE, catalog).params, None)
    with pytest.raises(ParamError, match=r"^parameter 'n' not provided$"):
        require(values, "n")


# -- errors --------------------------------------------------------------------------


def test_a_parse_error_shows_place_and_caret(catalog: Catalog) -> None:
    with pytest.raises(ParseError) as caught:
        compile_query(BROKEN, catalog, path="people.gq")
    error = caught.value
    assert error.code == "parse_error"
    assert "people.gq:2:14" in str(error)
    line, caret = str(error).splitlines()[-2:]
    assert line.endswith("  match { $p Person }")
    assert caret.rstrip("^").count(" ") == line.index("Person") - 1
    assert caret.endswith("^" * len("Person"))
    (found,) = error.details["diagnostics"]
    assert (found["path"], found["line"], found["column"]) == ("people.gq", 2, 14)
    assert (found["end_line"], found["end_column"]) == (2, 20)
    assert found["code"] == "parse_error"


def test_a_type_error_carries_all_diagnostics_and_the_code_of_the_first(catalog: Catalog) -> None:
    text = "query q() { match { $p: Person $p.age = true } return { $p.nope } }"
    with pytest.raises(TypeCheckError) as caught:
        compile_query(text, catalog)
    error = caught.value
    assert error.code == "T7"
    assert error.message == "type error: T7: cannot compare I32? with Bool"
    assert [found["code"] for found in error.details["diagnostics"]] == ["T7", "T6"]


def test_a_type_error_without_a_code_has_a_stable_one(catalog: Catalog) -> None:
    text = 'query q() { update Person set { name: "b" } where name = "a" }'
    with pytest.raises(TypeCheckError) as caught:
        compile_query(text, catalog)
    assert caught.value.code == "type_error"
    assert caught.value.message == (
        "type error: cannot update @key property 'name' — delete and re-insert instead"
    )


# -- plans ---------------------------------------------------------------------------


EVERY_STEP = """
query q($n: I32) {
  match {
    $p: Person { age: $n }
    $p knows{1,2} $x
    optional { $x knows $y }
    any { $x.age in [1, 2] } or { search($x.bio, "a") }
    not { $p knows $_ }
    exists { $x knows $_ }
    any { $p knows $z } or { $p.age is null }
    count { $p knows $z } > 1
  }
  return distinct { $p.name as n }
  order { n }
  limit $n
}
"""
RANKED = """
query q() {
  match { $m: Memo }
  return { $m.code, nearest($m.v, "a") as d }
  order { nearest($m.v, "a") }
  limit 3
}
"""
DELETE = 'query q() { delete Person where name in ["a"] and age is not null }'


@pytest.mark.parametrize("text", [READ, WRITE, EVERY_STEP, RANKED, DELETE])
def test_plans_are_hashable_frozen_data(catalog: Catalog, text: str) -> None:
    query = compile_query(text, catalog)
    again = compile_query(f"{text} ", catalog)
    assert again is not query
    assert again.plan == query.plan
    assert hash(again.plan) == hash(query.plan)
    name = "columns" if isinstance(query.plan, plan.ReadPlan) else "steps"
    with pytest.raises(FrozenInstanceError):
        setattr(query.plan, name, ())


def test_a_ranking_knows_the_model_of_its_vectors(catalog: Catalog) -> None:
    rank = compile_query(RANKED, catalog).require_read().rank
    assert rank is not None
    assert isinstance(rank.ranking, plan.Nearest)
    assert (rank.ranking.model, rank.ranking.dimension, rank.ranking.query_is_text) == (
        "m1",
        2,
        True,
    )


def test_filters_of_target_and_edge_are_kept_apart() -> None:
    schema = "node P { name: String @key }\nedge E: P -> P { note: String? }\n"
    text = 'query q() { match { $a: P $a $w:e $b $b.name = "b" $w.note = "n" } return { $w.note } }'
    steps = compile_query(text, compile_schema(schema).catalog).require_read().steps
    (expand,) = [step for step in steps if isinstance(step, plan.Expand)]
    assert [plan.variables_of(predicate) for predicate in expand.where] == [{"b"}]
    assert [plan.variables_of(predicate) for predicate in expand.edge_where] == [{"w"}]


@pytest.mark.parametrize(
    ("text", "place", "frame"),
    [
        ("match { $p: Flim } return { $p.title }", (1, 13), "1 | match { $p: Flim } return"),
        (
            "match {\n    $f: Film\n}\nreturn { $f.titel }",
            (4, 13),
            "4 | return { $f.titel }",
        ),
        (
            "match { $f: Film } return { $f.title",
            (1, 37),
            "1 | match { $f: Film } return { $f.title",
        ),
    ],
)
def test_mistakes_of_a_query_without_a_header_are_where_they_were_written(
    text: str, place: tuple[int, int], frame: str
) -> None:
    catalog = compile_schema("node Film { title: String @key }").catalog
    with pytest.raises(LanguageError) as raised:
        compile_given(text, catalog, None, {"unused": 1} if "Flim" in text else None)
    (found, *_) = raised.value.details["diagnostics"]
    assert (found["line"], found["column"]) == place
    assert frame in raised.value.report
    assert "query query(" not in raised.value.report
