"""Completion, hover and definitions, in texts that parse and in those that do not."""

from __future__ import annotations

import pytest

from omnigraph.lang.functions.registry import FUNCTIONS
from omnigraph.lang.source import Source
from omnigraph.language_server.completion import Offer, completion
from omnigraph.language_server.declared import declared_in
from omnigraph.language_server.definitions import definitions
from omnigraph.language_server.hover import hover
from tests.language_server.examples import SCHEMA, text_at


def offers(marked: str, language: str = "gq") -> dict[str, Offer]:
    text, offset = text_at(marked, language="pg" if language == "pg" else "gq")
    return {offer.word: offer for offer in completion(text, offset)}


@pytest.mark.parametrize(
    ("marked", "names"),
    [
        ("query q() { match { $p: Person  $p.‸", {"name", "age"}),
        ("query q() { match { $p: Person  $p.na‸", {"name", "age"}),
        ("query q() { match { $p: Person $p actedIn $f } return { $f.‸ } }", {"title", "year"}),
        ("query q() { match { $p <$e:actedIn> $f } return { $e.‸", {"role"}),
        ("query q() { match { $n: Named } return { $n.‸", {"name", "age"}),
        (
            "query q() { match { $x: Person|Film } return { $x.‸",
            {"name", "age", "title", "year"},
        ),
        # A variable of another query says nothing here.
        ("query a() { match { $p: Person } } query b() { match { $p.‸", set()),
        ("query q() { match { $p: ‸", {"Named", "Person", "Film", "actedIn"}),
        ("query q() { insert ‸", {"Named", "Person", "Film", "ActedIn"}),
    ],
)
def test_names_are_offered_where_they_may_stand(marked: str, names: set[str]) -> None:
    assert set(offers(marked)) == names


def test_a_property_is_offered_with_its_type_and_description() -> None:
    found = offers("query q() { match { $p: Person  $p.‸")["age"]
    assert (found.sort, found.detail) == ("property", "I32?")
    assert "years since birth" in found.about
    assert "In whole years." in found.about


def test_functions_are_offered_with_their_signatures() -> None:
    found = offers("query q() { match { $p: Person } return { lo‸")
    for name, function in FUNCTIONS.items():
        assert found[name].detail == function.signature
        assert function.description in found[name].about
    assert found["$p"].detail == "Person"
    assert found["match"].sort == "keyword"


def test_edges_are_offered_after_a_variable() -> None:
    found = offers("query q() { match { $p: Person $p ‸")["actedIn"]
    assert (found.sort, found.detail) == ("edge", "Person -> Film")


@pytest.mark.parametrize(
    "marked",
    [
        "query q() { match { $p: Person { ‸",
        "query q() { insert Person { name: 1, ‸",
        "query q() { update Person set { ‸",
        "query q() { update Person set { age: 1 } where ‸",
        "query q() { delete Person where ‸",
    ],
)
def test_properties_are_offered_where_a_type_is_meant(marked: str) -> None:
    found = offers(marked)
    assert {name for name, offer in found.items() if offer.sort == "property"} == {"name", "age"}


@pytest.mark.parametrize(
    "marked", ['query q() { match { $p: Person { name: "‸" ', "query q() { // mat‸\n", "// ‸"]
)
def test_nothing_is_offered_in_strings_and_comments(marked: str) -> None:
    assert offers(marked) == {}


@pytest.mark.parametrize(
    ("marked", "some", "none"),
    [
        ("‸", {"node", "edge", "interface"}, {"String"}),
        ("node A { x: ‸", {"String", "I32", "enum"}, {"node"}),
        ("node A { x: String @‸", {"key", "description"}, {"node"}),
        ("node A { x: I32 @key(‸", {"x"}, {"node"}),
        ("node A {} edge E: ‸", {"A"}, {"String"}),
        ("node A {} edge E: A -> ‸", {"A"}, {"String"}),
        ("interface I { x: I32 } node A implements ‸", {"I"}, {"A", "node"}),
    ],
)
def test_schemas_are_completed(marked: str, some: set[str], none: set[str]) -> None:
    found = set(offers(marked, "pg"))
    assert some <= found
    assert not none & found


def shown(marked: str, language: str = "gq") -> str:
    text, offset = text_at(marked, language="pg" if language == "pg" else "gq")
    found = hover(text, offset)
    return "" if found is None else found[1]


def test_hover_shows_what_a_word_is() -> None:
    person = shown("query q() { match { $p: Per‸son")
    assert "node Person" in person
    assert "a human being" in person
    assert "Somebody who acts.\nOr directs." in person
    assert shown("query q() { match { $‸p: Person").startswith("```gq\n$p: Person\n```")
    age = shown("query q() { match { $p: Person  $p.‸age")
    assert "age: I32?" in age
    assert "of `Person`" in age
    assert "years since birth" in age
    assert "edge ActedIn" in shown("query q() { match { $p act‸edIn $f }")
    assert FUNCTIONS["round"].example in shown("query q() { return { rou‸nd(1.5) as x")
    assert shown("query q() { mat‸ch {") == ""


def place(marked: str, language: str = "gq") -> list[str]:
    """The lines that the definitions at the mark stand in."""
    text, offset = text_at(marked, language="pg" if language == "pg" else "gq")
    source = text.schema.source
    return [source.line(source.position(span.start).line) for span in definitions(text, offset)]


def test_definitions_are_in_the_schema() -> None:
    person = 'node Person @description("a human being") implements Named {'
    assert place("query q() { match { $p: Per‸son") == [person]
    assert place("query q() { match { $‸p: Person") == [person]
    assert place("query q() { match { $p <act‸edIn> $f") == ["edge ActedIn: Person -> Film {"]
    assert place("query q() { match { $f: Film { yea‸r: 1 }") == ["    year: I32?"]
    assert place("query q() { delete Film where yea‸r > 1") == ["    year: I32?"]
    assert place("query q() { match { $p: Person $p.na‸me") == ["    name: String @key"] * 2
    assert place("query q() { match { $p: Nob‸ody") == []


def test_definitions_in_a_schema() -> None:
    text = SCHEMA.replace("edge ActedIn: Person", "edge ActedIn: Per‸son")
    assert place(text, "pg")[0].startswith("node Person")
    text = SCHEMA.replace("implements Named", "implements Nam‸ed")
    assert place(text, "pg") == ["interface Named {"]


def test_a_schema_with_a_mistake_still_says_what_it_has() -> None:
    schema = SCHEMA + "\nnode Broken { x String ("
    found = declared_in(Source(schema))
    assert {"Named", "Person", "Film"} <= set(found.nodes)
    text, offset = text_at("query q() { match { $p: Person  $p.‸", schema=schema)
    assert {offer.word for offer in completion(text, offset)} == {"name", "age"}
