"""Status: the health of a graph at a glance.

Owns what is told of every type, of the branches and of the space that all of it takes, and what a
person is to do about it. Only reads. What is damaged is told as such, and keeps nobody from
seeing the rest. One listing of the graph, one look at every branch, one at every type of one
branch: never one at every type of every branch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from omnigraph.errors import OmniGraphError
from omnigraph.maintain.cleanup import EVERY_COMMIT, find_garbage
from omnigraph.maintain.garbage import GarbageCollector
from omnigraph.maintain.health import GraphStatus, TypeStatus, judged
from omnigraph.maintain.index_choice import TypeIntent, intents_of
from omnigraph.maintain.roots import CONCURRENCY
from omnigraph.maintain.shapes import is_untouched, shape_of
from omnigraph.maintain.wanted import TableShape, first_of, is_stale, needs
from omnigraph.manifest.entries import Commit
from omnigraph.manifest.heads import BranchHead, branch_heads
from omnigraph.manifest.snapshot import BranchState, SnapshotTable, catalog_of, retained_line
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.clock import microseconds_now
from omnigraph.storage.objects.control_objects import StoredObject
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.reachable_files import reached_files
from omnigraph.version import INTERNAL_SCHEMA
from omnigraph.write.recovery.intents import microseconds
from omnigraph.write.recovery.sweep import MARGIN, stored_intents

TRACED = 1_000
"""Up to so many states of branches are followed to their files to tell what nobody needs."""
ATTEMPTS = 3


def graph_status(
    root: Location, manifest: Manifest, branch: str, *, now: int | None = None
) -> GraphStatus:
    """The health of a graph; ``now`` is in microseconds since the epoch."""
    now = microseconds_now() if now is None else now
    for _ in range(ATTEMPTS - 1):
        view = manifest.view(branch)
        found = _Look(root, manifest, view, now).status()
        # What a cleanup has taken away under a state that is not the newest is no damage.
        if found.level != "damaged" or manifest.view(branch).stored == view.stored:
            return found
    return _Look(root, manifest, manifest.view(branch), now).status()


@dataclass(slots=True)
class _Look:
    """One look at a graph, by one state of a branch."""

    root: Location
    manifest: Manifest
    view: BranchState
    now: int

    def status(self) -> GraphStatus:
        """List, look and judge, in this order: what the state needs was there before the list."""
        collector = GarbageCollector.of(self.root)
        heads = branch_heads(self.manifest)
        types = self._types(collector)
        line = list(self.manifest.look_back(self.view.state.branch, _retained))
        stored = collector.stored_bytes
        live = sum(one.live_bytes for one in types)
        leftovers = self._leftovers(collector, heads)
        at_work, dead, notices = self._writes(collector)
        status = GraphStatus(
            location=str(self.root),
            format=INTERNAL_SCHEMA,
            branch=self.view.state.branch,
            head=line[0],
            schema_hash=self.view.state.schema.ir_hash,
            types=types,
            branches=len(heads),
            stale_branches=tuple(
                one.name
                for one in heads[1:]
                if one.error is None and is_stale(one.touched_at, self.now)
            ),
            unreadable_branches={one.name: one.error for one in heads if one.error is not None},
            commits_kept=len(line),
            oldest_commit=line[-1],
            live_bytes=live,
            stored_bytes=stored,
            reclaimable_bytes=sum(one.stored_bytes for one in types) - live
            if leftovers is None
            else leftovers,
            is_estimate=leftovers is None,
            writes_at_work=at_work,
            writes_dead=dead,
        )
        return judged(status, notices)

    # -- types -----------------------------------------------------------------------

    def _types(self, collector: GarbageCollector) -> tuple[TypeStatus, ...]:
        shown = self.view.snapshot
        try:
            intents: Mapping[str, TypeIntent] = intents_of(catalog_of(shown.schema))
        except OmniGraphError:
            intents = {}  # opening says it of main; of another branch its types are still shown
        with ThreadPoolExecutor(CONCURRENCY) as pool:
            return tuple(
                pool.map(
                    lambda key: _type_status(
                        key,
                        shown.tables[key],
                        intents.get(key),
                        collector.tables.get(shown.tables[key].table.path, ()),
                    ),
                    sorted(shown.tables),
                )
            )

    # -- space -----------------------------------------------------------------------

    def _leftovers(self, collector: GarbageCollector, heads: Sequence[BranchHead]) -> int | None:
        """How many bytes nothing needs; None when it would take long to tell, or cannot be."""
        if sum(one.states for one in heads) > TRACED or any(one.error for one in heads):
            return None
        try:
            found = find_garbage(self.manifest, collector, EVERY_COMMIT, self.now)
        except OmniGraphError:
            return None  # a branch was deleted meanwhile, or a state cannot be read
        return None if found.errors else found.bytes

    def _writes(self, collector: GarbageCollector) -> tuple[int, int, Sequence[str]]:
        """How many long writes are at work, how many have died, and what is no intent at all."""
        stored = stored_intents(collector.objects)
        dead = sum(one.expires_at + microseconds(MARGIN) <= self.now for one in stored.intents)
        return len(stored.intents) - dead, dead, stored.notices


def _retained(view: BranchState) -> list[Commit]:
    return list(retained_line(view))


def _type_status(
    key: str, found: SnapshotTable, intent: TypeIntent | None, entries: Sequence[StoredObject]
) -> TypeStatus:
    table, path = found.pinned, found.table.path
    sizes = {entry.name.removeprefix(f"{path}/"): entry.size for entry in entries}
    stored = sum(sizes.values())
    rows = table.pin.row_count
    try:
        reached = reached_files(table.location, [table.pin])
        missing = sorted(reached.files - sizes.keys())
        if missing:
            error = f"{len(missing):,} of its files are not there: {first_of(missing, 1)}"
            return TypeStatus(key, rows, stored_bytes=stored, error=error)
        live = sum(size for name, size in sizes.items() if name in reached)
        shape = shape_of(key, table, None if is_untouched(table) else intent, live)
    except OmniGraphError as error:
        return TypeStatus(key, rows, stored_bytes=stored, error=error.message)
    return _described(shape, stored)


def _described(shape: TableShape, stored: int) -> TypeStatus:
    states = [
        "unasked"
        if index.is_unasked
        else "complete"
        if not index.is_lacking and index.rows_covered
        else "partial"
        if index.rows_covered
        else "pending"
        if index.is_lacking
        else "idle"
        for index in shape.indexes
    ]
    return TypeStatus(
        shape.type_key,
        shape.rows,
        len(shape.fragment_rows),
        shape.small_fragments,
        shape.deleted_rows,
        states.count("complete"),
        states.count("partial"),
        states.count("pending"),
        states.count("unasked"),
        shape.live_bytes,
        stored,
        tuple(need.reason for need in needs(shape)),
    )
