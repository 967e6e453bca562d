"""What a load on an object store reads of what it has put there: rows, and keys however cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.pipeline.load.check import round_rows
from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.storage.objects import meter
from omnigraph.storage.objects.control_objects import ControlObjects

pytestmark = pytest.mark.slow

SCHEMA = """
node Person { name: String @key
 age: I32? }
edge Knows: Person -> Person @card(0..50)
"""
PEOPLE, EDGES = 40_000, 160_000
AT_MOST = 2.0


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


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Bytes that went to the store, and that came from it past Lance."""
    found: Counter[str] = Counter()
    put, put_file = StagingArea._put, ControlObjects.put_file

    def kept(area: StagingArea, name: str, data: pa.Buffer) -> None:
        found["staged"] += data.size
        put(area, name, data)

    def uploaded(objects: ControlObjects, name: str, path: Path) -> None:
        found["staged"] += path.stat().st_size
        put_file(objects, name, path)

    def counted(read: Callable[..., bytes | None]) -> Callable[..., bytes | None]:
        def fetch(*given: object) -> bytes | None:
            data = read(*given)
            found["read"] += 0 if data is None else len(data)
            return data

        return fetch

    monkeypatch.setattr(StagingArea, "_put", kept)
    monkeypatch.setattr(ControlObjects, "put_file", uploaded)
    for name in ("read", "read_range"):
        monkeypatch.setattr(ControlObjects, name, counted(getattr(ControlObjects, name)))
    return found


@pytest.mark.parametrize("ranges", [1, 17, 40])
def test_no_more_is_read_than_twice_what_was_staged(
    *,
    ranges: int,
    data: dict[str, str],
    moved: Counter[str],
    s3_bucket: str,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    monkeypatch.setattr(round_rows, "ranges_for", lambda _: ranges)
    graph = og.init(f"{s3_bucket}/people", SCHEMA)
    moved.clear()
    with meter.measure() as asked:
        done = graph.load(data, mode="append")
    assert done.total == PEOPLE + EDGES
    read = moved["read"] + asked.bytes_read
    record_property(f"bytes read / staged at {ranges} ranges", round(read / moved["staged"], 2))
    assert moved["staged"] > 20 * (PEOPLE + EDGES)
    assert read <= AT_MOST * moved["staged"]
