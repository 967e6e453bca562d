"""The schema language under arbitrary input: a value or a typed error, soon, and in its place."""

from __future__ import annotations

import json
import struct
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import LanguageError, ParseError, SchemaError
from omnigraph.lang.diagnostics import MAX_DIAGNOSTICS
from omnigraph.lang.schema.compile import (
    PLACEHOLDER_DOMAIN,
    check_schema_source,
    check_state,
    compile_schema,
    shape_of_source,
    state_from_json,
)
from omnigraph.lang.schema.ir.ir import ir_from_json
from omnigraph.lang.schema.keys import canonical_float
from omnigraph.lang.schema.migration.codes import MIGRATION_CODES
from omnigraph.lang.schema.migration.planner import plan_migration
from omnigraph.lang.schema.syntax.format import print_schema
from omnigraph.lang.schema.syntax.tree import Schema
from omnigraph.lang.source import Source
from tests.lang.sealing import state_of
from tests.lang.strategies import schemas

FILM = """
interface Named { name: String @index }
node Film @description("d") implements Named {
  year: I32? @default(1999)
  kind: enum(short, long-form)
  text: String
  vector: Vector(4) @embed(text, model="m")
  @key(name, year2)
  year2: I64
  @range(year, 1900..)
  @check(text, "^a")
}
edge Cites: Film -> Film @card(0..5) @merge(row) { weight: F32 @unique(src, dst) }
"""
DOMAIN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
LARGEST_F32 = 3.4028234663852886e38
FRAGMENTS = st.lists(
    st.sampled_from(
        [
            *("node", "edge", "interface", "implements", "A", "B", "a", "b", "{", "}", "(", ")"),
            *("[", "]", ":", "->", ",", "?", "@", "@key", "@key(", "@card(", "@range(", "..", "-"),
            *("1", "1.5", '"x"', '"', "String", "enum(", "Vector(", "@embed(", "@default(", "="),
            *("\n", "//", "/*", "*/", "$x", "é", "#", "true"),
        ]
    ),
    max_size=60,
)


def assert_sane(text: str) -> None:
    """Compile a text: success without diagnostics, or one error with all of them inside it."""
    found = check_schema_source(text)
    for each in found:
        assert 0 <= each.span.start <= each.span.end <= len(text)
        assert each.render()
    if not found:
        compiled = compile_schema(text)
        assert ir_from_json(compiled.ir.render()) == compiled.ir
        return
    with pytest.raises(LanguageError) as raised:
        compile_schema(text)
    assert len(raised.value.details["diagnostics"]) == len(found)


# -- any text ------------------------------------------------------------------------


@pytest.mark.slow
@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    assert_sane(text)


@given(FRAGMENTS)
def test_any_tokens(parts: list[str]) -> None:
    assert_sane(" ".join(parts))


@given(st.integers(0, len(FILM)), st.integers(0, 30), st.sampled_from(["", "}", "@", '"', "x:"]))
def test_a_schema_with_a_hole(start: int, length: int, instead: str) -> None:
    assert_sane(FILM[:start] + instead + FILM[start + length :])


@pytest.mark.slow
@given(schemas)
def test_any_tree(tree: Schema) -> None:
    assert_sane(print_schema(tree))


def test_text_that_cannot_be_stored() -> None:
    with pytest.raises(ParseError, match="not valid Unicode"):
        compile_schema('node A @description("\ud800") {}')


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
def test_line_breaks_of_all_kinds(line_break: str) -> None:
    text = line_break.join(["// first", "node A {", "  a: Strng", "}"])
    (found,) = check_schema_source(text)
    assert found.position == (3, 6)
    assert compile_schema(FILM.replace("\n", line_break)).shape == shape_of_source(FILM)


def test_no_more_messages_than_help() -> None:
    assert len(check_schema_source("node A { a: Foo }\n" * 1000)) == MAX_DIAGNOSTICS


# -- size ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "node A { a: " + "[" * 200_000,
        "{" * 200_000,
        "}" * 200_000,
        "@a(" * 100_000,
        "node A { " + "a: String " * 50_000 + "}",
        "node A { " + " ".join(f"a{i}: Foo" for i in range(20_000)) + "}",
        "node A { s: enum(" + ",".join(f"v{i}" for i in range(100_000)) + ") }",
        "node A { s: enum(" + "a" * 500_000 + ") }",
        "node A { a: I32 @default(" + "9" * 200_000 + ") }",
        "node A { a: Vector(" + "9" * 200_000 + ") }",
        "node A {} edge E: A -> A @card(" + "9" * 200_000 + "..)",
        "node A { a: F64 @range(a, " + "9" * 200_000 + ".5..) }",
        "\n".join(f"edge E{i}: A{i} -> B{i}" for i in range(10_000)),
        "\n".join(f"node N{i} {{}}" for i in range(10_000)) + "\nedge E: Nx -> N1",
        f"node {'A' * 100_000} {{}} edge E: {'A' * 99_999}B -> A",
        'node A @description("' + "x" * 500_000,
        "/*" * 200_000,
        "node A implements " + ", ".join(f"I{i}" for i in range(20_000)) + " {}",
        "node A { a: String " + "@key(a) " * 20_000 + "}",
    ],
    ids=range(19),
)
def test_huge_texts_end_soon(text: str) -> None:
    started = perf_counter()
    check_schema_source(text)
    # Far above what linear work takes, far below what quadratic work would.
    assert perf_counter() - started < 10


@pytest.mark.slow
def test_a_large_schema_compiles() -> None:
    text = "\n".join(
        f"node N{i} {{ a: String @key b: I32? @index }}\nedge E{i}: N{i} -> N{i}"
        for i in range(1000)
    )
    compiled = compile_schema(text)
    assert len(compiled.catalog.nodes) == 1000
    assert plan_migration(compiled.ir, compile_schema(text, accepted=compiled.ir).ir).steps == ()


# -- stored documents ----------------------------------------------------------------


@given(st.text(max_size=60))
def test_any_text_as_a_stored_document(text: str) -> None:
    for read in (ir_from_json, state_from_json):
        with pytest.raises(SchemaError, match="invalid schema"):
            read(text)


@given(st.data())
def test_a_stored_ir_with_any_value_in_any_place(data: st.DataObject) -> None:
    document = compile_schema(FILM, domain=DOMAIN).ir.to_json()
    place: object = document
    while isinstance(place, (dict, list)) and place:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        child = place[key]
        if not isinstance(child, (dict, list)) or not child or data.draw(st.integers(0, 3)) == 0:
            place[key] = data.draw(
                st.one_of(
                    st.none(),
                    st.booleans(),
                    st.integers(-1, 2**65),
                    st.floats(),
                    st.sampled_from(["", "x", "\ud800", [], {}, [[]], {"Vector": 0}, "Blob"]),
                )
            )
            break
        place = child
    text = json.dumps(document)
    try:
        read = ir_from_json(text)
    except SchemaError:
        # The one allowed failure; anything else, or a different result below, is a bug.
        return
    assert ir_from_json(read.render()) == read


def test_deep_documents() -> None:
    with pytest.raises(SchemaError):
        ir_from_json("[" * 100_000)
    with pytest.raises(SchemaError):
        ir_from_json(b"\xff\xfe\x00")


# -- identity ------------------------------------------------------------------------


@pytest.mark.parametrize("domain", ["", "x", DOMAIN.lower(), DOMAIN + "A", "I" * 26, "Z" * 26])
def test_an_invalid_domain(domain: str) -> None:
    with pytest.raises(SchemaError, match="invalid schema identity domain"):
        compile_schema("node A {}", domain=domain)


def test_the_domain_never_changes() -> None:
    accepted = compile_schema("node A {}", domain=DOMAIN).ir
    assert compile_schema("node A {}", accepted=accepted).ir == accepted
    with pytest.raises(SchemaError, match="belongs to"):
        compile_schema("node A {}", accepted=accepted, domain=PLACEHOLDER_DOMAIN)


def test_offline_the_domain_is_a_placeholder() -> None:
    assert compile_schema("").ir.schema_identity_domain == PLACEHOLDER_DOMAIN


def test_another_domain_is_no_migration() -> None:
    here, there = compile_schema("node A {}", domain=DOMAIN).ir, compile_schema("node A {}").ir
    plan = plan_migration(here, there)
    assert [step.to_json()["entity"] for step in plan.steps] == ["schema"]
    assert not plan.supported


def test_the_source_name_is_in_the_report() -> None:
    with pytest.raises(ParseError, match=r"film\.pg:1:1"):
        compile_schema(Source("nodes", "film.pg"))


@pytest.mark.slow
@given(schemas)
def test_a_schema_seals_itself_and_needs_no_migration(tree: Schema) -> None:
    text = print_schema(tree)
    if check_schema_source(text):
        return
    first = compile_schema(text, domain=DOMAIN)
    again = compile_schema(text, accepted=first.ir)
    assert again.ir == first.ir
    assert plan_migration(first.ir, again.ir).steps == ()
    sealed = state_from_json(state_of(first.shape, first.ir).render())
    check_state(sealed, ir_from_json(first.ir.render()), shape_of_source(text))


def test_every_code_of_the_catalogue_is_filed_under_its_name() -> None:
    assert {name: entry.code for name, entry in MIGRATION_CODES.items()} == {
        name: name for name in MIGRATION_CODES
    }
    emitted = {name for name, entry in MIGRATION_CODES.items() if entry.emitted}
    assert emitted == {"OG-MF-103", "OG-MF-104", "OG-MF-106"}


# -- keys ----------------------------------------------------------------------------


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_float64_text_reads_back(value: float) -> None:
    text = canonical_float(value, 64)
    assert float(text) == value
    assert "e" not in text.lower()


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_float32_text_reads_back_and_is_shortest(value: float) -> None:
    text = canonical_float(value, 32)
    assert struct.pack("<f", float(text)) == struct.pack("<f", value + 0.0)
    digits = text.lstrip("-").replace(".", "").strip("0")
    for fewer in range(len(digits) - 1):
        shorter = float(f"{value:.{fewer}e}")
        assert abs(shorter) > LARGEST_F32 or struct.pack("<f", shorter) != struct.pack("<f", value)


@pytest.mark.parametrize("exponent", range(-149, 128))
def test_powers_of_two_have_a_narrow_side(exponent: int) -> None:
    value = 2.0**exponent
    assert struct.pack("<f", float(canonical_float(value, 32))) == struct.pack("<f", value)
