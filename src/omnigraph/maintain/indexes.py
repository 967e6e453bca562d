"""Building indexes: what the schema asks for, as one maintenance commit of a branch.

Owns the way from wanted indexes to the commit. Writers go on meanwhile and are never
disturbed: what they publish is found by scanning until the next time. Must never publish
anything of a table but indexes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from omnigraph.maintain.index_choice import (
    NOT_BUILT,
    Action,
    IndexDecision,
    TypeIntent,
    choose,
    intents_of,
)
from omnigraph.maintain.reports import Done, IndexChange, IndexReport, PendingIndex
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.manifest.store import Manifest
from omnigraph.storage.indexes.build import (
    BuiltIndex,
    build_index,
    commit_indexes,
    is_committed,
    partitions,
)
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.table import Table
from omnigraph.write.change.protocol import Change, Effects, WriteOutcome, WriteTxn
from omnigraph.write.publish.base import Base, BaseTable
from omnigraph.write.publish.driver import Target, run
from omnigraph.write.publish.failpoints import reach
from omnigraph.write.publish.staging import OperationClass, TableEffect
from omnigraph.write.recovery.intent_scope import IntentScope
from omnigraph.write.recovery.intents import WriterKind

OVERTAKEN = "its rows were rewritten meanwhile: build it again"
DONE: Mapping[Action, Done] = {"build": "built", "extend": "extended", "rebuild": "rebuilt"}


@dataclass(slots=True)
class IndexBuild(Change[IndexReport]):
    """One build of everything that is missing or lags behind, as one commit or none.

    A segment counts for the fragments that it was built on, whatever rows come beside them:
    so a build of minutes need not be repeated because somebody has written.
    """

    kind: ClassVar[WriterKind] = "EnsureIndices"
    operation_class: ClassVar[OperationClass] = "maintenance"

    actor: str | None = None
    notes: Mapping[str, Any] = field(default_factory=lambda: {"operation": "ensure_indices"})
    commit: PendingCommit = field(init=False)
    _choices: dict[str, list[IndexDecision]] = field(default_factory=dict)
    _built: dict[str, list[BuiltIndex]] = field(default_factory=dict)
    _tables: dict[str, Table] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.commit = PendingCommit.mint(self.actor)

    @property
    def _wanted(self) -> Mapping[str, list[IndexDecision]]:
        """What is to be built, by type key."""
        found = {
            key: [choice for choice in choices if choice.action is not None]
            for key, choices in self._choices.items()
        }
        return {key: choices for key, choices in found.items() if choices}

    def prepare(self, txn: WriteTxn) -> bool:
        """Choose what to build, by what is there."""
        self._choices = {
            key: choose_all(txn.base.table(key).table, intent)
            for key, intent in intents_of(txn.base.catalog).items()
        }
        return bool(self._wanted)

    def stage(self, txn: WriteTxn) -> Effects:
        """Build all segments, and commit them to the base."""
        wanted, base, files = self._wanted, txn.base, txn.files
        files.begin(wanted, base)
        self._built = {key: [] for key in wanted}
        effects: list[TableEffect] = []
        for key, choices in wanted.items():
            found = base.table(key)
            for choice in choices:
                built = build_chosen(found.table, choice)
                self._built[key].append(built)
                files.name({key: built.files}, base)
            reach("rows_written", key)
            effects.append(self._committed(found, files))
        return tuple(effects)

    def restage(self, effects: Effects, newer: Base, files: IntentScope) -> Effects | None:
        """The same segments on a newer base; built again if all their fragments are gone."""
        moved = tuple(
            replace(effect, base_version=found.version)
            if (found := newer.table(effect.type_key)).table.pin == effect.base_pin
            else self._committed(found, files)
            for effect in effects
        )
        return None if all(effect.is_nothing for effect in moved) else moved

    def _committed(self, found: BaseTable, files: IntentScope) -> TableEffect:
        key, table = found.type_key, found.table
        self._tables[key] = table
        pin = commit_indexes(table, self._built[key], files.stamp())
        reach("table_staged", key)
        return TableEffect(key, found.identity, found.version, table.pin, pin)

    def result(self, written: WriteOutcome) -> IndexReport:
        """What was built, and what others made useless by rewriting all its rows meanwhile."""
        done: list[IndexChange] = []
        pending = [one for found in self._choices.values() for one in pending_of(found)]
        for effect in written.effects:
            key = effect.type_key
            table = self._tables[key].at(effect.pin)
            made, lost = outcome_of(table, self._wanted[key], self._built[key])
            done += made
            pending += lost
        commit_id = None if written.commit is None else written.commit.id
        return IndexReport(written.branch, commit_id, tuple(done), tuple(pending))


def ensure_indices(
    root: Location, manifest: Manifest, branch: str, *, actor: str | None = None
) -> IndexReport:
    """Build what is missing and extend what is there to all rows, as one commit or none."""
    return run(IndexBuild(actor), Target(root, manifest, branch))


def choose_all(table: Table, intent: TypeIntent) -> list[IndexDecision]:
    """What is to be done for everything that a type asks for."""
    return [choose(table, one) for one in intent.wanted]


def pending_of(choices: Iterable[IndexDecision]) -> list[PendingIndex]:
    """What cannot be built, and why."""
    return [
        PendingIndex(one.intent.type_key, one.intent.property, one.reason or NOT_BUILT)
        for one in choices
        if one.is_pending and one.action is None
    ]


def outcome_of(
    table: Table, choices: Sequence[IndexDecision], built: Sequence[BuiltIndex]
) -> tuple[list[IndexChange], list[PendingIndex]]:
    """What a version has of what was built, and what is missing there all the same."""
    done: list[IndexChange] = []
    lost: list[PendingIndex] = []
    for choice, one in zip(choices, built, strict=True):
        key, name, action = choice.intent.type_key, choice.intent.property, choice.action
        if action is not None and is_committed(table, one):
            done.append(IndexChange(key, name, one.kind, DONE[action], choice.rows))
        elif choose(table, choice.intent).is_pending:
            lost.append(PendingIndex(key, name, OVERTAKEN))
    return done, lost


def build_chosen(table: Table, choice: IndexDecision) -> BuiltIndex:
    """The segment that was decided on, in files that no version refers to."""
    if choice.kind is None:
        raise AssertionError("an index of no kind cannot be built")
    return build_index(
        table,
        choice.intent.column,
        choice.kind,
        choice.fragments,
        partitions=partitions(choice.rows),
        beside=choice.action == "extend",
        instead_of=choice.instead_of,
    )
