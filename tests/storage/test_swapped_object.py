"""Compare-and-swap of one object on a local disk."""

from __future__ import annotations

import threading
from pathlib import Path

from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.storage.objects.swapped_object import SwappedObject


def test_of_two_who_swap_one_is_told(tmp_path: Path) -> None:
    one = SwappedObject(ControlObjects(Location.parse(str(tmp_path))), "state/now.json")
    assert one.read() is None
    assert one.swap(None, b"1")
    assert not one.swap(None, b"2")
    seen = one.read()
    assert one.swap(seen, b"2")
    assert not one.swap(seen, b"3")
    found = one.read()
    assert found is not None
    assert found.data == b"2"


def test_no_swap_of_many_is_lost(tmp_path: Path) -> None:
    one = SwappedObject(ControlObjects(Location.parse(str(tmp_path))), "counter")
    one.swap(None, b"0")
    done = []

    def count() -> None:
        for _ in range(10):
            while True:
                seen = one.read()
                assert seen is not None
                if one.swap(seen, str(int(seen.data) + 1).encode()):
                    break
        done.append(True)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = one.read()
    assert len(done) == 4
    assert found is not None
    assert found.data == b"40"
