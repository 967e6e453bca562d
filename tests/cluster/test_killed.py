"""An apply that dies at any boundary: the next one goes on, or says exactly what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.cluster.applying import apply
from omnigraph.cluster.failpoints import FAILPOINTS
from omnigraph.cluster.observing import refresh
from omnigraph.cluster.planning import plan
from omnigraph.storage.objects.faults import watched
from tests import profile
from tests.cluster.deployments import (
    ONE,
    TWO,
    WIDER,
    Deployment,
    assert_deployed,
    before_everything,
    codes,
    killed_at,
)

# What an apply that does one of everything passes, and how often.
PASSED = [
    ("cluster_locked", 1),
    ("cluster_swept", 1),
    ("cluster_announced", 1),
    ("cluster_announced", 2),
    ("cluster_announced", 3),
    ("cluster_graph_created", 1),
    ("cluster_schema_applied", 1),
    ("cluster_blob_written", 1),
    ("cluster_graph_hidden", 1),
    ("cluster_graph_deleted", 1),
    ("cluster_state_ready", 1),
    ("cluster_state_written", 1),
    ("cluster_approval_consumed", 1),
    ("cluster_recovery_settled", 1),
    ("cluster_unlocking", 1),
]


def test_every_failpoint_is_killed_at(tmp_path: Path) -> None:
    assert {point for point, _ in PASSED} == set(FAILPOINTS)
    team = before_everything(tmp_path)
    seen: list[str] = []
    with watched(lambda point, _: seen.append(point)):
        assert team.apply().converged
    assert all(seen.count(point) >= times for point, times in PASSED)
    assert_deployed(team)


@pytest.mark.slow
@pytest.mark.parametrize(("point", "passing"), PASSED)
def test_an_apply_that_died_is_taken_up_by_the_next(
    point: str, passing: int, tmp_path: Path
) -> None:
    team = before_everything(tmp_path)
    with killed_at(point, passing):
        team.apply()
    assert codes(apply(team.directory)) == ["state_lock_held"]
    team.unlock()
    assert plan(team.directory).ok
    found = team.apply()
    assert found.converged, found.diagnostics
    assert_deployed(team)


@pytest.mark.slow
@pytest.mark.parametrize("point", ["before_put", "after_put"])
@pytest.mark.parametrize("passing", range(1, 19, 1 if profile.CHOSEN.every_passing else 3))
def test_an_apply_that_died_between_two_objects_is_taken_up(
    point: str, passing: int, tmp_path: Path
) -> None:
    team = before_everything(tmp_path)
    with killed_at(point, passing):
        team.apply()
    team.unlock()
    found = team.apply()
    assert found.converged, found.diagnostics
    assert_deployed(team)


def test_an_apply_that_dies_twice_is_taken_up_by_the_third(tmp_path: Path) -> None:
    team = before_everything(tmp_path)
    for point in ("cluster_graph_created", "cluster_graph_hidden"):
        with killed_at(point):
            team.apply()
        team.unlock()
    assert team.apply().converged
    assert_deployed(team)


def test_a_half_made_graph_is_made_and_nothing_else_is_overwritten(tmp_path: Path) -> None:
    team = Deployment.make(tmp_path / "team").deployed()
    team.declare(TWO)
    with killed_at("after_put", 6):
        team.apply()
    team.unlock()
    place = Path(team.root.graph("crew").path)
    assert place.exists()
    (place / "nodes").mkdir(exist_ok=True)
    (place / "nodes" / "mine.txt").write_text("somebody's")
    found = team.apply()
    assert codes(found)[0] == "graph_create_incomplete"
    assert (place / "nodes" / "mine.txt").read_text() == "somebody's"
    (place / "nodes" / "mine.txt").unlink()
    assert team.apply().converged


def test_a_deletion_that_is_no_longer_wanted_stops_where_it_is(tmp_path: Path) -> None:
    team = before_everything(tmp_path)
    with killed_at("cluster_graph_hidden"):
        team.apply()
    team.unlock()
    left = len(list(Path(team.root.graph("crew").path).rglob("*")))
    team.declare(TWO)
    found = team.apply()
    assert "graph_delete_incomplete" in codes(found)
    assert found.statuses["graph.crew"].status == "blocked"
    assert len(list(Path(team.root.graph("crew").path).rglob("*"))) == left
    # As it was told: without it in the file, with an approval; then it can be declared again.
    team.declare(ONE)
    assert not team.apply().converged
    team.approve("graph.crew")
    team.apply()
    assert not Path(team.root.graph("crew").path).exists()
    team.declare(TWO)
    team.apply()
    assert "Person" in team.graph("crew").catalog.nodes


def test_a_deletion_that_had_not_begun_leaves_the_graph_whole(tmp_path: Path) -> None:
    team = before_everything(tmp_path)
    with killed_at("cluster_announced", 3):
        team.apply()
    team.unlock()
    team.declare(TWO)
    found = team.apply()
    # Another graph had been made, and is to go now: that needs an approval of its own.
    assert [one.resource for one in found.changes if one.disposition == "deferred"] == [
        "graph.staff",
        "schema.staff",
    ]
    assert "graph_delete_incomplete" not in codes(found)
    assert "Person" in team.graph("crew").catalog.nodes


def test_a_schema_that_is_another_by_now_is_nobodys_to_decide(tmp_path: Path) -> None:
    team = Deployment.make(tmp_path / "team").deployed()
    team.write("ferries.pg", WIDER)
    with killed_at("cluster_announced"):
        team.apply()
    team.unlock()
    team.graph().apply_schema(WIDER.replace("name", "title"))
    found = team.apply()
    assert codes(found)[0] == "cluster_recovery_unattributed"
    assert "cluster refresh" in found.diagnostics[1].message
    assert "title" in team.graph().catalog.nodes["Port"].properties
    assert refresh(team.directory).ok
    assert team.apply().converged
    assert "name" in team.graph().catalog.nodes["Port"].properties


def test_a_sidecar_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    team = Deployment.make(tmp_path / "team").deployed()
    team.root.objects.replace("__cluster/recoveries/broken.json", b"{")
    found = team.apply()
    assert codes(found) == ["recovery_sidecar_read_error"]
    assert found.converged
