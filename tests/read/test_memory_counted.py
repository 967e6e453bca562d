"""What a query counts is what its process really takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("memory_shapes.py")
# Freed memory goes back to the system at once, so that one query does not use another's.
ALLOCATORS = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_MMAP_THRESHOLD_": "65536"}
FACTOR = 1.5
SHAPES = 13


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's own peak")
def test_counted_bytes_are_those_of_the_process(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path)],
        env={**os.environ, **ALLOCATORS},
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    found = json.loads(run.stdout)
    assert len(found) == SHAPES
    wrong = {
        shape: f"{counted / 1e6:.0f} MB counted, {grown / 1e6:.0f} MB grown"
        for shape, (counted, grown) in found.items()
        if not grown / FACTOR <= counted <= grown * FACTOR
    }
    assert not wrong
