"""Building indexes: what the schema asks for, as one maintenance commit of a branch.

Owns the way from wanted indexes to the commit. Writers go on meanwhile and are never
disturbed: what they publish is found by scanning until the next time. Must never publish
anything of a table but indexes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ulid import ULID

from omnigraph.errors import Conflict
from omnigraph.maintain.index_choice import Action, IndexDecision, choose
from omnigraph.maintain.index_intent import intents_of
from omnigraph.maintain.reports import Done, IndexChange, IndexReport, PendingIndex
from omnigraph.manifest.publish_request import ExactHead, PendingCommit
from omnigraph.manifest.store import Manifest
from omnigraph.storage.indexes.build import BuiltIndex, build_index, commit_indexes, is_committed
from omnigraph.storage.indexes.vector_index import partitions
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.table import Table
from omnigraph.storage.tables.write_rows import WrittenRows
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.commit_stamp import stamp
from omnigraph.write.publish.door import Door, ReadSetBroken, read_set_changed
from omnigraph.write.publish.driver import PREPARATIONS
from omnigraph.write.publish.failpoints import reach
from omnigraph.write.publish.publish_plan import PublishPlan, TableEffect
from omnigraph.write.publish.read_set import ReadSet
from omnigraph.write.recovery.intent_scope import IntentScope

OVERTAKEN = "its rows were rewritten meanwhile: build it again"
_DONE: Mapping[Action, Done] = {"build": "built", "extend": "extended", "rebuild": "rebuilt"}


@dataclass(frozen=True, slots=True)
class TableIndexes:
    """The segments built for one table."""

    table: Table
    built: tuple[BuiltIndex, ...]


@dataclass(frozen=True, slots=True)
class IndexPlan(PublishPlan):
    """A plan of indexes, which go along when their tables have moved on.

    A segment counts for the fragments that it was built on, whatever rows come beside them:
    so a build of minutes need not be repeated because somebody has written.
    """

    indexes: Mapping[str, TableIndexes] = field(default_factory=dict)

    def on(self, head: ExactHead, tables: tuple[TableEffect, ...]) -> PublishPlan:
        """The same segments on a newer head; given back if all their fragments are gone."""
        moved = tuple(
            self._commit(table) if table.pin == table.base_pin else table for table in tables
        )
        if all(table.pin == table.base_pin for table in moved):
            before = self.built_on.commit_id
            raise ReadSetBroken(
                read_set_changed(
                    f"head:{self.branch}", before, head.commit_id, "all that was indexed"
                )
            )
        return replace(self, built_on=head, tables=moved)

    def _commit(self, staged: TableEffect) -> TableEffect:
        indexes = self.indexes[staged.type_key]
        stamped = stamp(self.commit.id, self.operation_id, self.class_)
        pin = commit_indexes(indexes.table.at(staged.base_pin), indexes.built, stamped)
        reach("table_staged", staged.type_key)
        return replace(staged, pin=pin)


def ensure_indices(
    root: Location, manifest: Manifest, branch: str, *, actor: str | None = None
) -> IndexReport:
    """Build what is missing and extend what is there to all rows, as one commit or none."""
    commit = PendingCommit.mint(actor, metadata={"operation": "ensure_indices"})
    operation = str(ULID())
    cause: Exception | None = None
    with IntentScope(root, branch, operation, commit) as announced:
        for _ in range(PREPARATIONS):
            base = Base.of(root, manifest.view(branch))
            reach("txn_captured", branch)
            choices = _choices(base)
            wanted = {
                key: [choice for choice in found if choice.action is not None]
                for key, found in choices.items()
            }
            wanted = {key: found for key, found in wanted.items() if found}
            if not wanted:
                announced.settle()
                return IndexReport(branch, None, pending=_pending(choices))
            announced.begin_bulk("EnsureIndices", wanted, base)
            plan = _plan(wanted, base, announced, operation)
            try:
                view = Door(root, manifest).publish(plan, base, ReadSet(), announced)
            except ReadSetBroken as broken:
                cause = broken.cause
                continue
            announced.settle()
            done, lost = _outcome(wanted, plan, Base.of(root, view))
            return IndexReport(branch, commit.id, done, (*_pending(choices), *lost))
    raise Conflict(
        f"branch {branch} changes too fast: its indexes were built {PREPARATIONS} times and "
        "overtaken each time; retry",
        details={"branch": branch, "attempts": PREPARATIONS},
    ) from cause


def _choices(base: Base) -> dict[str, list[IndexDecision]]:
    return {
        key: [choose(base.table(key).table, one) for one in intent.wanted]
        for key, intent in intents_of(base.catalog).items()
    }


def _plan(
    wanted: Mapping[str, Sequence[IndexDecision]],
    base: Base,
    announced: IntentScope,
    operation: str,
) -> IndexPlan:
    """Build all segments, and commit them to the base, visible to nobody."""
    commit = announced.commit
    indexes: dict[str, TableIndexes] = {}
    staged: list[TableEffect] = []
    for key, choices in wanted.items():
        found = base.table(key)
        built: list[BuiltIndex] = []
        for choice in choices:
            built.append(_build(found.table, choice))
            announced.name_files({key: built[-1].files}, base)
        reach("rows_written", key)
        indexes[key] = TableIndexes(found.table, tuple(built))
        stamped = stamp(commit.id, operation, "maintenance")
        pin = commit_indexes(found.table, built, stamped)
        reach("table_staged", key)
        staged.append(
            TableEffect(key, found.identity, found.version, found.table.pin, pin, WrittenRows())
        )
    return IndexPlan(
        announced.branch,
        base.exact,
        commit,
        operation,
        tuple(staged),
        "maintenance",
        indexes=indexes,
    )


def _build(table: Table, choice: IndexDecision) -> BuiltIndex:
    if choice.kind is None:
        raise AssertionError("an index of no kind cannot be built")
    return build_index(
        table,
        choice.intent.property,
        choice.kind,
        choice.fragments,
        partitions=partitions(choice.rows),
        beside=choice.action == "extend",
        instead_of=choice.instead_of,
    )


def _outcome(
    wanted: Mapping[str, Sequence[IndexDecision]], plan: IndexPlan, published: Base
) -> tuple[tuple[IndexChange, ...], tuple[PendingIndex, ...]]:
    """What was published, and what others made useless by rewriting all its rows meanwhile."""
    done: list[IndexChange] = []
    lost: list[PendingIndex] = []
    for key, choices in wanted.items():
        table = published.table(key).table
        for choice, built in zip(choices, plan.indexes[key].built, strict=True):
            name, action = choice.intent.property, choice.action
            if action is not None and is_committed(table, built):
                done.append(IndexChange(key, name, built.kind, _DONE[action], choice.rows))
            elif choose(table, choice.intent).is_pending:
                lost.append(PendingIndex(key, name, OVERTAKEN))
    return tuple(done), tuple(lost)


def _pending(choices: Mapping[str, Sequence[IndexDecision]]) -> tuple[PendingIndex, ...]:
    return tuple(
        PendingIndex(key, choice.intent.property, choice.reason or "not built yet")
        for key, found in choices.items()
        for choice in found
        if choice.is_pending and choice.action is None
    )
