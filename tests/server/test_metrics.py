"""Metrics: what is counted, in one process and in several of which one dies."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

import omnigraph as og
from omnigraph.manifest.overtaken import note_retry
from tests.server.processes import running
from tests.server.serving import ADD, EVERYONE, ROWS, SCHEMA, Served

Figures = dict[tuple[str, tuple[str, ...]], float]


def figures(text: str) -> Figures:
    """All values by name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.values()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def look(served: Served) -> Figures:
    answer = served.client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return figures(answer.text)


def test_what_a_server_does_is_counted(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    before = look(served)
    seen: list[Figures] = []
    query: Callable[..., object] = served.graph.query

    def watched(*args: object, **named: object) -> object:
        seen.append(figures(served.app.metrics.text().decode()))
        return query(*args, **named)

    monkeypatch.setattr(served.graph, "query", watched)
    served.post("/query", {"query": EVERYONE})
    served.post("/query", {"query": "nothing"})
    served.post("/mutate", {"query": ADD, "params": {"name": "Cem"}})
    served.post("/mutate", {"query": ADD, "params": {"name": "Dan"}})
    served.client.request("BREW", "/coffee")
    note_retry("lost_race")
    now = look(served)
    for labels, count in {
        ("query", "POST", "200"): 1,
        ("query", "POST", "400"): 1,
        ("mutate", "POST", "200"): 2,
        ("none", "other", "404"): 1,
    }.items():
        assert now["omnigraph_requests_total", tuple(sorted(labels))] == count
    assert now["omnigraph_request_seconds_count", ("query",)] == 2
    assert now["omnigraph_request_seconds_sum", ("mutate",)] > 0
    assert now["omnigraph_commits_total", ("film",)] == 2
    assert now["omnigraph_open_requests", ()] == 1  # that which looks
    assert [one["omnigraph_open_queries", ()] for one in seen] == [1]
    assert now["omnigraph_open_queries", ()] == 0
    retries = "omnigraph_write_retries_total", ("lost_race",)
    assert now[retries] == before[retries] + 1
    assert sum(value for (name, _), value in now.items() if name == "omnigraph_cache_bytes") > 0


@pytest.mark.slow
def test_what_a_process_had_open_dies_with_it(tmp_path: Path) -> None:
    location = tmp_path / "film.omni"
    og.init(location, SCHEMA).load(ROWS, mode="append")

    def open_requests() -> float:
        with server.client() as client:
            return figures(client.get(f"{server.url}/metrics").text)["omnigraph_open_requests", ()]

    with running(location, "--workers", "2") as server, ThreadPoolExecutor(8) as pool:
        deadline = time.monotonic() + 120
        while len(server.children()) < 2 or open_requests() != 1:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        dying = server.children()
        with server.client() as client:
            waiting = [
                pool.submit(client.get, "/changes", params={"wait": 60}, timeout=120)
                for _ in range(8)
            ]
            while open_requests() != 9:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            for pid in dying:
                os.kill(pid, signal.SIGKILL)
            assert all(one.exception() for one in waiting)
        while set(server.children()) & set(dying) or len(server.children()) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        while open_requests() != 1:
            assert time.monotonic() < deadline
            time.sleep(0.1)
