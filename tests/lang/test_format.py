"""The formatter: properties over arbitrary trees and texts, and cases from fixture files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import ParseError
from omnigraph.lang.diagnostics import Reporter
from omnigraph.lang.query import syntax as query_syntax
from omnigraph.lang.query.format import format_queries, print_queries
from omnigraph.lang.query.parsing.parser import parse_queries
from omnigraph.lang.query.syntax import QueryFile
from omnigraph.lang.schema.syntax import tree as schema_syntax
from omnigraph.lang.schema.syntax.format import format_schema, print_schema
from omnigraph.lang.schema.syntax.parser import parse_schema
from omnigraph.lang.schema.syntax.tree import Schema
from omnigraph.lang.source import Source
from omnigraph.lang.tokens import Kind, tokenize
from tests.lang.drawing import examples, gaps, whole_trees
from tests.lang.fixture_file import Case, load_cases
from tests.lang.strategies import query_files, schemas

FIXTURES = sorted((Path(__file__).parent / "fixtures" / "format").glob("*.txt"))
CASES = [case for path in FIXTURES for case in load_cases(path)]
FORMATTERS: dict[str, Callable[[Source], str]] = {"pg": format_schema, "gq": format_queries}


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


def language_of(case: Case) -> str:
    """Fixture files are called after the language of their cases."""
    return Path(case.file).stem.split("_")[0]


def formatter_of(case: Case) -> Callable[[Source], str]:
    return FORMATTERS[language_of(case)]


# -- properties --------------------------------------------------------------------


@pytest.mark.slow
@whole_trees
@given(schemas)
def test_a_printed_schema_reads_back_as_itself(tree: Schema) -> None:
    text = print_schema(tree)
    assert read_schema(text) == tree
    assert format_schema(Source(text)) == text


@pytest.mark.slow
@whole_trees
@given(query_files)
def test_printed_queries_read_back_as_themselves(tree: QueryFile) -> None:
    text = print_queries(tree)
    assert read_queries(text) == tree
    assert format_queries(Source(text)) == text


@pytest.mark.slow
@whole_trees
@given(schemas, st.data())
def test_formatting_a_schema_keeps_tree_and_comments(tree: Schema, data: st.DataObject) -> None:
    text = loosened(print_schema(tree), data.draw)
    formatted = format_schema(Source(text))
    assert read_schema(formatted) == tree
    assert comments_of(formatted) == comments_of(text)
    assert format_schema(Source(formatted)) == formatted
    assert has_no_loose_ends(formatted)


@pytest.mark.slow
@whole_trees
@given(query_files, st.data())
def test_formatting_queries_keeps_tree_and_comments(tree: QueryFile, data: st.DataObject) -> None:
    text = loosened(print_queries(tree), data.draw)
    formatted = format_queries(Source(text))
    assert read_queries(formatted) == tree
    assert comments_of(formatted) == comments_of(text)
    assert format_queries(Source(formatted)) == formatted
    assert has_no_loose_ends(formatted)


def classes_in(value: object) -> set[type]:
    """The classes of a tree's nodes."""
    if isinstance(value, tuple):
        return {found for element in value for found in classes_in(element)}
    if not is_dataclass(value):
        return set()
    inside = (getattr(value, part.name) for part in fields(value))
    return {type(value), *(found for part in inside for found in classes_in(part))}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "trees"), [(schema_syntax, schemas), (query_syntax, query_files)], ids=["pg", "gq"]
)
def test_the_strategies_draw_every_class_of_syntax(
    module: ModuleType, trees: st.SearchStrategy[object]
) -> None:
    drawn = {found for tree in examples(trees, 150) for found in classes_in(tree)}
    declared = {value for value in vars(module).values() if isinstance(value, type)}
    assert {found for found in declared if found.__module__ == module.__name__} <= drawn


# -- cases -------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.file}: {case.name}")
def test_case(case: Case) -> None:
    formatter = formatter_of(case)
    before, after = case.sections["before"], case.sections["after"]
    assert formatter(Source(before)) == after
    assert formatter(Source(after)) == after


def test_there_are_cases_for_both_languages() -> None:
    assert len(CASES) >= 40
    assert {language_of(case) for case in CASES} == {"pg", "gq"}


@pytest.mark.parametrize("formatter", FORMATTERS.values(), ids=FORMATTERS)
@pytest.mark.parametrize("text", ["", " ", "\n\n", "\t\r\n"])
def test_an_empty_text_formats_to_an_empty_text(
    formatter: Callable[[Source], str], text: str
) -> None:
    assert formatter(Source(text)) == ""


@pytest.mark.parametrize("line_end", ["\r\n", "\r"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.file}: {case.name}")
def test_line_ends_make_no_difference(case: Case, line_end: str) -> None:
    formatter = formatter_of(case)
    after = case.sections["after"]
    assert formatter(Source(after.replace("\n", line_end))) == after


@pytest.mark.parametrize("formatter", FORMATTERS.values(), ids=FORMATTERS)
@pytest.mark.parametrize("text", ["node", "query q(", '"', "/* open", "}"])
def test_a_text_that_does_not_parse_is_refused(
    formatter: Callable[[Source], str], text: str
) -> None:
    with pytest.raises(ParseError):
        formatter(Source(text))
