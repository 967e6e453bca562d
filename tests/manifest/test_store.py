"""The manifest of a graph: publishing, lineage, time travel, freshness, stamps, branches."""

from __future__ import annotations

import lance
import pytest

from omnigraph.errors import (
    BranchNotFound,
    NotFound,
    ReadSetChanged,
    StorageError,
    UnsupportedFormat,
    VersionMismatch,
)
from omnigraph.manifest.changes import AdvanceTable, ExactHead, RegisterTable
from omnigraph.manifest.entries import Commit, Registration, TableIdentity
from omnigraph.manifest.snapshot import snapshot_of
from omnigraph.manifest.state import ManifestState
from omnigraph.manifest.store import Manifest
from omnigraph.storage.headlog import HeadLog
from omnigraph.storage.location import Location
from tests.manifest.graphs import KNOWS, PERSON, advance, make_manifest, pin, request


def chain(manifest: Manifest, branch: str = "main") -> list[Commit]:
    """The commits, oldest first, after checking that each has the one before as its parent."""
    commits = manifest.commits(branch)[::-1]
    parents = [commit.parent_id for commit in commits]
    assert parents == [None, *(commit.id for commit in commits[:-1])]
    return commits


def test_first_version(manifest: Manifest) -> None:
    view = manifest.view()
    assert view.state.version == 1
    assert view.state.head_commit_id == "GENESIS"
    assert view.identifier is None


def test_manifest_is_made_once(manifest: Manifest, root: Location) -> None:
    advance(manifest)
    with pytest.raises(StorageError) as caught:
        make_manifest(root)
    assert caught.value.kind == "precondition"
    assert Manifest(root).view().state.version == 2


def test_storage_properties(manifest: Manifest) -> None:
    advance(manifest)
    dataset = lance.dataset(manifest.location.uri)
    assert dataset.has_stable_row_ids
    assert dataset.data_storage_version == "2.2"
    field = dataset.schema.field("object_id")
    assert field.metadata[b"lance-schema:unenforced-primary-key"] == b"true"
    identifiers = dataset.to_table()["object_id"].to_pylist()
    assert len(identifiers) == len(set(identifiers)), "a primary key"


def test_publish_is_what_another_handle_reads(manifest: Manifest, root: Location) -> None:
    published = advance(manifest)
    read = Manifest(root).view()
    assert read.state == published.state
    assert read.log.version == published.log.version == 2
    assert read.log.metadata == published.log.metadata


def test_chain_of_commits(manifest: Manifest) -> None:
    made = ["GENESIS", *(advance(manifest).state.head_commit_id for _ in range(70))]
    commits = chain(manifest)
    assert [commit.id for commit in commits] == made
    assert [commit.manifest_version for commit in commits] == list(range(1, 72))


def test_object_ids_stay_unique_after_sealing(manifest: Manifest) -> None:
    for _ in range(70):
        advance(manifest)
    dataset = lance.dataset(manifest.location.uri)
    identifiers = dataset.to_table(columns=["object_id"])["object_id"].to_pylist()
    assert len(identifiers) == len(set(identifiers))
    assert len(manifest.view().log.log_sizes()) > 0


@pytest.mark.slow
def test_time_travel_to_every_commit_at_depth_1000(root: Location) -> None:
    manifest = make_manifest(root)
    published: dict[str, ManifestState] = {}
    state = manifest.view().state
    published[state.head_commit_id] = state
    for number in range(1, 1000):
        identity = KNOWS if number % 7 == 0 else PERSON
        changes = [AdvanceTable(identity, state.current_version(identity), pin(number))]
        if number % 250 == 0:
            new = TableIdentity(number, 1)
            table = Registration(new, f"node:T{number}", f"nodes/{number}")
            state = manifest.publish("main", request(RegisterTable(table, pin(0)))).state
        else:
            state = manifest.publish("main", request(*changes)).state
        published[state.head_commit_id] = state
    cold = Manifest(root)
    commits = cold.commits()
    assert [commit.id for commit in commits[::-1]] == list(published)
    chain(cold)
    for commit in commits:
        assert cold.view_at(commit).state == published[commit.id]


def test_find_commit_on_any_branch(manifest: Manifest, root: Location) -> None:
    manifest.create_branch("dev", "main")
    on_dev = advance(manifest, "dev").state.head_commit_id
    on_main = advance(manifest).state.head_commit_id
    cold = Manifest(root)
    assert cold.find_commit(on_dev).branch == "dev"
    assert cold.find_commit(on_main).branch is None
    assert cold.find_commit("GENESIS").manifest_version == 1
    assert cold.view_at(cold.find_commit(on_dev)).state.branch == "dev"
    with pytest.raises(NotFound, match="no commit NOWHERE"):
        cold.find_commit("NOWHERE")


def test_find_commit_that_is_sealed(manifest: Manifest) -> None:
    first = advance(manifest).state.head_commit_id
    for _ in range(40):
        advance(manifest)
    assert first not in {commit.id for commit in manifest.view().state.commits}
    assert manifest.find_commit(first).manifest_version == 2


def test_expected_version_is_checked_on_what_is_there(manifest: Manifest, root: Location) -> None:
    stale = Manifest(root)
    stale.view()
    advance(manifest)
    with pytest.raises(VersionMismatch) as caught:
        advance(stale)
    assert (caught.value.expected, caught.value.actual) == (1, 2)
    assert manifest.view().state.version == 2


def test_refusal_is_never_made_from_memory(manifest: Manifest, root: Location) -> None:
    """A request that was made from a newer state than the handle has seen is right."""
    stale = Manifest(root)
    stale.view()
    head = advance(manifest).state.head_commit_id
    asked = request(AdvanceTable(PERSON, 2, pin(3)), head=ExactHead(head))
    assert stale.publish("main", asked).state.version == 3


def test_stale_handle_publishes_to_another_table(manifest: Manifest, root: Location) -> None:
    stale = Manifest(root)
    stale.view()
    first = advance(manifest).state.head_commit_id
    state = stale.publish("main", request(AdvanceTable(KNOWS, 1, pin(2)))).state
    assert state.commits[-1].parent_id == first
    assert (state.current_version(PERSON), state.current_version(KNOWS)) == (2, 2)


def test_exact_head_is_never_reparented(manifest: Manifest, root: Location) -> None:
    stale = Manifest(root)
    stale.view()
    head = advance(manifest).state.head_commit_id
    asked = request(AdvanceTable(KNOWS, 1, pin(2)), head=ExactHead("GENESIS"))
    with pytest.raises(ReadSetChanged) as caught:
        stale.publish("main", asked)
    assert caught.value.details["actual"] == head
    assert manifest.view().state.version == 2


def test_same_request_again_is_the_same_commit(manifest: Manifest, root: Location) -> None:
    asked = request(AdvanceTable(PERSON, 1, pin(2)))
    manifest.publish("main", asked)
    for _ in range(70):
        advance(manifest)
    for handle in (manifest, Manifest(root)):
        assert handle.publish("main", asked).state.version == 72
    assert len(chain(manifest)) == 72


def test_view_is_fresh(manifest: Manifest, root: Location) -> None:
    reader = Manifest(root)
    before = reader.view()
    assert reader.view() is before
    advance(manifest)
    assert reader.view().state.version == 2
    assert before.state.version == 1


# -- branches --------------------------------------------------------------------


def test_branch_starts_as_its_source_and_goes_its_own_way(
    manifest: Manifest, root: Location
) -> None:
    fork = advance(manifest).state
    manifest.create_branch("dev", "main")
    inherited = manifest.view("dev").state
    assert inherited.head_commit_id == fork.head_commit_id
    assert "dev" not in inherited.heads
    assert manifest.commits("dev") == manifest.commits()
    on_dev = advance(manifest, "dev").state
    on_main = [advance(manifest).state for _ in range(3)][-1]
    assert on_dev.commits[-1].parent_id == fork.head_commit_id
    cold = Manifest(root)
    assert cold.view("dev").state == on_dev
    assert cold.view().state == on_main
    assert [commit.branch for commit in cold.commits("dev")] == ["dev", None, None]
    assert [commit.branch for commit in cold.commits()] == [None] * 5
    assert snapshot_of(on_dev).table("node", "Person").branch == "dev"


def test_publishes_to_branches_do_not_disturb_each_other(manifest: Manifest) -> None:
    names = ["main", "a", "b/c", "b/d"]
    for name in names[1:]:
        manifest.create_branch(name, "main")
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
    manifest.create_branch("a", "main")
    on_a = advance(manifest, "a").state
    manifest.create_branch("b", "a")
    advance(manifest, "a")
    on_b = advance(manifest, "b").state
    assert on_b.commits[-1].parent_id == on_a.head_commit_id
    assert manifest.branches()["b"].parent == "a"
    cold = Manifest(root)
    assert [commit.branch for commit in cold.commits("b")] == ["b", "a", None]
    assert cold.view_at(cold.commits("b")[1]).state == on_a


def test_one_branch_is_read_as_it_is_listed(manifest: Manifest) -> None:
    """Pins the place and form of Lance's branch files, which `find_branch` reads."""
    manifest.create_branch("a.b-c/d", "main")
    manifest.create_branch("e", "a.b-c/d")
    listed = manifest.branches()
    assert set(listed) == {"a.b-c/d", "e"}
    for name, reference in listed.items():
        assert HeadLog.find_branch(manifest._objects, name) == reference
    assert HeadLog.find_branch(manifest._objects, "none") is None


def test_missing_branch(manifest: Manifest) -> None:
    for act in (manifest.view, manifest.commits):
        with pytest.raises(BranchNotFound):
            act("dev")
    with pytest.raises(BranchNotFound):
        manifest.publish("dev", request())
    with pytest.raises(BranchNotFound):
        manifest.create_branch("new", "dev")


@pytest.mark.parametrize("publishes", [0, 1, 2])
def test_recreated_branch_is_not_written_through_an_old_handle(
    manifest: Manifest, root: Location, publishes: int
) -> None:
    manifest.create_branch("dev", "main")
    old = Manifest(root)
    gone = advance(old, "dev").state.commits[-1]
    manifest.delete_branch("dev")
    manifest.create_branch("dev", "main")
    for _ in range(publishes):
        advance(manifest, "dev")
    before = manifest.view("dev").state
    # Where one publish was made the versions agree, and only the branch is another one.
    expected = old._views["dev"].state.current_version(PERSON)
    for asked in (request(AdvanceTable(PERSON, expected, pin(9))), request()):
        with pytest.raises(ReadSetChanged) as caught:
            old.publish("dev", asked)
        assert caught.value.details["member"] == "branch_identifier:dev"
    assert manifest.view("dev").state == before
    with pytest.raises(NotFound):
        old.view_at(gone)
    with pytest.raises(NotFound):
        old.find_commit(gone.id)
    assert old.view("dev").state == before
    assert advance(old, "dev").state.version == before.version + 1


def test_exact_head_names_the_branch_itself(manifest: Manifest) -> None:
    manifest.create_branch("dev", "main")
    identifier = manifest.view("dev").identifier
    manifest.publish("dev", request(head=ExactHead("GENESIS", identifier)))
    manifest.delete_branch("dev")
    manifest.create_branch("dev", "main")
    with pytest.raises(ReadSetChanged, match="created anew"):
        manifest.publish("dev", request(head=ExactHead("GENESIS", identifier)))


def test_deleted_branch_is_gone_for_every_handle(manifest: Manifest, root: Location) -> None:
    manifest.create_branch("dev", "main")
    other = Manifest(root)
    advance(other, "dev")
    manifest.delete_branch("dev")
    with pytest.raises(BranchNotFound):
        other.view("dev")
    with pytest.raises(BranchNotFound):
        other.publish("dev", request())


# -- format stamps ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("stamp", "advice"),
    [
        ("5", "export"),
        ("3", "0.6.2 to 0.7.2"),
        ("7", "upgrade the program"),
        (None, "no format stamp"),
        ("six", "no format stamp"),
        ("²", "no format stamp"),
    ],
)
def test_wrong_stamp_is_refused(root: Location, stamp: str | None, advice: str) -> None:
    manifest = make_manifest(root, stamp)
    with pytest.raises(UnsupportedFormat, match=advice):
        manifest.view()
    with pytest.raises(UnsupportedFormat, match=advice):
        manifest.publish("main", request())
    assert lance.dataset(manifest.location.uri).version == 1


def test_stamp_that_changes_under_an_open_handle(manifest: Manifest) -> None:
    manifest.view()
    dataset = lance.dataset(manifest.location.uri)
    dataset.update_schema_metadata({"omnigraph:internal_schema_version": "7"})
    with pytest.raises(UnsupportedFormat):
        manifest.publish("main", request())
    with pytest.raises(UnsupportedFormat):
        manifest.view()


def test_missing_manifest(root: Location) -> None:
    with pytest.raises(StorageError) as caught:
        Manifest(root).view()
    assert caught.value.kind == "not_found"


def test_a_manifest_that_was_emptied(manifest: Manifest) -> None:
    lance.dataset(manifest.location.uri).delete("true")
    with pytest.raises(StorageError, match="emptied") as caught:
        manifest.view()
    assert caught.value.kind == "permanent"
