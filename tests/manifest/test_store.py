"""The manifest of a graph: publishing, lineage, time travel, freshness, stamps."""

from __future__ import annotations

import lance
import pytest

from omnigraph.errors import (
    NotFound,
    ReadSetChanged,
    StorageError,
    UnsupportedFormat,
    VersionMismatch,
)
from omnigraph.manifest.entries import Commit, Registration, StoredVersion, TableIdentity
from omnigraph.manifest.publish_request import AdvanceTable, ExactHead, RegisterTable
from omnigraph.manifest.rows import FORMAT_KEY, to_table
from omnigraph.manifest.state import ManifestState
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.location import Location
from omnigraph.version import INTERNAL_SCHEMA
from tests.manifest.graphs import KNOWS, PERSON, advance, fork, genesis, make_manifest, pin, request


def dataset_of(manifest: Manifest, branch_id: str = "main") -> str:
    return manifest.location.join(branch_id).uri


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
    assert (view.branch_id, view.stored) == ("main", StoredVersion("main", 1))
    assert view.state.head.origin is None


def test_manifest_is_made_once(manifest: Manifest, root: Location) -> None:
    advance(manifest)
    with pytest.raises(StorageError) as caught:
        make_manifest(root)
    assert caught.value.kind == "precondition"
    assert Manifest(root).view().state.version == 2


def test_storage_properties(manifest: Manifest) -> None:
    advance(manifest)
    dataset = lance.dataset(dataset_of(manifest))
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
    dataset = lance.dataset(dataset_of(manifest))
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
    fork(manifest, "dev")
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
    asked = request(AdvanceTable(PERSON, 2, pin(3)), head=ExactHead(head, "main", 0))
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
    asked = request(AdvanceTable(KNOWS, 1, pin(2)), head=ExactHead("GENESIS", "main", 0))
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


# -- format stamps ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("stamp", "advice"),
    [
        ("6", "export it with that release and import it into a new graph"),
        ("3", "0.6.2 to 0.7.2"),
        ("7", "while heads carried their generation"),
        (str(INTERNAL_SCHEMA + 1), "upgrade the program"),
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
    assert lance.dataset(dataset_of(manifest)).version == 1


def test_stamp_that_changes_under_an_open_handle(manifest: Manifest) -> None:
    manifest.view()
    dataset = lance.dataset(dataset_of(manifest))
    newer = str(INTERNAL_SCHEMA + 1)
    dataset.update_schema_metadata({"omnigraph:internal_schema_version": newer})
    with pytest.raises(UnsupportedFormat):
        manifest.publish("main", request())
    with pytest.raises(UnsupportedFormat):
        manifest.view()


def test_graph_with_one_manifest_for_all_branches_is_refused(root: Location) -> None:
    """The format before this one: the manifest itself is a dataset, and branches are Lance's."""
    head = to_table(genesis()).replace_schema_metadata({FORMAT_KEY: b"6"})
    dataset = lance.write_dataset(head, root.join("__manifest").uri)
    dataset.create_branch("dev")
    manifest = Manifest(root)
    for act in (manifest.view, manifest.commits, lambda: manifest.publish("main", request())):
        with pytest.raises(UnsupportedFormat, match="export it") as caught:
            act()
        assert caught.value.details == {"found": "6", "supported": INTERNAL_SCHEMA}
    with pytest.raises(UnsupportedFormat):
        fork(manifest, "new")
    assert lance.dataset(root.join("__manifest").uri).version == 1


def test_missing_manifest(root: Location) -> None:
    with pytest.raises(StorageError) as caught:
        Manifest(root).view()
    assert caught.value.kind == "not_found"


def test_a_manifest_that_was_emptied(manifest: Manifest) -> None:
    lance.dataset(dataset_of(manifest)).delete("true")
    with pytest.raises(StorageError, match="emptied") as caught:
        manifest.view()
    assert caught.value.kind == "permanent"
