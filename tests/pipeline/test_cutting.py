from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from omnigraph.pipeline.input.load_files import find_inputs
from omnigraph.pipeline.input.table_blocks import table_blocks
from omnigraph.pipeline.load.stage.stage_input import cut_inputs


def _here(title: str, function: Callable[..., Any], items: Sequence[Any]) -> list[Any]:
    assert title == "count quotes"
    return [function(item) for item in items]


@pytest.mark.parametrize("target", [40, 100, 333, 1 << 20])
def test_a_large_csv_is_cut_where_rows_end(tmp_path: Path, target: int) -> None:
    texts = [f'line\n{number}, "quoted", and\r\nmore' for number in range(50)]
    quoted = ['"' + text.replace('"', '""') + '"' for text in texts]
    (tmp_path / "Note.csv").write_bytes(
        ("number,text\n" + "".join(f"{at},{text}\n" for at, text in enumerate(quoted))).encode()
    )
    (tmp_path / "Other.jsonl").write_text('{"type": "Note", "data": {}}\n')
    files = find_inputs(tmp_path, ["Note"])

    splits = cut_inputs(files, _here, target)

    assert [split.number for split in splits] == list(range(len(splits)))
    csv = [split for split in splits if split.file.format == "csv"]
    assert len(csv) > 1 or target > 5000
    rows = [
        row for split in csv for block in table_blocks(split) for row in block.table.to_pylist()
    ]
    assert rows == [{"number": str(at), "text": text} for at, text in enumerate(texts)]


def test_what_is_small_or_compressed_needs_no_counting(tmp_path: Path) -> None:
    def never(_title: str, _function: Callable[..., Any], items: Sequence[Any]) -> list[Any]:
        assert not items
        return []

    (tmp_path / "Note.csv").write_text("number\n1\n")
    (tmp_path / "More").mkdir()
    with gzip.open(tmp_path / "More" / "Note.csv.gz", "wt") as file:
        file.writelines(["number\n", *(f"{at}\n" for at in range(5000))])
    files = find_inputs(tmp_path, ["Note"])

    assert len(cut_inputs(files, never, 1000)) == 2
