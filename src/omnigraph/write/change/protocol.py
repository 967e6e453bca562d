"""The change protocol: what every kind of write tells the driver.

Owns the steps and the order in which they are asked for: begin, prepare, check, stage, perhaps
stage again on a newer base, publish; and these steps for changes whose rows are in memory. A change
decides what is written; when it happens, how often it is tried again and what makes it visible
are the business of the driver and the door.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, TypeVar

from omnigraph.manifest.entries import Commit
from omnigraph.manifest.publish_request import PendingCommit, PublishRequest
from omnigraph.write.change.change_set import ChangeSet
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.read_set import ReadSet
from omnigraph.write.publish.run_ids import RunId
from omnigraph.write.publish.staging import OperationClass, TableEffect, restage, stage
from omnigraph.write.recovery.intent_scope import IntentScope
from omnigraph.write.recovery.intents import WriterKind
from omnigraph.write.rules.check import check_changes
from omnigraph.write.rules.evaluation import Evaluation

R_co = TypeVar("R_co", covariant=True)

Effects = tuple[TableEffect, ...]


class AlreadyDone(Exception):
    """The branch has the commit of this very change, made by an earlier run of it."""

    def __init__(self, commit: Commit) -> None:
        super().__init__(commit.id)
        self.commit = commit


@dataclass(frozen=True, slots=True)
class WriteTxn:
    """One preparation of a write: the base it captured, and the questions it asks of it.

    ``files`` are those that it stages, on any base.
    """

    base: Base
    reads: ReadSet
    files: IntentScope


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """What became of a change: its commit, or None when nothing was published.

    With ``repeats`` the commit is that of an earlier run, and ``first`` the `Change.outcome` of
    that.
    """

    branch: str
    commit: Commit | None = None
    effects: Effects = ()
    fork_from: str | None = None
    branch_created: bool = False
    repeats: bool = False
    first: Mapping[str, Any] = field(default_factory=dict)


class Change(Protocol[R_co]):
    """One write of one kind.

    ``commit`` is minted once: however often a change is prepared, it is the same commit.
    ``notes`` are what that says about how it was made; they are complete when it is published.
    A change that has a ``run`` happens once in all branches of a graph: the driver answers a
    repeat from the ``outcome`` of the first run.
    """

    kind: ClassVar[WriterKind]
    operation_class: ClassVar[OperationClass] = "logical"
    commit: PendingCommit
    notes: Mapping[str, Any]
    run: RunId | None = None

    @property
    def outcome(self) -> Mapping[str, Any]:
        """What `result` needs beside the commit when this run is repeated, as JSON can hold it.

        Asked right before it is published.
        """
        return {}

    @property
    def repeatable(self) -> bool:
        """Whether it may be prepared again when what it has read has changed.

        Inserts and upserts may; what was decided on rows that were read may not. Asked after
        it was prepared.
        """
        return True

    def begin(self) -> None:
        """Take what it needs beside the base; once, and not if its run was done before."""
        return

    def prepare(self, txn: WriteTxn) -> bool:
        """Decide what is to be done on the base; False when that is nothing.

        Whatever the decision depends on is asked through the read set. Raises `AlreadyDone` when
        the branch has the change. Files are staged here only where rows are checked in files.
        """

    def check(self, txn: WriteTxn) -> None:  # noqa: ARG002 - for those that have rules
        """Refuse what breaks a rule."""
        return

    def stage(self, txn: WriteTxn) -> Effects:
        """Write the rows and commit them to the tables of the base, visible to nobody.

        Whatever file is written is named through the files of the transaction.
        """

    def restage(self, effects: Effects, newer: Base, files: IntentScope) -> Effects | None:
        """The same effects on a newer base, where the read set stands; None to prepare again."""
        return restage(effects, newer, files.stamp)

    def publish(self, base: Base, effects: Effects) -> PublishRequest:  # noqa: ARG002 - for those that drop tables
        """The one step that makes it visible on a base; that it is that one, the door sees to."""
        return PublishRequest(
            replace(self.commit, metadata=self.notes),
            tuple(effect.advance for effect in effects if not effect.is_nothing),
        )

    def discard(self, txn: WriteTxn) -> None:  # noqa: ARG002 - for those that can
        """It has failed before anything could be published: let go of what it has staged."""
        return

    def result(self, written: WriteOutcome) -> R_co:
        """What the caller is told."""


class RowsChange(Change[R_co]):
    """A change set on its way; ``changes`` is None until it was prepared."""

    changes: ChangeSet | None

    @property
    def prepared(self) -> ChangeSet:
        """The change set."""
        if self.changes is None:
            raise AssertionError("a write is prepared before it is published")
        return self.changes

    @property
    def repeatable(self) -> bool:
        """As the statements or the mode say."""
        return self.prepared.repeatable

    def check(self, txn: WriteTxn) -> None:
        """Every rule of the schema."""
        check_changes(Evaluation(self.prepared, txn.base, txn.reads))

    def stage(self, txn: WriteTxn) -> Effects:
        """All touched tables, in parallel."""
        base, files = txn.base, txn.files
        files.begin(self.prepared.types, base, self.prepared.size)
        effects = stage(self.prepared, base, files.stamp)
        files.name({effect.type_key: effect.files for effect in effects}, base)
        return effects
