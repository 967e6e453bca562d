"""A cluster whose storage root is a bucket."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from omnigraph.cluster.applying import apply
from omnigraph.cluster.approving import approve
from omnigraph.cluster.failpoints import FAILPOINTS, Failpoint
from omnigraph.cluster.observing import refresh, status
from omnigraph.cluster.planning import plan
from omnigraph.cluster.revision import read_applied
from omnigraph.errors import StorageError
from omnigraph.server.sources.cluster import ClusterGraphs
from omnigraph.storage.objects import swapped_object
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.faults import watched
from omnigraph.storage.objects.location import Location
from omnigraph.storage.objects.swapped_object import SwappedObject
from tests import profile
from tests.cluster.deployments import (
    ONE,
    OTHER,
    PORTS,
    TWO,
    WIDER,
    Deployment,
    assert_deployed,
    before_everything,
    codes,
    killed_at,
)


@pytest.fixture
def deployed(tmp_path: Path, s3_bucket: str) -> Deployment:
    return Deployment.make(tmp_path / "team", storage=s3_bucket).deployed()


def test_a_team_deploys_to_a_bucket(deployed: Deployment) -> None:
    assert not (deployed.directory / "__cluster").exists()
    deployed.graph().load([{"type": "Port", "data": {"code": "ARD"}}], mode="append")
    deployed.write("ferries.pg", WIDER)
    deployed.declare(TWO)
    assert deployed.apply().converged
    assert deployed.apply().state_written is False
    assert read_applied(str(deployed.root.location)).graphs.keys() == {"ferries", "crew"}
    served = ClusterGraphs(str(deployed.root.location)).open()
    assert served.graphs["ferries"].queries.by_name.keys() == {"ports"}
    assert served.graphs["ferries"].graph.query(
        "query q() { match { $p: Port } return { $p.code as code } }"
    ).rows == [{"code": "ARD"}]
    deployed.declare(ONE)
    assert approve(deployed.directory, "graph.crew", "act-ann").ok
    assert deployed.apply().converged
    assert ControlObjects(deployed.root.graph("crew")).list() == []
    assert codes(status(deployed.directory)) == []


SOME: tuple[Failpoint, ...] = (
    "cluster_graph_created",
    "cluster_graph_hidden",
    "cluster_state_written",
)


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("point", FAILPOINTS if profile.CHOSEN.every_case else SOME)
def test_an_apply_that_died_is_taken_up(point: str, tmp_path: Path, s3_bucket: str) -> None:
    team = before_everything(tmp_path, s3_bucket)
    with killed_at(point):
        team.apply()
    assert codes(apply(team.directory)) == ["state_lock_held"]
    team.unlock()
    assert plan(team.directory).ok
    found = team.apply()
    assert found.converged, found.diagnostics
    assert_deployed(team)


@pytest.mark.slow
@pytest.mark.parametrize("locks", [True, False], ids=["with-locks", "without"])
def test_two_applies_at_once_do_not_harm_each_other(
    locks: bool, tmp_path: Path, s3_bucket: str
) -> None:
    team = before_everything(tmp_path, s3_bucket)
    if not locks:
        team.declare(f"{OTHER}state: {{ lock: false }}\n")
        team.approve("graph.crew")
    with ThreadPoolExecutor(2) as pool:
        for ended in [pool.submit(team.apply) for _ in range(2)]:
            ended.result()
    found = team.apply()
    assert found.converged, found.diagnostics
    assert team.ledger.graphs == ["ferries", "staff"]
    assert team.graph().query(PORTS).rows == [{"code": "ARD"}]
    assert team.root.objects.list("__cluster/recoveries") == []


def test_a_ledger_that_is_changed_underneath_is_not_overwritten(deployed: Deployment) -> None:
    deployed.declare(TWO)

    def meddle(point: str, _: str) -> None:
        if point == "cluster_state_ready":
            data = deployed.root.objects.read("__cluster/state.json")
            assert data is not None
            deployed.root.objects.replace("__cluster/state.json", data + b"\n")

    with watched(meddle):
        assert "state_cas_mismatch" in codes(deployed.apply())
    assert deployed.apply().converged
    assert refresh(deployed.directory).ok


def test_of_two_who_swap_one_is_told(s3_bucket: str) -> None:
    objects = ControlObjects(Location.parse(s3_bucket))
    one = SwappedObject(objects, "state.json")
    assert one.swap(None, b"1")
    assert not one.swap(None, b"2")
    seen = one.read()
    assert one.swap(seen, b"2")
    assert not one.swap(seen, b"3")
    # Whoever finds what they wanted has written it: their answer was lost.
    assert one.swap(seen, b"2")
    objects.delete("state.json")
    assert not one.swap(seen, b"3")


def test_a_store_that_replaces_whatever_was_seen_is_refused(
    s3_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def careless(objects: ControlObjects, name: str, _: object, data: bytes) -> bool:
        objects.replace(name, data)
        return True

    monkeypatch.setattr(swapped_object, "_put_tagged", careless)
    objects = ControlObjects(Location.parse(s3_bucket))
    with pytest.raises(StorageError, match="If-Match"):
        SwappedObject(objects, "state.json").swap(None, b"1")
    assert objects.list() == []
