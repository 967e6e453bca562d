"""The sweep: finishing the story of writers that died.

Owns what becomes of the intents in `__recovery/`: each is recorded in the audit and
removed, after the staged files of a write that never happened are discarded. Must
never touch a live write, nor delete a file that a published version refers to.

Why a discarded file is never needed. An intent that has expired is revoked by a mark, and
then the branch it was meant for gets a new epoch. Its writer captures a head, looks for the
mark, and publishes on that head and no other: if it captured the head before the new epoch,
it loses; if after, it finds the mark. So after that, either the commit is there, or it
never will be. Clocks decide only when an intent is taken for dead: a wrong one costs its
writer another run, and nobody any data.

Three more rules guard the files:

- of a branch that is gone, nobody knows whether the commit was there and was merged
  elsewhere: `cleanup`, which traces, decides;
- what the current version of any branch refers to is kept, whatever an intent says;
- a path that leads out of the table makes an intent one that cannot be read.

Every step can be repeated: a sweep that dies, and two at once, do no harm.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec
import pyarrow as pa

from omnigraph.errors import (
    BranchNotFound,
    ChangeFeedGap,
    NotFound,
    StorageError,
    UnsupportedFormat,
)
from omnigraph.manifest.branches import begin_epoch, begin_epoch_of_names
from omnigraph.manifest.entries import MAIN, Commit
from omnigraph.manifest.snapshot import BranchState, find_commit
from omnigraph.manifest.store import Manifest
from omnigraph.storage.logs.journal import Journal
from omnigraph.storage.objects.clock import microseconds_now
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.reachable_files import files_of
from omnigraph.storage.tables.table import Table
from omnigraph.write.change.results import Recovery, RecoveryKind, TableOutcome
from omnigraph.write.publish.failpoints import reach
from omnigraph.write.recovery.intents import (
    DIRECTORY,
    REVOKED,
    STAGING,
    Intent,
    IntentTable,
    microseconds,
    parse_intent,
)

TABLE_NAME = "_graph_commit_recoveries.lance"

_COLUMNS = pa.schema(
    [
        pa.field("graph_commit_id", pa.string(), nullable=False),
        pa.field("recovery_kind", pa.string(), nullable=False),
        pa.field("recovery_for_actor", pa.string()),
        pa.field("operation_id", pa.string(), nullable=False),
        pa.field("sidecar_writer_kind", pa.string(), nullable=False),
        pa.field("per_table_outcomes_json", pa.string(), nullable=False),
        pa.field("created_at", pa.timestamp("us"), nullable=False),
    ]
)

MARGIN = timedelta(minutes=10)
"""So much longer than its lifetime an intent is left alone: clocks differ, and puts are slow."""
CONCURRENCY = 16


def record(root: Location, recovery: Recovery) -> None:
    """Add a row; the table is made with the first one."""
    row = {
        "graph_commit_id": [recovery.graph_commit_id],
        "recovery_kind": [recovery.recovery_kind],
        "recovery_for_actor": [recovery.recovery_for_actor],
        "operation_id": [recovery.operation_id],
        "sidecar_writer_kind": [recovery.writer_kind],
        "per_table_outcomes_json": [msgspec.json.encode(recovery.tables).decode()],
        "created_at": [recovery.created_at],
    }
    _journal(root).append(pa.table(row, schema=_COLUMNS))


def recoveries(root: Location) -> list[Recovery]:
    """Every recovery of a graph, newest first."""
    first: dict[str, Recovery] = {}
    rows = _journal(root).read()
    rows = rows.set_column(
        rows.column_names.index("created_at"), "created_at", rows["created_at"].cast(pa.int64())
    )
    for row in rows.to_pylist():
        found = _read(row)
        first.setdefault(found.operation_id, found)
    # Turned round at the end, so that of one moment the later row comes first.
    return sorted(first.values(), key=lambda found: found.created_at)[::-1]


def _journal(root: Location) -> Journal:
    return Journal(root.join(TABLE_NAME), _COLUMNS, key="operation_id")


def _read(row: dict[str, Any]) -> Recovery:
    try:
        return msgspec.convert(
            {
                **row,
                "writer_kind": row["sidecar_writer_kind"],
                "tables": msgspec.json.decode(row["per_table_outcomes_json"]),
            },
            Recovery,
        )
    except msgspec.MsgspecError as error:
        raise StorageError(
            f"{TABLE_NAME} holds a row that cannot be read: operation {row['operation_id']} "
            f"({error})",
            kind="permanent",
        ) from error


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What a sweep did, and what it found and left for a person to look at."""

    recoveries: tuple[Recovery, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredIntents:
    """The intents that can be read, by name, and a word on every file that is none."""

    intents: tuple[Intent, ...] = ()
    notices: tuple[str, ...] = ()


def stored_intents(objects: ControlObjects) -> StoredIntents:
    """The intents of a graph root: one request, and one for each of them."""
    intents: list[Intent] = []
    notices: list[str] = []
    for name in objects.list(DIRECTORY):
        if name.endswith(REVOKED):
            continue
        data = objects.read(name)
        if data is None:
            continue  # its writer, or another sweep, has removed it since the listing
        try:
            intents.append(parse_intent(name, data))
        except (StorageError, UnsupportedFormat) as error:
            notices.append(f"left in place: {error}")
    return StoredIntents(tuple(intents), tuple(notices))


def sweep(
    root: Location, manifest: Manifest, *, now: int | None = None, margin: timedelta = MARGIN
) -> SweepReport:
    """Finish every story that can be finished; ``now`` is in microseconds since the epoch."""
    # Taken before anything is read: what is seen later can only be more alive than this says.
    now = microseconds_now() if now is None else now
    objects = ControlObjects(root)
    stored = stored_intents(objects)
    run = _Sweep(root, objects, manifest, now, microseconds(margin), list(stored.notices))
    done: list[Recovery] = []
    for intent in stored.intents:
        reach("sweep_found", intent.operation_id)
        try:
            recovery = run.settle(intent)
        except StorageError as error:
            if error.kind not in {"permanent", "not_found"}:
                raise
            # Trying again would not help, and must not keep anybody from the graph.
            run.notices.append(f"left in place: {intent.name}, because of {error}")
            continue
        if recovery is not None:
            done.append(recovery)
    return SweepReport(tuple(done), tuple(run.notices))


@dataclass(frozen=True, slots=True)
class _Sweep:
    root: Location
    objects: ControlObjects
    manifest: Manifest
    now: int
    margin: int
    notices: list[str] = field(default_factory=list)

    def settle(self, intent: Intent) -> Recovery | None:
        """Finish one story; None when its writer may still be at it."""
        commit = self._published(intent)
        if commit is not None:
            return self._finish(intent, "RolledForward", self._published_versions(intent, commit))
        if self.now < intent.expires_at + self.margin:
            return None
        is_live = self._revoke(intent)
        views = list(self.manifest.views())
        # Again, and on every branch: the writer may have published since the first look.
        for view in views:
            commit = find_commit(view, intent.lineage.graph_commit_id)
            if commit is not None:
                outcomes = self._published_versions(intent, commit)
                return self._finish(intent, "RolledForward", outcomes)
        self._discard(intent, views, is_live=is_live)
        reach("sweep_discarded", intent.operation_id)
        unchanged = [
            TableOutcome(table.table_key, table.expected_version, table.expected_version)
            for table in intent.tables
        ]
        return self._finish(
            intent, "RolledBack" if is_live else "OrphanedBranchDiscarded", unchanged
        )

    def _revoke(self, intent: Intent) -> bool:
        """Make sure that the write is not published any more; whether its branch lives."""
        self.objects.create(intent.mark, b"")
        reach("sweep_revoked", intent.operation_id)
        if intent.branch_id is None:
            # It was to make its branch itself: it cannot any more, if it has not yet.
            begin_epoch_of_names(self.manifest)
        try:
            branch_id = intent.branch_id or self.manifest.branch_id(intent.branch or MAIN)
            view = begin_epoch(self.manifest, branch_id)
        except BranchNotFound:
            return False
        return not view.state.head.ended

    def _finish(
        self, intent: Intent, kind: RecoveryKind, outcomes: Iterable[TableOutcome]
    ) -> Recovery:
        recovery = Recovery(
            intent.lineage.graph_commit_id,
            kind,
            intent.actor_id,
            intent.operation_id,
            intent.writer_kind,
            tuple(outcomes),
            self.now,
        )
        record(self.root, recovery)
        reach("sweep_audited", intent.operation_id)
        # What its tasks left for each other; nobody else ever looks there.
        for name in self.objects.list(f"{STAGING}/{intent.operation_id}"):
            self.objects.delete(name)
        self.objects.delete(intent.name)
        reach("sweep_done", intent.operation_id)
        return recovery

    # -- what is published ----------------------------------------------------------

    def _published(self, intent: Intent) -> Commit | None:
        """The planned commit, if its branch shows it."""
        branch_id = intent.branch_id
        try:
            if branch_id is None:
                view = self.manifest.view(intent.branch or MAIN)
            elif self.manifest.is_named(branch_id):
                view = self.manifest.view_by_id(branch_id)
            else:
                return None
        except BranchNotFound:
            return None
        return find_commit(view, intent.lineage.graph_commit_id)

    def _published_versions(self, intent: Intent, commit: Commit) -> list[TableOutcome]:
        try:
            state = self.manifest.view_at(commit).state
        except (ChangeFeedGap, NotFound):
            # Its state was cleaned up; a commit takes a table one version on.
            return [
                TableOutcome(table.table_key, table.expected_version, table.expected_version + 1)
                for table in intent.tables
            ]
        return [
            TableOutcome(
                table.table_key,
                table.expected_version,
                state.current_version(table.identity.table),
            )
            for table in intent.tables
        ]

    # -- discarding -----------------------------------------------------------------

    def _discard(self, intent: Intent, views: list[BranchState], *, is_live: bool) -> None:
        """Delete the staged files of a write that was not published and cannot be any more."""
        staged = intent.files
        if not staged:
            return
        if not is_live:
            self.notices.append(
                f"left {len(staged)} staged file(s) of operation {intent.operation_id} to cleanup: "
                f"branch {intent.branch} is gone, and may have been merged before"
            )
            return
        needed: set[str] = set()
        for table in intent.tables:
            needed |= self._current_files(table, views)
        kept = sorted(needed.intersection(staged))
        if kept:
            self.notices.append(
                f"kept {len(kept)} file(s) that operation {intent.operation_id} calls its own but "
                f"a published version refers to, such as {kept[0]}"
            )
        with ThreadPoolExecutor(CONCURRENCY) as pool:
            list(pool.map(self.objects.delete, sorted(set(staged) - needed)))

    def _current_files(self, table: IntentTable, views: list[BranchState]) -> set[str]:
        """The files that the current versions of a table refer to, relative to the root."""
        if not table.staged:
            return set()
        identity = table.identity.table
        pins = {
            version.pin
            for view in views
            if (version := view.state.versions.get(identity)) is not None
        }
        location = self.root.join(table.table_path)
        return {
            f"{table.table_path}/{name}" for pin in pins for name in files_of(Table(location, pin))
        }
