"""Splits: how files are numbered, cut and put together into tasks."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import BadRequest
from omnigraph.pipeline.input.csv_records import quote_count
from omnigraph.pipeline.input.load_files import InputFile, find_inputs
from omnigraph.pipeline.input.splits import Split, cut, cut_csv, pack, ranges, renumber
from omnigraph.pipeline.input.table_blocks import table_blocks
from tests import profile


@given(size=st.integers(0, 10_000), target=st.integers(1, 500))
def test_ranges_cover_all_bytes_evenly(size: int, target: int) -> None:
    found = ranges(size, target)
    assert found[0][0] == 0
    assert found[-1][1] == size
    assert all(end == start for (_, end), (start, _) in pairwise(found))
    lengths = [end - start for start, end in found]
    assert max(lengths) <= target
    assert max(lengths) - min(lengths) <= 1


def test_numbers_follow_files_and_positions(tmp_path: Path) -> None:
    table = tmp_path / "b.parquet"
    pq.write_table(pa.table({"n": range(30)}), table, row_group_size=10)
    files = [
        InputFile("/a.jsonl", "jsonl", 25),
        InputFile(str(table), "parquet", table.stat().st_size, type_name="B"),
        InputFile("/c.jsonl.gz", "jsonl", 1000, "gzip"),
        InputFile("/d.csv", "csv", 1000, type_name="D"),
        InputFile("/e.jsonl", "jsonl", 0),
    ]
    found = [(split.number, split.file.uri, split.start, split.end) for split in cut(files, 10)]
    assert found == [
        (0, "/a.jsonl", 0, 8),
        (1, "/a.jsonl", 8, 16),
        (2, "/a.jsonl", 16, 25),
        (3, str(table), 0, 1),
        (4, str(table), 1, 2),
        (5, str(table), 2, 3),
        (6, "/c.jsonl.gz", 0, 1000),
        (7, "/d.csv", 0, 1000),
        (8, "/e.jsonl", 0, 0),
    ]


def test_nothing_has_no_splits() -> None:
    assert cut([]) == []
    assert pack([]) == []


def whole_split(number: int, size: int) -> Split:
    return Split(number, InputFile(f"/{number}.jsonl", "jsonl", size), 0, size)


@given(sizes=st.lists(st.integers(0, 120), max_size=200))
def test_tasks_keep_the_order_and_the_target(sizes: list[int]) -> None:
    splits = [whole_split(number, size) for number, size in enumerate(sizes)]
    tasks = pack(splits, 100)
    assert [split for task in tasks for split in task] == splits
    for task in tasks:
        assert len(task) == 1 or sum(split.input_bytes for split in task) <= 100
    for task, following in pairwise(tasks):
        together = [*task, following[0]]
        assert sum(max(split.input_bytes, 1) for split in together) > 100


def test_a_task_has_few_splits_however_small_they_are() -> None:
    tasks = pack([whole_split(number, 1) for number in range(1000)], 1 << 20)
    assert max(map(len, tasks)) == 64


def test_row_groups_weigh_what_they_hold() -> None:
    file = InputFile("/a.parquet", "parquet", 1000, type_name="A")
    splits = [Split(number, file, number, number + 1, weight=60) for number in range(3)]
    assert [len(task) for task in pack(splits, 120)] == [2, 1]


def test_splits_are_renumbered() -> None:
    splits = [whole_split(7, 1), whole_split(7, 2)]
    assert [split.number for split in renumber(splits)] == [0, 1]


@profile.costly
@given(data=st.binary(max_size=200), target=st.integers(1, 50))
def test_quotes_are_counted_by_range(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, target: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "quotes.csv"
    path.write_bytes(data)
    file = InputFile(str(path), "csv", len(data), type_name="A")
    counts = [quote_count(file, start, end) for start, end in ranges(len(data), target)]
    assert sum(counts) == data.count(b'"')


def test_the_header_stays_in_the_first_split(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b'\n\n"a",b\n1,"x\ny"\n2,z\n')
    file = InputFile(str(path), "csv", 20, type_name="A")
    parts = ranges(20, 4)
    splits = cut_csv(file, parts, [quote_count(file, *part) for part in parts])
    assert [(split.start, split.end) for split in splits] == [(0, 8), (8, 12), (12, 16), (16, 20)]
    assert [split.inside_quotes for split in splits] == [False, False, True, False]
    assert {split.header for split in splits} == {("a", "b")}


def test_a_wrong_footer_names_its_file(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.parquet", tmp_path / "bad.parquet"
    pq.write_table(pa.table({"n": [1]}), good)
    bad.write_bytes(good.read_bytes()[:-1])
    files = [
        InputFile(str(path), "parquet", path.stat().st_size, type_name="A") for path in (good, bad)
    ]
    with pytest.raises(BadRequest, match=r"cannot read .*bad\.parquet as Parquet"):
        cut(files)


@pytest.mark.parametrize("target", [1, 100_000, 400_000, 1 << 30])
def test_a_large_row_group_is_cut_by_rows(tmp_path: Path, target: int) -> None:
    count = 200_000
    path = tmp_path / "Note.parquet"
    table = pa.table({"number": np.arange(count), "text": [f"text {at}" for at in range(count)]})
    pq.write_table(table, path, row_group_size=150_000)

    splits = cut(find_inputs(path, ["Note"]), target)

    blocks = [list(table_blocks(split, rows=10_000)) for split in splits]
    read = pa.concat_tables(block.table for found in blocks for block in found)
    assert read.column("number").to_pylist() == list(range(count))
    for found in blocks:
        assert [block.first_row for block in found] == [
            sum(block.rows for block in found[:at]) for at in range(len(found))
        ]
    assert len(splits) == {1: 4, 100_000: 4, 400_000: 4, 1 << 30: 1}[target]
