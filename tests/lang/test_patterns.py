"""The patterns of `@check`: what is refused is named, and RE2 itself agrees."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omnigraph.errors import SchemaError
from omnigraph.lang.schema.check.patterns import MAX_PATTERN, pattern_mistake
from omnigraph.lang.schema.compile import compile_schema, shape_of_source
from omnigraph.rows.patterns import refusal

PIECES = (
    *"()[]{}|*+?^$.\\-:,<>=!#&'_aAbBzZ019éP ",
    *("(?", "(?:", "(?i)", "(?i:", "(?-s)", "(?P<n>", "(?<n>", "(?=", "(?<!", "(?>", "(?P=n)"),
    *("[^", "[[:alpha:]]", "[[:", ":]", "[a-z]", "[z-a]", "{2}", "{2,}", "{3,2}", "{1001}", "{,2}"),
    *("\\d", "\\W", "\\b", "\\A", "\\z", "\\Z", "\\C", "\\Q", "\\E", "\\pN", "\\p{Greek}", "\\p{"),
    *("\\x41", "\\x{41}", "\\x{110000}", "\\x", "\\1", "\\12", "\\08", "\\9", "\\k", "*?", "++"),
)
# What only the engine knows: its tables, and how large a pattern becomes.
OF_THE_ENGINE = ("invalid character class range: \\p", "invalid character class range: \\P",
                 "invalid repetition size", "pattern too large")  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=10).map("".join))
@example("a(?i)*")
@example("[]a]")
@example("[a-\\d]")
@example("[[:a]b:]]")
@example("\\Q\\E*")
@example("a*(?i)*")
@example("(?-)")
def test_the_engine_agrees(pattern: str) -> None:
    mistake, refused = pattern_mistake(pattern), refusal(pattern)
    if mistake is not None:
        assert refused is not None, mistake
        assert 0 <= mistake.start <= mistake.end <= len(pattern) + 2
    elif refused is not None:
        assert refused.startswith(OF_THE_ENGINE)


@pytest.mark.parametrize(
    ("pattern", "name", "column"),
    [
        ("a(?=b)", "look-ahead", 2),
        ("a(?!b)", "look-ahead", 2),
        ("(?<=a)b", "look-behind", 1),
        ("(?<!a)b", "look-behind", 1),
        ("(a)\\\\1", "a backreference", 4),
        ("(?P<n>a)(?P=n)", "a backreference", 9),
        ("a*+", "a possessive repetition `*+`", 2),
        ("a{2}+", "a possessive repetition `{2}+`", 2),
        ("(?>a)", "an atomic group", 1),
        ("(a)?(?(1)b|c)", "a conditional", 5),
        ("(?R)", "recursion", 1),
        ("\\\\d\\\\Z", "`\\Z`", 4),
        ("a)", "closes nothing", 2),
        ("(a", "never closed", 1),
        ("[a", "never closed", 1),
        ("a**", "not repeated", 3),
        ("*a", "nothing stands before", 1),
        ("a{2,1}", "from small to large", 2),
        ("\\\\", "does not end with", 1),
        ("a" * (MAX_PATTERN + 1), "at most 10,000 characters", 1),
    ],
)
def test_what_is_refused_is_named_in_its_place(pattern: str, name: str, column: int) -> None:
    before = 'node A { n: String @key @check(n, "'
    text = f'{before}{pattern}") }}'
    with pytest.raises(SchemaError) as refused:
        compile_schema(text)
    assert name in refused.value.message
    (found,) = refused.value.details["diagnostics"]
    assert (found["line"], found["column"]) == (1, len(before) + column)
    assert len(refused.value.message) < 300
    shape_of_source(text, stored=True)  # what was accepted once still opens
