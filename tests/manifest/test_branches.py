"""Branch references: what may be created and deleted, and what may not."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from omnigraph.errors import BadRequest, BranchNotFound, Conflict, NotFound, StorageError
from omnigraph.manifest.branches import BranchRefs
from omnigraph.manifest.publish_request import AdvanceTable
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.location import Location
from tests.faults import armed, observed
from tests.manifest.graphs import PERSON, advance, make_manifest, pin, request


@pytest.fixture
def branches(manifest: Manifest) -> BranchRefs:
    return BranchRefs(manifest)


def test_list_is_sorted_and_has_main(branches: BranchRefs) -> None:
    assert branches.list() == ["main"]
    assert branches.create(" z/b ") == "z/b"
    assert branches.create("a", " z/b\n") == "a"
    assert branches.list() == ["a", "main", "z/b"]
    assert branches.manifest.refs.read().names["a"].parent == "z/b"


def test_name_says_who_made_it(branches: BranchRefs) -> None:
    branches.create("dev", actor="ann")
    branches.create("other")
    names = branches.manifest.refs.read().names
    assert (names["dev"].actor, names["other"].actor) == ("ann", None)
    assert 0 < names["dev"].created_at <= names["other"].created_at


def test_names_of_any_script(branches: BranchRefs, root: Location) -> None:
    branches.create("pru\u0308fung")
    assert branches.list() == ["main", "pr\u00fcfung"]
    advance(branches.manifest, "pr\u00fcfung")
    again = BranchRefs(Manifest(root))
    for name in ("prüfung", "pru\u0308fung"):
        with pytest.raises(Conflict, match="exists already"):
            again.create(name)
    assert again.create("開発/" + "あ" * 60, "pru\u0308fung") in again.list()
    assert again.delete("pru\u0308fung") == "prüfung"


def test_creating_makes_no_commit(branches: BranchRefs) -> None:
    branches.create("dev")
    assert branches.manifest.view("dev").state.version == 1
    assert branches.manifest.view().state.version == 1


def test_fork_is_from_the_newest_head(branches: BranchRefs, root: Location) -> None:
    branches.manifest.view()
    advance(Manifest(root))
    branches.create("dev")
    assert branches.manifest.view("dev").state.version == 2


@pytest.mark.parametrize("name", ["a", " a "])
def test_existing_branch(branches: BranchRefs, name: str) -> None:
    branches.create("a")
    with pytest.raises(Conflict, match="exists already"):
        branches.create(name)


def test_missing_source(branches: BranchRefs) -> None:
    with pytest.raises(BranchNotFound, match="no branch dev"):
        branches.create("a", "dev")
    assert branches.list() == ["main"]


@pytest.mark.parametrize(
    ("first", "second"), [("a", "a/b"), ("a/b", "a"), ("a/b/c", "a/b"), ("dev", "main/x")]
)
def test_paths_are_disjoint(branches: BranchRefs, first: str, second: str) -> None:
    branches.create(first)
    with pytest.raises(Conflict, match="path above"):
        branches.create(second)
    assert branches.list() == sorted(["main", first])


@pytest.mark.parametrize("name", ["main", " main "])
def test_main_is_neither_created_nor_deleted(branches: BranchRefs, name: str) -> None:
    with pytest.raises(BadRequest, match="main"):
        branches.create(name)
    with pytest.raises(BadRequest, match="main"):
        branches.delete(name)


@pytest.mark.parametrize("name", ["", "a b", "__schema_apply_lock__"])
def test_bad_names(branches: BranchRefs, name: str) -> None:
    for act in (branches.create, branches.delete, lambda bad: branches.create("a", bad)):
        with pytest.raises(BadRequest):
            act(name)


def test_delete(branches: BranchRefs) -> None:
    branches.create("dev")
    advance(branches.manifest, "dev")
    assert branches.delete(" dev ") == "dev"
    assert branches.list() == ["main"]
    with pytest.raises(BranchNotFound):
        branches.delete("dev")
    branches.create("dev")
    assert branches.manifest.view("dev").state.version == 1


def test_branch_that_others_were_forked_from_can_be_deleted(
    branches: BranchRefs, root: Location
) -> None:
    for _ in range(40):
        advance(branches.manifest)
    branches.create("a")
    advance(branches.manifest, "a")
    branches.create("b", "a")
    advance(branches.manifest, "b")
    branches.create("c", "b")
    before = {name: branches.manifest.commits(name) for name in ("b", "c")}
    branches.delete("a")
    assert branches.list() == ["b", "c", "main"]
    for manifest in (branches.manifest, Manifest(root)):
        for name, commits in before.items():
            assert manifest.commits(name) == commits
            for commit in commits[:3]:
                assert manifest.view_at(commit).state.head_commit_id == commit.id
            assert manifest.find_commit(commits[1].id) == commits[1]
    branches.delete("b")
    assert advance(branches.manifest, "c").state.version == 44
    assert [commit.branch for commit in Manifest(root).commits("c")[:4]] == ["c", "b", "a", None]


@pytest.mark.parametrize("publishes", [0, 1])
def test_deleting_twice_at_once(branches: BranchRefs, root: Location, publishes: int) -> None:
    """The second deletion comes between the two steps of the first."""
    branches.create("dev")
    for _ in range(publishes):
        advance(branches.manifest, "dev")
    other = BranchRefs(Manifest(root))
    with observed("branch_ended", lambda: other.delete("dev")):
        assert branches.delete("dev") == "dev"
    assert branches.list() == other.list() == ["main"]


def test_deletion_that_resumes_late_leaves_the_next_branch_alone(
    branches: BranchRefs, root: Location
) -> None:
    branches.create("dev")
    other = BranchRefs(Manifest(root))

    def recreate() -> None:
        other.delete("dev")
        other.create("dev")
        advance(other.manifest, "dev")

    with observed("branch_ended", recreate):
        branches.delete("dev")
    assert branches.list() == ["dev", "main"]
    assert Manifest(root).view("dev").state.version == 2
    assert advance(branches.manifest, "dev").state.version == 3


@pytest.mark.slow
def test_concurrent_creates_have_one_winner(any_root: Location) -> None:
    manifest = make_manifest(any_root)
    makers = 4
    for number in range(5):
        name = f"dev{number}"
        barrier = Barrier(makers)

        def create(name: str = name, barrier: Barrier = barrier) -> bool:
            refs = BranchRefs(Manifest(any_root))
            refs.manifest.view()
            barrier.wait()
            try:
                refs.create(name)
            except Conflict:
                return False
            return True

        with ThreadPoolExecutor(makers) as pool:
            won = list(pool.map(lambda _: create(), range(makers)))
        assert won.count(True) == 1
        assert advance(manifest, name).state.version == 2
        assert Manifest(any_root).view(name).state.version == 2


# -- processes that are killed ------------------------------------------------------


class Killed(BaseException):
    """The process ends here: nothing of it runs on."""


def killed() -> StorageError:
    raise Killed


def test_killed_while_creating_leaves_the_name_free(branches: BranchRefs, root: Location) -> None:
    with armed("branch_creating", killed), pytest.raises(Killed):
        branches.create("dev")
    after = BranchRefs(Manifest(root))
    assert after.list() == ["main"]
    with pytest.raises(BranchNotFound):
        after.manifest.view("dev")
    with pytest.raises(BranchNotFound):
        after.delete("dev")
    after.create("dev")
    assert advance(after.manifest, "dev").state.version == 2
    # The one that was killed, had it only been slow, would find the name taken.
    with pytest.raises(Conflict, match="exists already"):
        branches.create("dev")


@pytest.mark.parametrize("point", ["branch_ended", "before_put"])
def test_killed_while_deleting_leaves_a_name_that_can_be_deleted_and_created(
    branches: BranchRefs, root: Location, point: str
) -> None:
    branches.create("dev")
    gone = advance(branches.manifest, "dev")
    with armed(point, killed), pytest.raises(Killed):
        branches.delete("dev")
    for handle in (branches.manifest, Manifest(root)):
        with pytest.raises(BranchNotFound):
            handle.view("dev")
        with pytest.raises(BranchNotFound):
            handle.publish(gone.branch_id, request())
        assert [view.state.branch for view in handle.views()] == ["main"]
    assert BranchRefs(Manifest(root)).delete("dev") == "dev"
    assert branches.list() == ["main"]
    branches.create("dev")
    assert advance(branches.manifest, "dev").state.version == 2


def test_name_of_a_half_deleted_branch_can_be_taken(branches: BranchRefs, root: Location) -> None:
    branches.create("dev")
    gone = advance(branches.manifest, "dev")
    with armed("branch_ended", killed), pytest.raises(Killed):
        branches.delete("dev")
    after = BranchRefs(Manifest(root))
    after.create("dev")
    assert after.manifest.view("dev").state.head_commit_id == "GENESIS"
    assert after.manifest.branch_id("dev") != gone.branch_id
    assert advance(after.manifest, "dev").state.version == 2
    assert branches.list() == ["dev", "main"]


def test_fork_from_a_branch_that_is_deleted_meanwhile_lives_on(
    branches: BranchRefs, root: Location
) -> None:
    branches.create("a")
    head = advance(branches.manifest, "a").state.head_commit_id
    other = BranchRefs(Manifest(root))
    with observed("branch_creating", lambda: other.delete("a")):
        branches.create("b", "a")
    assert branches.list() == ["b", "main"]
    assert Manifest(root).view("b").state.head_commit_id == head


def test_branch_that_is_deleted_before_its_creator_hears_of_it_stays_deleted(
    branches: BranchRefs, root: Location
) -> None:
    """The creator looks whether its name is there, and must not name a dead branch again."""
    other = BranchRefs(Manifest(root))
    with observed("after_put", lambda: other.delete("dev"), matching="__refs"):
        branches.create("dev")
    assert branches.list() == BranchRefs(Manifest(root)).list() == ["main"]
    branches.create("dev")
    assert advance(branches.manifest, "dev").state.version == 2


# -- writers in flight ----------------------------------------------------------------


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("again", [True, False])
def test_writer_in_flight_loses_its_branch(
    branches: BranchRefs, root: Location, *, again: bool, exact: bool
) -> None:
    branches.create("dev")
    view = advance(branches.manifest, "dev")
    other = BranchRefs(Manifest(root))

    def delete() -> None:
        other.delete("dev")
        if again:
            other.create("dev")
            advance(other.manifest, "dev")

    asked = request(AdvanceTable(PERSON, 2, pin(7)), head=view.exact if exact else None)
    with (
        observed("before_commit", delete, matching=view.branch_id),
        pytest.raises(BranchNotFound),
    ):
        branches.manifest.publish(view.branch_id, asked)
    with pytest.raises(NotFound):
        Manifest(root).find_commit(asked.commit.id)
    ended = Manifest(root).view_by_id(view.branch_id).state
    assert ended.head.ended
    assert ended.head_commit_id == view.state.head_commit_id
    if again:
        state = Manifest(root).view("dev").state
        assert [commit.id for commit in state.commits] == ["GENESIS", state.head_commit_id]
        assert state.versions[PERSON].pin == pin(2)


def test_deletion_gets_through_against_a_writer(branches: BranchRefs, root: Location) -> None:
    """A writer that is first does not stop it: the mark is made again on what it published."""
    branches.create("dev")
    branch_id = branches.manifest.branch_id("dev")
    other = Manifest(root)
    with observed("before_commit", lambda: advance(other, "dev"), matching=branch_id, times=1):
        branches.delete("dev")
    ended = Manifest(root).view_by_id(branch_id).state
    assert ended.head.ended
    assert len(ended.commits) == 2
    assert branches.list() == ["main"]
