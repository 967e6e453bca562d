"""The staged state: what a branch would show if staged effects were published on their base.

Owns putting detached versions in the place of published ones, for whoever wants to look before
anybody else can. Never publishes; what it shows may be gone when the write is given up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from omnigraph.manifest.snapshot import Snapshot
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.staging import TableEffect


def staged_snapshot(base: Base, effects: Iterable[TableEffect], commit_id: str) -> Snapshot:
    """The snapshot that the commit will show, if it is published on this base."""
    tables = dict(base.snapshot.tables)
    for effect in effects:
        found = tables[effect.type_key]
        pinned = found.pinned.at(effect.pin)
        tables[effect.type_key] = replace(found, version=effect.base_version + 1, pinned=pinned)
    return replace(base.snapshot, commit_id=commit_id, tables=tables)
