"""Intents: what a long write is about to do, written down before it does it.

Owns `__recovery/{ulid}.json` from the writer's side: making, extending, renewing
and removing it, and the proof, right before publishing, that nobody has revoked it. Never
blocks anybody, and never deletes another's. An intent is revoked by a mark beside it that
is created once and stays: no clock decides whether a write may be published.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal, Self

import msgspec

from omnigraph.errors import BadRequest, Conflict, StorageError, UnsupportedFormat
from omnigraph.lang.schema.ir.identity import table_path
from omnigraph.manifest.branches import normalise_branch
from omnigraph.manifest.entries import MAIN, Registration, TableIdentity
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.storage.objects.clock import microseconds_now, new_id
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.write.publish.failpoints import reach

DIRECTORY = "__recovery"
STAGING = "__staging"
"""Where operations leave files for their own tasks, by operation id."""
SCHEMA_VERSION = 9
LIFETIME = timedelta(hours=1)
"""How long an intent is left alone that nobody renews."""
REVOKED = ".revoked"

WriterKind = Literal["Mutation", "Load", "SchemaApply", "BranchMerge", "EnsureIndices", "Optimize"]
Clock = Callable[[], int]

_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_NAME = re.compile(rf"{DIRECTORY}/({_ULID.pattern})\.json")


def microseconds(duration: timedelta) -> int:
    """A duration as a whole number of microseconds."""
    return duration // timedelta(microseconds=1)


# -- what is written ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IntentIdentity:
    """Which table, in the words of the file."""

    stable_table_id: int
    table_incarnation_id: int

    @property
    def table(self) -> TableIdentity:
        """The same in the words of the manifest."""
        return TableIdentity(self.stable_table_id, self.table_incarnation_id)


@dataclass(frozen=True, slots=True)
class IntentTable:
    """A table the write works on, and the files it has staged there.

    ``table_path`` is relative to the graph root, ``staged`` to the directory of the table.
    """

    identity: IntentIdentity
    table_key: str
    table_path: str
    expected_version: int
    staged: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse any path that could name something else than a file of this very table."""
        kind: Literal["node", "edge"] = "node" if self.table_key.startswith("node:") else "edge"
        identity = self.identity.table
        if self.table_path != table_path(kind, identity.table_id, identity.incarnation):
            raise BadRequest(f"{self.table_path!r} is not the directory of {self.table_key}")
        for name in self.staged:
            if _is_outside(name):
                raise BadRequest(f"{name!r} is not the name of a file of {self.table_key}")

    @classmethod
    def of(cls, table: Registration, expected_version: int, staged: Iterable[str] = ()) -> Self:
        """A registered table at the version the write was built from; 0 for a new one."""
        identity = IntentIdentity(table.identity.table_id, table.identity.incarnation)
        return cls(identity, table.type_key, table.path, expected_version, tuple(staged))

    @property
    def files(self) -> list[str]:
        """The staged files, relative to the graph root."""
        return [f"{self.table_path}/{name}" for name in self.staged]

    def joined(self, other: IntentTable) -> IntentTable:
        """The other's word on the same table, with the files of both."""
        return replace(other, staged=tuple(dict.fromkeys((*self.staged, *other.staged))))


@dataclass(frozen=True, slots=True)
class Lineage:
    """The commit that the write will publish; ``branch`` is None for main."""

    graph_commit_id: str
    branch: str | None
    actor_id: str | None
    merged_parent_commit_id: str | None
    created_at: int


@dataclass(frozen=True, slots=True)
class Intent:
    """The content of one file; times are microseconds since the epoch."""

    schema_version: int
    operation_id: str
    started_at: str
    expires_at: int
    branch: str | None
    actor_id: str | None
    writer_kind: WriterKind
    lineage: Lineage
    tables: tuple[IntentTable, ...]
    branch_id: str | None = None
    """The branch it will be published to; None while that has to be made."""

    def __post_init__(self) -> None:
        """Refuse what cannot be acted on later."""
        if not _ULID.fullmatch(self.operation_id):
            raise BadRequest(f"{self.operation_id!r} is not the id of an operation")
        if not (self.started_at.isascii() and self.started_at.isdecimal()):
            raise BadRequest(f"{self.started_at!r} is not a time in microseconds")
        for branch in (self.branch, self.lineage.branch):
            if branch is not None and normalise_branch(branch) != branch:
                raise BadRequest(f"{branch!r} is not the normal spelling of a branch")

    @classmethod
    def mint(
        cls,
        writer_kind: WriterKind,
        branch: str,
        commit: PendingCommit,
        tables: Iterable[IntentTable] = (),
        branch_id: str | None = None,
    ) -> Self:
        """A new operation that will publish a commit; opening it sets the times."""
        stored = None if branch == MAIN else branch
        lineage = Lineage(
            commit.id, stored, commit.actor, commit.merged_parent_id, commit.created_at
        )
        return cls(
            SCHEMA_VERSION,
            new_id(),
            "0",
            0,
            stored,
            commit.actor,
            writer_kind,
            lineage,
            tuple(tables),
            branch_id,
        )

    @property
    def name(self) -> str:
        """The object it is kept in, relative to the graph root."""
        return f"{DIRECTORY}/{self.operation_id}.json"

    @property
    def files(self) -> list[str]:
        """Every staged file, relative to the graph root."""
        return [name for table in self.tables for name in table.files]

    @property
    def mark(self) -> str:
        """The object that revokes it, relative to the graph root."""
        return f"{DIRECTORY}/{self.operation_id}{REVOKED}"

    def encode(self) -> bytes:
        """The bytes of the file."""
        return msgspec.json.encode(self)


class _Versioned(msgspec.Struct):
    schema_version: int


def parse_intent(name: str, data: bytes) -> Intent:
    """Read a file by its name; UnsupportedFormat if it is newer, StorageError if it is not one."""
    named = _NAME.fullmatch(name)
    if named is None:
        raise _malformed(name, "its name is not that of an intent")
    try:
        version = msgspec.json.decode(data, type=_Versioned).schema_version
        if version > SCHEMA_VERSION:
            raise UnsupportedFormat(
                f"{name} has format {version} and this program reads up to {SCHEMA_VERSION}: "
                "upgrade the program",
                details={"found": version, "supported": SCHEMA_VERSION},
            )
        intent = msgspec.json.decode(data, type=Intent)
    except (msgspec.MsgspecError, BadRequest) as error:
        raise _malformed(name, str(error)) from error
    if intent.operation_id != named[1]:
        raise _malformed(name, f"it is about operation {intent.operation_id}")
    return intent


def _malformed(name: str, reason: str) -> StorageError:
    return StorageError(f"{name} cannot be read: {reason}", kind="permanent")


def _is_outside(name: str) -> bool:
    parts = name.split("/")
    return any(part in {"", ".", ".."} or "\\" in part or "\0" in part for part in parts)


# -- the writer's side --------------------------------------------------------------


class LiveIntent:
    """The intent of a write that is going on; as a context manager it renews itself."""

    def __init__(
        self,
        objects: ControlObjects,
        intent: Intent,
        *,
        lifetime: timedelta = LIFETIME,
        clock: Clock = microseconds_now,
    ) -> None:
        self.intent = intent
        self._objects = objects
        self._lifetime = lifetime
        self._clock = clock
        self._lock = threading.RLock()
        self._is_removed = False
        self._failure: Exception | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @classmethod
    def open(
        cls,
        objects: ControlObjects,
        intent: Intent,
        *,
        lifetime: timedelta = LIFETIME,
        clock: Clock = microseconds_now,
    ) -> Self:
        """Write an intent down, as of now; ``objects`` are those of the graph root."""
        now = clock()
        begun = replace(intent, started_at=str(now), expires_at=now + microseconds(lifetime))
        if not objects.claim(begun.name, begun.encode()):
            raise Conflict(f"operation {intent.operation_id} has begun already")
        reach("intent_written", intent.operation_id)
        return cls(objects, begun, lifetime=lifetime, clock=clock)

    def extend(self, tables: Iterable[IntentTable]) -> None:
        """Write down what has been staged since; files named before stay named."""
        self._raise_failure()
        with self._lock:
            known = {table.identity: table for table in self.intent.tables}
            for table in tables:
                before = known.get(table.identity)
                known[table.identity] = table if before is None else before.joined(table)
            self._rewrite(tuple(known.values()))
        reach("intent_extended", self.intent.operation_id)

    def renew(self) -> None:
        """Move the expiry to one lifetime from now: one request."""
        self._raise_failure()
        self._renew()

    def require_alive(self) -> None:
        """Refuse to go on when the staged files may be gone.

        To be asked after the head was captured that the write will be published on: whoever
        revokes an intent moves the head before any file goes.
        """
        self._raise_failure()
        with self._lock:
            # The mark first: it is made before the intent goes, and it stays.
            if self._objects.read(self.intent.mark) is not None:
                raise self._lost("its intent was revoked")
            if self._is_removed or self._objects.read(self.intent.name) is None:
                raise self._lost("its intent is gone")

    def remove(self) -> None:
        """The write is over, published or given up; nothing happens when it is gone already."""
        with self._lock:
            self._objects.delete(self.intent.name)
            self._is_removed = True
            self._failure = None
        reach("intent_removed", self.intent.operation_id)

    def _renew(self) -> None:
        with self._lock:
            self._rewrite(self.intent.tables)

    def _rewrite(self, tables: tuple[IntentTable, ...]) -> None:
        if self._is_removed:
            raise self._lost("its intent was removed")
        if self._objects.read(self.intent.mark) is not None:
            raise self._lost("its intent was revoked")
        expires_at = self._clock() + microseconds(self._lifetime)
        renewed = replace(self.intent, tables=tables, expires_at=expires_at)
        self._objects.replace(renewed.name, renewed.encode())
        self.intent = renewed

    def _lost(self, reason: str) -> Conflict:
        operation = self.intent.operation_id
        return Conflict(
            f"operation {operation} cannot be published, {reason}: its staged files may have been "
            "discarded; nothing was changed, run it again",
            details={"operation_id": operation},
        )

    # -- renewing by itself ---------------------------------------------------------

    def __enter__(self) -> Self:
        self._stopping.clear()
        self._thread = threading.Thread(
            target=self._keep_renewing, name=f"renew {self.intent.operation_id}", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if kind is None:
            self._raise_failure()

    def _keep_renewing(self) -> None:
        """Renew at every third of the lifetime, so that one failure is not the end."""
        while not self._stopping.wait(self._lifetime.total_seconds() / 3):
            with self._lock:
                if self._is_removed:
                    return
                try:
                    self._renew()
                    self._failure = None
                except Exception as error:  # noqa: BLE001 - raised again in the writer's thread
                    self._failure = error

    def _raise_failure(self) -> None:
        """Say once what went wrong behind the writer's back and was not made good since."""
        with self._lock:
            failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
