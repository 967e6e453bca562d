"""The status of graphs: small ones, damaged ones, and those with many branches and types."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BranchNotFound
from omnigraph.maintain import status as module
from omnigraph.maintain import wanted
from omnigraph.maintain.status import graph_status
from omnigraph.maintain.wanted import STALE_AFTER
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.storage.objects import meter
from omnigraph.storage.objects.clock import microseconds_now
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.write.recovery.intents import LIFETIME, Intent, LiveIntent
from omnigraph.write.recovery.sweep import MARGIN
from tests.film_graph import files
from tests.maintain.cleaning import SCHEMA, clean, forget_all, insert
from tests.maintain.indexing import book, library, load
from tests.write.writing import mutate


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "film.omni"


def test_a_graph_in_order(root: Path) -> None:
    graph = og.init(root, SCHEMA, actor="owner")
    insert(graph, "ann")
    last = insert(graph, "bob")
    graph.branches.create("dev")
    before = files(root)
    found = og.open(root, read_only=True).status()
    assert files(root) == before
    assert (found.level, found.findings) == ("ok", ())
    assert (found.branch, found.head.id, found.head.actor) == ("main", last, "owner")
    assert (found.commits_kept, found.oldest_commit) == (3, graph.commits.list()[-1])
    assert (found.branches, found.stale_branches, found.unreadable_branches) == (2, (), {})
    assert (found.writes_at_work, found.writes_dead) == (0, 0)
    assert found.schema_hash == graph.snapshot().schema.ir_hash
    people = {one.type_key: one for one in found.types}["node:Person"]
    assert (people.rows, people.fragments, people.deleted_rows) == (2, 2, 0)
    assert 0 < people.live_bytes < people.stored_bytes < found.stored_bytes
    assert found.live_bytes == sum(one.live_bytes for one in found.types)
    assert (found.reclaimable_bytes, found.is_estimate, found.rows) == (0, False, 2)
    with pytest.raises(BranchNotFound):
        graph.status("nowhere")


@pytest.mark.slow
def test_what_is_due_and_what_can_be_reclaimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wanted, "FEW_FRAGMENTS", 1)
    graph = library(tmp_path / "library.omni", 300)
    graph.ensure_indices()
    found = {one.type_key: one for one in graph.status().types}
    books = found["node:Book"]
    assert (books.indexes_complete, books.indexes_partial, books.indexes_pending) == (10, 0, 0)
    load(graph, *(book(number) for number in range(1_000, 1_300)))
    for number in range(2_000, 2_017):
        load(graph, book(number))
    mutate(graph, "delete Book where pages < 200")
    (due,) = [one for one in graph.status().findings if one.subject == "node:Book"]
    assert (due.level, due.advice) == ("due", "run omnigraph maintain")
    assert " small fragments" in due.message
    assert "lack rows: blurb" in due.message
    graph.branches.create("gone")
    load(graph, *(book(number) for number in range(3_000, 3_300)), branch="gone")
    graph.branches.delete("gone")
    status = graph.status()
    assert status.reclaimable_bytes == clean(graph, 10**9, dry_run=True).bytes_removed > 0
    assert not status.is_estimate
    clean(graph)
    assert graph.status().reclaimable_bytes == 0
    assert graph.status().commits_kept == 1


def test_a_long_history_is_estimated(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = og.init(root, SCHEMA)
    for number in range(4):
        insert(graph, f"p{number}")
    exact = graph.status()
    monkeypatch.setattr(module, "TRACED", 4)
    estimate = graph.status()
    assert (exact.is_estimate, estimate.is_estimate) == (False, True)
    assert estimate.reclaimable_bytes >= exact.reclaimable_bytes
    assert (exact.commits_kept, exact.live_bytes) == (estimate.commits_kept, estimate.live_bytes)


def test_branches_that_nobody_needs(root: Path) -> None:
    graph = og.init(root, SCHEMA)
    for name in ("a", "b", "c"):
        graph.branches.create(name)
    insert(graph, "ann", "b")
    written = graph.commits.list("b")[0].created_at
    later = written + STALE_AFTER // timedelta(microseconds=1)
    found = graph_status(graph.location, graph.manifest, "b", now=later)
    assert found.stale_branches == ("a", "c")
    assert (found.level, found.rows) == ("look", 1)
    assert "2 without a commit for 30 days: a, c" in found.findings[0].message


def test_what_is_damaged_is_told_beside_the_rest(root: Path) -> None:
    graph = og.init(root, SCHEMA)
    insert(graph, "ann")
    mutate(graph, 'insert Film { title: "M" }')
    graph.branches.create("dev")
    insert(graph, "bob", "dev")
    tables = graph.snapshot().tables
    shutil.rmtree(root / tables["node:Film"].table.path / "data")
    shutil.rmtree(root / tables["edge:Knows"].table.path / "_versions")
    (dev,) = (ref.id for ref in graph.manifest.refs.read().names.values())
    for version in (root / "__manifest" / dev / "_versions").iterdir():
        version.write_bytes(b"nothing")
    forget_all()
    status = og.open(root, read_only=True).status()
    found = {one.type_key: one for one in status.types}
    assert found["node:Person"].error is None
    assert "1 of its files are not there: data/" in (found["node:Film"].error or "")
    assert found["edge:Knows"].error
    assert status.level == "damaged"
    assert {one.subject for one in status.findings if one.level == "damaged"} == {
        *("node:Film", "edge:Knows", "branch dev"),
    }
    assert status.is_estimate


def test_writes_at_work_and_dead_ones(root: Path) -> None:
    graph = og.init(root, SCHEMA)
    objects = ControlObjects(graph.location)
    intent = Intent.mint("Load", "main", PendingCommit.mint(None))
    LiveIntent.open(objects, intent)
    assert (graph.status().writes_at_work, graph.status().level) == (1, "ok")
    late = microseconds_now() + (LIFETIME + MARGIN) // timedelta(microseconds=1) + 1
    found = graph_status(graph.location, graph.manifest, "main", now=late)
    assert (found.writes_at_work, found.writes_dead, found.level) == (0, 1, "due")
    objects.create("__recovery/notes.json", b"mine")
    assert graph.status().findings[0].level == "look"


@pytest.mark.slow
def test_the_cost_follows_branches_and_types_and_not_their_product(tmp_path: Path) -> None:
    def requests(types: int, branches: int) -> int:
        root = tmp_path / f"{types}-{branches}.omni"
        schema = "\n".join(f"node T{number} {{ name: String @key }}" for number in range(types))
        graph = og.init(root, schema)
        for number in range(branches):
            graph.branches.create(f"b{number}")
        reader = og.open(root, read_only=True)
        with meter.measure() as counted:
            assert reader.status().level == "ok"
        return counted.total

    few, more_types, more_branches = requests(3, 3), requests(12, 3), requests(3, 12)
    both = requests(12, 12)
    # Every branch once more for each type would be a hundred.
    assert both - few <= (more_types - few) + (more_branches - few) + 20


@pytest.mark.slow
def test_a_graph_on_s3(s3_bucket: str) -> None:
    graph = og.init(s3_bucket, SCHEMA)
    insert(graph, "ann")
    graph.branches.create("dev")
    found = og.open(str(graph.location), read_only=True).status("dev")
    assert (found.level, found.rows, found.branches) == ("ok", 1, 2)
    assert found.live_bytes > 0
