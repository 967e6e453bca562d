"""The memory of a process: what its machine and its groups say, and sizes as people write them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph.storage import memory
from omnigraph.storage.memory import memory_limit, parse_size

GIB = 2**30


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("1048576", 2**20),
        ("512MB", 512 * 10**6),
        ("512MiB", 512 * 2**20),
        (" 2 gib ", 2 * GIB),
        ("2G", 2 * GIB),
        ("1.5GiB", 3 * GIB // 2),
        ("100b", 100),
        ("7kB", 7_000),
        ("1TiB", 2**40),
    ],
)
def test_a_size_is_read_as_it_is_written(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "much", "-1", "1e9", "12 parsecs", "5iB", "1,000", "GB", "1."]
)
def test_what_is_no_size_is_none(text: str) -> None:
    assert parse_size(text) is None


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 64 GiB; the test says in which groups the process is."""
    monkeypatch.setattr(memory, "_physical", lambda: 64 * GIB)
    (tmp_path / "proc" / "self").mkdir(parents=True)
    return tmp_path


def limit(machine: Path, groups: str, files: dict[str, str]) -> int:
    (machine / "proc" / "self" / "cgroup").write_text(groups)
    for name, text in files.items():
        file = machine / "groups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    return memory_limit(machine / "proc", machine / "groups")


def test_without_a_limit_it_is_the_memory_of_the_machine(machine: Path) -> None:
    assert memory_limit(machine / "proc", machine / "groups") == 64 * GIB
    assert limit(machine, "0::/a\n", {"a/memory.max": "max"}) == 64 * GIB
    assert limit(machine, "4:memory:/\n", {"memory/memory.limit_in_bytes": str(2**63)}) == 64 * GIB


def test_the_tightest_of_the_groups_around_a_process_counts(machine: Path) -> None:
    files = {
        "a/memory.max": str(3 * GIB),
        "a/b/memory.max": "max",
        "a/b/c/memory.max": str(5 * GIB),
    }
    assert limit(machine, "0::/a/b/c\n", files) == 3 * GIB


def test_a_container_sees_its_own_group_as_the_outermost(machine: Path) -> None:
    assert limit(machine, "0::/../host/name\n", {"memory.max": str(GIB)}) == GIB


def test_groups_of_the_first_kind_count_too(machine: Path) -> None:
    files = {"memory/box/memory.limit_in_bytes": str(2 * GIB)}
    assert limit(machine, "5:cpu,cpuacct:/box\n4:memory:/box\n0::/\n", files) == 2 * GIB


def test_a_machine_that_does_not_tell_is_taken_for_a_small_one(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(os, "sysconf", _untold)
    assert memory_limit(machine / "proc", machine / "groups") == memory.UNKNOWN


def _untold(_: str) -> int:
    raise ValueError("unrecognized configuration name")


GIVING = """
import threading
from omnigraph.storage.memory import give_memory_back, keep_little_memory
import pyarrow as pa

def held():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def work():
    # Pieces of a size that a library keeps once it has seen larger ones.
    for _ in range(3):
        pieces = [bytearray(24 << 20) for _ in range(4)]
        rows = [pa.array(range(200_000)) for _ in range(8)]
    del pieces, rows

keep_little_memory()
before = held()
threads = [threading.Thread(target=work) for _ in range(3)]
[one.start() for one in threads]
[one.join() for one in threads]
give_memory_back()
print(held() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux what is held")
def test_what_is_free_again_is_given_back() -> None:
    run = subprocess.run(
        [sys.executable, "-c", GIVING], capture_output=True, text=True, check=True, timeout=120
    )
    assert int(run.stdout) < 64 << 20
