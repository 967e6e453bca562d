from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance import Blob

from omnigraph.lang.structural import ID
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables import rewrite, write_rows
from omnigraph.storage.tables.fragments import FragmentPart, layout_of
from omnigraph.storage.tables.new_columns import (
    NewColumn,
    WrittenColumns,
    commit_columns,
    fragments_without,
    write_columns,
)
from omnigraph.storage.tables.rewrite import Rewritten, commit_rewritten, write_again
from omnigraph.storage.tables.row_ids import row_ids_of
from omnigraph.storage.tables.table import ROW_ADDRESS, ROW_ID, Stamp, Table, create_table
from tests import table_writes
from tests.storage.sample import Rows, validate
from tests.table_writes import stamp_of

STAMP = Stamp("00000000-0000-0000-0000-00000000000c", {"class": "logical"})
SCORE = NewColumn(pa.field("score@9", pa.float64()), fill=pa.scalar(0.5))


@pytest.fixture
def table(empty: Table, rows: Rows) -> Table:
    """Six fragments of three rows."""
    table = empty
    for start in range(0, 18, 3):
        table = table.at(table_writes.insert(table, rows(range(start, start + 3))))
    return table


def parts(table: Table, *numbers: int) -> list[FragmentPart]:
    return [part for part in layout_of(table).parts if part.number in numbers]


def content(table: Table) -> list[dict[str, object]]:
    found: list[dict[str, object]] = table.scan(with_row_id=True).sort_by(ROW_ID).to_pylist()
    return found


def with_score(table: Table) -> Table:
    written = WrittenColumns(
        write_columns(table, (SCORE,), fragments_without(table, WrittenColumns()))
    )
    return table.at(commit_columns(table, (SCORE,), written))


def without(table: Table, *keys: str) -> Table:
    found = table.scan([ID], pc.field(ID).isin(list(keys)), with_row_address=True)
    return table.at(write_rows.delete_addresses(table, found.column(ROW_ADDRESS)))


def changed(table: Table, key: str) -> Table:
    found = table.scan(filter=pc.field(ID) == key, with_row_id=True, with_row_address=True)
    found = found.set_column(1, "n", pa.array([-1]))
    return table.at(table_writes.update_rows(table, found))


def test_rows_move_and_keep_their_row_ids(table: Table, rows: Rows) -> None:
    table = changed(without(table, "k1", "k4"), "k7")
    before = content(table)
    written = [write_again(table, parts(table, 0, 1)), write_again(table, parts(table, 2, 6))]
    after = table.at(commit_rewritten(table, written, STAMP))
    assert content(after) == before
    assert [part.rows for part in layout_of(after).parts] == [3, 3, 3, 4, 3]
    assert not any(part.deletions for part in layout_of(after).parts)
    assert row_ids_of(after).count == after.pin.row_count == 16
    assert stamp_of(after) == STAMP
    assert content(table) == before, "the version before reads as it did"
    validate(after)
    more = after.at(table_writes.insert(after, rows([99])))
    assert content(more)[-1] | {"vector": None} == {
        ID: "k99",
        "n": 99,
        "text": "word99 common",
        "vector": None,
        ROW_ID: 18,
    }
    assert content(changed(without(more, "k0"), "k99"))[-1]["n"] == -1
    validate(more)


def test_rows_are_put_in_order(table: Table) -> None:
    written = write_again(table, parts(table, 0, 1, 2, 3, 4), [ID])
    after = table.at(commit_rewritten(table, [written]))
    found = after.scan([ID]).column(ID).to_pylist()
    assert found[3:] == sorted(found[3:])
    assert content(after) == content(table)
    folded, found = rewrite.fold_rows(after, layout_of(after).parts)
    assert found.column(ID).to_pylist() == [f"k{number}" for number in range(18)]
    again = after.at(commit_rewritten(after, [folded]))
    assert again.scan(with_row_id=True).to_pylist() == content(table)
    validate(again)


def test_many_rows_become_several_files(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_rows, "MAX_ROWS_PER_FILE", 5)
    monkeypatch.setattr(rewrite, "READ_ROWS", 4)
    older, table = table, without(table, "k3")
    written = write_again(older, layout_of(older).parts)
    assert len(written.fragments) == len(written.files) == 4
    assert commit_rewritten(table, [written]) == table.pin, "it was read from another version"
    written = write_again(table, layout_of(table).parts)
    after = table.at(commit_rewritten(table, [written]))
    assert [part.rows for part in layout_of(after).parts] == [5, 5, 5, 2]
    assert content(after) == content(table)
    validate(after)


def test_what_has_changed_since_is_left_out(table: Table) -> None:
    written = [write_again(table, parts(table, 0, 1)), write_again(table, parts(table, 2, 3))]
    newer = changed(table, "k0")
    after = newer.at(commit_rewritten(newer, written))
    assert content(after) == content(newer)
    assert {part.number for part in layout_of(after).parts} == {0, 1, 4, 5, 6, 7}
    assert commit_rewritten(after, written) == after.pin
    wider = with_score(table)
    assert commit_rewritten(wider, written) == wider.pin, "the new column is in none of the files"


def test_columns_that_lie_in_several_files(table: Table, rows: Rows) -> None:
    wider = with_score(table)
    wider = wider.at(table_writes.insert(wider, rows([50]).append_column("score@9", [[0.25]])))
    null = NewColumn(pa.field("empty@10", pa.string()))
    wider = wider.at(commit_columns(wider, (null,), WrittenColumns()))
    written = write_again(wider, layout_of(wider).parts)
    after = wider.at(commit_rewritten(wider, [written]))
    assert content(after) == content(wider)
    assert len(written.old[0].files) == 2
    validate(after)
    assert content(with_score_again(after))[0]["more@11"] == 0.5


def with_score_again(table: Table) -> Table:
    column = NewColumn(pa.field("more@11", pa.float64()), source="score@9")
    files = write_columns(table, (column,), fragments_without(table, WrittenColumns()))
    return table.at(commit_columns(table, (column,), WrittenColumns(files)))


def test_fragments_without_rows_just_go(table: Table) -> None:
    assert write_again(table, []) == Rewritten((), ())


def test_blobs_come_along(tmp_path: Path) -> None:
    schema = pa.schema([pa.field(ID, pa.string(), nullable=False), lance.blob_field("blob")])
    location = Location.parse(str(tmp_path / "blobs"))
    table = Table(location, create_table(location, schema))
    given = [b"small", None, b"", b"m" * 100_000, b"l" * 5_000_000]
    for number, each in enumerate(given):
        blob = lance.blob_array([Blob.empty() if each == b"" else each])
        row = pa.table([pa.array([f"b{number}"]), blob], schema=schema)
        table = table.at(table_writes.insert(table, row))
    after = table.at(commit_rewritten(table, [write_again(table, layout_of(table).parts)]))
    assert len(layout_of(after).parts) == 1
    assert after.scan(["blob"], with_blobs=True).column("blob").to_pylist() == given
    validate(after)
