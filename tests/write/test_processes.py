"""Several processes write to one graph at the same time: nothing is lost, and nobody waits."""

from __future__ import annotations

import json
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import PreconditionFailed
from omnigraph.lang.structural import ID
from omnigraph.write.recovery import intent_scope
from tests.write.processes import check_chain, context
from tests.write.writing import mutate

pytestmark = pytest.mark.slow
PROCESSES = 4
WRITES = 50
LOADED = 100_000
PATIENCE = 300
SCHEMA = """\
node Person {
    name: String @key
    age: I32?
}

node Counter {
    name: String @key
    value: I32
}
"""
INSERT = "query q($n: String, $a: I32) { insert Person { name: $n, age: $a } }"
SET = 'query q($v: I32) { update Counter set { value: $v } where name = "all" }'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    graph = og.init(tmp_path / "graph", SCHEMA, actor="setup")
    mutate(graph, 'insert Counter { name: "all", value: 0 }')
    return tmp_path / "graph"


# -- what the processes do -----------------------------------------------------------------


def increment(root: str, actor: str, line: Barrier, answer: Connection) -> None:
    """Count up by reading and writing under condition; tells how often somebody was faster."""
    graph = og.open(root, actor=actor)
    line.wait(PATIENCE)
    lost = done = 0
    while done < WRITES:
        shown = graph.snapshot()
        (row,) = graph.table("Counter", snapshot=shown.commit_id).to_table().to_pylist()
        try:
            graph.mutate(SET, params={"v": row["value"] + 1}, if_commit=shown.commit_id)
            done += 1
        except PreconditionFailed:
            lost += 1
    answer.send(lost)


def insert(root: str, actor: str, line: Barrier, answer: Connection) -> None:
    """Insert people, none of which anybody else inserts; an error ends the process."""
    graph = og.open(root, actor=actor)
    line.wait(PATIENCE)
    for number in range(WRITES):
        graph.mutate(INSERT, params={"n": f"{actor}-{number}", "a": number})
    answer.send(WRITES)


def insert_until(root: str, actor: str, line: Barrier, over: Event, answer: Connection) -> None:
    """Insert people until the load is over; tells how many."""
    graph = og.open(root, actor=actor)
    line.wait(PATIENCE)
    done = 0
    while not over.is_set():
        graph.mutate(INSERT, params={"n": f"{actor}-{done}", "a": done})
        done += 1
    answer.send(done)


def load_many(
    root: str, what: tuple[str, str], line: Barrier, over: Event, answer: Connection
) -> None:
    """One large load, announced as such; tells its commit."""
    intent_scope.REQUEST_BYTES = 0
    graph = og.open(root, actor="loader")
    data, mode = what
    line.wait(PATIENCE)
    try:
        answer.send(graph.load(data, mode=mode).commit.id)
    finally:
        over.set()


def together(*works: tuple[Callable[..., None], tuple[Any, ...]]) -> list[Any]:
    """Run functions in processes of their own; gives what each of them told."""
    running = []
    for work, arguments in works:
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=work, args=(*arguments, sender), daemon=True)
        process.start()
        sender.close()
        running.append((process, receiver))
    told: list[Any] = []
    for process, receiver in running:
        assert receiver.poll(PATIENCE), f"{process.name} is stuck"
        told.append(receiver.recv())
        process.join()
        assert process.exitcode == 0
    return told


# -- what must be so -------------------------------------------------------------------------


def test_counting_is_exact(root: Path, record_property: Callable[[str, object], None]) -> None:
    line = context.Barrier(PROCESSES)
    actors = [f"actor{number}" for number in range(PROCESSES)]
    lost = together(*((increment, (str(root), actor, line)) for actor in actors))
    (row,) = og.open(root).table("Counter").to_table().to_pylist()
    assert row["value"] == PROCESSES * WRITES
    assert check_chain(root) == {"setup": 1, **dict.fromkeys(actors, WRITES)}
    record_property("processes, increments that were refused and repeated", sum(lost))


def test_inserts_never_fail(root: Path) -> None:
    line = context.Barrier(PROCESSES)
    actors = [f"actor{number}" for number in range(PROCESSES)]
    together(*((insert, (str(root), actor, line)) for actor in actors))
    people = og.open(root).table("Person").to_table().to_pylist()
    assert sorted((row[ID], row["name"], row["age"]) for row in people) == sorted(
        (f"{actor}-{number}", f"{actor}-{number}", number)
        for actor in actors
        for number in range(WRITES)
    )
    assert check_chain(root) == {"setup": 1, **dict.fromkeys(actors, WRITES)}


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_a_large_load_gets_through_while_others_commit(
    root: Path, mode: str, record_property: Callable[[str, object], None]
) -> None:
    data = root.parent / "people.jsonl"
    with data.open("w", encoding="utf-8") as file:
        for number in range(LOADED):
            row = {"name": f"loaded-{number}", "age": number}
            file.write(json.dumps({"type": "Person", "data": row}) + "\n")
    others = [f"actor{number}" for number in range(PROCESSES - 1)]
    line, over = context.Barrier(PROCESSES), context.Event()
    commit, *inserted = together(
        (load_many, (str(root), (str(data), mode), line, over)),
        *((insert_until, (str(root), actor, line, over)) for actor in others),
    )
    graph = og.open(root)
    names = graph.table("Person").to_table(["name"])["name"].to_pylist()
    assert len(names) == len(set(names))
    assert set(names) == {
        *(f"loaded-{number}" for number in range(LOADED)),
        *(
            f"{actor}-{number}"
            for actor, done in zip(others, inserted, strict=True)
            for number in range(done)
        ),
    }
    expected = dict(zip(others, inserted, strict=True))
    assert check_chain(root) == {"setup": 1, "loader": 1, **expected}
    commits = [found.id for found in graph.commits.list()][::-1]
    before = commits.index(commit) - 2
    assert before > 0, "others committed while the load was prepared"
    assert min(inserted) > 0
    assert not list((root / "__recovery").iterdir())
    record_property(f"processes, commits of others during a load ({mode})", before)
