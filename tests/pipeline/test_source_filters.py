"""Filters of Spark: which of them storage evaluates, and that it finds the same rows."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import datasource as asked

import omnigraph as og
from omnigraph.lang.structural import ID
from omnigraph.pipeline.source.datasource import expression_of
from omnigraph.pipeline.source.reading import TypeSelection, select
from tests.pipeline.every_type import EXTREMES, make_graph


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    return make_graph(tmp_path_factory.mktemp("every") / "graph")


def chosen(graph: og.Graph, type_name: str = "Sample") -> TypeSelection:
    return select(graph.snapshot(), type_name)


MOST = EXTREMES["key"]
NONE = "nothing at all"
LAST = datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
BEFORE = datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
PARIS = timezone(timedelta(hours=1))

PUSHED: list[tuple[asked.Filter, list[str]]] = [
    (asked.EqualTo(("id",), "plain"), ["plain"]),
    (asked.Not(asked.EqualTo(("text",), "")), ["plain"]),
    (asked.EqualTo(("yes",), False), [MOST]),
    (asked.Not(asked.EqualTo(("yes",), False)), ["plain"]),
    (asked.EqualNullSafe(("i32",), 7), ["plain"]),
    (asked.EqualNullSafe(("i32",), None), [NONE]),
    (asked.IsNull(("day",)), [NONE]),
    (asked.Not(asked.IsNull(("day",))), [MOST, "plain"]),
    (asked.IsNotNull(("f32",)), [MOST, "plain"]),
    (asked.GreaterThan(("i64",), -7), [MOST]),
    (asked.GreaterThanOrEqual(("i64",), -7), [MOST, "plain"]),
    (asked.LessThan(("i64",), 2**63 - 1), ["plain"]),
    (asked.LessThanOrEqual(("i32",), -(2**31)), [MOST]),
    # Minus zero is stored.
    (asked.EqualTo(("f64",), 0.0), ["plain"]),
    (asked.GreaterThanOrEqual(("f64",), 0.0), ["plain"]),
    (asked.In(("f64",), (0.0, 5.0)), ["plain"]),
    (asked.EqualTo(("f32",), 0.5), ["plain"]),
    (asked.LessThan(("day",), date(2024, 2, 29)), [MOST]),
    (asked.EqualTo(("moment",), BEFORE), ["plain"]),
    (asked.GreaterThan(("moment",), BEFORE), [MOST]),
    (asked.LessThanOrEqual(("moment",), BEFORE.astimezone(PARIS)), ["plain"]),
    (asked.In(("moment",), (BEFORE, LAST)), [MOST, "plain"]),
    (asked.Not(asked.In(("moment",), (LAST,))), ["plain"]),
    (asked.IsNull(("moment",)), [NONE]),
    (asked.In(("kind",), ("left", "nowhere")), [NONE, "plain"]),
    (asked.Not(asked.In(("kind",), ("right",))), [NONE, "plain"]),
    (asked.StringStartsWith(("text",), "100%"), ["plain"]),
    (asked.StringEndsWith(("text",), "sure"), ["plain"]),
    (asked.StringContains(("text",), "% s"), ["plain"]),
    (asked.StringContains(("text",), "_"), []),
    (asked.Not(asked.StringContains(("text",), "_")), [MOST, "plain"]),
]

LEFT: list[asked.Filter] = [
    asked.EqualTo(("u32",), 0),
    asked.EqualTo(("u64",), Decimal(1)),
    asked.IsNull(("u64",)),
    asked.GreaterThan(("moment",), datetime(2020, 1, 1)),  # noqa: DTZ001 - of no place
    asked.GreaterThan(("moment",), BEFORE + timedelta(microseconds=1)),
    asked.In(("moment",), (BEFORE, BEFORE - timedelta(microseconds=999))),
    asked.EqualTo(("moment",), date(2020, 1, 1)),
    asked.IsNull(("vector",)),
    asked.EqualTo(("texts",), ["a"]),
    asked.EqualTo(("text", "inside"), "a"),
    asked.EqualTo(("i32",), 2**40),
    asked.EqualTo(("f64",), math.nan),
    asked.LessThan(("f64",), math.inf),
    asked.EqualTo(("f32",), 0.1),
    asked.EqualTo(("day",), datetime(2020, 1, 1)),  # noqa: DTZ001 - as Spark gives it
    asked.EqualTo(("i32",), "7"),
    asked.EqualTo(("text",), None),
    asked.GreaterThan(("yes",), False),
    asked.In(("i32",), (7, None)),
    asked.In(("i32",), ()),
    asked.Not(asked.EqualNullSafe(("i32",), 7)),
]


@pytest.mark.parametrize(("wanted", "found"), PUSHED, ids=lambda value: repr(value)[:70])
def test_a_scan_evaluates_it_as_spark_does(
    graph: og.Graph, wanted: asked.Filter, found: list[str]
) -> None:
    selection = chosen(graph)
    expression = expression_of(selection, wanted)
    assert expression is not None
    rows = selection.table.scan([ID], expression)
    assert sorted(rows[ID].to_pylist()) == sorted(found)


@pytest.mark.parametrize("wanted", LEFT, ids=repr)
def test_the_rest_is_left_to_spark(graph: og.Graph, wanted: asked.Filter) -> None:
    assert expression_of(chosen(graph), wanted) is None


def test_a_table_that_cannot_be_filtered_is_left_to_spark(graph: og.Graph) -> None:
    assert expression_of(chosen(graph, "Counter"), asked.IsNotNull(("id",))) is None


def test_the_filters_of_spark_are_the_ones_we_know() -> None:
    """Another version may bring more of them, which are then worth a look."""
    ours: set[Any] = {type(wanted) for wanted, _ in PUSHED}
    assert ours | {asked.Filter} == {
        getattr(asked, name)
        for name in asked.__all__
        if isinstance(getattr(asked, name), type) and issubclass(getattr(asked, name), asked.Filter)
    }
