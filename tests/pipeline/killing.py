"""Loads whose processes are killed: a graph with its input, drivers to kill, and what must be left.

Nothing here waits without an end, and no process outlives the block that started it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import omnigraph as og
from omnigraph.generate.people_graph import GraphSize, generate, schema
from omnigraph.lang.structural import ID
from omnigraph.manifest.store import Manifest
from omnigraph.pipeline.spark.jvm import find_java
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.write.recovery.intents import Intent
from omnigraph.write.recovery.sweep import stored_intents, sweep
from tests import jvm
from tests.pipeline import cluster, load_worker
from tests.pipeline.cluster import Cluster
from tests.pipeline.engines import content
from tests.write.processes import check_chain

FAR_FUTURE = 4_000_000_000_000_000
SECONDS = 300.0
"""How long anything may take on a busy machine."""
RUN = "the run"

_OLD: tuple[dict[str, Any], ...] = (
    {"type": "Person", "data": {"handle": "old-1", "name": "Old", "born": "1950-01-01"}},
    {"type": "Person", "data": {"handle": "old-2", "name": "Old", "born": "1950-01-02"}},
    {"type": "Company", "data": {"slug": "old-co", "name": "Old", "founded": 1900}},
    {"edge": "Knows", "from": "old-1", "to": "old-2", "data": {"since": "1980-01-01"}},
    {"edge": "WorksAt", "from": "old-1", "to": "old-co", "data": {"since": "1980-01-01"}},
)
_FILLED: dict[str, dict[str, Any]] = {
    "Person": {"city": "Essen", "active": True},
    "Company": {"industry": "food"},
    "Knows": {"weight": 0.5},
    "WorksAt": {"role": "nurse"},
}


def until(what: Callable[[], object], told: str) -> None:
    """Wait until something is so; not for ever."""
    end = time.monotonic() + SECONDS
    while not what():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {SECONDS:g} s until {told}")
        time.sleep(0.05)


# -- the graph -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Story:
    """A graph with some rows, the files of a load, and what the graph holds before and after."""

    seed: Path
    files: tuple[Path, ...]
    before: list[str]
    after: list[str]

    def copy(self, place: Path) -> Path:
        """The graph, to be written to."""
        root = place / "graph"
        shutil.copytree(self.seed, root)
        return root


def make_story(place: Path, people: int, files: int = 1) -> Story:
    """A story of so many people; every type of the load has so many files."""
    made = generate(GraphSize.of(people), place / "input", files=files)
    paths = [file.path for file in made.files]
    # An edge to a stored node, so that the load depends on what it did not bring.
    (person, *_) = paths[0].read_text(encoding="utf-8").splitlines()
    paths.append(place / "input" / "more.jsonl")
    to = json.loads(person)["data"]["handle"]
    paths[-1].write_text(_line({**_OLD[3], "to": to}), encoding="utf-8")
    seed = place / "seed"
    og.init(seed, schema()).load("".join(map(_line, _OLD)), mode="append")
    story = Story(seed, tuple(paths), content(og.open(seed, read_only=True)), [])
    whole = og.open(story.copy(place))
    whole.load(paths, mode="append", engine="inline")
    return Story(seed, tuple(paths), story.before, content(whole))


def _line(envelope: Mapping[str, Any]) -> str:
    name = str(envelope.get("type") or envelope.get("edge"))
    return json.dumps({**envelope, "data": {**envelope["data"], **_FILLED[name]}}) + "\n"


# -- what is left --------------------------------------------------------------------------


def check_whole(root: Path, expected: Sequence[str]) -> None:
    """The graph holds exactly this, every row once, however it is read."""
    graph = og.open(root, read_only=True)
    assert content(graph) == expected
    for key in graph.snapshot().tables:
        ids = graph.table(key).to_table([ID])[ID]
        assert len(ids.unique()) == len(ids)
    people = graph.query("query all() { match { $p: Person } return { count($p) as n } }")
    assert people.rows[0]["n"] == graph.snapshot().tables["node:Person"].pin.row_count
    check_chain(root)


def intents_of(root: Path) -> tuple[Intent, ...]:
    """The intents that lie about."""
    stored = stored_intents(ControlObjects(Location.parse(str(root))))
    assert not stored.notices
    return stored.intents


def check_swept(root: Path, intents: Sequence[Intent], *, is_published: bool) -> None:
    """In the far future the stories of dead loads are finished, and nothing is left of them."""
    graph = og.open(root)
    sweep(graph.location, Manifest(graph.location), now=FAR_FUTURE)
    kind = "RolledForward" if is_published else "RolledBack"
    assert [(one.operation_id, one.recovery_kind) for one in graph.recoveries()] == [
        (intent.operation_id, kind) for intent in intents
    ]
    left = set(ControlObjects(graph.location).list())
    assert not left.intersection(intent.name for intent in intents)
    assert is_published or not left.intersection(name for one in intents for name in one.files)
    assert not staging_files(root)


def staging_files(root: Path) -> list[str]:
    """What the tasks of loads have left for each other."""
    return sorted(str(path) for path in root.glob("__staging/**/*") if path.is_file())


def data_files(root: Path) -> set[str]:
    """The data files of all tables."""
    found = (path for kind in ("nodes", "edges") for path in root.glob(f"{kind}/*/data/*"))
    return {str(path.relative_to(root)) for path in found}


# -- drivers -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Driver:
    """A process that loads on Spark as it was ordered."""

    process: subprocess.Popen[str]
    orders: tuple[load_worker.Order, ...]
    log: Path

    def await_signs(self, pattern: str, count: int = 1, order: int = 0) -> None:
        """Wait until the driver or its tasks have left so many signs."""
        signs = Path(self.orders[order].signs)

        def are_there() -> bool:
            assert self.process.poll() is None, self.log.read_text(encoding="utf-8")
            return len(list(signs.glob(pattern))) >= count

        until(are_there, f"there are {count} {pattern}")

    def await_results(self, count: int) -> None:
        """Wait until it has said something about so many orders."""

        def are_there() -> bool:
            ended = self.process.poll() is not None
            said = self.log.read_text(encoding="utf-8")
            assert said.count("\n") >= count or not ended, said
            return said.count("\n") >= count

        until(are_there, f"{count} orders are carried out")

    def release(self, order: int = 0) -> None:
        """Let everything go on that waits."""
        (Path(self.orders[order].signs) / "go").touch()

    def kill(self) -> None:
        """Kill the driver alone; all that it had started ends by itself."""
        started = family(self.process.pid)
        assert any("java" in command for command in started.values())
        self.process.kill()
        self.process.wait(SECONDS)
        await_end(started)

    def results(self) -> list[dict[str, Any]]:
        """What it says about its orders; it ends well and complains of nothing."""
        assert self.process.wait(SECONDS) == 0, self.log.read_text(encoding="utf-8")
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]


@contextmanager
def driver(
    place: Path,
    *orders: load_worker.Order,
    master: str = "local[2]",
    conf: Mapping[str, str] | None = None,
) -> Iterator[Driver]:
    """A driver at work; it is ended with the block, whatever has become of it."""
    for order in orders:
        Path(order.signs).mkdir()
    settings = {"master": master, "conf": conf or {}}
    command = [sys.executable, "-W", "error", load_worker.__file__]
    log = place / "driver.log"
    with log.open("w", encoding="utf-8") as output:
        process = _start([*command, json.dumps(settings), *map(_json, orders)], output)
    started: dict[int, str] = {}
    try:
        yield Driver(process, orders, log)
    finally:
        if process.poll() is None:
            started = family(process.pid)
            process.kill()
            process.wait(SECONDS)
        for pid in _still(started):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _start(command: list[str], output: IO[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _json(order: load_worker.Order) -> str:
    return json.dumps({name: getattr(order, name) for name in order.__dataclass_fields__})


def family(pid: int) -> dict[int, str]:
    """What a process has started, directly or not, with the commands."""
    every = cluster._processes()
    found: dict[int, str] = {}
    parents = {pid}
    while parents:
        children = [process for process in every if process.parent in parents]
        found |= {process.pid: process.command for process in children}
        parents = {process.pid for process in children}
    return found


def await_end(started: Mapping[int, str]) -> None:
    """Wait until processes are gone that nobody has to end."""
    until(lambda: not _still(started), f"these are gone: {started}")


def _still(started: Mapping[int, str]) -> list[int]:
    """Which of some processes run, under the same numbers and commands."""
    return [
        process.pid
        for process in cluster._processes()
        if started.get(process.pid) == process.command
    ]


@contextmanager
def worker_at(running: Cluster, host: str) -> Iterator[subprocess.Popen[bytes]]:
    """One more worker of a cluster, under a name of its own for this machine."""
    import pyspark

    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java().home),
        "JDK_JAVA_OPTIONS": jvm.OPTIONS,
        "SPARK_HOME": str(home),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_DIRS": str(running.logs),
    }
    main = "org.apache.spark.deploy.worker.Worker"
    options = ["--host", host, "--cores", "1", "--memory", "1g", "--webui-port", "0"]
    work = ["--work-dir", str(running.logs / f"work-{host}"), running.url]
    with (running.logs / f"worker-{host}.log").open("wb") as log:
        process = subprocess.Popen(
            [str(home / "bin" / "spark-class"), main, *options, *work],
            cwd=running.logs,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        cluster._kill(process)
