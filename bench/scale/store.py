"""What a load on an object store moves: bytes that it stages there, and bytes that it reads.

Owns a server for the benchmark and the counting, which tests use as well. The input lies on the
disk, so nothing of it is counted.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa

import omnigraph as og
from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.storage.objects import meter
from omnigraph.storage.objects.control_objects import ControlObjects
from tests.s3_server import running


@contextmanager
def moved_bytes() -> Iterator[Counter[str]]:
    """Bytes that go to a staging area, and that are read of the store, during the block."""
    found: Counter[str] = Counter()
    put, put_file = StagingArea._put, ControlObjects.put_file  # noqa: SLF001 - what is counted

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

    with ExitStack() as stack:
        stack.enter_context(patch.object(StagingArea, "_put", kept))
        stack.enter_context(patch.object(ControlObjects, "put_file", uploaded))
        for name in ("read", "read_range"):
            read = counted(getattr(ControlObjects, name))
            stack.enter_context(patch.object(ControlObjects, name, read))
        asked = stack.enter_context(meter.measure())
        yield found
        # Lance reads by itself.
        found["read"] += asked.bytes_read


def on_store(directory: Path, schema: str, files: Mapping[str, Path]) -> dict[str, Any]:
    """Load files into a new graph on a store, and say what was moved."""
    place = directory / "store"
    place.mkdir()
    with running(place) as server:
        os.environ.update(server.environment)
        graph = og.init(f"s3://{server.bucket}/graph", schema)
        data = {name: str(path) for name, path in files.items()}
        with moved_bytes() as moved:
            done = graph.load(data, mode="append", engine="inline")
    return {"rows": done.total, "read": moved["read"], "staged": moved["staged"]}
