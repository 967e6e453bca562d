"""Cleanup costs what it removes and one listing: counted, not timed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.maintain import roots
from omnigraph.maintain.reports import CleanupProgress
from omnigraph.manifest.entries import Commit
from omnigraph.storage.logs import head_log
from omnigraph.storage.logs.newest_version import LocalVersions
from tests.maintain.cleaning import NO_GRACE
from tests.maintain.reachable import reachable, stored

INSERT = "query q($n: String) { insert Note { text: $n } }"
BRANCHES = 6


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    """Branches that share everything but one commit of the first."""
    made = og.init(tmp_path / "g.omni", "node Note { text: String @key }")
    for number in range(70):
        made.mutate(INSERT, params={"n": f"n{number}"})
    for number in range(BRANCHES):
        made.branches.create(f"b{number}")
    made.mutate(INSERT, params={"n": "own"}, branch="b0")
    return made


@pytest.mark.slow
def test_what_branches_share_is_read_once(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    sealed: list[int] = []
    traced: list[str] = []
    read, find = head_log.HeadLog.log_rows, roots.Roots._find

    def log_rows(self: head_log.HeadLog, positions: list[int], where: Any = None) -> object:
        sealed.extend(positions)
        return read(self, positions, where)

    def found(self: roots.Roots, commit: Commit) -> object:
        traced.append(commit.id)
        return find(self, commit)

    monkeypatch.setattr(head_log.HeadLog, "log_rows", log_rows)
    monkeypatch.setattr(roots.Roots, "_find", found)
    graph.cleanup(keep=2, grace=NO_GRACE)
    fragments = len(graph.manifest.view().log.log_sizes())
    assert fragments
    assert len(sealed) <= fragments
    assert len(traced) == len(set(traced)) <= 4
    assert stored(Path(graph.location.path)) == reachable(Path(graph.location.path), 2)


@pytest.mark.slow
def test_progress_is_told(graph: og.Graph) -> None:
    told: list[CleanupProgress] = []
    report = graph.cleanup(keep=1, grace=NO_GRACE, progress=told.append)
    last = {one.step: one for one in told}
    assert last["epochs"].total == last["branches"].total == BRANCHES + 1
    assert last["files"].done == last["files"].total == report.files_removed


@pytest.mark.slow
def test_a_handle_learns_of_what_came_after_a_collection(graph: og.Graph) -> None:
    """It knows a version; that and the next ones are collected, so no next one is there."""
    location = str(graph.location)
    stale = og.open(location)
    known = stale.manifest.view().log
    for number in range(3):
        graph.mutate(INSERT, params={"n": f"late{number}"})
    graph.cleanup(keep=1, grace=NO_GRACE)
    versions = LocalVersions(known.location.path)
    assert not versions.has(known.version + 1)
    assert not known.is_newest()
    newest = graph.manifest.view()
    assert stale.manifest.view().state.head_commit_id == newest.state.head_commit_id
    assert versions.find() == (newest.log.version, versions.mark())
    stale.mutate(INSERT, params={"n": "after"})
    assert og.open(location).manifest.view().log.version == newest.log.version + 1
