"""Splits and line blocks: every line is read once, whole, and known by its place."""

from __future__ import annotations

import gzip
import pickle
import re
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import BadRequest, ResourceLimit
from omnigraph.pipeline.input.line_blocks import LineBlock, line_blocks
from omnigraph.pipeline.input.load_files import Compression, InputFile, find_inputs
from omnigraph.pipeline.input.splits import Split, cut
from tests import profile

BOM = b"\xef\xbb\xbf"


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lines")


def lines_file(path: Path, data: bytes, compression: Compression | None = None) -> InputFile:
    path.write_bytes(data)
    return InputFile(str(path), "jsonl", len(data), compression)


def split_file(file: InputFile) -> Split:
    (split,) = cut([file], max(file.size, 1))
    return split


def with_ends(data: bytes) -> list[bytes]:
    return re.findall(rb"[^\n]*\n|[^\n]+", data)


def cut_lines(blocks: Iterator[LineBlock]) -> list[tuple[int, int, bytes]]:
    """The number in the split, the offset and the text of each line."""
    found = []
    for block in blocks:
        offset = block.offset
        lines = with_ends(block.data)
        assert len(lines) == block.lines
        for number, line in enumerate(lines):
            found.append((block.first_line + number, offset, line))
            offset += len(line)
    return found


def expected_lines(data: bytes) -> list[tuple[int, bytes]]:
    first = len(BOM) if data.startswith(BOM) else 0
    lines = with_ends(data[first:])
    offsets = accumulate(map(len, lines), initial=first)
    return list(zip(offsets, lines, strict=False))


_PIECES = st.sampled_from([b"\n", b"\r\n", b"\r", b"a", b'{"x":1}', b" ", b"\xff", "é".encode()])


@given(
    pieces=st.lists(_PIECES, max_size=30),
    bom=st.booleans(),
    target=st.integers(1, 40),
    block=st.integers(1, 40),
)
def test_every_line_belongs_to_one_split(
    scratch: Path, pieces: list[bytes], bom: bool, target: int, block: int
) -> None:
    data = (BOM if bom else b"") + b"".join(pieces)
    file = lines_file(scratch / "any.jsonl", data)
    splits = cut([file], target)
    assert [split.number for split in splits] == list(range(len(splits)))
    assert all(split.end - split.start <= target for split in splits)

    found = []
    for split in splits:
        lines = cut_lines(line_blocks(split, block))
        assert [number for number, _, _ in lines] == list(range(len(lines)))
        assert all(split.start <= offset < split.end for _, offset, _ in lines if offset > 3)
        found += [(offset, line) for _, offset, line in lines]
    assert found == expected_lines(data)


@profile.costly
@given(
    pieces=st.lists(_PIECES, max_size=30),
    block=st.integers(1, 40),
    compression=st.sampled_from(["gzip", "zstd"]),
)
def test_a_compressed_file_is_one_split(
    scratch: Path, pieces: list[bytes], block: int, compression: Compression
) -> None:
    data = b"".join(pieces)
    packed = gzip.compress(data) if compression == "gzip" else _zstd(data)
    file = lines_file(scratch / "any.jsonl.gz", packed, compression)
    (split,) = cut([file], 1)
    found = [(offset, line) for _, offset, line in cut_lines(line_blocks(split, block))]
    assert found == expected_lines(data)


def _zstd(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, "zstd", asbytes=True)
    return packed


def test_archives_of_several_members_are_read_whole(tmp_path: Path) -> None:
    many = [b'{"n": %d}\n' % number for number in range(5)]
    for name, pack in (("gz", gzip.compress), ("zst", _zstd)):
        (tmp_path / f"parts.jsonl.{name}").write_bytes(b"".join(map(pack, many)))
    for file in find_inputs(tmp_path, ()):
        (split,) = cut([file])
        assert b"".join(block.data for block in line_blocks(split, 4)) == b"".join(many)


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
@pytest.mark.parametrize("kept", [0.0, 0.1, 0.5, 0.99])
def test_a_cut_off_archive_is_refused(
    tmp_path: Path, compression: Compression, kept: float
) -> None:
    data = b"".join(b'{"n": %d}\n' % (number * 7919) for number in range(20_000))
    packed = gzip.compress(data) if compression == "gzip" else _zstd(data)
    file = lines_file(tmp_path / "cut.jsonl", packed[: int(len(packed) * kept)], compression)
    with pytest.raises(BadRequest, match=rf"cut\.jsonl is no whole {compression} file"):
        list(line_blocks(split_file(file)))


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    file = lines_file(tmp_path / "plain.jsonl.gz", b'{"type":"Person"}\n' * 10, "gzip")
    with pytest.raises(BadRequest, match=r"is no whole gzip file: .*again"):
        list(line_blocks(split_file(file)))


def test_an_archive_with_a_flipped_bit_is_refused(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(b'{"n": 1}\n' * 1000))
    packed[-6] ^= 1
    file = lines_file(tmp_path / "flipped.jsonl.gz", bytes(packed), "gzip")
    with pytest.raises(BadRequest, match="is no whole gzip file"):
        list(line_blocks(split_file(file)))


def test_an_empty_file_has_no_lines(tmp_path: Path) -> None:
    (split,) = cut([lines_file(tmp_path / "empty.jsonl", b"")])
    assert list(line_blocks(split)) == []


def test_blocks_are_bounded(tmp_path: Path) -> None:
    file = lines_file(tmp_path / "many.jsonl", b'{"n": 123456789}\n' * 100_000)
    blocks = list(line_blocks(split_file(file), 10_000))
    assert max(len(block.data) for block in blocks) <= 2 * 10_000 + 17
    assert sum(block.lines for block in blocks) == 100_000


def test_a_line_without_end_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_ROW_BYTES", "1000")
    file = lines_file(tmp_path / "endless.jsonl", b"short\n" + b"x" * 10_000)
    for split in cut([file], 3000)[:3]:
        with pytest.raises(
            ResourceLimit, match=r"graph_batch_line_bytes: .*endless\.jsonl"
        ) as told:
            list(line_blocks(split, 100))
        assert told.value.details["actual"] <= 1200
    just_fitting = lines_file(tmp_path / "fitting.jsonl", b"x" * 1000 + b"\n" + b"y" * 1000)
    lines = [block.lines for split in cut([just_fitting], 300) for block in line_blocks(split, 7)]
    assert lines == [1, 1]


def test_a_file_that_grew_is_refused(tmp_path: Path) -> None:
    file = lines_file(tmp_path / "log.jsonl", b"one\n")
    (tmp_path / "log.jsonl").write_bytes(b"one\ntwo\n")
    with pytest.raises(BadRequest, match="has changed since the load began"):
        list(line_blocks(split_file(file)))


def test_a_file_that_is_gone_is_refused(tmp_path: Path) -> None:
    file = lines_file(tmp_path / "gone.jsonl", b"one\n")
    (tmp_path / "gone.jsonl").unlink()
    with pytest.raises(BadRequest, match=r"gone\.jsonl: there is no such file on this machine"):
        list(line_blocks(split_file(file)))


def test_a_split_travels_to_other_processes(tmp_path: Path) -> None:
    (split,) = cut([lines_file(tmp_path / "a.jsonl", b"one\n")])
    assert pickle.loads(pickle.dumps(split)) == split  # noqa: S301 - our own


@pytest.mark.slow
def test_lines_of_an_object_store(s3_bucket: str) -> None:
    import obstore

    from omnigraph.pipeline.input.input_files import _store

    bucket, prefix = s3_bucket.removeprefix("s3://").split("/")
    rows = [b'{"n": %d}\n' % number for number in range(3000)]
    data = b"".join(rows)
    store = _store(bucket)
    obstore.put(store, f"{prefix}/in/part 1.jsonl", data)
    obstore.put(store, f"{prefix}/in/part-2.jsonl.gz", gzip.compress(data))
    obstore.put(store, f"{prefix}/in/_SUCCESS", b"")
    files = find_inputs(f"{s3_bucket}/in", ())
    assert [file.uri.rpartition("/")[2] for file in files] == ["part 1.jsonl", "part-2.jsonl.gz"]
    splits = cut(files, 10_000)
    assert len(splits) > 3
    read = b"".join(block.data for split in splits for block in line_blocks(split, 3000))
    assert read == data + data

    obstore.put(store, f"{prefix}/in/part 1.jsonl", data.replace(b"1", b"2"))
    with pytest.raises(BadRequest, match=r"part 1\.jsonl has changed since the load began"):
        list(line_blocks(splits[0]))
