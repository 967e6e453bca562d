"""The engine against the naive evaluator, on generated graphs and queries."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.read.access import entities, expand
from tests import profile
from tests.read.differential import Place, check
from tests.read.generate_graphs import (
    change,
    draw_data,
    draw_schema,
    envelopes,
    schema_text,
)
from tests.read.generate_queries import COMPARISONS, Generator
from tests.read.model import Data, NodeType, PropType, Schema
from tests.read.query_ast import Bind, Clause, Column, Compare, In, IsNull, Lit, Param, Prop, Query
from tests.write.writing import index_all


def _places(rng: Random, root: Path) -> tuple[Place, Place, Place]:
    """A graph as it is now, on a branch, and as it was before anything changed."""
    schema = draw_schema(rng)
    graph = og.init(root / "graph", schema_text(schema))
    before = draw_data(rng, schema)
    graph.load(envelopes(schema, before), mode="append")
    commit = graph.snapshot().commit_id
    graph.branches.create("work")
    branch = before.copy()
    change(rng, schema, branch, graph, "work")
    index_all(graph)
    now = before.copy()
    change(rng, schema, now, graph, "main")
    return (
        Place("main", graph, schema, now),
        Place("a branch", graph, schema, branch, branch="work"),
        Place("an old commit", graph, schema, before, snapshot=commit),
    )


def _treat_as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do what is done with large tables: filter in storage, read a few rows, mark in rounds."""
    monkeypatch.setattr(entities, "MANY", -1)
    monkeypatch.setattr(entities, "SMALL_TABLE", -1)
    monkeypatch.setattr(entities, "ROW_BYTES", 4)
    monkeypatch.setattr(expand, "MAX_MARKS", 16)


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(profile.CHOSEN.seeds))
def test_generated_queries(
    seed: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    rng = Random(seed)  # noqa: S311 - for tests, not for secrets
    if seed % 2:
        _treat_as_large(monkeypatch)
    main, branch, old = _places(rng, tmp_path)
    runs = 0
    for _ in range(profile.CHOSEN.queries):
        query = Generator(rng, main.schema).query()
        runs += check(main, query, "auto", "csr", "indexed")
        runs += check(branch, query, "auto")
        runs += check(old, query, "csr", "indexed")
    record_property("generated queries", profile.CHOSEN.queries)
    record_property("comparisons with the naive evaluator", runs)


# -- a few values, many comparisons ------------------------------------------------------------

VALUES: dict[str, tuple[Any, ...]] = {
    "String": ("", "a", "b", "ab", "é", "\U0001d518", "\ufb00"),
    "Bool": (False, True),
    "I32": (-(2**31), -1, 0, 3, 2**31 - 1),
    "I64": (-(2**63), -(2**53) - 1, 0, 3, 2**53 + 1, 2**63 - 1),
    "U32": (0, 3, 2**32 - 1),
    "U64": (0, 3, 2**53 + 1, 2**63, 2**64 - 1),
    "F64": (-1.5, 0.0, 3.0, 2.7, 2.0**53, 1e300),
    "Date": (date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29)),
    "DateTime": (
        datetime(1969, 12, 31, 23, 59, 59, 999000, UTC),
        datetime(2024, 2, 29, 1, 2, 3, 4000, UTC),
    ),
}
NUMBERS = ("I32", "I64", "U32", "U64", "F64")
PROPS = {name.lower(): PropType(name) for name in VALUES}
QUICK = Schema({"Value": NodeType("Value", "name", {"name": PropType("String"), **PROPS})}, {})


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A graph with every value of every type next to others, and nulls."""
    text = schema_text(QUICK).replace("name: String?", "name: String")
    graph = og.init(tmp_path_factory.mktemp("values") / "graph", text)
    rows = {}
    for number in range(8):
        row: dict[str, Any] = {"name": f"n{number}"}
        for base, known in VALUES.items():
            row[base.lower()] = (*known, None)[number % (len(known) + 1)]
        rows[row["name"]] = row
    data = Data({"Value": rows}, {})
    graph.load(envelopes(QUICK, data), mode="append")
    return Place("values", graph, QUICK, data)


@st.composite
def _tests(draw: st.DrawFn) -> Query:
    base = draw(st.sampled_from(list(VALUES)))
    other = draw(st.sampled_from(NUMBERS)) if base in NUMBERS else base
    known = [value for value in VALUES[other] if type(value) is not int or value < 2**63]
    value = draw(st.sampled_from(known))
    prop, op = Prop("v", base.lower()), draw(st.sampled_from(COMPARISONS))
    left, right = (prop, Prop("v", other.lower())) if draw(st.booleans()) else (prop, Lit(value))
    clauses: tuple[Clause, ...] = (
        Compare(left, op, right),
        Compare(right, op, left),
        Compare(prop, op, Param("p")),
        In(prop, Lit((value,))),
        IsNull(prop, negated=True),
    )
    clause = draw(st.sampled_from(clauses))
    params = {"p": (f"{other}?", draw(st.sampled_from((value, None))))}
    return Query((Bind("v", "Value"), clause), (Column(Prop("v", "name")),), params)


@settings(derandomize=True)
@given(query=_tests())
def test_quick(values: Place, query: Query) -> None:
    check(values, query, "auto")


@pytest.mark.parametrize("seed", [1000, 1001])
def test_a_few_generated_queries(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)  # noqa: S311 - for tests, not for secrets
    main, _, _ = _places(rng, tmp_path)
    for _ in range(15):
        check(main, Generator(rng, main.schema).query(), "auto", "indexed")
