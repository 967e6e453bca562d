"""The formatter: properties over arbitrary trees and texts, and cases from fixture files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import ParseError
from omnigraph.lang.diagnostics import Reporter
from omnigraph.lang.query.format import format_queries, print_queries
from omnigraph.lang.query.parser import parse_queries
from omnigraph.lang.query.syntax import QueryFile
from omnigraph.lang.schema.format import format_schema, print_schema
from omnigraph.lang.schema.parser import parse_schema
from omnigraph.lang.schema.syntax import Schema
from omnigraph.lang.source import Source
from omnigraph.lang.tokens import Kind, tokenize
from tests.lang.fixture_file import Case, load_cases
from tests.lang.strategies import gaps, query_files, schemas

FIXTURES = sorted((Path(__file__).parent / "fixtures" / "format").glob("*.txt"))
CASES = [case for path in FIXTURES for case in load_cases(path)]
FORMATTERS: dict[str, Callable[[Source], str]] = {".pg": format_schema, ".gq": format_queries}


def read_schema(text: str) -> Schema:
    source = Source(text)
    reporter = Reporter(source)
    tree = parse_schema(source, reporter)
    reporter.raise_if_any()
    return tree


def read_queries(text: str) -> QueryFile:
    source = Source(text)
    reporter = Reporter(source)
    tree = parse_queries(source, reporter)
    reporter.raise_if_any()
    return tree


def comments_of(text: str) -> Counter[str]:
    """The comments, but for what the formatter evens out: line ends and blanks before them."""
    return Counter(
        "\n".join(
            line.rstrip(" \t")
            for line in comment.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        )
        for comment in tokenize(Source(text)).comments
    )


def loosened(text: str, draw: Callable[[st.SearchStrategy[str]], str]) -> str:
    """The same tokens with other blanks and comments between them."""
    parts: list[str] = []
    end = 0
    kept_together = False
    for token in tokenize(Source(text)).tokens:
        # The parts of `-1` and of the enum values `in-progress` and `2nd` must touch.
        is_part = token.text == "-" or token.kind in (
            Kind.IDENT,
            Kind.TYPE,
            Kind.INTEGER,
            Kind.FLOAT,
        )
        if token.start > end:
            parts.append(f" {draw(gaps)}")
        elif not (kept_together and is_part):
            parts.append(draw(gaps))
        parts.append(token.text)
        end, kept_together = token.end, is_part
    return "".join(parts)


def has_no_loose_ends(text: str) -> bool:
    """Whether lines end in LF without blanks before it, and the last line ends."""
    outside = [line for line in text.split("\n") if line.endswith((" ", "\t"))]
    return not outside and "\r" not in text and (not text or text.endswith("\n"))


# -- properties --------------------------------------------------------------------


@given(schemas)
def test_a_printed_schema_reads_back_as_itself(tree: Schema) -> None:
    text = print_schema(tree)
    assert read_schema(text) == tree
    assert format_schema(Source(text)) == text


@given(query_files)
def test_printed_queries_read_back_as_themselves(tree: QueryFile) -> None:
    text = print_queries(tree)
    assert read_queries(text) == tree
    assert format_queries(Source(text)) == text


@given(schemas, st.data())
def test_formatting_a_schema_keeps_tree_and_comments(tree: Schema, data: st.DataObject) -> None:
    text = loosened(print_schema(tree), data.draw)
    formatted = format_schema(Source(text))
    assert read_schema(formatted) == tree
    assert comments_of(formatted) == comments_of(text)
    assert format_schema(Source(formatted)) == formatted
    assert has_no_loose_ends(formatted)


@given(query_files, st.data())
def test_formatting_queries_keeps_tree_and_comments(tree: QueryFile, data: st.DataObject) -> None:
    text = loosened(print_queries(tree), data.draw)
    formatted = format_queries(Source(text))
    assert read_queries(formatted) == tree
    assert comments_of(formatted) == comments_of(text)
    assert format_queries(Source(formatted)) == formatted
    assert has_no_loose_ends(formatted)


# -- cases -------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.file}: {case.name}")
def test_case(case: Case) -> None:
    formatter = FORMATTERS[f".{Path(case.file).stem.split('_')[0]}"]
    before, after = case.sections["before"], case.sections["after"]
    assert formatter(Source(before)) == after
    assert formatter(Source(after)) == after


def test_there_are_cases_for_both_languages() -> None:
    assert len(CASES) >= 40
    assert {Path(case.file).stem.split("_")[0] for case in CASES} == {"pg", "gq"}


@pytest.mark.parametrize("formatter", FORMATTERS.values(), ids=FORMATTERS)
@pytest.mark.parametrize("text", ["", " ", "\n\n", "\t\r\n"])
def test_an_empty_text_formats_to_an_empty_text(
    formatter: Callable[[Source], str], text: str
) -> None:
    assert formatter(Source(text)) == ""


@pytest.mark.parametrize("formatter", FORMATTERS.values(), ids=FORMATTERS)
@pytest.mark.parametrize("text", ["node", "query q(", '"', "/* open", "}"])
def test_a_text_that_does_not_parse_is_refused(
    formatter: Callable[[Source], str], text: str
) -> None:
    with pytest.raises(ParseError):
        formatter(Source(text))
