"""Renames: what comes out means the same, and what cannot be renamed whole is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.errors import BadRequest
from omnigraph.lang.source import Source
from omnigraph.language_server.declared import declared_in
from omnigraph.language_server.meaning import Text
from omnigraph.language_server.renames import edited, rename
from omnigraph.language_server.workspace import Files

SCHEMA = """\
interface Named {
    name: String @key
}

node Person implements Named {
    name: String @key
    age: I32?
    bio: String?
    vector: Vector(4)? @embed("bio")
    @index(age)
}

node Film implements Named {
    name: String @key
    age: I32?
    @range(age, 0..200)
}

edge ActedIn: Person -> Film {
    role: String?
}
"""

QUERIES = """\
// Person and age are words of this comment.
query a($age: I32) {
    match {
        $p: Person { age: $age }
        $p $e:actedIn $f
        $f.age > $p.age
        not { $p actedIn $g  $g.name = "age" }
    }
    return { $p.age as age, $e.role, $f.name, count($p.bio) as n }
}

query b($name: String) {
    insert Person { name: $name, age: 1 }
    update Person set { age: 2 } where age is null and name = $name
    insert ActedIn { from: $name, to: $name, role: "Person" }
    delete Film where age > 3
}

query c() {
    match { $n: Named  type($n) = "Person" }
    return { $n.name, type($n) as kind }
}
"""


def renamed(place: str, name: str, queries: str = QUERIES, schema: str = SCHEMA) -> tuple[str, str]:
    """The schema and the queries after the word at `‸` in the schema is called otherwise."""
    marked = schema.replace(place.replace("‸", ""), place, 1)
    offset = marked.index("‸")
    source, asked = Source(schema, "s.pg"), Source(queries, "q.gq")
    text = Text(source, "pg", declared_in(source))
    edits = rename(text, offset, name, [asked])
    return edited(source, edits.get("s.pg", ())), edited(asked, edits.get("q.gq", ()))


def test_a_node_type_is_renamed() -> None:
    schema, queries = renamed("node ‸Person", "Human")
    assert schema == SCHEMA.replace("Person", "Human")
    expected = QUERIES.replace(": Person", ": Human").replace('= "Person"', '= "Human"')
    expected = expected.replace("insert Person", "insert Human").replace(
        "update Person", "update Human"
    )
    assert queries == expected


def test_an_edge_type_is_renamed_as_queries_spell_it() -> None:
    schema, queries = renamed("edge ‸ActedIn", "PlayedIn")
    assert schema == SCHEMA.replace("ActedIn", "PlayedIn")
    assert queries == QUERIES.replace("actedIn", "playedIn").replace("ActedIn", "PlayedIn")


def test_an_interface_is_renamed() -> None:
    schema, queries = renamed("interface ‸Named", "Called")
    assert schema == SCHEMA.replace("Named", "Called")
    assert queries == QUERIES.replace("Named", "Called")


def test_a_property_is_renamed_and_its_namesakes_are_not() -> None:
    schema, queries = renamed("    ‸age: I32?\n    bio", "years")
    assert schema == SCHEMA.replace("    age: I32?\n    bio", "    years: I32?\n    bio").replace(
        "@index(age)", "@index(years)"
    )
    expected = QUERIES.replace("Person { age:", "Person { years:").replace("$p.age", "$p.years")
    expected = expected.replace("name: $name, age: 1", "name: $name, years: 1")
    expected = expected.replace("set { age: 2 } where age", "set { years: 2 } where years")
    assert queries == expected


def test_what_is_embedded_is_renamed() -> None:
    schema, queries = renamed("    ‸bio", "life")
    assert schema == SCHEMA.replace("bio", "life")
    assert queries == QUERIES.replace("$p.bio", "$p.life")


def test_a_property_of_an_interface_is_renamed_in_all_that_have_it() -> None:
    for place in ("    ‸name", "node Person implements Named {\n    ‸name"):
        schema, queries = renamed(place, "title")
        assert schema == SCHEMA.replace("name", "title")
        expected = QUERIES.replace(".name", ".title").replace("{ name:", "{ title:")
        assert queries == expected.replace("and name =", "and title =")


@pytest.mark.parametrize(
    ("place", "name", "said"),
    [
        ("node ‸Person", "Film", "there is a type Film already"),
        ("node ‸Person", "human", "begins with a capital letter"),
        ("    ‸bio", "Bio", "begins with a small letter"),
        ("    ‸bio", "age", "Person has a property age already"),
        ("‸node", "x", "only types and properties"),
    ],
)
def test_what_cannot_be_called_so_is_refused(place: str, name: str, said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        renamed(place, name)


def test_a_use_that_means_others_too_is_refused() -> None:
    queries = "query q() {\n  match { $n: Named }\n  return { $n.age }\n}\n"
    with pytest.raises(BadRequest, match=r"q.gq:3 means the property age of Film, too"):
        renamed("    ‸age: I32?\n    bio", "years", queries)


def test_files_with_mistakes_are_left_alone() -> None:
    with pytest.raises(BadRequest, match=r"q.gq:1:25 has a mistake before this can be renamed"):
        renamed("node ‸Person", "Human", "query q() { match { $p: Persn } return { $p.name } }")


def test_the_queries_of_a_schema_are_those_of_its_project(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".venv").mkdir()
    (tmp_path / "deep").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "s.pg").write_text(SCHEMA)
    (tmp_path / "other/t.pg").write_text(SCHEMA)
    for name in ("a.gq", "deep/b.gq", ".venv/c.gq", "other/d.gq"):
        (tmp_path / name).write_text(QUERIES)
    files = Files()
    files.opened(tmp_path / "deep/new.gq", "")
    found = [Path(one.name).relative_to(tmp_path) for one in files.queries_of(tmp_path / "s.pg")]
    assert list(map(str, found)) == ["a.gq", "deep/b.gq", "deep/new.gq"]
