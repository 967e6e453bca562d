"""The publish contract: every check, and the state that follows; also against a plain model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from omnigraph.errors import BranchNotFound, Conflict, ReadSetChanged, VersionMismatch
from omnigraph.manifest.entries import (
    Commit,
    Head,
    Origin,
    Registration,
    StoredVersion,
    TableIdentity,
    TableVersion,
)
from omnigraph.manifest.publish_request import (
    AdvanceTable,
    DropTable,
    ExactHead,
    PendingCommit,
    PublishRequest,
    RegisterTable,
    RenameTable,
    TableChange,
    next_state,
)
from omnigraph.manifest.snapshot import snapshot_of
from omnigraph.manifest.state import ManifestState
from tests import profile
from tests.manifest.graphs import KNOWS, PERSON, ROOT, SCHEMA, first_state, pin, request

NEW = TableIdentity(3, 1)
DOG = RegisterTable(Registration(NEW, "node:Dog", "nodes/dog"), pin(1))


def after(*changes: TableChange, state: ManifestState | None = None) -> ManifestState:
    return published(request(*changes), state)


def published(asked: PublishRequest, state: ManifestState | None = None) -> ManifestState:
    """The state after a publish that storage puts right behind the one before."""
    state = state or first_state()
    return next_state(state, asked, state.version - state.head.first_version + 2)


def on_branch() -> ManifestState:
    """The first state of a branch that was forked at the fifth version of main."""
    origin = Origin("main", 5, StoredVersion("main", 5), "GENESIS")
    return replace(first_state(), head=Head("dev", "GENESIS", None, "ID", version=5, origin=origin))


def test_commit_follows_its_parent() -> None:
    asked = PublishRequest(
        PendingCommit("C1", 77, "ann", "OTHER", {"k": 1}), (AdvanceTable(PERSON, 1, pin(2)),)
    )
    state = published(asked)
    assert state.version == 2
    assert state.commits[-1] == Commit(
        "C1", None, 2, "GENESIS", "OTHER", "ann", 77, {"k": 1}, StoredVersion("main", 2)
    )
    assert state.head == Head("main", "C1", "GENESIS", version=2)
    assert state.versions[PERSON] == TableVersion(PERSON, 2, pin(2))
    assert state.versions[KNOWS].version == 1


def test_branch_names_its_own_versions_and_commits() -> None:
    state = after(AdvanceTable(PERSON, 1, pin(2)), state=on_branch())
    assert state.versions[PERSON].branch == "dev"
    assert state.versions[KNOWS].branch is None
    assert state.commits[-1].branch == "dev"
    assert state.head == replace(
        on_branch().head, commit_id=state.commits[-1].id, parent_id="GENESIS", version=6
    )


def test_branch_goes_on_counting_where_it_was_forked() -> None:
    """Storage counts each branch from one; the version that people see does not."""
    state = after(state=after(state=on_branch()))
    assert [commit.manifest_version for commit in state.commits[1:]] == [6, 7]
    assert [commit.stored for commit in state.commits[1:]] == [
        StoredVersion("ID", 2),
        StoredVersion("ID", 3),
    ]


def test_commit_says_where_storage_put_it_even_after_marks() -> None:
    """A mark takes a version without a commit: versions of commits may have gaps."""
    state = next_state(first_state(), request(), 7)
    assert state.version == 7
    assert state.commits[-1].stored == StoredVersion("main", 7)
    assert [commit.id for commit in state.commits] == ["GENESIS", state.head_commit_id]


def test_what_was_collected_is_kept_by_a_publish() -> None:
    head = replace(first_state().head, epoch=3, oldest_commit_id="GENESIS")
    state = after(state=replace(first_state(), head=head))
    assert (state.epoch, state.head.oldest_commit_id) == (3, "GENESIS")


def test_ended_branch_takes_nothing_not_even_with_its_own_head() -> None:
    state = first_state()
    ended = replace(state, head=replace(state.head, ended=True))
    for asked in (request(), request(head=ExactHead("GENESIS", "main", 0))):
        with pytest.raises(BranchNotFound, match="deleted"):
            published(asked, ended)


def test_merge_brings_along_what_it_descends_from() -> None:
    theirs = Commit("THEIRS", "dev", 2, "GENESIS", None, None, 5, {}, StoredVersion("ID", 2))
    known = first_state().commits[0]
    asked = PublishRequest(
        PendingCommit("MERGE", 9, merged_parent_id="THEIRS"), ancestors=(theirs, known)
    )
    state = published(asked)
    assert state.known_commits["THEIRS"] == theirs
    assert [commit.id for commit in state.commits] == ["GENESIS", "MERGE"], "the first parents"
    assert sorted(state.known_commits) == ["GENESIS", "MERGE", "THEIRS"]


def test_commit_without_changes_is_a_commit() -> None:
    assert len(after().commits) == 2


def test_schema_is_replaced() -> None:
    schema = replace(SCHEMA, source="node Dog { }")
    asked = PublishRequest(PendingCommit.mint(), schema=schema)
    assert published(asked).schema == schema


@pytest.mark.parametrize("change", [AdvanceTable(PERSON, 4, pin(5)), DropTable(PERSON, 4)])
def test_wrong_version_is_named(change: TableChange) -> None:
    with pytest.raises(VersionMismatch) as caught:
        after(change)
    error = caught.value
    assert (error.type_key, error.expected, error.actual) == ("node:Person", 4, 1)


@pytest.mark.parametrize("change", [AdvanceTable(NEW, 4, pin(5)), DropTable(NEW, 4)])
def test_absent_table_counts_as_version_zero(change: TableChange) -> None:
    with pytest.raises(VersionMismatch) as caught:
        after(change)
    assert (caught.value.expected, caught.value.actual) == (4, 0)


def test_dropped_table_counts_as_version_zero() -> None:
    dropped = after(DropTable(PERSON, 1))
    with pytest.raises(VersionMismatch) as caught:
        after(AdvanceTable(PERSON, 1, pin(2)), state=dropped)
    error = caught.value
    assert (error.type_key, error.expected, error.actual) == ("node:Person", 1, 0)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (AdvanceTable(NEW, 0, pin(1)), "no table"),
        (DropTable(NEW, 0), "no table"),
        (RenameTable(NEW, "node:Dog"), "to rename"),
        (RegisterTable(Registration(PERSON, "node:Dog", "x"), pin(1)), "registered already"),
        (RegisterTable(Registration(NEW, "node:Person", "x"), pin(1)), "two tables would be"),
        (RenameTable(KNOWS, "node:Person"), "two tables would be"),
    ],
)
def test_impossible_change_is_a_conflict(change: TableChange, complaint: str) -> None:
    with pytest.raises(Conflict, match=complaint):
        after(change)


@pytest.mark.parametrize(
    "changes",
    [
        (AdvanceTable(PERSON, 1, pin(2)), AdvanceTable(PERSON, 1, pin(3))),
        (AdvanceTable(PERSON, 1, pin(2)), DropTable(PERSON, 1)),
        (DOG, DOG),
    ],
)
def test_table_changes_once_in_a_publish(changes: tuple[TableChange, ...]) -> None:
    with pytest.raises(Conflict, match="twice"):
        after(*changes)


def test_registered_table_starts_at_one() -> None:
    state = after(DOG)
    assert state.current_version(NEW) == 1
    assert snapshot_of(state, ROOT).table("node", "Dog").pin == pin(1)


def test_rename_keeps_path_and_version_and_may_go_with_a_new_version() -> None:
    state = after(RenameTable(PERSON, "node:Human"), AdvanceTable(PERSON, 1, pin(2)))
    human = snapshot_of(state, ROOT).table("node", "Human")
    assert (human.version, human.table.path) == (2, first_state().tables[PERSON].path)
    assert "node:Person" not in snapshot_of(state, ROOT).tables


def test_two_tables_may_swap_their_names() -> None:
    state = after(DOG)
    state = after(RenameTable(PERSON, "node:Dog"), RenameTable(NEW, "node:Person"), state=state)
    assert snapshot_of(state, ROOT).table("node", "Dog").identity == PERSON


def test_dropped_table_comes_back_as_another_incarnation_only() -> None:
    dropped = after(DropTable(PERSON, 1))
    assert "node:Person" not in snapshot_of(dropped, ROOT).tables
    same = RegisterTable(Registration(PERSON, "node:Person", "x"), pin(1))
    with pytest.raises(Conflict, match="new incarnation"):
        after(same, state=dropped)
    with pytest.raises(Conflict, match="to rename"):
        after(RenameTable(PERSON, "node:Ghost"), state=dropped)
    again = TableIdentity(PERSON.table_id, 2)
    state = after(RegisterTable(Registration(again, "node:Person", "y"), pin(1)), state=dropped)
    assert snapshot_of(state, ROOT).table("node", "Person").identity == again


def test_drop_and_new_incarnation_in_one_publish() -> None:
    again = TableIdentity(PERSON.table_id, 2)
    state = after(
        RegisterTable(Registration(again, "node:Person", "y"), pin(1)), DropTable(PERSON, 1)
    )
    assert snapshot_of(state, ROOT).table("node", "Person").identity == again


def test_exact_head() -> None:
    good = request(AdvanceTable(PERSON, 1, pin(2)), head=ExactHead("GENESIS", "main", 0))
    state = published(good)
    # The head is looked at first: both are wrong now.
    with pytest.raises(ReadSetChanged) as caught:
        published(good, state)
    assert caught.value.details == {
        "member": "graph_head:main",
        "expected": "GENESIS",
        "actual": state.head_commit_id,
    }


@pytest.mark.parametrize(
    ("expected", "member"),
    [
        (ExactHead("GENESIS", "ANOTHER", 0), "branch_identifier:main"),
        (ExactHead("GENESIS", "main", 1), "collection_epoch:main"),
        (ExactHead("ANOTHER", "main", 0), "graph_head:main"),
    ],
)
def test_exact_head_is_a_commit_of_a_branch_in_an_epoch(expected: ExactHead, member: str) -> None:
    with pytest.raises(ReadSetChanged) as caught:
        published(request(head=expected))
    assert caught.value.details["member"] == member


def test_state_is_left_alone() -> None:
    state = first_state()
    after(DOG, AdvanceTable(PERSON, 1, pin(2)), DropTable(KNOWS, 1), state=state)
    assert state == first_state()


@dataclass
class ModelTable:
    name: str
    version: int = 1
    alive: bool = True


KEYS = st.sampled_from(["node:A", "node:B", "node:C"])
OFFSETS = st.sampled_from([0, 0, 0, -1, 1])


class PublishMachine(RuleBasedStateMachine):
    """Publishes one change after the other to a state, and the same to a dictionary."""

    @initialize()
    def start(self) -> None:
        self.state = first_state()
        self.model = {PERSON: ModelTable("node:Person"), KNOWS: ModelTable("edge:Knows")}
        self.commits = ["GENESIS"]

    def names(self) -> set[str]:
        return {table.name for table in self.model.values() if table.alive}

    def publish(self, change: TableChange, failure: type[Exception] | None) -> bool:
        asked = request(change)
        if failure is not None:
            with pytest.raises(failure):
                published(asked, self.state)
            return False
        self.state = published(asked, self.state)
        self.commits.append(asked.commit.id)
        return True

    def pick(self, data: Any) -> TableIdentity:
        choices = [*self.model, TableIdentity(99, 1)]
        return data.draw(st.sampled_from(choices))  # type: ignore[no-any-return]

    def failure_of(self, identity: TableIdentity, expected: int) -> type[Exception] | None:
        table = self.model.get(identity)
        actual = table.version if table is not None and table.alive else 0
        if expected != actual:
            return VersionMismatch
        return Conflict if actual == 0 else None

    @rule(data=st.data(), offset=OFFSETS)
    def advance(self, data: Any, offset: int) -> None:
        identity = self.pick(data)
        table = self.model.get(identity, ModelTable("", 0))
        expected = max(0, table.version + offset)
        change = AdvanceTable(identity, expected, pin(expected + 1))
        if self.publish(change, self.failure_of(identity, expected)):
            table.version += 1

    @rule(data=st.data(), offset=OFFSETS)
    def drop(self, data: Any, offset: int) -> None:
        identity = self.pick(data)
        table = self.model.get(identity, ModelTable("", 0))
        expected = max(0, table.version + offset)
        if self.publish(DropTable(identity, expected), self.failure_of(identity, expected)):
            table.alive = False

    @rule(data=st.data(), name=KEYS)
    def rename(self, data: Any, name: str) -> None:
        identity = self.pick(data)
        table = self.model.get(identity)
        taken = name in self.names() and (table is None or table.name != name)
        fails = table is None or not table.alive or taken
        if self.publish(RenameTable(identity, name), Conflict if fails else None) and table:
            table.name = name

    @precondition(lambda self: len(self.model) < 8)
    @rule(name=KEYS)
    def register(self, name: str) -> None:
        identity = TableIdentity(10 + len(self.model), 1)
        change = RegisterTable(Registration(identity, name, "p"), pin(1))
        if self.publish(change, Conflict if name in self.names() else None):
            self.model[identity] = ModelTable(name)

    @rule(data=st.data())
    def register_again(self, data: Any) -> None:
        identity = data.draw(st.sampled_from(list(self.model)))
        self.publish(RegisterTable(Registration(identity, "node:Z", "p"), pin(1)), Conflict)

    @invariant()
    def agree(self) -> None:
        shown = {
            name: (table.identity, table.version)
            for name, table in snapshot_of(self.state, ROOT).tables.items()
        }
        assert shown == {
            table.name: (identity, table.version)
            for identity, table in self.model.items()
            if table.alive
        }
        assert [commit.id for commit in self.state.commits] == self.commits
        assert self.state.version == len(self.commits)


PublishMachine.TestCase.settings = settings(profile.costly, stateful_step_count=25)
TestPublishMachine = PublishMachine.TestCase
