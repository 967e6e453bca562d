"""Background maintenance of a server: beside its requests, by one of its processes, to its end."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

import omnigraph as og
from omnigraph.errors import StorageError
from omnigraph.maintain.reconcile import Maintainer
from omnigraph.server import maintenance
from omnigraph.server.settings import Limits
from tests.server.processes import Running, running
from tests.server.serving import ADD, SCHEMA, Served, serving

OFTEN = Limits(maintain_seconds=0.05)
SECONDS = 60.0


def until(what: Callable[[], object], told: str) -> None:
    end = time.monotonic() + SECONDS
    while not what():
        assert time.monotonic() < end, f"waited in vain until {told}"
        time.sleep(0.02)


def add_many(graph: og.Graph, letter: str = "p", count: int = 300) -> None:
    """So many rows that an index lacks too many."""
    names = [f"{letter}{number}" for number in range(count)]
    rows = [{"type": "Person", "data": {"name": name}} for name in names]
    graph.load(rows, mode="append")


def commits_of_server(graph: og.Graph) -> int:
    return sum(one.actor == maintenance.ACTOR for one in graph.commits.list())


def counted(served: Served) -> str:
    return served.client.get("/metrics").text


def test_a_graph_is_kept_in_order_beside_its_requests(tmp_path: Path) -> None:
    with serving(tmp_path / "film.omni", limits=OFTEN) as served:
        add_many(served.graph)
        until(lambda: commits_of_server(served.graph), "the server has made a commit")
        assert served.post("/mutate", {"query": ADD, "params": {"name": "Cid"}}).status_code == 200
        assert served.graph.status().level == "ok"
        made = 'omnigraph_maintenance_total{graph="film",outcome="done",work="optimize"}'
        until(lambda: made in counted(served), "it is counted")
        keeping = served.app.maintenance._thread
        assert keeping is not None
    assert not keeping.is_alive(), "it ends with the server"


def test_nothing_is_done_unless_it_is_asked_for(tmp_path: Path) -> None:
    with serving(tmp_path / "film.omni") as served:
        add_many(served.graph)
        assert served.app.maintenance._thread is None
        assert commits_of_server(served.graph) == 0


def test_a_round_that_fails_is_not_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    good, rounds, enough = (
        Maintainer.run_next,
        iter([StorageError("no"), ValueError("bug")]),
        Event(),
    )

    def run_next(keeper: Maintainer) -> object:
        error = next(rounds, None)
        if error is not None:
            raise error
        enough.set()
        return good(keeper)

    monkeypatch.setattr(Maintainer, "run_next", run_next)
    with caplog.at_level("INFO", "omnigraph.server"), serving(tmp_path / "g", limits=OFTEN):
        assert enough.wait(SECONDS)
    told = [record.getMessage() for record in caplog.records]
    assert "maintenance of film: no" in told
    assert "maintenance of film failed" in told


@pytest.mark.slow
def test_one_of_several_processes_does_it_and_another_takes_over(tmp_path: Path) -> None:
    location = tmp_path / "film.omni"
    graph = og.init(location, SCHEMA)
    options = ("--workers", "2", "--maintain-every", "1s")
    with running(location, *options) as server:
        add_many(graph)
        until(lambda: len(told(server)) == 1, "one process has done it")
        first = keepers(server)
        assert len(first) == 1
        os.kill(first[0], signal.SIGKILL)
        add_many(graph, "q", 600)
        until(lambda: len(told(server)) == 2, "another has done it")
        assert keepers(server) != first
        assert server.stop() == 0
    assert commits_of_server(graph) == 2


def told(server: Running) -> list[str]:
    """What the log says was done."""
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    said = [one.get("message", "") for one in lines]
    return [one for one in said if one.startswith("maintenance of film: optimize on main done")]


def keepers(server: Running) -> list[int]:
    """The processes that hold the lock of those who maintain."""
    return [
        pid
        for pid in server.children()
        if any(file.readlink().name == "maintenance" for file in Path(f"/proc/{pid}/fd").iterdir())
    ]
