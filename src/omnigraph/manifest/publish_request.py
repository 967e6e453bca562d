"""What a publish asks for: changes of tables, a commit, and what must still hold.

Owns the request as plain data, which is staged, retried and written down as it is, and the
publish contract as a pure function, so that each attempt runs all of it again on what it has
just read. Never writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.errors import BranchNotFound, Conflict, ReadSetChanged, VersionMismatch
from omnigraph.manifest.entries import (
    MAIN,
    Commit,
    Registration,
    SchemaContract,
    StoredVersion,
    TableIdentity,
    TableVersion,
    Tombstone,
)
from omnigraph.manifest.rows import Entry
from omnigraph.manifest.state import ManifestState, fold
from omnigraph.storage.objects.clock import microseconds_now, new_id
from omnigraph.storage.tables.table import TablePin


@dataclass(frozen=True, slots=True)
class RegisterTable:
    """A table at the first version that a branch has of it.

    With ``revives`` the branch may have had it before, and dropped it.
    """

    table: Registration
    pin: TablePin
    revives: bool = False


@dataclass(frozen=True, slots=True)
class RenameTable:
    """Another name for a table; its path and versions stay."""

    identity: TableIdentity
    type_key: str


@dataclass(frozen=True, slots=True)
class AdvanceTable:
    """A table's next version; ``expected`` is the version it was built from."""

    identity: TableIdentity
    expected: int
    pin: TablePin


@dataclass(frozen=True, slots=True)
class DropTable:
    """A table that goes; ``expected`` is the version it was dropped at."""

    identity: TableIdentity
    expected: int


TableChange = RegisterTable | RenameTable | AdvanceTable | DropTable


@dataclass(frozen=True, slots=True)
class PendingCommit:
    """The commit a publish makes; minted once, so that a retry is the same commit."""

    id: str
    created_at: int
    actor: str | None = None
    merged_parent_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def mint(
        cls,
        actor: str | None = None,
        *,
        merged_parent_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> PendingCommit:
        """A new commit, now."""
        return cls(new_id(), microseconds_now(), actor, merged_parent_id, dict(metadata or {}))


@dataclass(frozen=True, slots=True)
class ExactHead:
    """The publish is valid only on this head commit of this very branch, in this epoch."""

    commit_id: str
    branch_id: str
    epoch: int


@dataclass(frozen=True, slots=True)
class PublishRequest:
    """One atomic step of a branch.

    ``ancestors`` are the commits that a merge brings along, which the branch did not know: so
    what a commit descends from stays known when the branch is gone that it came from.
    """

    commit: PendingCommit
    changes: tuple[TableChange, ...] = ()
    schema: SchemaContract | None = None
    precondition: ExactHead | None = None
    ancestors: tuple[Commit, ...] = ()


def next_state(state: ManifestState, request: PublishRequest, stored: int) -> ManifestState:
    """The state after a publish that storage will count as ``stored``, or why it cannot happen."""
    _check_head(state, request)
    branch = None if state.branch == MAIN else state.branch
    known = state.known_commits
    entries: list[Entry] = [one for one in request.ancestors if one.id not in known]
    _check_once_each(request.changes)
    for change in request.changes:
        _check_version(state, change)
        entries.extend(_entries_of(state, change, branch))
    _check_names(state, request.changes)
    if request.schema is not None:
        entries.append(request.schema)
    version = version_of(state, stored)
    commit = Commit(
        request.commit.id,
        branch,
        version,
        state.head_commit_id,
        request.commit.merged_parent_id,
        request.commit.actor,
        request.commit.created_at,
        request.commit.metadata,
        StoredVersion(state.branch_id, stored),
    )
    head = replace(state.head, commit_id=commit.id, parent_id=commit.parent_id, version=version)
    return fold([*entries, commit, head], state)


def version_of(state: ManifestState, stored: int) -> int:
    """The manifest version that a version of the branch's storage is."""
    return state.head.first_version - 1 + stored


def require_live(state: ManifestState) -> None:
    """Refuse a branch that was deleted."""
    if state.head.ended:
        raise BranchNotFound(
            f"branch {state.branch} has been deleted", details={"branch": state.branch}
        )


def _check_head(state: ManifestState, request: PublishRequest) -> None:
    require_live(state)
    expected = request.precondition
    if expected is None:
        return
    actual = ExactHead(state.head_commit_id, state.branch_id, state.epoch)
    if expected.branch_id != actual.branch_id:
        raise _moved(state, "branch_identifier", expected.branch_id, actual.branch_id)
    if expected.commit_id != actual.commit_id:
        raise _moved(state, "graph_head", expected.commit_id, actual.commit_id)
    if expected.epoch != actual.epoch:
        raise _moved(state, "collection_epoch", str(expected.epoch), str(actual.epoch))


def _moved(state: ManifestState, member: str, expected: str, actual: str) -> ReadSetChanged:
    return ReadSetChanged(
        f"branch {state.branch} has moved from {expected} to {actual}: read again and retry",
        details={"member": f"{member}:{state.branch}", "expected": expected, "actual": actual},
    )


def _check_version(state: ManifestState, change: TableChange) -> None:
    if isinstance(change, AdvanceTable | DropTable):
        actual = state.current_version(change.identity)
        if actual != change.expected:
            raise VersionMismatch(
                type_key=_type_key(state, change.identity), expected=change.expected, actual=actual
            )
        if actual == 0:
            raise Conflict(f"there is no table {change.identity} to change")
    elif isinstance(change, RegisterTable):
        if state.current_version(change.table.identity) != 0:
            raise Conflict(f"{change.table.type_key} is registered already")
        if change.table.identity in state.versions and not change.revives:
            raise Conflict(
                f"table {change.table.identity} was dropped: {change.table.type_key} comes back "
                "as a new incarnation"
            )
    elif state.current_version(change.identity) == 0:
        raise Conflict(f"there is no table {change.identity} to rename")


def _check_once_each(changes: Sequence[TableChange]) -> None:
    seen: set[tuple[TableIdentity, bool]] = set()
    for change in changes:
        identity = _identity(change)
        key = (identity, isinstance(change, RenameTable))
        if key in seen:
            raise Conflict(f"one publish changes table {identity} twice")
        seen.add(key)


def _check_names(state: ManifestState, changes: Sequence[TableChange]) -> None:
    """Names are compared at the end: two tables may swap theirs in one publish."""
    if all(isinstance(change, AdvanceTable) for change in changes):
        return
    names = {table.identity: table.type_key for table, _ in state.live}
    for change in changes:
        match change:
            case RegisterTable(table):
                names[table.identity] = table.type_key
            case RenameTable(identity, type_key):
                names[identity] = type_key
    for change in changes:
        if isinstance(change, DropTable):
            del names[change.identity]
    owners: dict[str, TableIdentity] = {}
    for identity, type_key in names.items():
        if owners.setdefault(type_key, identity) != identity:
            raise Conflict(f"two tables would be called {type_key}")


def _identity(change: TableChange) -> TableIdentity:
    return change.table.identity if isinstance(change, RegisterTable) else change.identity


def _type_key(state: ManifestState, identity: TableIdentity) -> str:
    table = state.tables.get(identity)
    return table.type_key if table is not None else str(identity)


def _entries_of(state: ManifestState, change: TableChange, branch: str | None) -> list[Entry]:
    match change:
        case RegisterTable(table, pin):
            gone = state.tombstones.get(table.identity)
            version = 1 if gone is None else gone.version + 1
            return [table, TableVersion(table.identity, version, pin, branch)]
        case RenameTable(identity, type_key):
            known = state.tables[identity]
            return [type(known)(identity, type_key, known.path)]
        case AdvanceTable(identity, expected, pin):
            return [TableVersion(identity, expected + 1, pin, branch)]
        case DropTable(identity, expected):
            return [Tombstone(identity, expected + 1)]
