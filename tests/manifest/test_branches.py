"""Branch references: what may be created and deleted, and what may not."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from omnigraph.errors import BadRequest, BranchNotFound, Conflict
from omnigraph.manifest.branches import BranchRefs
from omnigraph.manifest.store import Manifest
from omnigraph.storage.location import Location
from tests.manifest.graphs import advance, make_manifest


@pytest.fixture
def branches(manifest: Manifest) -> BranchRefs:
    return BranchRefs(manifest)


def test_list_is_sorted_and_has_main(branches: BranchRefs) -> None:
    assert branches.list() == ["main"]
    assert branches.create(" z/b ") == "z/b"
    assert branches.create("a", " z/b\n") == "a"
    assert branches.list() == ["a", "main", "z/b"]
    assert branches.manifest.branches()["a"].parent == "z/b"


def test_internal_branch_is_not_listed(branches: BranchRefs) -> None:
    branches.manifest.create_branch("__schema_apply_lock__", "main")
    assert branches.list() == ["main"]


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


def test_delete_with_a_path_child(branches: BranchRefs) -> None:
    # Such a pair cannot be created here, but an older program may have left one.
    branches.manifest.create_branch("a/b", "main")
    branches.manifest.create_branch("a", "main")
    with pytest.raises(Conflict, match="a/b"):
        branches.delete("a")
    branches.delete("a/b")
    branches.delete("a")


def test_delete_with_descendants(branches: BranchRefs) -> None:
    branches.create("a")
    branches.create("b", "a")
    branches.create("c", "b")
    for name in ("a", "b"):
        with pytest.raises(Conflict, match="depend"):
            branches.delete(name)
    for name in ("c", "b", "a"):
        branches.delete(name)
    assert branches.list() == ["main"]


def test_deleting_twice_at_once(branches: BranchRefs, monkeypatch: pytest.MonkeyPatch) -> None:
    branches.create("dev")
    real = branches.manifest.delete_branch

    def twice(name: str) -> None:
        real(name)
        real(name)

    monkeypatch.setattr(Manifest, "delete_branch", lambda _, name: twice(name))
    with pytest.raises(BranchNotFound):
        branches.delete("dev")


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


def test_half_made_branch_is_a_conflict(
    branches: BranchRefs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loser of two creators may come before the winner's branch is listed."""
    branches.create("dev")
    monkeypatch.setattr(Manifest, "branches", lambda _: {})
    with pytest.raises(Conflict, match="being created"):
        branches.create("dev")
