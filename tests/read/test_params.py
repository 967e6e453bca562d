"""Parameters as Python gives them: what does not fit its declaration is refused and named."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import omnigraph as og
from omnigraph.errors import OmniGraphError, ParamError

SCHEMA = "node Person { name: String @key  age: I32? }"
READ = (
    "query q($name: String?, $age: I32?) { match { $p: Person { name: $name } } return { $p.age } }"
)
CHANGE = (
    "query q($name: String?, $age: I32?) { update Person set { age: $age } where name = $name }"
)
TYPES = ("String", "I32", "U64", "F32", "F64", "Bool", "Date", "DateTime", "Blob", "[I32]",
         "[String]", "Vector(2)")  # fmt: skip
STRANGE: tuple[Any, ...] = (
    b"bytes",
    {1, 2},
    object(),
    Decimal("1.5"),
    {"an": "object"},
    timedelta(1),
    float("nan"),
    float("inf"),
    10**5000,
    -(10**5000),
    "\ud800",
    [["nested"]],
    [None],
    [object()],
    np.array([1.0, 2.0]),
    np.int64(3),
    1j,
    range(3),
    lambda: None,
    datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
    datetime(2024, 1, 1),  # noqa: DTZ001 - that is what is tried
)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    return og.init(tmp_path_factory.mktemp("params") / "graph", SCHEMA)


@pytest.mark.parametrize(
    "params", [5, "name", ["name"], (("name", "a"),), b"{}", {1: 2}, {None: 1}]
)
def test_params_are_a_mapping_of_texts(graph: og.Graph, params: Any) -> None:
    for call, text in ((graph.query, READ), (graph.mutate, CHANGE)):
        with pytest.raises(ParamError, match=r"mapping|names of params"):
            call(text, params=params)


def test_an_undeclared_parameter_is_refused_with_the_nearest_name(graph: og.Graph) -> None:
    for call, text in ((graph.query, READ), (graph.mutate, CHANGE), (graph.explain, READ)):
        with pytest.raises(ParamError, match="no parameter 'nam': did you mean 'name'") as refused:
            call(text, params={"nam": "Ann"})
        assert refused.value.details == {"param": "nam", "declared": ["name", "age"]}


def test_a_long_undeclared_name_is_cut(graph: og.Graph) -> None:
    with pytest.raises(ParamError) as refused:
        graph.query(READ, params={"x" * 100_000: 1})
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("declared", TYPES)
def test_values_of_other_types_are_refused(graph: og.Graph, declared: str) -> None:
    text = f"query q($x: {declared}) {{ match {{ $p: Person }} return {{ $p.age }} }}"
    for value in STRANGE:
        if declared == "Blob" and isinstance(value, bytes):
            continue
        with pytest.raises(OmniGraphError, match=r"^param 'x': ") as refused:
            graph.query(text, params={"x": value})
        assert len(str(refused.value)) < 400, value
