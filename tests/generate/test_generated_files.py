"""The formats of generated files: each can be read back into the rows it was made from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.generate.people_graph import GraphSize, generate, tables

SIZE = GraphSize.of(80)


def rows() -> dict[str, pa.Table]:
    return dict(tables(SIZE, 4))


def read_csv(path: Path, like: pa.Schema) -> pa.Table:
    """A table as it was: lists come as JSON text."""
    written = {
        field.name: pa.string() if pa.types.is_list(field.type) else field.type for field in like
    }
    options = pv.ConvertOptions(column_types=written, strings_can_be_null=True)
    # Only what is not quoted at all is null.
    options.quoted_strings_can_be_null = False
    table = pv.read_csv(path, convert_options=options)
    for at, field in enumerate(like):
        if pa.types.is_list(field.type):
            texts = table.column(at).to_pylist()
            lists = [None if text is None else json.loads(text) for text in texts]
            table = table.set_column(at, field, [pa.array(lists, field.type)])
    return table


def test_parquet(tmp_path: Path) -> None:
    made = generate(SIZE, tmp_path, seed=4, format="parquet", files=2)
    assert (tmp_path / "Knows" / "part-0001.parquet").exists()
    for name, table in rows().items():
        paths = [file.path for file in made.files if file.type_name == name]
        assert pa.concat_tables(map(pq.read_table, paths)) == table


def test_csv(tmp_path: Path) -> None:
    made = generate(SIZE, tmp_path, seed=4, format="csv", files=2)
    assert (tmp_path / "Person" / "part-0001.csv").exists()
    for name, table in rows().items():
        paths = [file.path for file in made.files if file.type_name == name]
        found = pa.concat_tables(read_csv(path, table.schema) for path in paths)
        assert found == table


def test_parquet_loads(tmp_path: Path) -> None:
    made = generate(SIZE, tmp_path / "data", format="parquet")
    graph = og.init(tmp_path / "graph", made.schema_path)
    frames = {file.type_name: pq.read_table(file.path) for file in made.files}
    done = graph.load(frames, mode="append", engine="inline")
    assert {**done.nodes, **done.edges} == made.counts


@pytest.mark.parametrize(("compression", "suffix"), [("gzip", ".gz"), ("zstd", ".zst")])
@pytest.mark.parametrize("format_", ["jsonl", "csv"])
def test_compressed_text(
    format_: Literal["jsonl", "csv"],
    compression: Literal["gzip", "zstd"],
    suffix: str,
    tmp_path: Path,
) -> None:
    plain = generate(SIZE, tmp_path / "plain", format=format_)
    small = generate(SIZE, tmp_path / "small", format=format_, compression=compression)
    for one, other in zip(plain.files, small.files, strict=True):
        assert other.path.name == one.path.name + suffix
        with pa.input_stream(str(other.path), compression=compression) as stream:
            assert stream.read() == one.path.read_bytes()


def test_no_part_is_empty_while_there_are_rows(tmp_path: Path) -> None:
    made = generate(GraphSize.of(10), tmp_path, files=4)
    parts = {name: [f.rows for f in made.files if f.type_name == name] for name in made.counts}
    assert parts["Person"] == [2, 3, 2, 3]
    assert parts["Company"] == [1]
    assert sum(parts["Knows"]) == 45
    assert [file.path.name for file in made.files] == sorted(
        path.name for path in tmp_path.glob("data/*")
    )
