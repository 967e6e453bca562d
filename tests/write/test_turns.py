"""Turns at a branch: whoever dies or stands still with one holds nobody up for long."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.lang.structural import ID
from omnigraph.storage.logs.head_log import QUEUE
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.storage.objects.meter import measure
from omnigraph.storage.objects.turn_lock import TurnLock, new_holder
from omnigraph.write.publish.turns import LOCK
from omnigraph.write.publish.writer_queue import LONGEST, WriterTicket
from tests import faults
from tests.write.processes import check_chain, context, die
from tests.write.writing import mutate, rows

PATIENCE = 300
WRITERS, WRITES = 4, 10
SCHEMA = "node Person {\n    name: String @key\n    age: I32?\n}\n"
INSERT = "query q($n: String) { insert Person { name: $n } }"
UPSERT = "query q($a: I32) { upsert Person { name: 'same', age: $a } }".replace("'", '"')


@pytest.fixture
def root(tmp_path: Path) -> Path:
    og.init(tmp_path / "graph", SCHEMA, actor="setup")
    return tmp_path / "graph"


# -- the lock --------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "turns" / "lock")


def test_a_lock_says_who_had_it_last(path: str) -> None:
    one, other = new_holder(), new_holder()
    said = []
    for holder in (one, one, other, one):
        lock = TurnLock(path, holder)
        said.append(lock.take(PATIENCE))
        lock.release()
    assert said == [False, True, False, False]


def test_a_waiter_is_woken_by_the_one_who_lets_go(path: str) -> None:
    first, second = TurnLock(path, new_holder()), TurnLock(path, new_holder())
    first.take(PATIENCE)
    waiter = threading.Thread(target=second.take, args=(PATIENCE,))
    waiter.start()
    waiter.join(0.05)
    assert waiter.is_alive()
    first.release()
    waiter.join(PATIENCE)
    assert not waiter.is_alive()


def test_a_holder_who_stands_still_is_passed_over_once(path: str) -> None:
    still, second, third = (TurnLock(path, new_holder()) for _ in range(3))
    still.take(PATIENCE)
    assert not second.take(0.05)
    # The next one waits for the second, and not for the first.
    waiter = threading.Thread(target=third.take, args=(PATIENCE,))
    waiter.start()
    second.release()
    waiter.join(PATIENCE)
    assert not waiter.is_alive()
    still.release()  # which takes nothing away from the third
    fourth = TurnLock(path, new_holder())
    late = threading.Thread(target=fourth.take, args=(PATIENCE,))
    late.start()
    late.join(0.05)
    assert late.is_alive()
    third.release()
    late.join(PATIENCE)
    assert not late.is_alive()


@pytest.mark.slow
def test_a_slow_queue_is_not_one_that_stands_still(path: str) -> None:
    busy = TurnLock(path, new_holder())
    busy.take(PATIENCE)
    inode = Path(path).stat().st_ino
    waiting = TurnLock(path, new_holder())
    waiter = threading.Thread(target=waiting.take, args=(0.3,))
    waiter.start()
    for _ in range(4):
        waiter.join(0.15)
        # As if others had been faster: the holder is another one each time.
        with Path(path).open("r+b") as file:
            file.write(os.urandom(16))
    assert waiter.is_alive()
    assert Path(path).stat().st_ino == inode
    busy.release()
    waiter.join(PATIENCE)


def test_without_a_directory_nobody_waits(tmp_path: Path) -> None:
    lock = TurnLock(str(tmp_path / "gone" / "turns" / "lock"), new_holder())
    assert not lock.take(PATIENCE)
    lock.release()
    assert not (tmp_path / "gone").exists()


def test_the_lock_lies_in_the_queue_of_the_branch(root: Path) -> None:
    graph = og.open(root)
    mutate(graph, 'insert Person { name: "a" }')
    assert [file.name for file in (root / "__manifest" / "main" / QUEUE).iterdir()] == [LOCK]


def test_a_write_inside_of_a_write_does_not_wait_for_it(root: Path) -> None:
    graph, other = og.open(root), og.open(root)
    with faults.observed("publish_ready", lambda: mutate(other, 'insert Person { name: "b" }')):
        mutate(graph, 'insert Person { name: "a" }')
    assert rows(graph, "Person").keys() == {"a", "b"}


@pytest.mark.slow
def test_threads_of_one_handle_take_turns(root: Path) -> None:
    graph = og.open(root, actor="threads")
    done: list[str] = []

    def work(number: int) -> None:
        for each in range(5):
            name = f"{number}-{each}"
            graph.mutate(INSERT, params={"n": name})
            done.append(name)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    with faults.observed("rows_written", list, times=None) as staged:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert rows(graph, "Person").keys() == set(done)
    assert check_chain(root) == {"threads": 40}
    # Who was overtaken was moved to the new head, and wrote no row again.
    assert (staged.fired, len(done)) == (40, 40)


# -- tickets at an object store ------------------------------------------------------------------


def tickets(tmp_path: Path, count: int) -> list[WriterTicket]:
    objects = ControlObjects(Location.parse(str(tmp_path)))
    made = [WriterTicket(objects) for _ in range(count)]
    for one in made:
        one.join("main")
    return made


def pass_through(ticket: WriterTicket, name: str, done: list[str]) -> None:
    ticket.give_way()
    done.append(name)
    ticket.__exit__()


@pytest.mark.slow
def test_those_who_have_lost_go_first_in_the_order_of_their_losses(tmp_path: Path) -> None:
    first, second, newcomer = tickets(tmp_path, 3)
    first.claim(LONGEST)
    second.claim(LONGEST)
    assert not first.give_way()
    done: list[str] = []
    waiting = [
        threading.Thread(target=pass_through, args=(second, "second", done)),
        threading.Thread(target=pass_through, args=(newcomer, "newcomer", done)),
    ]
    for one in waiting:
        one.start()
    done.append("first")
    first.__exit__()
    for one in waiting:
        one.join()
    assert done == ["first", "second", "newcomer"]


@pytest.mark.slow
def test_waiting_for_a_ticket_costs_few_requests_and_ends(tmp_path: Path) -> None:
    dead, waiting = tickets(tmp_path, 2)
    dead.claim(LONGEST)
    with measure() as requests:
        assert waiting.give_way()
    assert requests.total <= 40
    # It is not waited for again.
    assert not waiting.give_way()


# -- processes -------------------------------------------------------------------------------


def insert(root: str, actor: str, line: Barrier, answer: Connection) -> None:
    """Insert people; tells how often a row was written to a file."""
    graph = og.open(root, actor=actor)
    line.wait(PATIENCE)
    with faults.observed("rows_written", list, times=None) as staged:
        for number in range(WRITES):
            graph.mutate(INSERT, params={"n": f"{actor}-{number}"})
    answer.send(staged.fired)


def upsert(root: str, actor: str, line: Barrier, answer: Connection) -> None:
    """Write the same row as everybody else."""
    graph = og.open(root, actor=actor)
    line.wait(PATIENCE)
    for number in range(WRITES):
        graph.mutate(UPSERT, params={"a": number})
    answer.send(WRITES)


def stop_in_the_middle(root: str, actor: str, line: Barrier, answer: Connection) -> None:
    """Stand still with the turn, until somebody says that it goes on."""
    graph = og.open(root, actor=actor)
    with faults.observed("publish_ready", lambda: _stop(line)):
        mutate(graph, 'insert Person { name: "stopped" }')
    answer.send(None)


def die_in_the_middle(root: str, actor: str, line: Barrier, answer: Connection) -> None:
    """End with the turn."""
    graph = og.open(root, actor=actor)
    answer.send(None)

    def end() -> None:
        line.wait(PATIENCE)
        die()

    with faults.observed("publish_ready", end):
        mutate(graph, 'insert Person { name: "dead" }')


def _stop(line: Barrier) -> None:
    line.wait(PATIENCE)
    os.kill(os.getpid(), signal.SIGSTOP)


class Process:
    """A process that does one thing and tells what came of it."""

    def __init__(self, work: Callable[..., None], root: Path, actor: str, line: Barrier) -> None:
        self.answer, sender = context.Pipe(duplex=False)
        self.process = context.Process(
            target=work, args=(str(root), actor, line, sender), daemon=True
        )
        self.process.start()
        sender.close()

    def told(self) -> Any:
        assert self.answer.poll(PATIENCE), "it is stuck"
        told = self.answer.recv()
        self.process.join(PATIENCE)
        return told


def names(actors: list[str]) -> set[str]:
    return {f"{actor}-{number}" for actor in actors for number in range(WRITES)}


@pytest.mark.slow
def test_writers_of_other_rows_write_them_once(root: Path) -> None:
    line = context.Barrier(WRITERS)
    actors = [f"actor{number}" for number in range(WRITERS)]
    staged = [one.told() for one in [Process(insert, root, actor, line) for actor in actors]]
    graph = og.open(root)
    assert sorted(graph.table("Person").to_table([ID])[ID].to_pylist()) == sorted(names(actors))
    assert check_chain(root) == dict.fromkeys(actors, WRITES)
    assert staged == [WRITES] * WRITERS
    # Nobody had to wait until all others were done.
    order = [commit.actor for commit in graph.commits.list()[::-1]]
    assert max(order.index(actor) for actor in actors) < len(order) - WRITES


@pytest.mark.slow
def test_writers_of_the_same_row_come_one_after_the_other(root: Path) -> None:
    line = context.Barrier(WRITERS)
    actors = [f"actor{number}" for number in range(WRITERS)]
    for one in [Process(upsert, root, actor, line) for actor in actors]:
        one.told()
    assert rows(og.open(root), "Person")["same"]["age"] == WRITES - 1
    assert check_chain(root) == dict.fromkeys(actors, WRITES)


@pytest.mark.slow
@pytest.mark.parametrize("ending", [stop_in_the_middle, die_in_the_middle])
def test_nobody_is_held_up_by_a_turn_that_does_not_end(
    root: Path, ending: Callable[..., None]
) -> None:
    entered = context.Barrier(2)
    still = Process(ending, root, "still", entered)
    entered.wait(PATIENCE)
    actors = ["one", "other"]
    line = context.Barrier(len(actors))
    staged = [one.told() for one in [Process(insert, root, actor, line) for actor in actors]]
    assert staged == [WRITES] * len(actors)
    assert rows(og.open(root), "Person").keys() == names(actors)
    if ending is stop_in_the_middle:
        assert still.process.pid is not None
        os.kill(still.process.pid, signal.SIGCONT)
    still.told()
    left = {"stopped"} if ending is stop_in_the_middle else set()
    assert rows(og.open(root), "Person").keys() == names(actors) | left
    assert check_chain(root) == dict.fromkeys(actors, WRITES) | dict.fromkeys(
        ["still"] if left else [], 1
    )
