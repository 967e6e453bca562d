"""What a load on an object store reads of what it has put there: rows, and keys however cut."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from bench.bench_scale import READ_OF_STAGED
from bench.scale.store import moved_bytes
from omnigraph.pipeline.load.check import round_rows

pytestmark = pytest.mark.slow

SCHEMA = """
node Person { name: String @key
 age: I32? }
edge Knows: Person -> Person @card(0..50)
"""
PEOPLE, EDGES = 40_000, 160_000


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    place = tmp_path_factory.mktemp("data")
    random = np.random.default_rng(3)
    names = pa.array([f"person-{number:07}" for number in range(PEOPLE)])
    ends = [names.take(pa.array(random.integers(0, PEOPLE, EDGES))) for _ in range(2)]
    tables = {
        "Person": pa.table({"name": names, "age": np.arange(PEOPLE, dtype=np.int32) % 90}),
        "Knows": pa.table({"from": ends[0], "to": ends[1]}),
    }
    for name, table in tables.items():
        pq.write_table(table, place / f"{name}.parquet")
    return {name: str(place / f"{name}.parquet") for name in tables}


@pytest.mark.parametrize("ranges", [1, 17, 40])
def test_no_more_is_read_than_twice_what_was_staged(
    *,
    ranges: int,
    data: dict[str, str],
    s3_bucket: str,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    monkeypatch.setattr(round_rows, "ranges_for", lambda _: ranges)
    graph = og.init(f"{s3_bucket}/people", SCHEMA)
    with moved_bytes() as moved:
        done = graph.load(data, mode="append")
    assert done.total == PEOPLE + EDGES
    read, staged = moved["read"], moved["staged"]
    record_property(f"bytes read / staged at {ranges} ranges", round(read / staged, 2))
    assert staged > 20 * (PEOPLE + EDGES)
    assert read <= READ_OF_STAGED * staged
