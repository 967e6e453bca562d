"""Table blocks: CSV cut anywhere and Parquet by row groups give every row once."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import BadRequest, ResourceLimit
from omnigraph.pipeline.input import table_blocks as block_reader
from omnigraph.pipeline.input.csv_records import quote_count, read_header
from omnigraph.pipeline.input.load_files import InputFile
from omnigraph.pipeline.input.splits import Split, cut, cut_csv, ranges
from omnigraph.pipeline.input.table_blocks import TableBlock, table_blocks
from tests import fuzzing, profile

Row = tuple[str | None, ...]
CsvText = tuple[bytes, list[Row | list[str]]]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


def csv_file(path: Path, data: bytes) -> InputFile:
    path.write_bytes(data)
    return InputFile(str(path), "csv", len(data), type_name="Person")


def whole(file: InputFile) -> Split:
    (split,) = cut([file])
    return split


def cut_finely(file: InputFile, target: int) -> list[Split]:
    parts = ranges(file.size, target)
    return cut_csv(file, parts, [quote_count(file, *part) for part in parts])


def rows_of(block: TableBlock) -> list[Row]:
    columns = [column.to_pylist() for column in block.table.columns]
    return list(zip(*columns, strict=True))


def read(split: Split, block_bytes: int = 1 << 20) -> list[Row]:
    return [row for block in table_blocks(split, block_bytes=block_bytes) for row in rows_of(block)]


def read_text(tmp_path: Path, text: bytes) -> list[Row]:
    return read(whole(csv_file(tmp_path / "rows.csv", text)))


# -- CSV as it is written ----------------------------------------------------------


def written(row: Row) -> str:
    return ",".join(
        "" if cell is None else cell if _plain(cell) else '"' + cell.replace('"', '""') + '"'
        for cell in row
    )


def _plain(cell: str) -> bool:
    return cell != "" and not set(cell) & set('",\r\n')


_TEXTS = st.text(st.sampled_from('ab",\n\r;é \ufeff'), max_size=6)
_CELLS = st.one_of(st.none(), _TEXTS)
_RAGGED = st.lists(_TEXTS.filter(bool), min_size=1, max_size=5).filter(lambda row: len(row) != 3)


@st.composite
def csv_texts(draw: st.DrawFn) -> CsvText:
    """A file with three columns, and its rows; those of another length are lists."""
    rows: list[Row | list[str]] = draw(
        st.lists(st.one_of(st.tuples(_CELLS, _CELLS, _CELLS), _RAGGED), max_size=8)
    )
    ends = st.sampled_from(["\n", "\r\n", "\n\n", "\r\n\n\r\n", "\r"])
    parts = [draw(st.sampled_from(["", "\ufeff", "\n", "\ufeff\r\n"])), 'id,"na""me\n",age']
    for row in rows:
        parts += [draw(ends), written(tuple(row))]
    return ("".join(parts) + draw(st.sampled_from(["", "\n"]))).encode(), rows


@pytest.mark.slow
@given(text=csv_texts(), target=st.integers(1, 60), block=st.integers(1, 60))
def test_csv_is_the_same_however_it_is_cut(
    scratch: Path, text: CsvText, target: int, block: int
) -> None:
    data, rows = text
    file = csv_file(scratch / "any.csv", data)
    for splits in ([whole(file)], cut_finely(file, target)):
        good: list[Row] = []
        bad: list[str] = []
        for split in splits:
            first = 0
            for one in table_blocks(split, block_bytes=block):
                assert one.table.column_names == ["id", 'na"me\n', "age"]
                assert one.first_row == first
                assert one.records is not None
                assert len(one.records) == one.rows
                for at in range(one.rows):
                    begin = one.records.position(at)
                    assert data[begin:].startswith(one.records.raw(at))
                numbers = [*one.row_numbers().tolist(), *(row for row, _, _ in one.malformed)]
                assert sorted(numbers) == list(range(first, first + one.rows))
                for row, raw, message in one.malformed:
                    assert raw == one.records.text(row - first)
                    assert "values where the header names 3" in message
                good += rows_of(one)
                bad += [raw for _, raw, _ in one.malformed]
                first += one.rows
        assert good == [row for row in rows if isinstance(row, tuple)]
        assert bad == [written(tuple(row)) for row in rows if isinstance(row, list)]


@profile.costly
@given(rows=st.lists(st.tuples(_TEXTS, _TEXTS), max_size=8), target=st.integers(1, 60))
def test_csv_of_another_writer_is_read(
    scratch: Path, rows: list[tuple[str, str]], target: int
) -> None:
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerows([("id", "name"), *rows])
    file = csv_file(scratch / "other.csv", out.getvalue().encode())
    assert [row for split in cut_finely(file, target) for row in read(split, 7)] == rows


def test_lines_of_rows_are_known(tmp_path: Path) -> None:
    data = b'id,name\n1,a\n\n2,"b\nb"\n3\n4,c\n' * 1
    file = csv_file(tmp_path / "rows.csv", data)
    (block,) = table_blocks(whole(file))
    assert block.records is not None
    assert [block.records.line(at) for at in range(block.rows)] == [1, 3, 5, 6]
    assert [block.records.position(at) for at in range(block.rows)] == [8, 13, 21, 23]
    assert block.malformed[0][:2] == (2, "3")
    assert block.row_numbers().tolist() == [0, 1, 3]
    # The lines of splits add up to those of the file.
    total = 0
    for split in cut_finely(file, 9):
        for one in table_blocks(split, block_bytes=4):
            assert one.records is not None
            for at in range(one.rows):
                line = (total if split.start else 0) + one.records.line(at)
                assert data.splitlines()[line].startswith(one.records.raw(at).split(b"\n")[0])
            last = one.records.first_line + one.records.lines
        total += last
    assert total == data.count(b"\n")


def test_empty_cells(tmp_path: Path) -> None:
    assert read_text(tmp_path, b'a,b,c\n,"",NULL\nnan, ,0\n') == [
        (None, "", "NULL"),
        ("nan", " ", "0"),
    ]


def test_only_asked_columns_are_read(tmp_path: Path) -> None:
    file = csv_file(tmp_path / "rows.csv", b"a,b,c\n1,2,3\n")
    (block,) = table_blocks(whole(file), columns=["c", "x", "a"])
    assert block.table.to_pydict() == {"c": ["3"], "a": ["1"]}
    (block,) = table_blocks(whole(file), columns=["x"])
    assert (block.table.column_names, block.rows) == ([], 1)


def test_a_file_without_rows_shows_its_columns(tmp_path: Path) -> None:
    file = csv_file(tmp_path / "rows.csv", b"a,b")
    (block,) = table_blocks(whole(file))
    assert (block.table.column_names, block.rows) == (["a", "b"], 0)
    assert [one.rows for split in cut_finely(file, 1) for one in table_blocks(split)] == [0]


def test_rows_that_are_not_utf8_are_malformed(tmp_path: Path) -> None:
    file = csv_file(tmp_path / "rows.csv", b"a,b\n1,x\n2,\xff\n3,4,\xfe\n4,z\n")
    (block,) = table_blocks(whole(file))
    assert rows_of(block) == [("1", "x"), ("4", "z")]
    assert [(row, text) for row, text, _ in block.malformed] == [(1, "2,\ufffd"), (2, "3,4,\ufffd")]
    assert "not UTF-8" in block.malformed[0].message
    assert block.row_numbers().tolist() == [0, 3]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", r"rows\.csv is empty: the first line"),
        (b"\n\r\n", "is empty: the first line"),
        (b"a,b,a\n", "two columns 'a'"),
        (b"a,,b\n", "column 2 of .* has no name"),
        (b"a;b\n1;2\n", "only the column 'a;b': values are separated by commas"),
        ("a,b\n".encode("utf-16"), "is UTF-16; save it as UTF-8"),
        (b"a" * 200_000, "first line of .* names no columns"),
        (b"a,\xff\n", "first line of .* is not UTF-8"),
        (b'a,b\n1,5" pipe\n', r"no valid CSV at byte 7: .*doubled; the row begins '1,5\" pipe'"),
        (b'a,b\n1,"x"y\n', "no valid CSV at byte 8"),
        (b'a,b\n1,"never\n2,x\n', "no valid CSV at byte 6"),
        (b'a,"b\n', "no valid CSV at byte 2"),
    ],
)
def test_what_is_no_csv_is_refused(tmp_path: Path, data: bytes, told: str) -> None:
    with pytest.raises(BadRequest, match=told):
        read_text(tmp_path, data)


def test_a_stray_quote_is_found_in_its_split(tmp_path: Path) -> None:
    rows = b"".join(b'%d,"a\nb"\n' % number for number in range(100))
    file = csv_file(tmp_path / "rows.csv", b"n,text\n" + rows + b'7,5" and 6" pipes\n' + rows)
    splits = cut_finely(file, 100)
    wrong = file.size - len(rows) - 18
    for split in splits:
        if split.end <= wrong:
            read(split)
    (owner,) = (split for split in splits if split.start <= wrong < split.end)
    with pytest.raises(BadRequest, match=f"no valid CSV at byte {wrong + 3}"):
        read(owner)


def test_an_odd_number_of_quotes_is_refused_when_cutting(tmp_path: Path) -> None:
    file = csv_file(tmp_path / "rows.csv", b'a,b\n1,"x\n')
    with pytest.raises(BadRequest, match="odd number of quotes"):
        cut_finely(file, 5)


def test_a_row_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_ROW_BYTES", "1000")
    file = csv_file(tmp_path / "rows.csv", b'a,b\n1,"' + b"x\n" * 5000 + b'"\n')
    for split in [whole(file), *cut_finely(file, 3000)[:3]]:
        with pytest.raises(
            ResourceLimit, match=r"graph_batch_line_bytes.* a quote that nothing closes"
        ):
            read(split, 100)


def test_compressed_csv(tmp_path: Path) -> None:
    packed = gzip.compress(b"a,b\n1,x\n") + gzip.compress(b"2,y\n")
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(packed)
    file = InputFile(str(path), "csv", len(packed), "gzip", "Person")
    assert read(whole(file), 5) == [("1", "x"), ("2", "y")]
    assert read_header(file).names == ("a", "b")
    with pytest.raises(BadRequest, match="only be read as one split"):
        cut_csv(file, [(0, 5), (5, file.size)], [0, 0])


# -- Parquet -----------------------------------------------------------------------


def parquet_file(path: Path, table: pa.Table, group: int) -> InputFile:
    pq.write_table(table, path, row_group_size=group)
    return InputFile(str(path), "parquet", path.stat().st_size, type_name="Person")


@profile.costly
@given(
    count=st.integers(0, 60),
    group=st.integers(1, 20),
    target=st.integers(1, 2000),
    rows=st.integers(1, 25),
)
def test_parquet_is_the_same_however_it_is_cut(
    scratch: Path, count: int, group: int, target: int, rows: int
) -> None:
    table = pa.table(
        {"id": [f"n{at}" for at in range(count)], "n": pa.array(range(count), pa.int32())},
        schema=pa.schema([("id", pa.string()), ("n", pa.int32())]),
    )
    file = parquet_file(scratch / "any.parquet", table, group)
    splits = cut([file], target)
    assert [split.start for split in splits[1:]] == [split.end for split in splits[:-1]]
    read_back: list[pa.Table] = []
    for split in splits:
        first = 0
        for block in table_blocks(split, rows=rows):
            assert block.first_row == first
            assert block.table.num_rows <= rows
            first += block.rows
            read_back.append(block.table)
    assert pa.concat_tables(read_back) == table


def test_row_groups_are_gathered_up_to_the_target(tmp_path: Path) -> None:
    table = pa.table({"n": np.arange(10_000)})
    file = parquet_file(tmp_path / "rows.parquet", table, 1000)
    one_group = pq.ParquetFile(file.uri).metadata.row_group(0).total_byte_size
    splits = cut([file], 3 * one_group)
    assert [(split.start, split.end) for split in splits] == [(0, 3), (3, 6), (6, 9), (9, 10)]
    assert [split.input_bytes for split in splits] == [3 * one_group] * 3 + [one_group]


def test_wide_rows_come_in_small_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_reader, "_PARQUET_BYTES", 1 << 20)
    vectors = np.random.default_rng(7).random(2000 * 1024, dtype=np.float32)
    table = pa.table({"v": pa.FixedSizeListArray.from_arrays(vectors, 1024)})
    file = parquet_file(tmp_path / "wide.parquet", table, 2000)
    blocks = [block.rows for split in cut([file]) for block in table_blocks(split)]
    assert sum(blocks) == 2000
    assert max(blocks) == 256


def test_parquet_without_rows_shows_its_columns(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([], pa.int32()), "b": pa.array([], pa.string())})
    file = parquet_file(tmp_path / "none.parquet", table, 10)
    (split,) = cut([file])
    (block,) = table_blocks(split)
    assert block.table.schema.equals(table.schema)
    (block,) = table_blocks(split, columns=["b", "x"])
    assert block.table.column_names == ["b"]


@pytest.mark.parametrize("data", [b"", b"id,name\n", b"PAR1" + b"x" * 100 + b"PAR1"])
def test_what_is_no_parquet_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(data)
    with pytest.raises(BadRequest, match=r"cannot read .*rows\.parquet as Parquet"):
        cut([InputFile(str(path), "parquet", len(data), type_name="Person")])


def test_parquet_with_a_broken_page_is_refused(tmp_path: Path) -> None:
    table = pa.table({"text": [f"some text {number}" for number in range(10_000)]})
    path = tmp_path / "rows.parquet"
    pq.write_table(table, path, use_dictionary=False, compression="zstd")
    data = bytearray(path.read_bytes())
    data[1000:1100] = bytes(100)
    path.write_bytes(bytes(data))
    (split,) = cut([InputFile(str(path), "parquet", len(data), type_name="Person")])
    with pytest.raises(BadRequest, match=r"cannot read .*rows\.parquet as Parquet"):
        list(table_blocks(split))


@pytest.mark.slow
def test_tables_of_an_object_store(s3_bucket: str, tmp_path: Path) -> None:
    import obstore

    from omnigraph.pipeline.input.input_files import _store
    from omnigraph.pipeline.input.load_files import find_inputs

    bucket, prefix = s3_bucket.removeprefix("s3://").split("/")
    table = pa.table({"n": range(1000), "text": [f"t{at}" for at in range(1000)]})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=100)
    rows = "".join(f'{at},"t\n{at}"\n' for at in range(1000))
    store = _store(bucket)
    obstore.put(store, f"{prefix}/Person/part-0.parquet", tmp_path / "rows.parquet")
    obstore.put(store, f"{prefix}/Film.csv", f"n,text\n{rows}".encode())
    csv_input, parquet_input = find_inputs(s3_bucket, ["Person", "Film"])
    assert (csv_input.type_name, parquet_input.type_name) == ("Film", "Person")

    splits = cut([parquet_input], 1)
    blocks = [block.table for split in splits for block in table_blocks(split)]
    assert len(splits) == 10
    assert pa.concat_tables(blocks) == table
    texts: Sequence[Row] = [
        row for split in cut_finely(csv_input, 2000) for row in read(split, 500)
    ]
    assert texts == [(str(at), f"t\n{at}") for at in range(1000)]


@pytest.mark.slow
@given(
    data=fuzzing.broken(b'id,name,age\n1,"a ""b""",3\r\n2,,4\n"3\n","c,d",\n'),
    target=st.integers(1, 60),
)
def test_broken_csv_gives_rows_or_an_error_of_ours(scratch: Path, data: bytes, target: int) -> None:
    file = csv_file(scratch / "broken.csv", data)
    with fuzzing.only_our_errors():
        read(whole(file), 16)
    with fuzzing.only_our_errors():
        for split in cut_finely(file, target):
            read(split, 16)
