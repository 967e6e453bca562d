"""The reserve: a little space on a local disk that is given back when there is no other.

Owns one file of a graph. Taking files away safely needs to publish something first: on a disk
without any space left, that is what the reserve makes room for.
"""

from __future__ import annotations

from omnigraph.errors import StorageError
from omnigraph.storage.objects.control_objects import ControlObjects

NAME = "__reserve"
SIZE = 256 * 1024


def keep_reserve(objects: ControlObjects) -> None:
    """Make the reserve, unless it is there or there is no space for it."""
    if not objects.location.is_local or objects.read(NAME) is not None:
        return
    try:
        # Not zeros, which some file systems store without taking any space.
        objects.replace(NAME, bytes(range(256)) * (SIZE // 256))
    except StorageError:
        return


def give_back_reserve(objects: ControlObjects) -> bool:
    """Make room by removing the reserve; False when there is none."""
    if not objects.location.is_local or objects.read(NAME) is None:
        return False
    objects.delete(NAME)
    return True


def is_out_of_space(error: StorageError) -> bool:
    """Whether a disk is full."""
    return "no space left" in error.message.lower()
