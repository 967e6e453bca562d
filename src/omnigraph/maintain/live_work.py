"""Live work: what is not to be touched because somebody may be at work with it.

Owns which intents count. Only looks at them; revoking those of dead writers is the sweep's.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.errors import StorageError, UnsupportedFormat
from omnigraph.storage.objects.control_objects import ControlObjects, StoredObject
from omnigraph.write.recovery.intents import DIRECTORY, REVOKED, STAGING, microseconds, parse_intent
from omnigraph.write.recovery.sweep import MARGIN


@dataclass(frozen=True, slots=True)
class LiveWork:
    """What long writes are at work with.

    A long write stages files before it names them: so of the tables that it works on,
    nothing goes. Of a write whose intent cannot be read, nobody knows the tables.
    """

    operations: frozenset[str] = frozenset()
    tables: frozenset[str] = frozenset()
    """By path, relative to the graph root."""
    is_anywhere: bool = False

    def covers(self, entry: StoredObject) -> bool:
        """Whether a file, named relative to the graph root, has to stay."""
        parts = entry.name.split("/")
        if parts[0] == STAGING:
            return len(parts) > 1 and parts[1] in self.operations
        return self.is_anywhere or "/".join(parts[:2]) in self.tables


def find_live_work(objects: ControlObjects, *, presumed_dead_at: int | None = None) -> LiveWork:
    """The long writes that nobody has revoked; ``objects`` are those of the graph root.

    With a time (microseconds since the epoch), those are left out that a sweep would revoke
    then: to tell what would go, and never to remove it.
    """
    operations: set[str] = set()
    tables: set[str] = set()
    is_anywhere = False
    names = objects.list(DIRECTORY)
    for name in names:
        if name.endswith(REVOKED):
            continue
        operation = name.rpartition("/")[2].removesuffix(".json")
        if f"{DIRECTORY}/{operation}{REVOKED}" in names:
            continue
        data = objects.read(name)
        if data is None:
            continue  # its writer has removed it since the listing
        try:
            intent = parse_intent(name, data)
        except UnsupportedFormat:
            operations.add(operation)
            is_anywhere = True
            continue
        except StorageError:
            continue  # not an intent: the sweep has a word on it
        dead_from = intent.expires_at + microseconds(MARGIN)
        if presumed_dead_at is None or presumed_dead_at < dead_from:
            operations.add(operation)
            tables |= {table.table_path for table in intent.tables}
    return LiveWork(frozenset(operations), frozenset(tables), is_anywhere)
