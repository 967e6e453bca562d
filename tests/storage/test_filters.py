"""Row filters: a predicate means the same in memory, in a scan, and in plain Python."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from omnigraph.lang.query import plan
from omnigraph.lang.structural import ID
from omnigraph.lang.types import INTEGER_RANGE, INTEGERS, Scalar, ValueType
from omnigraph.rows.constants import arrow_scalar, arrow_values
from omnigraph.rows.filters import RowFilter, among, row_filter
from omnigraph.rows.sql_conditions import SqlColumn, SqlCondition
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.columns import table_columns
from omnigraph.storage.tables.table import Stamp, Table, create_table
from tests.table_indexing import create_index
from tests.table_writes import insert

COLUMNS: dict[str, ValueType] = {
    "flag": ValueType(Scalar.BOOL, nullable=True),
    "small": ValueType(Scalar.I32, nullable=True),
    "large": ValueType(Scalar.I64, nullable=True),
    "usmall": ValueType(Scalar.U32, nullable=True),
    "ularge": ValueType(Scalar.U64, nullable=True),
    "half": ValueType(Scalar.F32, nullable=True),
    "whole": ValueType(Scalar.F64, nullable=True),
    "day": ValueType(Scalar.DATE, nullable=True),
    "moment": ValueType(Scalar.DATETIME, nullable=True),
    "text": ValueType(Scalar.STRING, nullable=True),
    # Names that mean something to SQL, and mixed case.
    "order": ValueType(Scalar.I64, nullable=True),
    "mixedCase": ValueType(Scalar.STRING, nullable=True),
    "words": ValueType(Scalar.STRING, nullable=True, is_list=True),
    "numbers": ValueType(Scalar.I64, nullable=True, is_list=True),
}
ZERO = datetime(2024, 2, 29, 12, tzinfo=UTC)
POOL: dict[Scalar, list[Any]] = {
    Scalar.BOOL: [False, True],
    Scalar.I32: [-(2**31), -1, 0, 1, 7, 2**31 - 1],
    Scalar.I64: [-(2**63), -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1],
    Scalar.U32: [0, 1, 2**31, 2**32 - 1],
    Scalar.U64: [0, 1, 2**53 + 1, 2**63, 2**64 - 1],
    Scalar.F32: [-1.5, 0.0, 0.25, 1.0, 7.0],
    Scalar.F64: [-1.5, 0.0, 0.1, 1.0, 1e300],
    Scalar.DATE: [date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29)],
    Scalar.DATETIME: [ZERO, ZERO + timedelta(milliseconds=1), datetime(1950, 1, 1, tzinfo=UTC)],
    Scalar.STRING: ["", "a", "A", "a_b", "a%b", "'", '"', "\\", "é", "zebra", "0"],
}
NUMBERS = [-1, 0, 1, 7, 2**31, 2**53 + 1, -(2**63), 0.1, 0.5, 1.0, 2.5, -1.5, 1e300]
OPERATORS: dict[plan.CompareOp, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
Row = dict[str, Any]


def stored_rows() -> list[Row]:
    rows: list[Row] = [{ID: "none"}]
    for number in range(12):
        row: Row = {ID: f"r{number}"}
        for at, (name, type_) in enumerate(COLUMNS.items()):
            pool = POOL[type_.scalar]
            if type_.is_list:
                row[name] = [pool[(number + step) % len(pool)] for step in range(number % 4)]
            elif (number + at) % 5:
                row[name] = pool[(number * 3 + at) % len(pool)]
        rows.append(row)
    return rows


ROWS = stored_rows()
INDEXED = ("small", "usmall", "ularge", "moment", "text")


def arrow_rows() -> pa.Table:
    schema = table_columns((ID,), COLUMNS)
    columns: list[Any] = []
    for field in schema:
        values = [row.get(field.name) for row in ROWS]
        type_ = COLUMNS.get(field.name)
        if type_ is None or type_.is_list:
            columns.append(pa.array(values, field.type))
        else:
            columns.append(arrow_values(values, type_.scalar))
    return pa.table(columns, schema=schema)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    rows = arrow_rows()
    location = Location.parse(str(tmp_path_factory.mktemp("filters") / "table"))
    table = Table(location, create_table(location, rows.schema))
    for start in range(0, len(ROWS), 5):
        table = table.at(insert(table, rows.slice(start, 5)))
    return table


def column(name: str) -> plan.Property:
    if name == "@id":
        return plan.Property("x", name, ValueType(Scalar.STRING))
    return plan.Property("x", name, COLUMNS[name])


def value_of(value: plan.Expression) -> plan.Constant:
    assert isinstance(value, plan.Const)
    return value.value


def const(value: Any) -> plan.Const:
    return plan.Const(value, ValueType(Scalar.STRING, nullable=True))


def plainly(predicate: plan.Predicate, row: Row) -> bool:
    """What a predicate says of a row, in Python."""
    match predicate:
        case plan.IsNull(plan.Property() as tested, negated):
            return (tested.name != "@id" and row.get(tested.name) is None) is not negated
        case plan.Comparison(plan.Property() as tested, op, plan.Const(value, _)):
            found = row.get(tested.name)
            return found is not None and value is not None and OPERATORS[op](found, value)
        case plan.InList(plan.Property() as tested, plan.Const(values, _)):
            found = row.get(tested.name)
            return found is not None and isinstance(values, tuple) and found in values
        case plan.Contains(plan.Property() as tested, plan.Const(value, _)):
            found = row.get(tested.name)
            return found is not None and value is not None and value in found
        case plan.StartsWith(plan.Property() as tested, plan.Const(value, _)):
            found = row.get(tested.name)
            return found is not None and value is not None and found.startswith(value)
    raise AssertionError(predicate)


@st.composite
def predicates(draw: st.DrawFn) -> plan.Predicate:
    name = draw(st.sampled_from([*COLUMNS, "@id"]))
    tested = column(name)
    scalar = tested.type.scalar
    values: st.SearchStrategy[Any] = st.sampled_from(POOL[scalar])
    if name == "@id":
        values = st.sampled_from([row[ID] for row in ROWS] + ["zed"])
    if scalar in INTEGERS or scalar in (Scalar.F32, Scalar.F64):
        # Any number may be compared with any other.
        numbers = POOL[scalar] + (NUMBERS if scalar in INTEGERS else POOL[scalar])
        values = st.sampled_from(numbers)
    if tested.type.is_list:
        kinds = ["contains", "null"]
    else:
        kinds = ["compare", "compare", "in", "null"]
        kinds += ["contains", "starts"] if scalar is Scalar.STRING and name != "@id" else []
    match draw(st.sampled_from(kinds)):
        case "null":
            return plan.IsNull(tested, draw(st.booleans()))
        case "contains":
            return plan.Contains(tested, const(draw(st.none() | values)))
        case "starts":
            return plan.StartsWith(tested, const(draw(values)))
        case "in":
            return plan.InList(
                tested, const(draw(st.none() | st.lists(values, max_size=3).map(tuple)))
            )
    op = draw(st.sampled_from(sorted(OPERATORS)))
    return plan.Comparison(tested, op, const(draw(st.none() | values)))


def ids(rows: pa.Table) -> set[str]:
    return set(rows.column(ID).to_pylist())


def through_a_scan(table: Table, filter_: RowFilter) -> set[str]:
    columns = list(dict.fromkeys([ID, *filter_.kept_columns]))
    return ids(filter_.narrow(table.scan(columns, filter_.condition)))


def beside_a_number(predicate: plan.Predicate) -> list[plan.Predicate]:
    """The predicate and one that always holds, of which storage has to be told in SQL."""
    either = [(plan.IsNull(column("ularge"), negated=negated),) for negated in (False, True)]
    return [predicate, plan.Either(tuple(either))]


@pytest.mark.slow
@settings(derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(predicates(), min_size=1, max_size=3))
@example([plan.IsNull(column("usmall"), negated=False)])
@example([plan.IsNull(column("moment"), negated=True)])
@example([plan.Comparison(column("order"), "=", const(1))])
@example([plan.Comparison(column("mixedCase"), ">=", const("a"))])
@example([plan.Contains(column("numbers"), const(0.5))])
def test_a_filter_means_the_same_everywhere(table: Table, chosen: list[plan.Predicate]) -> None:
    filter_ = row_filter(chosen, value_of)
    expected = {row[ID] for row in ROWS if all(plainly(one, row) for one in chosen)}
    assert ids(filter_.select(arrow_rows())) == expected
    assert through_a_scan(table, filter_) == expected


@pytest.mark.parametrize("name", [name for name, type_ in COLUMNS.items() if not type_.is_list])
def test_every_operator_of_every_column(table: Table, name: str) -> None:
    for value in POOL[COLUMNS[name].scalar]:
        for op in OPERATORS:
            predicate = plan.Comparison(column(name), op, const(value))
            filter_ = row_filter([predicate], value_of)
            expected = {row[ID] for row in ROWS if plainly(predicate, row)}
            assert ids(filter_.select(arrow_rows())) == expected, (op, value)
            assert through_a_scan(table, filter_) == expected, (op, value)
            in_sql = row_filter(beside_a_number(predicate), value_of)
            assert in_sql.sql is not None
            assert through_a_scan(table, in_sql) == expected, (op, value)


def test_text_and_lists_beside_an_unsigned_number(table: Table) -> None:
    texts = POOL[Scalar.STRING]
    chosen: list[plan.Predicate] = [
        *(plan.Contains(column("text"), const(text)) for text in texts),
        *(plan.StartsWith(column("text"), const(text)) for text in texts),
        plan.InList(column("text"), const(tuple(texts[:5]))),
        plan.InList(column("ularge"), const((0, 2**63, 2**64 - 1, -1, 2**64))),
        plan.InList(column("usmall"), const(())),
        plan.InList(column("usmall"), const(None)),
        plan.InList(column("half"), const((0.0, 0.25))),
        plan.InList(column("moment"), const(tuple(POOL[Scalar.DATETIME][:2]))),
        plan.Comparison(column("ularge"), "=", const(None)),
        *(plan.Comparison(column("ularge"), op, const(2**64)) for op in OPERATORS),
        *(plan.Comparison(column("usmall"), op, const(-1)) for op in OPERATORS),
    ]
    for predicate in chosen:
        expected = {row[ID] for row in ROWS if plainly(predicate, row)}
        in_sql = row_filter(beside_a_number(predicate), value_of)
        assert not in_sql.kept
        assert through_a_scan(table, in_sql) == expected, predicate


def test_a_table_with_lists_of_unsigned_numbers(tmp_path: Path) -> None:
    many = pa.array([[2**64 - 1]] * len(ROWS), pa.list_(pa.uint64()))
    rows = arrow_rows().append_column("many", many)
    location = Location.parse(str(tmp_path / "table"))
    table = Table(location, create_table(location, rows.schema))
    table = table.at(insert(table, rows))
    predicate = plan.Comparison(column("ularge"), ">=", const(2**63))
    expected = {row[ID] for row in ROWS if plainly(predicate, row)}
    assert through_a_scan(table, row_filter([predicate], value_of)) == expected


@pytest.fixture(scope="module")
def indexed(table: Table) -> Table:
    pin = table.pin
    for name in INDEXED:
        pin = create_index(table.at(pin), name, "BTREE", stamp=Stamp())
    return table.at(pin)


@pytest.mark.parametrize(
    ("chosen", "used"),
    [
        ([plan.Comparison(column("usmall"), "=", const(2**32 - 1))], ["usmall"]),
        ([plan.Comparison(column("ularge"), ">=", const(2**63))], ["ularge"]),
        ([plan.Comparison(column("ularge"), "!=", const(2**64 - 1))], ["ularge"]),
        ([plan.InList(column("ularge"), const((0, 2**63, 2**64 - 1)))], ["ularge"]),
        ([plan.IsNull(column("usmall"))], ["usmall"]),
        ([plan.Comparison(column("moment"), ">", const(ZERO))], ["moment"]),
        ([plan.InList(column("moment"), const((ZERO,)))], ["moment"]),
        (
            [
                plan.Comparison(column("usmall"), "<", const(7)),
                plan.Comparison(column("text"), "=", const("it's `odd`")),
                plan.Comparison(column("moment"), "<=", const(ZERO)),
                plan.Comparison(column("small"), ">", const(-(2**31))),
            ],
            ["moment", "small", "text", "usmall"],
        ),
    ],
)
def test_an_index_serves_it(indexed: Table, chosen: list[plan.Predicate], used: list[str]) -> None:
    filter_ = row_filter(chosen, value_of)
    assert not filter_.kept
    condition = filter_.condition
    where = condition.text if isinstance(condition, SqlCondition) else condition
    planned = indexed.dataset().scanner(columns=[ID], filter=where).explain_plan()
    asked = next(line for line in planned.splitlines() if "ScalarIndexQuery" in line)
    assert sorted(set(re.findall(r"\[(\w+) ", asked))) == used, planned
    expected = {row[ID] for row in ROWS if all(plainly(one, row) for one in chosen)}
    assert through_a_scan(indexed, filter_) == expected


def test_no_predicate_is_no_filter(table: Table) -> None:
    filter_ = row_filter([], value_of)
    assert filter_.expression is None
    assert len(through_a_scan(table, filter_)) == len(ROWS)


def test_a_filter_names_its_columns() -> None:
    filter_ = row_filter(
        [
            plan.Comparison(column("@id"), "=", const("r1")),
            plan.Comparison(column("ularge"), ">", const(1)),
            plan.Contains(column("words"), const("a")),
            plan.IsNull(column("ularge"), negated=False),
        ],
        value_of,
    )
    assert filter_.columns == (ID, "ularge", "words")
    assert set(filter_.kept_columns) == {"words"}


def test_text_never_becomes_sql(table: Table) -> None:
    for nasty in ("' OR 1=1 --", '"; DROP TABLE x', "a' = 'a", "\\'"):
        for predicate in (
            plan.Comparison(column("text"), "=", const(nasty)),
            plan.InList(column("text"), const((nasty,))),
            plan.Contains(column("text"), const(nasty)),
        ):
            assert through_a_scan(table, row_filter([predicate], value_of)) == set()
            in_sql = row_filter(beside_a_number(predicate), value_of)
            assert nasty not in str(in_sql.sql)
            assert through_a_scan(table, in_sql) == set()


def test_a_name_that_is_none_is_not_spelled() -> None:
    for name in ("a`b", "a.b", "", "a b"):
        with pytest.raises(AssertionError):
            SqlColumn(name).is_null()


def test_among(table: Table) -> None:
    wanted = pa.chunked_array([["r1"], ["r2", "zed"]])
    assert ids(table.scan([ID], among(ID, wanted))) == {"r1", "r2"}
    assert ids(table.scan([ID], among(ID, pa.array([], pa.string())))) == set()


@pytest.mark.parametrize("scalar", sorted(INTEGERS))
def test_integers_reach_their_bounds(scalar: Scalar) -> None:
    low, high = INTEGER_RANGE[scalar]
    assert arrow_values([low, high, None], scalar).to_pylist() == [low, high, None]


def test_constants_are_stored_values() -> None:
    assert arrow_scalar(3, Scalar.F64).as_py() == 3.0
    assert arrow_scalar(date(1970, 1, 2), Scalar.DATE).cast(pa.int32()).as_py() == 1
    moment = arrow_scalar(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), Scalar.DATETIME)
    assert moment.type == pa.timestamp("ms", "UTC")
    assert moment.cast(pa.int64()).as_py() == 1000
