from __future__ import annotations

import pytest

from omnigraph.errors import StorageError
from omnigraph.storage.objects import faults as points
from tests import faults


def test_nothing_is_armed_by_itself() -> None:
    faults.reach("before_put", "a")
    assert points._armed == ()


def test_a_fault_fires_once_and_only_at_its_point() -> None:
    with faults.armed("before_put") as fault:
        faults.reach("after_put", "a")
        with pytest.raises(StorageError, match="injected fault"):
            faults.reach("before_put", "a")
        faults.reach("before_put", "a")
    assert fault.fired == 1


def test_skip_times_and_target() -> None:
    with faults.armed("after_commit", skip=1, times=2, matching="nodes") as fault:
        faults.reach("after_commit", "edges")
        faults.reach("after_commit", "nodes")
        for _ in range(2):
            with pytest.raises(StorageError):
                faults.reach("after_commit", "nodes")
        faults.reach("after_commit", "nodes")
    assert fault.fired == 2


def test_a_fault_may_last_and_name_its_error() -> None:
    def full() -> StorageError:
        return StorageError("disk full", kind="permanent")

    with faults.armed("before_put", full, times=None):
        for _ in range(3):
            with pytest.raises(StorageError, match="disk full"):
                faults.reach("before_put", "a")
    faults.reach("before_put", "a")


def test_passes_are_watched_without_disturbing_them() -> None:
    passed: list[tuple[str, str]] = []
    with faults.watched(lambda point, target: passed.append((point, target))):
        faults.reach("before_put", "a")
        with faults.armed("after_put"), pytest.raises(StorageError):
            faults.reach("after_put", "b")
    faults.reach("before_put", "c")
    assert passed == [("before_put", "a"), ("after_put", "b")]
