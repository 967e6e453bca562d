"""Cleanup: what stays, what goes, and what is said about it."""

from __future__ import annotations

import base64
import json
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.maintain.cleanup import cleanup
from omnigraph.manifest.publish_request import DropTable, PendingCommit, PublishRequest
from omnigraph.storage.objects.clock import microseconds_now
from omnigraph.storage.objects.control_objects import ControlObjects
from tests import faults
from tests.maintain.cleaning import (
    HOUR,
    NO_GRACE,
    SCHEMA,
    change,
    clean,
    clean_later,
    insert,
    people,
    reopened,
    shown,
)
from tests.maintain.reachable import hollow, manifest_of, names, reachable, stored
from tests.write.writing import compact_all, index_all, mutate, table_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "film.omni"


@pytest.fixture
def graph(root: Path) -> og.Graph:
    return og.init(root, SCHEMA)


@pytest.fixture(params=["local", "s3"])
def any_graph(request: pytest.FixtureRequest, root: Path) -> og.Graph:
    if request.param == "s3":
        return og.init(f"{request.getfixturevalue('s3_bucket')}/film.omni", SCHEMA)
    return og.init(root, SCHEMA)


# -- the rule ----------------------------------------------------------------------


@pytest.mark.slow
def test_the_newest_commits_stay_and_the_others_go(any_graph: og.Graph) -> None:
    graph = any_graph
    commits = [insert(graph, f"p{number}") for number in range(6)]
    before = {commit: shown(graph, commit) for commit in commits}
    report = clean(graph, 2)
    assert report.commits_reclaimed == 5  # the first one made the graph
    assert [commit.id for commit in graph.commits.list()][:6] == commits[::-1]
    for handle in (graph, reopened(graph)):
        for commit in commits[-2:]:
            assert shown(handle, commit) == before[commit]
        for commit in commits[:-2]:
            with pytest.raises(errors.ChangeFeedGap, match="cleanup has reclaimed"):
                handle.snapshot(commit=commit)
    insert(graph, "next")
    assert len(people(reopened(graph))) == 7
    assert clean(graph, 2).commits_reclaimed == 1


def test_what_a_report_says(graph: og.Graph, root: Path) -> None:
    for number in range(4):
        insert(graph, f"p{number}")
    before = {name: (root / name).stat().st_size for name in stored(root)}
    planned = clean(graph, dry_run=True)
    assert planned.dry_run
    assert {name: (root / name).stat().st_size for name in stored(root)} == before
    report = clean(graph)
    assert not report.dry_run
    assert report.tables == planned.tables
    assert report.commits_reclaimed == planned.commits_reclaimed == 4
    gone = before.keys() - stored(root)
    assert report.files_removed == len(gone)
    assert report.bytes_removed == sum(before[name] for name in gone)
    assert [table.type_key for table in report.tables] == [
        *("edge:Knows", "node:Film", "node:Person", "__manifest")
    ]
    persons, manifest = report.tables[2:]
    assert persons.path == graph.snapshot().tables["node:Person"].table.path
    # Data files are all needed: each holds a person.
    assert (persons.old_versions_removed, persons.files_removed) == (3, 6)
    assert (manifest.old_versions_removed, manifest.files_removed) == (4, 12)
    assert report.old_versions_removed == 7
    assert clean(graph).files_removed == 0


@pytest.mark.parametrize(
    ("keep", "older_than", "told"),
    [
        (None, None, "give the number of commits to keep"),
        (-1, None, "-1 commits"),
        (1, timedelta(seconds=-1), "from the future"),
    ],
)
def test_a_rule_that_says_nothing_is_refused(
    graph: og.Graph, keep: int | None, older_than: timedelta | None, told: str
) -> None:
    with pytest.raises(errors.BadRequest, match=told):
        graph.cleanup(keep, older_than)


def test_a_negative_grace_is_refused(graph: og.Graph) -> None:
    with pytest.raises(errors.BadRequest, match="grace"):
        graph.cleanup(1, grace=-HOUR)


def test_keeping_none_keeps_the_head(graph: og.Graph) -> None:
    insert(graph, "ann")
    head = insert(graph, "bob")
    assert clean(graph, 0).commits_reclaimed == 2
    assert graph.snapshot(commit=head).commit_id == head
    assert people(reopened(graph)) == ["ann", "bob"]


def test_both_rules_have_to_agree(graph: og.Graph) -> None:
    commits = [insert(graph, f"p{number}") for number in range(3)]
    assert graph.cleanup(1, HOUR, grace=NO_GRACE).commits_reclaimed == 0
    assert graph.cleanup(9, NO_GRACE, grace=NO_GRACE).commits_reclaimed == 0
    assert graph.cleanup(None, HOUR, grace=NO_GRACE).commits_reclaimed == 0
    assert graph.cleanup(2, NO_GRACE, grace=NO_GRACE).commits_reclaimed == 2
    assert graph.cleanup(None, NO_GRACE, grace=NO_GRACE).commits_reclaimed == 1
    assert graph.snapshot(commit=commits[-1]).tables


def test_a_read_only_graph_shows_what_would_go(graph: og.Graph, root: Path) -> None:
    insert(graph, "ann")
    before = stored(root)
    looker = og.open(root, read_only=True)
    with pytest.raises(errors.BadRequest, match="read-only"):
        looker.cleanup(1)
    assert looker.cleanup(1, grace=NO_GRACE, dry_run=True).commits_reclaimed == 1
    assert stored(root) == before


# -- the grace age -----------------------------------------------------------------


def test_what_was_the_newest_state_lately_stays(graph: og.Graph, root: Path) -> None:
    commits = [insert(graph, f"p{number}") for number in range(3)]
    before = stored(root)
    report = graph.cleanup(1)
    assert (report.files_removed, report.commits_reclaimed) == (0, 0)
    assert stored(root) == before
    assert clean_later(graph).commits_reclaimed == 3
    with pytest.raises(errors.ChangeFeedGap):
        graph.snapshot(commit=commits[0])


def test_what_was_shown_until_lately_stays_for_who_still_looks_at_it(graph: og.Graph) -> None:
    insert(graph, "old")
    mutate(graph, 'update Person set { age: 1 } where name = "old"')
    reader = graph.table("Person")
    mutate(graph, 'update Person set { age: 2 } where name = "old"')
    now = graph.commits.list()[0].created_at + 5
    grace = timedelta(microseconds=10)
    report = cleanup(graph.location, graph.manifest, keep=1, grace=grace, now=now)
    assert report.commits_reclaimed == 2
    assert reader.to_table()["age"].to_pylist() == [1]
    assert clean(graph).commits_reclaimed == 1


def test_the_files_of_dead_writers_go_whatever_the_grace_is(graph: og.Graph, root: Path) -> None:
    insert(graph, "ann")
    before = stored(root)
    with faults.armed("publish_ready"), pytest.raises(errors.StorageError):
        insert(graph, "dead")
    assert stored(root) > before
    assert graph.cleanup(1).files_removed == 3
    assert people(reopened(graph)) == ["ann"]


# -- the gap -----------------------------------------------------------------------


def test_time_travel_to_a_reclaimed_commit_says_so(graph: og.Graph) -> None:
    gone = insert(graph, "ann")
    head = insert(graph, "bob")
    clean(graph)
    query = "query q() { match { $p: Person } return { $p.name } }"
    for ask in (
        lambda: graph.snapshot(commit=gone),
        lambda: graph.query(query, snapshot=gone),
        lambda: graph.table("Person", snapshot=gone),
    ):
        with pytest.raises(errors.ChangeFeedGap) as caught:
            ask()
        assert caught.value.code == "change_feed_gap"
        assert caught.value.details == {
            "first_unreadable_commit_id": gone,
            "commit_id": gone,
            "oldest_readable_commit_id": head,
        }
        assert gone in str(caught.value)
        assert head in str(caught.value)
    assert graph.commits.get(gone).id == gone


def test_what_is_reclaimed_is_not_remembered(graph: og.Graph) -> None:
    insert(graph, "ann")
    old = table_of(graph, "node:Person")
    assert old.count() == old.dataset().count_rows() == 1
    insert(graph, "bob")
    new = table_of(graph, "node:Person")
    clean(graph)
    with pytest.raises(errors.StorageError):
        old.dataset()
    assert new.dataset().count_rows() == 2


def test_a_commit_of_a_deleted_branch_is_never_one_of_a_new_branch(graph: og.Graph) -> None:
    graph.branches.create("dev")
    lost = insert(graph, "ann", "dev")
    graph.branches.delete("dev")
    graph.branches.create("dev")
    insert(graph, "bob", "dev")
    with pytest.raises(errors.NotFound, match="no commit"):
        graph.snapshot(commit=lost)


def test_commits_of_a_merged_branch_outlive_it(graph: og.Graph) -> None:
    graph.branches.create("dev")
    merged = [insert(graph, name, "dev") for name in ("ann", "bob")]
    graph.branches.merge("dev", delete_source=True)
    assert graph.commits.get(merged[0]).branch == "dev"
    assert [len(shown(graph, commit)) for commit in merged] == [1, 2]
    assert merged[0] not in {commit.id for commit in graph.commits.list()}
    assert set(merged) < {commit.id for commit in graph.commits.list(merged=True)}
    clean(graph)
    # Known for ever, readable no longer.
    assert graph.commits.get(merged[1]).parent_id == merged[0]
    with pytest.raises(errors.ChangeFeedGap, match="oldest commit of branch main"):
        graph.snapshot(commit=merged[1])


# -- branches ----------------------------------------------------------------------


def test_branches_keep_what_they_inherited(graph: og.Graph, root: Path) -> None:
    commits = [insert(graph, f"p{number}") for number in range(4)]
    graph.branches.create("dev")
    before = {commit: shown(graph, commit) for commit in commits}
    for number in range(3):
        insert(graph, f"q{number}")
    clean(graph, 3)
    # The newest three of dev lie on versions of main.
    for commit in commits[1:]:
        assert shown(reopened(graph), commit) == before[commit]
    with pytest.raises(errors.ChangeFeedGap):
        graph.snapshot(commit=commits[0])
    assert people(reopened(graph), "dev") == ["p0", "p1", "p2", "p3"]
    insert(graph, "d", "dev")
    clean(graph)
    # Where it was forked from is also what a merge starts from.
    assert shown(reopened(graph), commits[3]) == before[commits[3]]
    assert stored(root) == reachable(root)
    graph.branches.delete("dev")
    clean(graph)
    with pytest.raises(errors.ChangeFeedGap):
        graph.snapshot(commit=commits[3])
    assert stored(root) == reachable(root)


def test_a_branch_of_a_branch(graph: og.Graph, root: Path) -> None:
    insert(graph, "ann")
    graph.branches.create("a/b")
    insert(graph, "bob", "a/b")
    graph.branches.create("c", "a/b")
    for number in range(3):
        insert(graph, f"x{number}", "a/b")
        insert(graph, f"y{number}", "c")
    clean(graph)
    assert stored(root) == reachable(root)
    found = reopened(graph)
    assert people(found, "c") == ["ann", "bob", "y0", "y1", "y2"]
    assert people(found, "a/b") == ["ann", "bob", "x0", "x1", "x2"]
    insert(graph, "z", "c")
    assert len(graph.commits.list("c")) == 7


def test_merging_stays_possible(graph: og.Graph) -> None:
    fork = insert(graph, "ann")
    graph.branches.create("dev")
    for number in range(3):
        insert(graph, f"d{number}", "dev")
        insert(graph, f"m{number}")
    clean(graph)
    graph.branches.merge("dev")
    insert(graph, "later", "dev")
    insert(graph, "meanwhile")
    clean(graph)
    graph.branches.merge("dev")
    names = {"ann", "later", "meanwhile", *(f"{side}{n}" for side in "dm" for n in range(3))}
    assert set(people(reopened(graph))) == names
    clean(graph)
    # No merge needs it any more.
    with pytest.raises(errors.ChangeFeedGap):
        reopened(graph).snapshot(commit=fork)


def test_a_branch_that_cannot_be_read_stops_it_all(graph: og.Graph, root: Path) -> None:
    insert(graph, "ann")
    graph.branches.create("dev")
    insert(graph, "bob", "dev")
    dev = manifest_of(root, names(root)["dev"])
    (newest,) = sorted((dev / "_versions").glob("*.manifest"))[:1]
    newest.write_bytes(b"broken")
    before = stored(root)
    with pytest.raises(errors.StorageError, match="nothing was removed, because branch dev"):
        clean(og.open(root))
    assert stored(root) == before


def test_leftovers_of_deleted_and_half_made_branches_go(graph: og.Graph, root: Path) -> None:
    insert(graph, "ann")
    graph.branches.create("gone")
    insert(graph, "bob", "gone")
    graph.branches.delete("gone")
    with faults.armed("branch_creating"), pytest.raises(errors.StorageError):
        graph.branches.create("half")
    assert len(list((root / "__manifest").iterdir())) == 3
    assert graph.branches.list() == ["main"]
    clean(graph)
    assert [path.name for path in (root / "__manifest").iterdir()] == ["main"]
    assert stored(root) == reachable(root)
    for name in ("gone", "half"):
        graph.branches.create(name)
        assert people(graph, name) == ["ann"]


def test_a_branch_that_is_collected_says_to_the_last_that_it_is_gone(
    graph: og.Graph, root: Path
) -> None:
    graph.branches.create("dev")
    insert(graph, "ann", "dev")
    warm = og.open(root)
    warm.snapshot("dev")
    graph.branches.delete("dev")
    told: list[str] = []

    def look() -> None:
        with pytest.raises(errors.BranchNotFound):
            warm.snapshot("dev")
        told.append("gone")

    with faults.observed("cleanup_deleting", look, times=None):
        clean(graph)
    assert len(told) >= 4
    with pytest.raises(errors.BranchNotFound):
        insert(warm, "bob", "dev")


def test_a_deletion_that_was_cut_short_is_finished(graph: og.Graph, root: Path) -> None:
    graph.branches.create("dev")
    insert(graph, "ann", "dev")
    with faults.armed("branch_ended"), pytest.raises(errors.StorageError):
        graph.branches.delete("dev")
    with pytest.raises(errors.BranchNotFound):
        reopened(graph).snapshot("dev")
    clean(graph)
    assert graph.branches.list() == ["main"]
    assert stored(root) == reachable(root)


# -- tables ------------------------------------------------------------------------


@pytest.mark.slow
def test_all_that_a_version_is_made_of(tmp_path: Path) -> None:
    root = tmp_path / "blobs.omni"
    graph = og.init(
        root, "node Doc {\n    name: String @key\n    text: String? @index\n    b: Blob?\n}"
    )

    def load(name: str, content: bytes) -> None:
        spelled = f"base64:{base64.b64encode(content).decode()}"
        data = {"name": name, "text": f"the {name}", "b": spelled}
        graph.load(json.dumps({"type": "Doc", "data": data}), mode="merge")

    for round_ in range(3):
        for name in ("a", "b", "c"):
            load(name, name.encode() * (100_000 + round_))
        mutate(graph, 'delete Doc where name = "c"')
    index_all(graph)
    compact_all(graph)
    index_all(graph)
    load("d", b"d" * 5_000_000)
    mutate(graph, 'delete Doc where name = "a"')
    kept = {commit.id: shown(graph, commit.id) for commit in graph.commits.list()[:4]}
    assert clean(graph, 4).files_removed > 20
    assert stored(root) == reachable(root, 4)
    places = {name.split("/")[2] for name in stored(root) if name.startswith("nodes/")}
    assert places == {"data", "_deletions", "_indices", "_transactions", "_versions"}
    assert any(name.endswith(".blob") for name in stored(root))
    assert hollow(root) == []
    for commit, before in kept.items():
        assert shown(reopened(graph), commit) == before
    reopened(graph).table("Doc").validate()  # type: ignore[no-untyped-call]
    clean(graph)
    assert stored(root) == reachable(root)
    assert hollow(root) == []
    assert graph.query('query q() { match { $d: Doc { name: "d" } } return { $d.text } }').rows


def test_dropped_tables_go_and_what_the_graph_has_not_made_stays(
    graph: og.Graph, root: Path
) -> None:
    mutate(graph, 'insert Film { title: "Up" }')
    film = graph.snapshot().tables["node:Film"]
    graph.branches.create("dev")
    change = DropTable(film.identity, film.version)
    graph.manifest.publish("main", PublishRequest(PendingCommit.mint(), (change,)))
    stray = root / "nodes" / "00000000000000aa-00000000000000bb" / "data" / "x.lance"
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"12345")
    nested = root / "nodes" / "inner.omni"
    og.init(nested, SCHEMA)
    (root / "nodes" / "app.js").write_text("?")
    before = {name for name in stored(root) if "inner.omni" in name}
    report = clean(graph)
    (told,) = report.notices
    assert f"left {len(before) + 2} file(s) that this graph has not made" in told
    assert {name for name in stored(root) if "inner.omni" in name} == before
    assert stray.exists()
    shutil.rmtree(nested)
    shutil.rmtree(stray.parent.parent)
    (root / "nodes" / "app.js").unlink()
    # On dev it lives on.
    assert reopened(graph).table("Film", branch="dev").count_rows() == 1
    graph.branches.delete("dev")
    report = clean(graph)
    assert [table.path for table in report.tables if table.type_key == "node:Film"] == [
        film.table.path
    ]
    assert not (root / film.table.path).exists()
    assert stored(root) == reachable(root)
    insert(graph, "ann")
    assert clean(graph).tables[-1].type_key == "__manifest"


def test_files_of_others_in_the_directory_of_a_table_stay(graph: og.Graph, root: Path) -> None:
    insert(graph, "ann")
    place = root / graph.snapshot().tables["node:Person"].table.path
    for name in ("README", "_refs/tags/mine.json"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("?")
    cut_short = place / "data" / "x.lance#1"
    cut_short.write_text("?")
    clean(graph)
    assert (place / "README").exists()
    assert (place / "_refs/tags/mine.json").exists()
    assert not cut_short.exists()


def test_damage_to_one_table_does_not_keep_the_others(graph: og.Graph, root: Path) -> None:
    for number in range(3):
        mutate(graph, f'insert Person {{ name: "p{number}" }} insert Film {{ title: "f{number}" }}')
    film = graph.snapshot().tables["node:Film"]
    (root / film.table.path / "_versions" / f"d{film.pin.version}.manifest").write_bytes(b"broken")
    before = {name for name in stored(root) if name.startswith(film.table.path)}
    found = og.open(str(graph.location)).cleanup(1, grace=NO_GRACE)
    assert list(found.errors) == [film.table.path]
    assert {name for name in stored(root) if name.startswith(film.table.path)} == before
    by_key = {table.type_key: table for table in found.tables}
    assert by_key["node:Film"].files_removed == 0
    assert by_key["node:Person"].old_versions_removed == 2
    assert people(reopened(graph)) == ["p0", "p1", "p2"]


# -- the rest ----------------------------------------------------------------------


def test_probes_and_staged_files_of_nobody_go(any_graph: og.Graph) -> None:
    objects = ControlObjects(any_graph.location)
    files = ["__probe/1", "__staging/01ARZ3NDEKTSV4RRFFQ69G5FAV/x.arrow"]
    for name in files:
        objects.replace(name, b"1")
    report = clean(any_graph)
    scratch = {table.type_key: table.files_removed for table in report.tables[-2:]}
    assert scratch == {"__staging": 1, "__probe": 1}
    assert not set(files) & set(objects.list())


def test_without_anything_to_remove_nothing_is_published(graph: og.Graph, root: Path) -> None:
    insert(graph, "ann")
    graph.branches.create("dev")
    insert(graph, "bob", "dev")
    clean(graph)
    before = stored(root)
    report = clean(graph)
    assert (report.files_removed, report.commits_reclaimed) == (0, 0)
    assert stored(root) == before


@pytest.mark.slow
def test_a_reclaimed_commit_whose_version_holds_history_says_so(graph: og.Graph) -> None:
    for number in range(70):
        insert(graph, f"p{number}")
    fork = graph.commits.list()[0].id
    graph.branches.create("dev")
    insert(graph, "next")
    change(graph, 'delete Person where name = "p3"')
    change(graph, 'delete Person where name = "p4"', "dev")
    graph.branches.merge("dev")
    clean(graph)
    clean(graph)
    assert len(reopened(graph).commits.list("dev")) == 72
    with pytest.raises(errors.ChangeFeedGap, match=fork):
        reopened(graph).table("Person", snapshot=fork).to_table()


def test_an_old_manifest_with_a_long_log(graph: og.Graph, root: Path) -> None:
    for number in range(70):
        commit = PendingCommit(f"{number:026d}", microseconds_now())
        graph.manifest.publish("main", PublishRequest(commit))
    assert graph.manifest.view().log.log_sizes()
    clean(graph, 3)
    assert stored(root) == reachable(root, 3)
    assert len(graph.commits.list()) == 71
    with pytest.raises(errors.ChangeFeedGap):
        reopened(graph).snapshot(commit=f"{0:026d}")
