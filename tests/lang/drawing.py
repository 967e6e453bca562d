"""What strategies for both languages are made of: names, literals, blanks and comments.

Also how they are drawn: whole trees need more time than Hypothesis likes to give.
"""

from __future__ import annotations

from typing import Any, TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MAX_INTEGER = 2**63 - 1

# Words that mean something elsewhere in the grammars, and must still be usable as names.
CONTEXTUAL = (
    *("interface", "node", "edge", "implements", "enum", "key", "unique", "index", "range"),
    *("check", "query", "match", "return", "order", "limit", "offset", "distinct", "as", "asc"),
    *("desc", "insert", "update", "delete", "set", "where", "and", "or", "any", "optional"),
    *("exists", "not", "in", "is", "null", "contains", "starts_with", "count", "sum", "avg"),
    *("min", "max", "now", "date", "datetime", "nearest", "search", "fuzzy", "match_text"),
    *("bm25", "rrf", "true", "false", "description", "instruction", "id", "src", "dst", "_"),
)

T = TypeVar("T")


def opaque(strategy: st.SearchStrategy[T]) -> st.SearchStrategy[T]:
    """The same strategy with a short repr; Hypothesis would spell the whole grammar out."""

    @st.composite
    def element(draw: st.DrawFn) -> T:
        return draw(strategy)

    return element()


idents = opaque(
    st.one_of(
        st.sampled_from(
            ("a", "b", "name", "knows", "_x", "is_not", "not_in", "trueish", "camelCase")
        ),
        st.sampled_from(CONTEXTUAL),
        st.from_regex(r"[a-z_][A-Za-z0-9_]{0,12}", fullmatch=True),
    )
)
type_names = opaque(
    st.one_of(
        st.sampled_from(("Person", "T", "Vector", "String", "N_1", "Null", "Query")),
        st.from_regex(r"[A-Z][A-Za-z0-9_]{0,12}", fullmatch=True),
    )
)
# Surrogates cannot be encoded, so no text that reached us holds one.
_any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
texts = opaque(
    st.one_of(
        st.sampled_from(
            (
                *("", '"', "\\", '\\"', "\n", "\r\n", "\t", "// no comment", "/* nor this */"),
                *(
                    "}",
                    "{",
                    "\\n",
                    "a\\",
                    "é ü 漢 😀",
                    "\u2028\x85\x0b",
                    "x" * 40,
                    "--- $a: { , } @",
                ),
            )
        ),
        _any_text,
    )
)
integers = st.one_of(
    st.integers(-9, 9),
    st.sampled_from((MAX_INTEGER, -MAX_INTEGER, -MAX_INTEGER - 1, 2**53 + 1)),
    st.integers(-MAX_INTEGER - 1, MAX_INTEGER),
)
naturals = st.one_of(st.integers(0, 9), st.integers(0, MAX_INTEGER))
floats = st.one_of(
    st.sampled_from((0.0, -0.5, 1.0, 1e22, 1e-7, 5e-324, 1.7976931348623157e308, -1e300, 0.1)),
    st.floats(allow_nan=False, allow_infinity=False),
)


def several(
    elements: st.SearchStrategy[T], *, least: int = 0, most: int = 3
) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(elements, min_size=least, max_size=most).map(tuple)


def either(*choices: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A choice between node classes; their union is what the caller's field says."""
    return st.one_of(*choices)


def maybe(elements: st.SearchStrategy[T]) -> st.SearchStrategy[T | None]:
    return st.one_of(st.none(), elements)


def but(elements: st.SearchStrategy[str], *excluded: str) -> st.SearchStrategy[str]:
    return elements.filter(lambda element: element not in excluded)


# -- the space between tokens ------------------------------------------------------

_line_comments = st.one_of(
    st.sampled_from(("//", "// a", "//\t", "// }", '// "', "// /* x", "//, $a  ")),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=8).map(
        "// {}".format
    ),
)
_block_comments = st.one_of(
    st.sampled_from(
        ("/**/", "/* a */", "/* a\n  b */", "/*/ */", "/* // */", "/* { */", '/* " */', "/*\r\n*/")
    ),
    _any_text.filter(lambda text: "*/" not in text and not text.endswith("*")).map(
        "/* {}*/".format
    ),
)
_line_ends = st.sampled_from(("\n", "\n", "\r\n", "\r"))
_blanks = st.sampled_from((" ", "  ", "\t", "\n", "\n\n", "\n \t\n\n", "\r\n", "\r", "\n    "))
_pieces = st.one_of(_blanks, _block_comments, st.tuples(_line_comments, _line_ends).map("".join))
gaps = opaque(st.lists(st.one_of(st.just(""), _pieces), max_size=3).map("".join))
"""Blanks and comments, whole: no line comment runs into what follows."""


# -- drawing -----------------------------------------------------------------------

whole_trees = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
"""Settings for properties of whole trees, which take their time to draw."""


def examples(strategy: st.SearchStrategy[T], count: int) -> list[T]:
    """Some values of a strategy, the same ones every time."""
    values: list[T] = []

    @settings(whole_trees, max_examples=count, derandomize=True, database=None)
    @given(strategy)
    def collect(value: T) -> None:
        values.append(value)

    collect()
    return values
