"""Staged files: data files of a write that failed, or was done again, are deleted.

Owns finding all that belongs to them. Whether nobody needs them is for the caller to know.
"""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.read_set import has_blobs


def delete_files(base: Base, files: Iterable[tuple[str, str]]) -> None:
    """Delete data files, by type key, with the blobs that were too large for them."""
    objects = ControlObjects(base.root)
    names: list[str] = []
    for key, name in files:
        path = f"{base.snapshot.tables[key].table.path}/{name}"
        names.append(path)
        if has_blobs(base.table(key).table.schema):
            names += objects.list(path.removesuffix(".lance"))
    objects.delete_all(names)
