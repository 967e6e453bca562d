"""Applies in processes of their own: killed at any instant, and two at once."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from random import Random

import httpx2 as httpx
import pytest

from omnigraph.cluster.applying import apply
from omnigraph.cluster.observing import force_unlock, status
from tests import profile
from tests.cluster.deployments import TWO, Deployment, assert_deployed, before_everything
from tests.server.processes import running
from tests.write.processes import context


def apply_there(directory: str) -> None:
    """What a process does."""
    apply(Path(directory), "act-ann")


def finish(team: Deployment) -> None:
    """What somebody does who knows that no process is alive."""
    lock = status(team.directory).state.lock
    if lock is not None:
        assert force_unlock(team.directory, lock.lock_id).ok
    found = team.apply()
    assert found.converged, found.diagnostics


@pytest.mark.slow
@pytest.mark.soak
def test_an_apply_that_is_killed_at_any_instant_is_taken_up(tmp_path: Path) -> None:
    prepared = before_everything(tmp_path)
    random = Random(profile.SEED or 7)  # noqa: S311 - of instants, to be repeated
    longest = 0.1
    instants = profile.CHOSEN.instants if profile.CHOSEN.every_case else 5
    for instant in range(-1, instants + 1):
        team = Deployment(tmp_path / f"team-{instant}")
        shutil.copytree(prepared.directory, team.directory)
        process = context.Process(target=apply_there, args=(str(team.directory),))
        begun = time.monotonic()
        process.start()
        if instant > 0:
            process.join(random.random() * longest)
            process.kill()
        process.join()
        if instant <= 0:
            # How long one takes that nobody kills says when the others are killed; the second
            # one, since the first also starts what forks them.
            longest = time.monotonic() - begun
        finish(team)
        assert_deployed(team)
        shutil.rmtree(team.directory)


@pytest.mark.slow
def test_a_program_serves_what_was_applied(tmp_path: Path) -> None:
    team = Deployment.make(tmp_path / "team", TWO.replace("crew:", "crew_2:")).deployed()
    team.graph().load([{"type": "Port", "data": {"code": "ARD"}}], mode="append")
    tokens = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"act-ann": "a-token"}'}
    with running(team.directory, is_cluster=True, **tokens) as server:
        with httpx.Client(
            base_url=server.url, headers={"Authorization": "Bearer a-token"}, timeout=60
        ) as client:
            asked = client.post("/graphs/ferries/queries/ports", json={})
            assert asked.json()["rows"] == [{"code": "ARD"}]
            assert client.get("/graphs/other/schema").status_code == 404
        assert server.stop() == 0
    assert "graph crew_2 is not served" in server.log.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("locks", [True, False], ids=["with-locks", "without"])
def test_two_applies_at_once_do_not_harm_each_other(locks: bool, tmp_path: Path) -> None:
    team = before_everything(tmp_path)
    if not locks:
        text = (team.directory / "cluster.yaml").read_text()
        team.declare(f"{text}state: {{ lock: false }}\n")
        team.approve("graph.crew")
    processes = [context.Process(target=apply_there, args=(str(team.directory),)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    found = team.apply()
    assert found.converged, found.diagnostics
    assert team.ledger.graphs == ["ferries", "staff"]
    assert team.graph().query("query q() { match { $p: Port } return { $p.code as c } }").rows
    assert team.root.objects.list("__cluster/recoveries") == []
