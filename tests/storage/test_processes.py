"""Real processes that end, fork and are interrupted while they use the storage."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph.storage.objects import processes

pytestmark = pytest.mark.slow

PREPARE = """
import os, signal, sys, threading, time
import omnigraph as og

SCHEMA = "node Pilot {\\n    name: String @key\\n    hours: I32?\\n}\\n"
ADD = "query add($name: String) { insert Pilot { name: $name, hours: 1 } }"
ALL = "query all() { match { $p: Pilot } return { $p.name } }"
root = sys.argv[1]
"""


def start(script: str, *args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-c", PREPARE + script, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


# -- the end of a process ----------------------------------------------------------

WRITE_AND_END = """
graph = og.init(root, SCHEMA)
begun = [threading.Event(), threading.Event()]

def write(number):
    for count in range(1_000_000):
        graph.mutate(ADD, params={"name": f"{number}-{count}"})
        graph.query(ALL)
        begun[number].set()

for number in range(2):
    threading.Thread(target=write, args=[number], daemon=True).start()
for event in begun:
    event.wait()
time.sleep(int(sys.argv[2]) / 100)
"""


@pytest.mark.parametrize("moment", range(6))
def test_a_process_ends_cleanly_while_threads_write(tmp_path: Path, moment: int) -> None:
    ran = start(WRITE_AND_END, tmp_path / "g", moment)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


BULK_AND_END = """
graph = og.init(root, SCHEMA)
rows = "".join(f'{{"type": "Pilot", "data": {{"name": "p{n}"}}}}\\n' for n in range(20_000))
graph.load(rows, mode="append")
table = graph.table("Pilot")

def work():
    while True:
        graph.load(rows, mode="merge")

def scan():
    while True:
        list(graph.export())
        table.to_table(filter="name > 'p5'")

threading.Thread(target=work, daemon=True).start()
threading.Thread(target=scan, daemon=True).start()
time.sleep(0.3)
sys.exit(7)
"""


def test_the_exit_code_is_kept_when_long_calls_are_running(tmp_path: Path) -> None:
    ran = start(BULK_AND_END, tmp_path / "g")
    assert (ran.returncode, ran.stdout) == (7, ""), ran.stderr


END_WITH_A_LAST_WRITE = """
graph = None

def last_words():
    graph.mutate(ADD, params={"name": "last"})
    print(graph.query(ALL).rows)

import atexit
assert "omnigraph.storage.objects.processes" not in sys.modules
atexit.register(last_words)
graph = og.init(root, SCHEMA)
"""


def test_the_thread_that_ends_a_process_may_still_write(tmp_path: Path) -> None:
    # Registered before the storage was imported, so it is called after the threads are ended.
    ran = start(END_WITH_A_LAST_WRITE, tmp_path / "g")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "last" in ran.stdout


SUSPENDED = """
graph = og.init(root, SCHEMA)
for count in range(3):
    graph.mutate(ADD, params={"name": str(count)})
begun = threading.Event()

def look():
    export = iter(graph.export())
    next(export)
    begun.set()
    time.sleep(1_000)

threading.Thread(target=look, daemon=True).start()
begun.wait()
from omnigraph.storage.objects import processes
processes.PATIENCE = 1_000.0
"""


def test_a_reader_that_waits_between_two_rows_holds_nobody_up(tmp_path: Path) -> None:
    ran = start(SUSPENDED, tmp_path / "g")
    assert (ran.returncode, ran.stderr) == (0, "")


# -- forked children ---------------------------------------------------------------

FORK = """
import json
graph = og.init(root, SCHEMA)
reader = og.open(root, read_only=True)
commit = graph.mutate(ADD, params={"name": "Ann"}).commit.id
graph.branches.create("b")
graph.query(ALL), reader.query(ALL)
calls = {
    "query": lambda: graph.query(ALL),
    "query of a reader": lambda: reader.query(ALL),
    "query of a commit": lambda: graph.query(ALL, snapshot=commit),
    "explain": lambda: graph.explain(ALL),
    "mutate": lambda: graph.mutate(ADD, params={"name": "Ben"}),
    "load": lambda: graph.load('{"type": "Pilot", "data": {"name": "Ben"}}', mode="append"),
    "table": lambda: graph.table("Pilot"),
    "snapshot": lambda: graph.snapshot(),
    "snapshot of a commit": lambda: graph.snapshot(commit=commit),
    "schema": lambda: graph.schema,
    "branches": lambda: graph.branches.list(),
    "create a branch": lambda: graph.branches.create("c"),
    "delete a branch": lambda: graph.branches.delete("b"),
    "merge": lambda: graph.branches.merge("b"),
    "commits": lambda: graph.commits.list(),
    "one commit": lambda: graph.commits.get(commit),
    "diff": lambda: list(graph.diff("main", "b")),
    "export": lambda: list(graph.export()),
    "recoveries": lambda: graph.recoveries(),
    "cleanup": lambda: graph.cleanup(keep=1),
    "open": lambda: og.open(root),
    "open to read": lambda: og.open(root, read_only=True),
    "init": lambda: og.init(root + "2", SCHEMA),
}

def outcome(call):
    try:
        call()
    except og.errors.StorageError as error:
        return [error.kind, "spawn" in error.message]
    except BaseException as error:
        return repr(error)
    return "done"

found = {}
for name, call in calls.items():
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os.write(sending, json.dumps(outcome(call)).encode())
        os._exit(0)
    os.close(sending)
    with open(receiving, "rb") as answer:
        found[name] = json.loads(answer.read() or '"hangs"')
    os.waitpid(child, 0)
assert graph.query(ALL).rows
print(json.dumps(found))
"""


def test_every_call_in_a_forked_child_is_refused(tmp_path: Path) -> None:
    ran = start(FORK, tmp_path / "g")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert len(found) == 23
    assert {name: said for name, said in found.items() if said != ["configuration", True]} == {}


FORK_FIRST = """
import omnigraph.graph
child = os.fork()
graph = og.init(root if child else root + "2", SCHEMA)
graph.mutate(ADD, params={"name": "Ann"})
assert len(graph.query(ALL).rows) == 1
if child:
    _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_a_child_forked_before_the_storage_was_used_may_use_it(tmp_path: Path) -> None:
    ran = start(FORK_FIRST, tmp_path / "g")
    assert ran.returncode == 0, ran.stderr


def test_the_process_that_used_the_storage_first_is_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "_user", 0)
    processes.require_usable()
    processes.require_usable()
    assert processes._user != 0


# -- interrupts --------------------------------------------------------------------

INTERRUPT = """
# Whoever started the tests may have it ignored, as shells do for what runs in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
graph = og.init(root, SCHEMA)
rows = "".join(f'{{"type": "Pilot", "data": {{"name": "p{n}"}}}}\\n' for n in range(30_000))
graph.load(rows, mode="append")
from omnigraph.storage.tables.table import Table
shown = graph.snapshot().tables["node:Pilot"]
pilots = Table(graph.location.join(shown.table.path), shown.pin)
works = [
    lambda: pilots.scan(),
    lambda: [batch for batch in pilots.batches()],
    lambda: graph.mutate(ADD, params={"name": str(time.monotonic_ns())}),
    lambda: og.open(root),
]
seen = []
for number in range(24):
    work = works[number % len(works)]
    over = threading.Event()

    def interrupt():
        time.sleep(0.01 + number / 1_000)
        # Python drops what is raised while it finalises an object: then once more.
        while not over.is_set():
            os.kill(os.getpid(), signal.SIGINT)
            over.wait(2)

    thread = threading.Thread(target=interrupt)
    try:
        thread.start()
        while True:
            work()
    except BaseException as error:
        seen.append(type(error).__name__)
    over.set()
    thread.join()
print(*sorted(set(seen)), len(seen))
"""


def test_an_interrupt_inside_a_storage_call_stays_an_interrupt(tmp_path: Path) -> None:
    ran = start(INTERRUPT, tmp_path / "g")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "KeyboardInterrupt 24\n"


TERMINATE = """
def leave(*_):
    sys.exit(143)

signal.signal(signal.SIGTERM, leave)
graph = og.init(root, SCHEMA)
rows = "".join(f'{{"type": "Pilot", "data": {{"name": "p{n}"}}}}\\n' for n in range(30_000))
graph.load(rows, mode="append")
shown = graph.snapshot().tables["node:Pilot"]
from omnigraph.storage.tables.table import Table
pilots = Table(graph.location.join(shown.table.path), shown.pin)
threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGTERM]).start()
while True:
    pilots.scan()
"""


def test_a_handler_that_exits_inside_a_storage_call_exits(tmp_path: Path) -> None:
    ran = start(TERMINATE, tmp_path / "g")
    assert (ran.returncode, ran.stderr) == (143, "")
