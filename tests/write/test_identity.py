"""Ids in bulk say what the language says of one row."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ulid import ULID

from omnigraph.errors import ValidationError
from omnigraph.lang.schema.catalog import NodeType
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.schema.keys import keyed_node_id
from omnigraph.write.change.change_set import fresh_ids, key_ids, row_columns

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "String": st.text(),
    "Bool": st.booleans(),
    "I32": st.integers(-(2**31), 2**31 - 1),
    "U64": st.integers(0, 2**64 - 1),
    "F32": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "F64": st.floats(allow_nan=False, allow_infinity=False),
    "Date": st.dates(),
    "DateTime": st.integers(-(10**13), 10**13),
}


def keyed(*scalars: str) -> NodeType:
    members = [f"k{at}" for at in range(len(scalars))]
    body = "\n".join(f"{name}: {scalar}" for name, scalar in zip(members, scalars, strict=True))
    schema = f"node Thing {{ {body}\n@key({', '.join(members)}) }}"
    return compile_schema(schema).catalog.nodes["Thing"]


def as_table(type_: NodeType, rows: list[tuple[Any, ...]]) -> pa.Table:
    arrays = []
    for at, name in enumerate(type_.key):
        stored = row_columns(type_).field(name).type
        arrays.append(pa.array([row[at] for row in rows], stored))
    return pa.table(arrays, names=list(type_.key))


@given(st.data())
def test_ids_agree_with_the_language(data: st.DataObject) -> None:
    scalars = data.draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3))
    type_ = keyed(*scalars)
    rows = data.draw(st.lists(st.tuples(*(VALUES[scalar] for scalar in scalars)), max_size=5))
    table = as_table(type_, rows)
    expected = [keyed_node_id(type_, dict(zip(type_.key, row, strict=True))) for row in rows]
    assert key_ids(type_, table).to_pylist() == expected
    chunked = pa.concat_tables([table, table])
    assert key_ids(type_, chunked).to_pylist() == expected * 2


def test_canonical_texts() -> None:
    type_ = keyed("F64", "String", "Bool", "Date", "DateTime")
    when = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp() * 1000)
    table = as_table(type_, [(1e21, 'a"é\n', True, date(1970, 1, 3), when)])
    assert key_ids(type_, table).to_pylist() == [
        '["1000000000000000000000","a\\"é\\n","true","2","1704067200000"]'
    ]


def test_a_null_key_member_gives_no_id() -> None:
    one, two = keyed("String"), keyed("String", "I32")
    assert key_ids(one, as_table(one, [(None,), ("a",)])).to_pylist() == [None, "a"]
    rows = [("a", None), ("b", 1), (None, 2), ('"', None)]
    assert key_ids(two, as_table(two, rows)).to_pylist() == [None, '["b","1"]', None, None]


def test_a_key_that_is_not_finite_identifies_nothing() -> None:
    type_ = keyed("F64")
    with pytest.raises(ValidationError, match="cannot identify an entity"):
        key_ids(type_, as_table(type_, [(float("nan"),)]))


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_fresh_ids_are_distinct_sorted_ulids(count: int) -> None:
    ids = fresh_ids(count).to_pylist()
    assert len(set(ids)) == count
    assert ids == sorted(ids)
    moments = {ULID.from_str(text).datetime for text in ids}
    assert len(moments) == min(count, 1)
