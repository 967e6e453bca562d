"""Renaming branches: one name at a time, whatever else happens."""

from __future__ import annotations

from contextlib import suppress

import pytest

from omnigraph.errors import BadRequest, BranchNotFound, Conflict, StorageError
from omnigraph.manifest.branches import BranchRefs
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.location import Location
from tests.faults import armed
from tests.manifest.graphs import advance


class Killed(StorageError):
    """A process that dies there."""


def killed() -> StorageError:
    return Killed("killed", kind="permanent")


@pytest.fixture
def branches(manifest: Manifest) -> BranchRefs:
    refs = BranchRefs(manifest)
    refs.create("old")
    advance(manifest, "old")
    return refs


def test_a_branch_goes_on_under_its_new_name(branches: BranchRefs, root: Location) -> None:
    head = branches.manifest.view("old").state.head_commit_id
    slow = Manifest(root)
    assert slow.view("old").state.head_commit_id == head
    assert branches.rename(" old ", "new") == "new"
    assert branches.list() == ["main", "new"]
    for manifest in (branches.manifest, Manifest(root), slow):
        assert manifest.view("new").state.head_commit_id == head
        with pytest.raises(BranchNotFound):
            manifest.view("old")
    advance(slow, "new")
    branches.create("old")
    assert slow.view("old").branch_id != slow.view("new").branch_id
    assert {ref.former for ref in branches.manifest.refs.read().names.values()} == {None}


def test_what_is_refused(branches: BranchRefs) -> None:
    branches.create("taken/name")
    for name in ("taken/name", "taken"):
        with pytest.raises(Conflict):
            branches.rename("old", name)
    for one, other in (("main", "x"), ("old", "main"), ("old", "a..b")):
        with pytest.raises(BadRequest):
            branches.rename(one, other)
    with pytest.raises(BranchNotFound):
        branches.rename("nope", "x")
    assert branches.rename("old", "old/er") == "old/er"
    assert branches.rename("old/er", "old/er") == "old/er"


@pytest.mark.parametrize("point", ["before_put", "after_put", "before_commit", "after_commit"])
@pytest.mark.parametrize("skip", [0, 1])
def test_killed_while_renaming(branches: BranchRefs, root: Location, point: str, skip: int) -> None:
    """One of the two names means the branch, and the other is free."""
    head = branches.manifest.view("old").state.head_commit_id
    slow = Manifest(root)
    slow.view("old")
    with armed(point, killed, skip=skip, times=None), suppress(StorageError):
        branches.rename("old", "new")
    after = BranchRefs(Manifest(root))
    (name,) = set(after.list()) - {"main"}
    other = "old" if name == "new" else "new"
    assert after.manifest.view(name).state.head_commit_id == head
    with pytest.raises(BranchNotFound):
        after.manifest.view(other)
    branch_id = after.manifest.branch_id(name)
    assert any(view.branch_id == branch_id for view in after.manifest.views())
    after.create(other)
    advance(after.manifest, other)
    # Whoever has not heard of it does not take the one for the other.
    assert slow.view(name).branch_id == branch_id
    assert slow.view(other).branch_id != branch_id
    assert advance(after.manifest, name).state.branch == name
    after.delete(name)
    assert after.list() == sorted(["main", other])
