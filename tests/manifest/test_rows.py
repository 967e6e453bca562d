"""Manifest rows: ids as specified, entries that come back as they went, rows that cannot."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import StorageError
from omnigraph.manifest.entries import (
    Commit,
    Head,
    Origin,
    Registration,
    SchemaContract,
    StoredVersion,
    TableIdentity,
    TableVersion,
    Tombstone,
)
from omnigraph.manifest.rows import COLUMNS, Entry, from_table, object_id, to_table
from omnigraph.storage.tables.table import TablePin

LARGEST = 2**64 - 1
IDENTITY = TableIdentity(0xAB, 1)

numbers = st.integers(0, LARGEST)
texts = st.text(max_size=8)
maybe = st.none() | texts
identities = st.builds(TableIdentity, numbers, numbers)
pins = st.builds(TablePin, numbers, maybe, numbers)
values = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts
stored = st.builds(StoredVersion, texts, numbers)
origins = st.builds(
    Origin, texts, numbers, stored, texts, st.lists(stored, max_size=3).map(tuple), maybe
)
ENTRIES: st.SearchStrategy[Entry] = st.one_of(
    st.builds(Registration, identities, texts, texts),
    st.builds(TableVersion, identities, numbers, pins, maybe),
    st.builds(Tombstone, identities, numbers),
    st.builds(
        Commit,
        texts,
        maybe,
        numbers,
        maybe,
        maybe,
        maybe,
        numbers,
        st.dictionaries(texts, values, max_size=3),
        stored,
    ),
    st.builds(
        Head,
        texts,
        texts,
        maybe,
        texts,
        numbers,
        numbers,
        maybe,
        st.none() | origins,
        st.booleans(),
    ),
    st.builds(SchemaContract, texts, texts, texts, texts, texts),
)


@pytest.mark.slow
@given(st.lists(ENTRIES, max_size=6))
def test_entries_come_back_as_they_went(entries: list[Entry]) -> None:
    table = to_table(entries)
    assert table.schema == COLUMNS
    assert list(from_table(table)) == entries


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (Registration(IDENTITY, "node:P", "nodes/x"), "table:00000000000000ab:0000000000000001"),
        (
            TableVersion(IDENTITY, 12, TablePin(1, None, 0)),
            "table_version:00000000000000ab:0000000000000001:00000000000000000012",
        ),
        (
            Tombstone(IDENTITY, LARGEST),
            "table_tombstone:00000000000000ab:0000000000000001:18446744073709551615",
        ),
        (Commit("01ARZ", None, 1, None, None, None, 1), "01ARZ"),
        (Head("main", "01ARZ", None), "graph_head:main"),
        (Head("team/a", "01ARZ", None), "graph_head:team/a"),
        (SchemaContract("", "", "", "", ""), "schema:accepted"),
    ],
)
def test_object_ids(entry: Entry, expected: str) -> None:
    assert object_id(entry) == expected
    assert to_table([entry])["object_id"].to_pylist() == [expected]


def test_columns_are_those_of_the_contract() -> None:
    assert COLUMNS.names == [
        "object_id",
        "object_type",
        "location",
        "metadata",
        "base_objects",
        "table_key",
        "stable_table_id",
        "table_incarnation_id",
        "table_version",
        "table_branch",
        "row_count",
    ]
    assert COLUMNS.field("object_id").metadata == {b"lance-schema:unenforced-primary-key": b"true"}


def test_commit_row() -> None:
    commit = Commit("C2", "dev", 7, "C1", "C0", "ann", 99, {"model": "m"}, StoredVersion("ID", 3))
    (row,) = to_table([commit]).to_pylist()
    assert row["object_type"] == "graph_commit"
    assert (row["table_version"], row["table_branch"], row["table_key"]) == (7, "dev", "")
    assert row["metadata"] == (
        '{"parent_commit_id":"C1","merged_parent_commit_id":"C0","actor_id":"ann",'
        '"created_at":99,"metadata":{"model":"m"},"stored":["ID",3]}'
    )


def test_head_row() -> None:
    origin = Origin("main", 5, StoredVersion("main", 5), "C0", (StoredVersion("main", 5),), "C0")
    (row,) = to_table([Head("dev", "C1", "C0", "ID", 7, 2, "C0", origin, ended=True)]).to_pylist()
    assert row["object_type"] == "graph_head"
    assert (row["table_version"], row["table_branch"], row["table_key"]) == (7, "dev", "")
    assert row["metadata"] == (
        '{"head_commit_id":"C1","parent_commit_id":"C0","branch_id":"ID","collection_epoch":2,'
        '"oldest_retained_commit_id":"C0","ended":true,"forked_from":{"branch":"main",'
        '"manifest_version":5,"stored":["main",5],"commit_id":"C0","history":[["main",5]],'
        '"oldest_retained_commit_id":"C0"}}'
    )


VERSION = TableVersion(IDENTITY, 3, TablePin(1, "u", 5))


@pytest.mark.parametrize(
    ("entry", "damage"),
    [
        (VERSION, {"object_type": "something"}),
        (VERSION, {"metadata": "{"}),
        (VERSION, {"metadata": "[]"}),
        (VERSION, {"metadata": None}),
        (VERSION, {"metadata": '{"lance_version": "x", "transaction_uuid": null}'}),
        (VERSION, {"stable_table_id": None}),
        (VERSION, {"table_version": None}),
        (VERSION, {"row_count": None}),
        (VERSION, {"table_version": 4}),
        (Tombstone(IDENTITY, 1), {"table_incarnation_id": 9}),
        (Registration(IDENTITY, "node:P", "nodes/x"), {"location": None}),
        (Commit("C1", None, 1, None, None, None, 1), {"table_version": None}),
        (Commit("C1", None, 1, None, None, None, 1), {"metadata": "{}"}),
        (Head("main", "C1", None), {"metadata": "{}"}),
        (Head("main", "C1", None), {"object_id": "main"}),
        (Head("main", "C1", None), {"table_version": None}),
        (Commit("C1", None, 1, None, None, None, 1), {"metadata": '{"created_at": 1}'}),
        (
            Head("main", "C1", None),
            {
                "metadata": '{"head_commit_id": "C1", "branch_id": "ID", "collection_epoch": 0, '
                '"forked_from": {"branch": "main"}}'
            },
        ),
        (SchemaContract("", "", "", "", ""), {"metadata": '{"source": ""}'}),
    ],
)
def test_unreadable_row_is_named(entry: Entry, damage: dict[str, Any]) -> None:
    (row,) = to_table([entry]).to_pylist()
    row |= damage
    table = pa.Table.from_pylist([row], schema=COLUMNS)
    with pytest.raises(StorageError) as caught:
        list(from_table(table))
    assert repr(row["object_id"]) in caught.value.message
    assert caught.value.kind == "permanent"
