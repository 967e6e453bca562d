"""Places, whose schema is whose, and what is said of texts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.lang.source import Source, Span
from omnigraph.language_server.diagnostics import query_remarks, schema_remarks
from omnigraph.language_server.places import Encoding, Place, offset_of, place_of
from omnigraph.language_server.workspace import Files
from tests.language_server.examples import SCHEMA


@given(
    st.text(alphabet="aé😀\n\r\u2028", max_size=20), st.sampled_from(["utf-8", "utf-16", "utf-32"])
)
def test_every_offset_has_a_place_that_leads_back(text: str, encoding: Encoding) -> None:
    source = Source(text)
    for offset in range(len(text) + 1):
        found = offset_of(source, place_of(source, offset, encoding), encoding)
        # Between CR and LF is no place of its own.
        assert found == offset or text[offset - 1 : offset + 1] == "\r\n"


def test_units_are_those_of_the_encoding() -> None:
    source = Source('x\n"😀"a')
    expected = {"utf-8": 6, "utf-16": 4, "utf-32": 3}
    assert place_of(source, 5, "utf-8") == Place(1, expected["utf-8"])
    assert place_of(source, 5, "utf-16") == Place(1, expected["utf-16"])
    assert place_of(source, 5, "utf-32") == Place(1, expected["utf-32"])
    assert offset_of(source, Place(9, 0)) == len(source.text)
    assert offset_of(source, Place(0, 99)) == 1


def test_mistakes_have_the_codes_of_lint() -> None:
    (found,) = schema_remarks(Source("node A { x: Strin }"))
    assert (found.severity, found.code) == ("error", "parse_error")
    queries = Source("query q() { match { $p: Persn } return { $p.name } }")
    found = query_remarks(queries, Source(SCHEMA))[0]
    assert found.severity == "error"
    assert "did you mean `Person`?" in found.message
    assert queries.text[found.span.start : found.span.end] == "Persn"


def test_remarks_on_a_query_stand_at_its_name() -> None:
    queries = Source(
        "query q() { match { $p: Person $f: Film } return { $p.name, $f.title } }\n"
        'query m() { insert Person { name: "a" } }\n'
    )
    found = query_remarks(queries, Source(SCHEMA))
    said = {(one.code, queries.text[one.span.start : one.span.end]) for one in found}
    assert {("L103", "q"), ("L301", "m"), (None, "m")} == said


def test_without_a_sound_schema_queries_are_parsed_only() -> None:
    queries = Source("query q() { match { $p: Nobody } return { $p.name } }")
    (alone,) = query_remarks(queries, None)
    assert (alone.severity, alone.span) == ("info", Span(0, len(queries.text)))
    (broken,) = query_remarks(queries, Source("node", "s.pg"))
    assert "s.pg has mistakes" in broken.message
    assert [one.severity for one in query_remarks(Source("query ("), None)] == ["error", "info"]


def project(root: Path) -> tuple[Path, Path]:
    """A project of two graphs; gives the queries of each."""
    for name in ("film", "shop"):
        (root / name / "queries").mkdir(parents=True)
        (root / name / "schema.pg").write_text(SCHEMA)
        (root / name / "queries/a.gq").write_text("")
    (root / "omnigraph.yaml").write_text(
        "version: 1\ngraphs:\n"
        "  film: {uri: film.omni, schema: film/schema.pg, queries: [film/queries]}\n"
        "  shop: {uri: shop.omni, schema: shop/schema.pg, queries: [shop/queries/a.gq]}\n"
        "default: {graph: film}\n"
    )
    return root / "film/queries/a.gq", root / "shop/queries/a.gq"


def test_the_project_says_whose_schema_it_is(tmp_path: Path) -> None:
    film, shop = project(tmp_path)
    files = Files()
    assert files.schema_path(film) == tmp_path / "film/schema.pg"
    assert files.schema_path(shop) == tmp_path / "shop/schema.pg"
    assert files.schema_path(tmp_path / "new.gq") == tmp_path / "film/schema.pg"


@pytest.mark.parametrize("text", [None, "version: [", "version: 1\n"])
def test_else_it_is_the_only_schema_near(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "omnigraph.yaml").write_text(text)
    (tmp_path / ".git").mkdir()
    (tmp_path / "deep/er").mkdir(parents=True)
    query = tmp_path / "deep/er/a.gq"
    files = Files()
    assert files.schema_path(query) is None
    (tmp_path / "s.pg").write_text(SCHEMA)
    assert files.schema_path(query) == tmp_path / "s.pg"
    files.opened(tmp_path / "deep/new.pg", "node A {}")
    assert files.schema_path(query) == tmp_path / "deep/new.pg"
    files.closed(tmp_path / "deep/new.pg")
    (tmp_path / "t.pg").write_text(SCHEMA)
    assert files.schema_path(query) is None


def test_open_texts_count_before_the_disk(tmp_path: Path) -> None:
    schema = tmp_path / "s.pg"
    schema.write_text("node Old {}")
    files = Files()
    files.opened(schema, "node New {}")
    text = files.text(tmp_path / "s.pg")
    assert text is not None
    assert set(text.schema.nodes) == {"New"}
    files.closed(schema)
    text = files.text(schema)
    assert text is not None
    assert set(text.schema.nodes) == {"Old"}
    assert files.text(tmp_path / "none.gq") is None
    assert files.text(tmp_path / "s.txt") is None
