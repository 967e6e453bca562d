"""Broken text of every sort yields a value or a typed error, never anything else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from random import Random

import pytest

from omnigraph.errors import LanguageError, OmniGraphError, ParseError
from omnigraph.lang.diagnostics import as_error
from omnigraph.lang.query.compile import parse_source
from omnigraph.lang.query.format import format_queries, print_queries
from omnigraph.lang.query.lint import lint_queries
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.schema.syntax.format import format_schema, print_schema
from omnigraph.lang.source import Source
from omnigraph.lang.tokens import Kind, tokenize
from tests import profile
from tests.lang.drawing import examples
from tests.lang.fixture_file import load_cases
from tests.lang.strategies import query_files, schemas

FIXTURES = Path(__file__).parent / "fixtures"
SHARES = 10
LONGEST = 400
DEEP = 10_000

ODD = (
    *('"', "'", "\\", "//", "/*", "*/", "$", "$_", "$X", "@", "#", ";", "!", "-", ".", "..", "->"),
    *("{", "}", "(", ")", "[", "]", "<", ">", "<=", "!=", "=", "?", ":", ",", "\x00", "\u2028"),
    *("\r", "\n\n", "\t", "é", "😀", "\ud800", "9" * 30, "0.0", "1.5", "1..2", '"\\x"', '"\\'),
    *("9" * 60 + ".0", "9223372036854775808", "4294967296", "null", "not", "in", "is", "or"),
)


# -- the texts ---------------------------------------------------------------------


def pieces_of(text: str) -> list[str]:
    """The text cut at its tokens, blanks and comments kept with the token after them."""
    pieces: list[str] = []
    end = 0
    for token in tokenize(Source(text)).tokens:
        pieces.append(text[end : token.end])
        end = token.end
    return pieces


def usable(texts: Iterable[str]) -> list[str]:
    return [text for text in texts if 0 < len(text) <= LONGEST]


def fixture_texts(prefix: str) -> list[str]:
    return [
        case.sections["before"]
        for path in sorted((FIXTURES / "format").glob(f"{prefix}_*.txt"))
        for case in load_cases(path)
    ]


def parted(name: str) -> list[str]:
    """The declarations or queries of a seed file; they make sense, unlike most other texts."""
    return [f"{part}\n" for part in (FIXTURES / "mutated" / name).read_text().split("\n\n")]


@cache
def schema_texts() -> list[str]:
    parts = parted("seeds.pg")
    pairs = ["\n".join(parts[start : start + 2]) for start in range(len(parts))]
    sensible = [*parts, *pairs] * 4
    return usable([*sensible, *fixture_texts("pg"), *examples(schemas.map(print_schema), 60)])


@cache
def query_texts() -> list[str]:
    # Queries that make sense come often, or hardly any mutant would get past the type checker.
    parts = parted("seeds.gq") * 10
    return usable([*parts, *fixture_texts("gq"), *examples(query_files.map(print_queries), 60)])


@cache
def catalog() -> Catalog:
    return compile_schema((FIXTURES / "mutated" / "seeds.pg").read_text()).catalog


def mutated(random: Random, texts: list[str]) -> str:
    """A text with a few things wrong, in its words or in its grammar."""
    text = random.choice(texts)
    return (reworded if random.random() < 0.5 else rebuilt)(random, text, texts)


def reworded(random: Random, text: str, texts: list[str]) -> str:
    """The text with some tokens replaced by others of the same kind, so that it may still parse."""
    tokens = tokenize(Source(text)).tokens
    donors = tokenize(Source(random.choice(texts))).tokens
    words = [place for place, token in enumerate(tokens) if token.kind is not Kind.PUNCT]
    for _ in range(random.choice((1, 1, 2, 3))):
        place = random.choice(words)
        kin = [donor.text for donor in (*donors, *tokens) if donor.kind is tokens[place].kind]
        tokens[place] = tokens[place]._replace(text=random.choice(kin))
    return " ".join(token.text for token in tokens)[:LONGEST]


def rebuilt(random: Random, text: str, texts: list[str]) -> str:
    """The text with tokens or characters deleted, doubled, swapped, inserted or spliced in."""
    for _ in range(random.choice((1, 1, 1, 2, 3, 5))):
        parts = pieces_of(text) if random.random() < 0.7 else list(text)
        place = random.randrange(len(parts)) if parts else 0
        other = random.randrange(len(parts)) if parts else 0
        what = random.randrange(8)
        if what == 0:
            del parts[place : place + random.choice((1, 1, 2, 5))]
        elif what == 1:
            parts.insert(place, parts[place] if parts else "")
        elif what == 2 and parts:
            parts[place], parts[other] = parts[other], parts[place]
        elif what == 3:
            parts.insert(place, random.choice(ODD))
        elif what == 4:
            parts.insert(place, random.choice(pieces_of(random.choice(texts))))
        elif what == 5 and parts:
            parts[place] = random.choice(pieces_of(random.choice(texts)))
        elif what == 6:
            donor = pieces_of(random.choice(texts))
            parts = parts[:place] + donor[random.randrange(len(donor)) :]
        else:
            first, last = sorted((place, other))
            parts[first:last] = reversed(parts[first:last])
        text = "".join(parts)[:LONGEST]
    return text


# -- what must hold ----------------------------------------------------------------


def check_error(error: OmniGraphError, text: str) -> None:
    """Every diagnostic of the error points into the text."""
    assert isinstance(error, LanguageError)
    diagnostics = error.details["diagnostics"]
    assert diagnostics
    assert error.report
    lengths = [len(line) for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    for found in diagnostics:
        assert found["message"]
        start = (found["line"], found["column"])
        end = (found["end_line"], found["end_column"])
        assert (1, 1) <= start <= end <= (len(lengths), lengths[-1] + 2)
        # One past the end of a line is where its CR LF or LF stands; the LF of a CR LF is two past.
        assert found["column"] <= lengths[found["line"] - 1] + 2


def check_schema_text(text: str) -> None:
    try:
        compile_schema(text)
    except OmniGraphError as error:
        check_error(error, text)
    try:
        formatted = format_schema(Source(text))
    except ParseError as error:
        check_error(error, text)
    else:
        assert format_schema(Source(formatted)) == formatted


def check_query_text(text: str) -> None:
    source = Source(text)
    diagnostics = lint_queries(source, catalog()).diagnostics
    if diagnostics:
        check_error(as_error(diagnostics), text)
    try:
        tree = parse_source(source)
    except OmniGraphError as error:
        check_error(error, text)
        return
    formatted = format_queries(source)
    assert parse_source(Source(formatted)) == tree
    assert format_queries(Source(formatted)) == formatted


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(SHARES))
def test_mutated_schemas(seed: int) -> None:
    random = Random(f"schema {seed}{profile.SEED}")  # noqa: S311  (repeatable, not secret)
    for number in range(profile.CHOSEN.mutants):
        text = mutated(random, schema_texts())
        try:
            check_schema_text(text)
        except Exception as error:
            raise AssertionError(f"text {number} of seed {seed}: {text!r}") from error


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(SHARES))
def test_mutated_queries(seed: int) -> None:
    random = Random(f"query {seed}{profile.SEED}")  # noqa: S311  (repeatable, not secret)
    for number in range(profile.CHOSEN.mutants):
        text = mutated(random, query_texts())
        try:
            check_query_text(text)
        except Exception as error:
            raise AssertionError(f"text {number} of seed {seed}: {text!r}") from error


def test_the_seeds_make_sense() -> None:
    for query in parted("seeds.gq"):
        assert lint_queries(Source(query), catalog()).diagnostics == ()


# -- depth -------------------------------------------------------------------------


def in_match(clause: str) -> str:
    return f"query q() {{ match {{ {clause} }} return {{ $p }} }}"


def in_return(expr: str) -> str:
    return f"query q() {{ match {{ $p: P }} return {{ {expr} }} }}"


NESTED_QUERIES: dict[str, Callable[[int], str]] = {
    "not": lambda depth: in_match("not { " * depth + "$a b $c" + " }" * depth),
    "exists": lambda depth: in_match("exists { " * depth + "$a b $c" + " }" * depth),
    "optional": lambda depth: in_match("optional { " * depth + "$a b $c" + " }" * depth),
    "any": lambda depth: in_match("any { " * depth + "$a b $c" + " } or { $a.b = 1 }" * depth),
    "or": lambda depth: in_match("any { $a.b = 1 } or { " * depth + "$a b $c" + " }" * depth),
    "count": lambda depth: in_match("count { " * depth + "$a b $c" + " } > 2" * depth),
    "sum": lambda depth: in_match("sum($a.b) { " * depth + "$a b $c" + " } > 2" * depth),
    "search": lambda depth: in_match("search(" * depth + "$a.b" + ', "x")' * depth),
    "fuzzy": lambda depth: in_return("fuzzy($a.b, $c, " * depth + "1" + ")" * depth),
    "nearest": lambda depth: in_return("nearest($a.b, " * depth + "1" + ")" * depth),
    "rrf": lambda depth: in_return("rrf(" * depth + "1" + ", 2)" * depth),
    "bm25": lambda depth: in_return("bm25(" * depth + "1" + ", 2)" * depth),
    "aggregates": lambda depth: in_return("count(" * depth + "$a" + ")" * depth),
    "aggregate clauses": lambda depth: in_match("sum(" * depth + "$a.b" + ")" * depth + " > 1"),
}
BRACKETED_QUERIES: dict[str, Callable[[int], str]] = {
    "lists": lambda depth: in_return("[" * depth + "]" * depth),
    "parentheses": lambda depth: in_return("(" * depth + ")" * depth),
    "braces": lambda depth: in_match("{" * depth + "}" * depth),
    "queries": lambda depth: "query q() { " * depth,
    "param types": lambda depth: f"query q($a: {'[' * depth}I32{']' * depth}) {{}}",
    "bindings": lambda depth: in_match("$a: B { c: " * depth + "1" + " }" * depth),
    "inserts": lambda depth: f"query q() {{ {'insert A { b: ' * depth}1{' }' * depth} }}",
}
BRACKETED_SCHEMAS: dict[str, Callable[[int], str]] = {
    "nodes": lambda depth: "node A { " * depth + "}" * depth,
    "edges": lambda depth: "edge A: B -> C { " * depth + "}" * depth,
    "braces": lambda depth: f"node A {{ {'{' * depth}{'}' * depth} }}",
    "lists": lambda depth: f"node A {{ a: {'[' * depth}I32{']' * depth} }}",
    "enums": lambda depth: f"node A {{ a: {'enum(' * depth}a{')' * depth} }}",
    "vectors": lambda depth: f"node A {{ a: {'Vector(' * depth}1{')' * depth} }}",
    "annotations": lambda depth: f"node A {'@a(' * depth}1{')' * depth} {{}}",
    "constraints": lambda depth: f"node A {{ {'@key(' * depth}a{')' * depth} }}",
    "cardinalities": lambda depth: f"edge A: B -> C {'@card(' * depth}1{')' * depth}",
    "parentheses": lambda depth: "(" * depth + ")" * depth,
}


@pytest.mark.parametrize("name", NESTED_QUERIES)
def test_queries_nest_only_so_deep(name: str) -> None:
    make = NESTED_QUERIES[name]
    text = format_queries(Source(make(60)))
    assert format_queries(Source(text)) == text
    for nested in (make(DEEP), make(DEEP)[: DEEP * 4]):
        with pytest.raises(ParseError) as caught:
            format_queries(Source(nested))
        check_error(caught.value, nested)


@pytest.mark.parametrize("name", BRACKETED_QUERIES)
def test_deep_brackets_in_queries_are_an_error(name: str) -> None:
    text = BRACKETED_QUERIES[name](DEEP)
    with pytest.raises(ParseError) as caught:
        parse_source(Source(text))
    check_error(caught.value, text)


@pytest.mark.parametrize("name", BRACKETED_SCHEMAS)
def test_deep_brackets_in_schemas_are_an_error(name: str) -> None:
    text = BRACKETED_SCHEMAS[name](DEEP)
    with pytest.raises(ParseError) as caught:
        compile_schema(text)
    check_error(caught.value, text)
