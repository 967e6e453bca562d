"""Loads on a cluster that loses executors and workers, and runs tasks twice: all rows, once."""

from __future__ import annotations

import os
import signal
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.generate.people_graph import GraphSize
from tests.pipeline.cluster import Cluster
from tests.pipeline.killing import (
    Story,
    await_end,
    check_whole,
    driver,
    family,
    intents_of,
    make_story,
    staging_files,
    until,
    worker_at,
)
from tests.pipeline.load_worker import Order

pytestmark = pytest.mark.slow
PEOPLE = 4000
# Whatever takes a little longer than the others is run twice.
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "1ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.1",
}


def order(story: Story, place: Path, name: str, trouble: dict[str, str]) -> Order:
    (place / name).mkdir()
    root = story.copy(place / name)
    files = [str(path) for path in story.files]
    return Order(
        str(root),
        files,
        str(place / name / "signs"),
        {"mode": "append"},
        {"stage": trouble},  # type: ignore[dict-item]
    )


# One test, so that there is one session.
def test_all_rows_arrive_once_whatever_the_cluster_loses(cluster: Cluster, tmp_path: Path) -> None:
    story = make_story(tmp_path, people=PEOPLE, files=3)
    orders = [
        order(story, tmp_path, "executor", {"*": "wait"}),
        order(story, tmp_path, "worker", {"*": "wait"}),
        order(story, tmp_path, "speculation", {"0": "race"}),
    ]
    conf = {"spark.executor.memory": "512m", **SPECULATION}
    # Spark does not run a task twice on one machine: this is another one by its name.
    with (
        worker_at(cluster, "localhost") as doomed,
        driver(tmp_path, *orders, master=cluster.url, conf=conf) as loading,
    ):
        # One task on each of the three cores, all have written their rows.
        loading.await_signs("stage-*", 3, order=0)
        victim = cluster.executors()[0]
        os.kill(victim, signal.SIGKILL)
        until(lambda: victim not in cluster.executors(), "the executor is gone")
        loading.release(0)

        loading.await_signs("stage-*", 3, order=1)
        lost = family(doomed.pid)
        assert lost
        doomed.kill()
        doomed.wait()
        await_end(lost)
        loading.release(1)
        with worker_at(cluster, "localhost"):
            results = loading.results()
    for given, result in zip(orders, results, strict=True):
        root = Path(given.root)
        assert sum(result["nodes"].values()) == GraphSize.of(PEOPLE).nodes
        check_whole(root, story.after)
        # What a task goes on to write after another was faster is taken by the next cleanup.
        og.open(root).cleanup(keep=1000, grace=timedelta(0))
        assert not staging_files(root)
        assert not intents_of(root)
        tries = Counter(path.name.split("-")[1] for path in Path(given.signs).glob("stage-*"))
        assert max(tries.values()) > 1, "a task has written its rows more than once"
