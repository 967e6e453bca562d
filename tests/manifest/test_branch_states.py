"""The states of branches: where they begin, that they stay apart, what is known of the gone."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.errors import (
    BranchNotFound,
    NotFound,
    ReadSetChanged,
)
from omnigraph.manifest.branches import BranchRefs
from omnigraph.manifest.entries import Commit
from omnigraph.manifest.publish_request import AdvanceTable, PendingCommit, PublishRequest
from omnigraph.manifest.snapshot import ancestors_of, snapshot_of
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.location import Location
from tests.manifest.graphs import PERSON, advance, fork, pin, request


def chain(manifest: Manifest, branch: str = "main") -> list[Commit]:
    """The commits, oldest first, after checking that each has the one before as its parent."""
    commits = manifest.commits(branch)[::-1]
    parents = [commit.parent_id for commit in commits]
    assert parents == [None, *(commit.id for commit in commits[:-1])]
    return commits


def test_branch_starts_as_its_source_and_goes_its_own_way(
    manifest: Manifest, root: Location
) -> None:
    forked = advance(manifest).state
    fork(manifest, "dev")
    inherited = manifest.view("dev").state
    assert inherited == replace(forked, head=inherited.head)
    assert (inherited.head_commit_id, inherited.version) == (forked.head_commit_id, 2)
    assert inherited.head.origin is not None
    assert inherited.head.origin.commit_id == forked.head_commit_id
    assert manifest.commits("dev") == manifest.commits()
    on_dev = advance(manifest, "dev").state
    on_main = [advance(manifest).state for _ in range(3)][-1]
    assert on_dev.commits[-1].parent_id == forked.head_commit_id
    cold = Manifest(root)
    assert cold.view("dev").state == on_dev
    assert cold.view().state == on_main
    assert [commit.branch for commit in cold.commits("dev")] == ["dev", None, None]
    assert [commit.branch for commit in cold.commits()] == [None] * 5
    assert snapshot_of(on_dev, root).table("node", "Person").branch == "dev"


@pytest.mark.slow
def test_publishes_to_branches_do_not_disturb_each_other(manifest: Manifest) -> None:
    names = ["main", "a", "b/c", "b/d"]
    for name in names[1:]:
        fork(manifest, name)
    for number in range(35):
        for position, name in enumerate(names):
            advance(manifest, name, number=100 * position + number)
    for position, name in enumerate(names):
        state = manifest.view(name).state
        assert state.version == 36
        assert state.versions[PERSON].pin == pin(100 * position + 34)
        commits = chain(manifest, name)
        assert len(commits) == 36
        assert {commit.branch for commit in commits[1:]} == {None if name == "main" else name}


def test_branch_of_a_branch(manifest: Manifest, root: Location) -> None:
    fork(manifest, "a")
    on_a = advance(manifest, "a").state
    fork(manifest, "b", "a")
    advance(manifest, "a")
    on_b = advance(manifest, "b").state
    assert on_b.commits[-1].parent_id == on_a.head_commit_id
    ref = manifest.refs.read().names["b"]
    assert (ref.parent, ref.parent_id) == ("a", manifest.branch_id("a"))
    cold = Manifest(root)
    assert [commit.branch for commit in cold.commits("b")] == ["b", "a", None]
    assert cold.view_at(cold.commits("b")[1]).state == on_a


@pytest.mark.slow
def test_history_is_found_through_every_branch_it_was_sealed_on(
    manifest: Manifest, root: Location
) -> None:
    """A branch holds what is in its head; older commits lie in the logs it was forked from."""
    source = "main"
    for name in ("a", "b"):
        for _ in range(40):
            advance(manifest, source)
        fork(manifest, name, source)
        source = name
    for _ in range(40):
        advance(manifest, "b")
    cold = Manifest(root)
    commits = chain(cold, "b")
    assert [commit.manifest_version for commit in commits] == list(range(1, 122))
    assert [commit.branch for commit in commits[1:]] == [None] * 40 + ["a"] * 40 + ["b"] * 40
    assert set(ancestors_of(cold.view("b"))) == {commit.id for commit in commits}
    for commit in commits[::13]:
        assert cold.find_commit(commit.id) == commit
        assert cold.view_at(commit).state.head_commit_id == commit.id


def test_missing_branch(manifest: Manifest) -> None:
    for act in (manifest.view, manifest.commits, manifest.branch_id):
        with pytest.raises(BranchNotFound):
            act("dev")
    with pytest.raises(BranchNotFound):
        manifest.publish("01NEVERMADE", request())
    with pytest.raises(BranchNotFound):
        fork(manifest, "new", "dev")


@pytest.mark.parametrize("publishes", [0, 1, 2])
def test_recreated_branch_is_not_written_through_an_old_handle(
    manifest: Manifest, root: Location, publishes: int
) -> None:
    fork(manifest, "dev")
    old = Manifest(root)
    was = advance(old, "dev")
    gone = was.state.commits[-1]
    BranchRefs(manifest).delete("dev")
    fork(manifest, "dev")
    for _ in range(publishes):
        advance(manifest, "dev")
    before = manifest.view("dev").state
    assert before.branch_id != was.branch_id
    # Where one publish was made the versions agree, and only the branch is another one.
    expected = was.state.current_version(PERSON)
    for asked in (
        request(AdvanceTable(PERSON, expected, pin(9))),
        request(head=was.exact),
        request(),
    ):
        with pytest.raises(BranchNotFound):
            old.publish(was.branch_id, asked)
    assert manifest.view("dev").state == before
    assert manifest.view_by_id(was.branch_id).state.head_commit_id == gone.id
    with pytest.raises(NotFound):
        old.find_commit(gone.id)
    assert old.view("dev").state == before
    assert advance(old, "dev").state.version == before.version + 1


def test_exact_head_names_the_branch_itself(manifest: Manifest) -> None:
    exact = manifest.view_by_id(fork(manifest, "dev")).exact
    BranchRefs(manifest).delete("dev")
    again = fork(manifest, "dev")
    with pytest.raises(ReadSetChanged) as caught:
        manifest.publish(again, request(head=exact))
    assert caught.value.details["member"] == "branch_identifier:dev"
    assert manifest.view("dev").state.head_commit_id == "GENESIS"


def test_deleted_branch_is_gone_for_every_handle(manifest: Manifest, root: Location) -> None:
    branch_id = fork(manifest, "dev")
    other = Manifest(root)
    advance(other, "dev")
    BranchRefs(manifest).delete("dev")
    with pytest.raises(BranchNotFound):
        other.view("dev")
    with pytest.raises(BranchNotFound):
        other.publish(branch_id, request())


@pytest.mark.slow
def test_what_was_merged_is_known_when_its_branch_is_gone(
    manifest: Manifest, root: Location
) -> None:
    """Also what the merged branch had in its own log, or got from yet another branch."""
    forked = manifest.view()
    fork(manifest, "a")
    for _ in range(40):
        advance(manifest, "a")
    fork(manifest, "b", "a")
    advance(manifest, "b")
    lost = {**ancestors_of(manifest.view("b"))}
    del lost["GENESIS"]
    head = manifest.view("b").state.head_commit_id
    merge = PublishRequest(
        PendingCommit.mint(merged_parent_id=head),
        precondition=forked.exact,
        ancestors=tuple(lost.values()),
    )
    manifest.publish("main", merge)
    for name in ("a", "b"):
        BranchRefs(manifest).delete(name)
    for _ in range(3):
        cold = Manifest(root)
        view = cold.view()
        assert set(ancestors_of(view)) >= {*lost, "GENESIS", merge.commit.id}
        assert {commit.id for commit in cold.commits()}.isdisjoint(lost)
        for commit in [*lost.values()][::9]:
            assert cold.find_commit(commit.id) == commit
        for _ in range(35):
            advance(manifest)


@pytest.mark.parametrize("move", [shutil.move, shutil.copytree])
def test_directory_works_wherever_it_lies(
    manifest: Manifest, root: Location, tmp_path: Path, move: object
) -> None:
    for _ in range(40):
        advance(manifest)
    fork(manifest, "a")
    fork(manifest, "b", "a")
    advance(manifest, "b")
    states = {name: manifest.view(name).state for name in BranchRefs(manifest).list()}
    commits = manifest.commits("b")
    elsewhere = tmp_path / "else where"
    move(root.path, elsewhere)  # type: ignore[operator]
    moved = Manifest(Location.parse(str(elsewhere)))
    assert {name: moved.view(name).state for name in BranchRefs(moved).list()} == states
    assert moved.commits("b") == commits
    assert moved.view_at(commits[20]).state.head_commit_id == commits[20].id
    advance(moved, "b")
    fork(moved, "c", "b")
    BranchRefs(moved).delete("a")
    assert BranchRefs(moved).list() == ["b", "c", "main"]
    if move is shutil.copytree:
        assert BranchRefs(Manifest(root)).list() == ["a", "b", "main"]
        assert Manifest(root).view("b").state == states["b"]
