"""Several processes use one run id: on two branches at once, killed in between, or asleep."""

from __future__ import annotations

import random
import time
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import Conflict, OmniGraphError
from omnigraph.write.publish import run_claims
from tests import faults, profile
from tests.write.beside import collect
from tests.write.processes import context, die
from tests.write.writing import mutate

pytestmark = [pytest.mark.slow, pytest.mark.soak]

BRANCHES = ("main", "side")
ROUNDS = KILLS = profile.CHOSEN.dear
PATIENCE = 120.0
INSERT = 'insert Person { name: "Bob" }'
SCHEMA = "node Person { name: String @key }"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    graph = og.init(tmp_path / "graph", SCHEMA)
    graph.branches.create("side")
    return tmp_path / "graph"


def commits_of(root: Path, run_id: str) -> list[str]:
    """The commits of all branches that carry an id."""
    graph = og.open(root, read_only=True)
    found = {
        commit.id: commit
        for branch in graph.branches.list()
        for commit in graph.commits.list(branch)
        if commit.metadata.get("run_id") == run_id
    }
    return [*found]


def told(graph: og.Graph, branch: str, run_id: str) -> str:
    """The commit that a writer is told of, its own or that of the other."""
    try:
        done = mutate(graph, INSERT, branch=branch, run_id=run_id)
    except Conflict as refused:
        return str(refused.details["commit_id"])
    assert done.commit is not None
    return done.commit.id


# -- at once --------------------------------------------------------------------------------


def race(root: str, branch: str, line: Barrier, answer: Connection) -> None:
    graph = og.open(root, actor=branch)
    for number in range(ROUNDS):
        line.wait(PATIENCE)
        answer.send(told(graph, branch, f"run {number}"))


@pytest.mark.parametrize("branches", [BRANCHES, ("main", "main")])
def test_one_id_on_two_branches_at_once(root: Path, branches: tuple[str, str]) -> None:
    line = context.Barrier(len(branches))
    ends = [context.Pipe(duplex=False) for _ in branches]
    racing = [
        context.Process(target=race, args=(str(root), branch, line, sender))
        for branch, (_, sender) in zip(branches, ends, strict=True)
    ]
    for process in racing:
        process.start()
    for number in range(ROUNDS):
        first, second = (receiver.recv() for receiver, _ in ends)
        assert first == second
        assert commits_of(root, f"run {number}") == [first]
    for process in racing:
        process.join(PATIENCE)
        assert process.exitcode == 0


# -- killed ---------------------------------------------------------------------------------


def write_to_the_end(root: str, branch: str, run_id: str, begun: Event) -> None:
    graph = og.open(root, actor=branch)
    begun.set()
    told(graph, branch, run_id)


def test_both_are_killed_at_any_moment(root: Path) -> None:
    """And asked again: then the id has one commit, wherever that is."""
    chance = random.Random(7)  # noqa: S311 - to choose moments
    for number in range(KILLS):
        run_id = f"run {number}"
        begun = [context.Event() for _ in BRANCHES]
        racing = [
            context.Process(target=write_to_the_end, args=(str(root), branch, run_id, event))
            for branch, event in zip(BRANCHES, begun, strict=True)
        ]
        for process in racing:
            process.start()
        for event in begun:
            assert event.wait(PATIENCE)
        time.sleep(chance.uniform(0, 0.08))
        for process in racing:
            process.kill()
            process.join()
        assert len(commits_of(root, run_id)) <= 1
        graph = og.open(root)
        names = [told(graph, branch, run_id) for branch in chance.sample(BRANCHES, 2)]
        assert names == commits_of(root, run_id) * 2
    collect(og.open(root))
    assert all(len(commits_of(root, f"run {number}")) == 1 for number in range(KILLS))


def die_at(point: str, root: str, branch: str, run_id: str) -> None:
    matching = "__manifest" if point.endswith("_commit") else ""
    with faults.observed(point, die, matching=matching):
        told(og.open(root), branch, run_id)


@pytest.mark.parametrize(
    ("point", "is_published"),
    [
        ("run_claimed", False),
        ("publish_ready", False),
        ("before_commit", False),
        ("after_commit", True),
        ("published", True),
    ],
)
@pytest.mark.parametrize("other", BRANCHES)
def test_one_that_died_with_a_claim_blocks_nobody(
    root: Path, point: str, is_published: bool, other: str
) -> None:
    process = context.Process(target=die_at, args=(point, str(root), "main", "r1"))
    process.start()
    process.join(PATIENCE)
    assert (len(commits_of(root, "r1")) == 1) == is_published
    found = told(og.open(root), other, "r1")
    assert commits_of(root, "r1") == [found]
    assert told(og.open(root), "main", "r1") == found


# -- asleep ---------------------------------------------------------------------------------


def sleep_at(
    point: str, place: tuple[str, str], asleep: Event, wake: Event, answer: Connection
) -> None:
    """Write, but sleep at a point until somebody says so; tells what it was told."""

    def sleep() -> None:
        asleep.set()
        wake.wait(PATIENCE)

    root, branch = place
    matching = "__manifest" if point == "before_commit" else ""
    graph = og.open(root, actor="sleeper")
    try:
        with faults.observed(point, sleep, matching=matching):
            answer.send(told(graph, branch, "r1"))
    except OmniGraphError as error:
        answer.send(error.code)


@pytest.mark.pairwise
@pytest.mark.parametrize("cleans", [False, True])
@pytest.mark.parametrize("other", BRANCHES)
@pytest.mark.parametrize(
    "point", ["changes_built", "run_claimed", "publish_ready", "before_commit"]
)
def test_one_that_slept_while_the_id_was_taken_loses(
    root: Path, point: str, other: str, cleans: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_claims, "COURTESY", 0.0)
    asleep, wake = context.Event(), context.Event()
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(
        target=sleep_at, args=(point, (str(root), "main"), asleep, wake, sender)
    )
    process.start()
    assert asleep.wait(PATIENCE)
    if cleans:
        collect(og.open(root))
    found = told(og.open(root), other, "r1")
    if cleans:
        collect(og.open(root))
    wake.set()
    assert receiver.recv() == found
    process.join(PATIENCE)
    assert commits_of(root, "r1") == [found]
    assert told(og.open(root), "main", "r1") == found
