"""Parameters of any value for any declaration: an answer, or an error of ours."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.cli.options.query_source import read_params
from tests import fuzzing
from tests.profile import costly

SCHEMA = """\
node Thing {
    name: String @key  flag: Bool?  small: I32?  large: U64?  half: F32?  whole: F64?  day: Date?
    moment: DateTime?  words: [String]?  numbers: [F32]?  at: Vector(2)?  data: Blob?
}
"""
TYPES = {
    "name": "String", "flag": "Bool", "small": "I32", "large": "U64", "half": "F32",
    "whole": "F64", "day": "Date", "moment": "DateTime", "words": "[String]",
    "numbers": "[F32]", "at": "Vector(2)", "data": "Blob",
}  # fmt: skip


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    made = og.init(tmp_path_factory.mktemp("fuzzed") / "graph", SCHEMA)
    made.load([{"type": "Thing", "data": {"name": "a", "half": 0.1, "large": 7}}], mode="append")
    return made


def reading(name: str, type_: str, op: str) -> str:
    if type_.startswith("Blob"):
        clause, tail = "", ""
    elif type_.startswith("Vector"):
        clause, tail = "", f"order {{ nearest($t.{name}, $x) }} limit 2"
    elif type_.startswith("["):
        clause, tail = f"$t.{'name' if name == 'words' else 'half'} in $x", ""
    else:
        clause, tail = f"$t.{name} {op} $x", ""
    return f"query q($x: {type_}) {{ match {{ $t: Thing {clause} }} return {{ $t.name }} {tail} }}"


@given(
    st.sampled_from(sorted(TYPES.items())),
    st.sampled_from(["=", "!=", "<", ">="]),
    st.booleans(),
    fuzzing.VALUES,
)
def test_any_value_is_compared_or_refused(
    graph: og.Graph, property_: tuple[str, str], op: str, nullable: bool, value: Any
) -> None:
    name, type_ = property_
    text = reading(name, type_ + "?" * nullable, op)
    with fuzzing.only_our_errors("param_error"):
        graph.query(text, params={"x": value})


@costly
@given(st.sampled_from(sorted(TYPES.items())), fuzzing.VALUES)
def test_any_value_is_assigned_or_refused(
    graph: og.Graph, property_: tuple[str, str], value: Any
) -> None:
    name, type_ = property_
    assigned = f"{{ {name}: $x }}"
    body = f'update Thing set {assigned} where name = "nobody"'  # noqa: S608 - no SQL
    if name == "name":
        body = f"insert Thing {assigned}"
    text = f"query q($x: {type_}?) {{ {body} }}"
    with fuzzing.only_our_errors("param_error", "validation_error"):
        graph.mutate(text, params={"x": value})


@given(fuzzing.VALUES)
def test_params_of_any_shape(graph: og.Graph, params: Any) -> None:
    with fuzzing.only_our_errors("param_error"):
        graph.query(reading("name", "String?", "="), params=params)


@given(
    fuzzing.broken(b'{"x": 3, "y": [1.5, "a"], "z": {"b": null}}').map(
        lambda data: data.decode(errors="replace")
    )
    | fuzzing.JSON_VALUES.map(json.dumps)
)
def test_any_text_after_params(text: str) -> None:
    with fuzzing.only_our_errors("param_error"):
        assert read_params(text, None) is None or isinstance(read_params(text, None), dict)
