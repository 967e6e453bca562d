"""Lookups: whatever happened to a table, they find what a scan of all rows finds."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.lang.structural import ID
from omnigraph.rows.hashing import hash_texts
from omnigraph.storage.cache_budget import CacheBudget
from omnigraph.storage.indexes.table_indexes import compact
from omnigraph.storage.objects.location import Location
from omnigraph.storage.objects.meter import measure
from omnigraph.storage.tables import row_lookup
from omnigraph.storage.tables.fragment_map import FragmentMap
from omnigraph.storage.tables.row_lookup import FragmentMaps, find_rows
from omnigraph.storage.tables.table import ROW_ADDRESS, ROW_ID, Table, create_table
from omnigraph.storage.tables.write_rows import (
    Addresses,
    WrittenRows,
    apply_rows,
    delete_addresses,
    write_rows,
)
from tests import profile
from tests.storage.sample import SCHEMA, Rows, make_rows
from tests.table_indexing import create_index
from tests.table_writes import insert, overwrite


def scanned(table: Table, column: str, texts: list[str]) -> list[dict[str, Any]]:
    """What a lookup must find, the plain way."""
    rows = table.scan([ID, "n", "text"], with_row_id=True, with_row_address=True)
    return ordered(rows.filter(pc.is_in(rows.column(column), pa.array(texts, pa.string()))))


def ordered(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted(rows.to_pylist(), key=lambda row: row[ROW_ID])


def check(table: Table, column: str, texts: list[str]) -> None:
    found = find_rows(table, column, pa.array(texts, pa.string()), (ID, "n", "text"))
    assert ordered(found) == scanned(table, column, texts)


@pytest.fixture
def table(local: Table, rows: Rows) -> Table:
    """Nine rows in three fragments."""
    for start in (0, 3, 6):
        local = local.at(insert(local, rows(range(start, start + 3))))
    return local


def test_rows_are_found_by_their_texts(table: Table) -> None:
    check(table, ID, ["k0", "k4", "k8", "nobody"])
    check(table, "text", ["word3 common", "word"])
    check(table, ID, ["nobody"])
    check(table, ID, [])
    found = find_rows(table, ID, pa.array(["k4"]), ("n",))
    assert found.column_names == ["n", ROW_ID, ROW_ADDRESS]
    assert found.column("n").to_pylist() == [4]


def test_nulls_and_repetitions_are_no_texts(table: Table) -> None:
    texts = pa.chunked_array([pa.array(["k1", None]), pa.array(["k1", "k1"])])
    assert find_rows(table, ID, texts, (ID,)).column(ID).to_pylist() == ["k1"]
    assert find_rows(table, ID, pa.array([None], pa.string()), (ID,)).num_rows == 0


def test_a_row_without_a_text_is_never_found(local: Table) -> None:
    rows = pa.table({ID: ["a", "b"], "text": pa.array([None, ""], pa.string())})
    table = local.at(insert(local, rows))
    found = find_rows(table, "text", pa.array([""]), (ID,))
    assert found.column(ID).to_pylist() == ["b"]


def test_an_empty_table_has_nothing(local: Table) -> None:
    found = find_rows(local, ID, pa.array(["a"]), (ID, "n"))
    assert (found.num_rows, found.column_names) == (0, [ID, "n", ROW_ID, ROW_ADDRESS])
    assert found.schema.field("n").type == pa.int64()


def test_many_texts_are_compared_in_memory(local: Table, rows: Rows) -> None:
    table = local.at(insert(local, rows(range(5000))))
    wanted = [f"k{number}" for number in range(0, 9000, 3)]
    assert len(wanted) > row_lookup.MAX_LISTED
    check(table, ID, wanted)
    found = find_rows(table, ID, pa.array(wanted), ("n",))
    assert found.column_names == ["n", ROW_ID, ROW_ADDRESS]
    assert found.num_rows == 1667


def test_texts_that_hash_alike_are_told_apart(local: Table) -> None:
    texts = ["a" * 100 + letter + "a" * 100 for letter in "bcd"]
    assert len(set(hash_texts(pa.array(texts)).tolist())) == 1
    table = local.at(insert(local, pa.table({ID: texts[:2], "n": [1, 2]})))
    for text, expected in zip(texts, ([1], [2], []), strict=True):
        assert find_rows(table, ID, pa.array([text]), ("n",)).column("n").to_pylist() == expected


def test_what_is_not_there_reads_nothing_once_the_map_is_made(table: Table) -> None:
    check(table, ID, ["k1"])
    with measure() as meter:
        assert find_rows(table, ID, pa.array(["zed", "nobody"]), (ID,)).num_rows == 0
    assert meter.total == 0


def test_a_version_is_learnt_from_the_one_before(table: Table, rows: Rows) -> None:
    check(table, ID, ["k1"])
    after = inserted(table, rows([20, 21]), learns=True)
    with measure() as meter:
        assert find_rows(after, ID, pa.array(["zed"]), (ID,)).num_rows == 0
    assert meter.total == 0
    check(after, ID, ["k20", "k1", "zed"])


def test_what_was_not_noted_is_not_learnt(table: Table, rows: Rows) -> None:
    check(table, ID, ["k1"])
    after = table.at(insert(table, rows([20, 21])))
    row_lookup.fragment_maps.learn(table, after)
    check(after, ID, ["k20", "k21"])


def test_a_row_that_a_newer_version_has_deleted_is_found_in_an_older_one(table: Table) -> None:
    """The map of the older version is made from that of the newer one, as on a branch."""
    after = step(table, "delete", {1, 4}, 0, learns=False)
    check(after, ID, ["k0", "k1", "k4", "k5"])
    check(table, ID, ["k0", "k1", "k4", "k5"])


def test_two_lines_of_history_share_numbers_and_nothing_else(table: Table, rows: Rows) -> None:
    """Both have a fragment of the same id with other rows."""
    one = table.at(insert(table, rows([30, 31])))
    other = table.at(insert(table, rows([40, 41])))
    for version in (one, other, one, table, other):
        check(version, ID, ["k30", "k31", "k40", "k41", "k0"])


def test_an_overwrite_begins_numbers_anew(table: Table, rows: Rows) -> None:
    check(table, ID, ["k1"])
    after = table.at(overwrite(table, rows([50, 1])))
    check(after, ID, ["k1", "k50", "k2"])
    check(table, ID, ["k1", "k50", "k2"])


def test_an_index_is_asked_before_a_map_is_made(
    local: Table, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_lookup, "SMALL_TABLE", 0)
    monkeypatch.setattr(row_lookup, "fragment_maps", FragmentMaps())
    table = local.at(insert(local, rows(range(100))))
    table = table.at(create_index(table, ID, "BTREE"))
    for _ in range(row_lookup.PATIENCE + 2):
        check(table, ID, ["k5", "nobody"])
    assert row_lookup.fragment_maps.use().entries == 1


def test_a_table_beyond_any_map_is_asked_through_its_filter(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_lookup, "MAX_ROWS", 1)
    maps = FragmentMaps()
    monkeypatch.setattr(row_lookup, "fragment_maps", maps)
    check(table, ID, ["k5", "nobody"])
    assert maps.use().entries == 0


def test_the_least_used_column_is_forgotten(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    one_column = 9 * 16 + len(table.dataset().fragment_ids()) * row_lookup.FILE_BYTES
    maps = FragmentMaps(CacheBudget(one_column))
    monkeypatch.setattr(row_lookup, "fragment_maps", maps)
    check(table, ID, ["k5"])
    check(table, "text", ["word3 common"])
    assert maps.use().entries == 1
    with measure() as meter:
        assert find_rows(table, "text", pa.array(["zed"]), (ID,)).num_rows == 0
    assert meter.total == 0
    check(table, ID, ["k5"])


def test_a_map_stays_in_few_runs() -> None:
    known = FragmentMap()
    for number in range(1000):
        hashes = hash_texts(pa.array([f"k{number}"]))
        known = known.extended(hashes, np.array([number], dtype=np.uint64), frozenset())
    assert len(known.runs) <= 11
    maybe, addresses = known.find(hash_texts(pa.array(["k7", "k500", "zed"])))
    assert (maybe.tolist(), addresses.tolist()) == ([True, True, False], [7, 500])


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["insert", "insert", "update", "delete", "compact", "index", "overwrite"]),
        # Which of the versions so far it is built on: the newest, or a branch of an older one.
        st.sampled_from([0, 0, 0, 1, 3]),
        st.sets(st.integers(0, 15), min_size=1, max_size=5),
        # Whether the maps learn of it, whether they are asked at once, or forgotten.
        st.sampled_from(["learn", "ask", "learn and ask", "forget", "nothing"]),
    ),
    min_size=1,
    max_size=12,
)


@pytest.mark.slow
@settings(profile.costly, derandomize=True, suppress_health_check=list(HealthCheck))
@given(STEPS, st.randoms(use_true_random=False))
def test_any_history_is_looked_up_as_it_is_scanned(
    steps: list[tuple[str, int, set[int], str]], order: Random
) -> None:
    with tempfile.TemporaryDirectory() as place:
        location = Location.parse(str(Path(place) / "table"))
        versions = [Table(location, create_table(location, SCHEMA))]
        for shift, (kind, back, numbers, then) in enumerate(steps, 1):
            before = versions[-min(back + 1, len(versions))]
            after = step(before, kind, numbers, shift, learns="learn" in then)
            versions.append(after)
            if then == "forget":
                forget(location)
            if "ask" in then:
                check(after, ID, [f"k{number}" for number in sorted(numbers | {1, 2, 99})])
                check(after, "text", [f"word{number + shift} common" for number in numbers])
        order.shuffle(versions)
        for table in versions:
            check(table, ID, [f"k{number}" for number in range(16)])


def forget(location: Location) -> None:
    """What a new process knows of a table."""
    row_lookup.fragment_maps.forget(location)


def inserted(table: Table, new: pa.Table, *, learns: bool) -> Table:
    return applied(table, write_rows(table, None, new), new, (), learns=learns)


def applied(
    table: Table, written: WrittenRows, rows: pa.Table, gone: Addresses, *, learns: bool
) -> Table:
    if learns:
        row_lookup.fragment_maps.note(table, written, rows.select([ID, "text"]))
    after = table.at(apply_rows(table, written, gone))
    if learns:
        row_lookup.fragment_maps.learn(table, after)
    return after


def step(table: Table, kind: str, numbers: set[int], shift: int, *, learns: bool) -> Table:
    """The next version of a table."""
    names = {f"k{number}" for number in numbers}
    stored = table.scan(with_row_id=True, with_row_address=True)
    hit = stored.filter(pc.is_in(stored.column(ID), pa.array(sorted(names))))
    match kind:
        case "insert":
            known = set(stored.column(ID).to_pylist())
            new = make_rows([n for n in sorted(numbers) if f"k{n}" not in known], shift=shift)
            return inserted(table, new, learns=learns)
        case "update":
            if not hit.num_rows:
                return table
            changed = make_rows([int(name[1:]) for name in hit.column(ID).to_pylist()], shift=shift)
            written = write_rows(table, changed.append_column(ROW_ID, hit.column(ROW_ID)))
            return applied(table, written, changed, hit.column(ROW_ADDRESS), learns=learns)
        case "delete":
            return table.at(delete_addresses(table, hit.column(ROW_ADDRESS)))
        case "compact":
            return table.at(compact(table))
        case "index":
            return table.at(create_index(table, ID, "BTREE"))
        case _:
            return table.at(overwrite(table, make_rows(sorted(numbers), shift=shift)))
