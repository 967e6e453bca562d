"""One history: workers write to a graph, die and stand still at random, and others look.

Owns the rounds. A round tells everybody something, kills one process at a random instant,
perhaps stops another, and lets a process that has never seen the graph inspect it; that one
then takes the place of the dead.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.soak.ledger import Entry, Ledger, Violation
from tests.soak.lineage import Lineage
from tests.soak.operations import MAIN, NAMES, Draw, Operation
from tests.soak.processes import Nurseries, Process

WORKERS = 4
MOST_STOPPED = 2
PROBE = "probe"
FIRST_GUESS = 0.02
"""Seconds that an operation is taken to last before one was seen."""


@dataclass(slots=True)
class Crew:
    """The processes of a run, and how long operations take them."""

    nurseries: Nurseries
    workers: list[Process] = field(default_factory=list)
    typical: dict[str, float] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)

    def note(self, shape: str, seconds: float) -> None:
        """Learn how long an operation takes."""
        known = self.typical.get(shape, seconds)
        self.typical[shape] = 0.8 * known + 0.2 * seconds

    def length(self, operations: Sequence[Operation]) -> float:
        """How long some operations will take, one after the other."""
        return sum(self.typical.get(one.shape, FIRST_GUESS) for one in operations)

    def end(self) -> None:
        """Leave no process behind."""
        for process in self.workers:
            process.kill()
        self.workers.clear()
        self.nurseries.end()


class History:
    """One graph from its making to its last inspection."""

    def __init__(self, root: str, crew: Crew, random: Random, linger: float) -> None:
        self.root = root
        self.crew = crew
        self.random = random
        self.draw = Draw(random)
        self.ledger = Ledger(linger)
        self.lineage = Lineage(self.ledger)
        self._pending: dict[Process, list[Entry]] = {}
        self._until: dict[Process, int] = {}
        self._numbers: dict[Process, int] = {}
        self._round = 0

    # -- commands --------------------------------------------------------------------------

    def _tell(self, process: Process, operation: Operation) -> Entry:
        number = self._numbers.setdefault(process, len(self._numbers))
        clock = f" ({process.skew:+.0f} s)" if process.skew else ""
        entry = self.ledger.ask(operation, f"{number}{clock}", time.monotonic())
        self._pending.setdefault(process, []).append(entry)
        command = operation.command
        process.tell(
            {**command, "root": self.root} if operation.do in ("init", "open") else command
        )
        return entry

    def _take(self, process: Process, answer: dict[str, Any]) -> Entry:
        entry = self.ledger.take(answer)
        self._pending[process].remove(entry)
        self.crew.note(entry.operation.shape, entry.ended - entry.started)
        self.crew.seen[f"{entry.operation.shape}: {answer.get('error') or 'done'}"] += 1
        if wrong := [*answer.get("damage", ()), *answer.get("failed", ())]:
            raise Violation(f"{entry.operation.id} ({entry.operation.shape}) found {wrong}")
        if entry.commit is not None and "parent" in answer["commit"]:
            self.lineage.acknowledge(answer["commit"], str(entry.operation.branch))
        return entry

    def _await(self, process: Process) -> None:
        while self._pending.get(process):
            self._take(process, process.answer())

    def _do(self, process: Process, operation: Operation) -> dict[str, Any]:
        """Something that must succeed."""
        answer = self._try(process, operation)
        if "error" in answer:
            raise Violation(
                f"{operation.id} ({operation.shape}, {operation.branch}) must succeed: "
                f"{answer['error']}: {answer['message']}\n{answer.get('trace', '')}"
            )
        return answer

    def _try(self, process: Process, operation: Operation) -> dict[str, Any]:
        entry = self._tell(process, operation)
        self._await(process)
        return entry.answer

    # -- rounds ----------------------------------------------------------------------------

    def begin(self) -> None:
        """Make the graph, and let every worker open it."""
        while len(self.crew.workers) < WORKERS:
            self.crew.workers.append(self.crew.nurseries.take())
        first, *others = self.crew.workers
        self._do(first, self.draw.init())
        for process in others:
            self._tell(process, self.draw.special("open"))
        for process in others:
            self._await(process)

    def play(self) -> None:
        """One round with one kill."""
        self._round += 1
        self._resume()
        running = [process for process in self.crew.workers if not process.is_stopped]
        stopped = [process for process in self.crew.workers if process.is_stopped]
        is_still = bool(stopped) and self.random.random() < 0.15
        victim = self.random.choice(stopped if is_still else running)
        plans = {process: self._plan() for process in running}
        moments = [(self._moment(plans.get(victim, [])), "kill", victim)]
        others = [process for process in running if process is not victim]
        if others and len(stopped) < MOST_STOPPED and self.random.random() < 0.4:
            chosen = self.random.choice(others)
            moments.append((self._moment(plans[chosen]), "stop", chosen))
        began = time.monotonic()
        for process, plan in plans.items():
            for operation in plan:
                self._tell(process, operation)
        for moment, what, process in sorted(moments, key=lambda one: one[:2]):
            time.sleep(max(0.0, began + moment - time.monotonic()))
            if what == "kill":
                self._kill(process)
            else:
                self._stop(process)
        for process in others:
            if not process.is_stopped:
                self._await(process)
        self._inspect_anew(self.crew.workers.index(victim))

    def _plan(self) -> list[Operation]:
        return [self.draw.next() for _ in range(self.random.choice((1, 2, 2, 3)))]

    def _moment(self, plan: Sequence[Operation]) -> float:
        """Any instant of what a process is about to do."""
        return self.random.random() * 1.1 * self.crew.length(plan)

    def _kill(self, process: Process) -> None:
        for answer in process.kill():
            self._take(process, answer)
        left = self._pending.pop(process, [])
        for entry in left:
            self.ledger.die(entry, time.monotonic())
        if left:
            self.crew.seen["kills that hit an operation"] += 1
            self.crew.seen[f"{left[0].operation.shape}: killed"] += 1
        self.crew.seen["kills"] += 1
        self._until.pop(process, None)

    def _stop(self, process: Process) -> None:
        process.stop()
        for answer in process.answered():
            self._take(process, answer)
        self._until[process] = self._round + self.random.choice((1, 1, 2, 3, 5))
        self.crew.seen["stops"] += 1
        left = self._pending.get(process)
        if left:
            self.crew.seen["stops that hit an operation"] += 1
            self.crew.seen[f"{left[0].operation.shape}: stopped"] += 1

    def _resume(self, *, everybody: bool = False) -> None:
        for process, until in list(self._until.items()):
            if everybody or until <= self._round:
                process.resume()
                del self._until[process]

    # -- inspections -----------------------------------------------------------------------

    def _inspect_anew(self, place: int) -> None:
        """Let a process look that has never seen the graph; it takes a place among the workers."""
        process = self.crew.nurseries.take()
        self.crew.workers[place] = process
        self._do(process, self.draw.special("open"))
        self._compare(process)
        self._probe(process)
        self._settle(process, self.random.choice(NAMES))

    def _compare(self, process: Process) -> None:
        """All that can be read is what was written."""
        found = self._do(process, self.draw.special("inspect", gone=sorted(self.lineage.gone)))
        lines = {name: self.lineage.learn(name, line) for name, line in found["lines"].items()}
        self.ledger.check_names({*found["lines"], *found["lost"]}, found["lost"], {*NAMES, PROBE})
        self.ledger.check_acknowledged({name: set(line) for name, line in lines.items()})
        tables = found["tables"]

        def rows(pins: Mapping[str, str]) -> dict[str, dict[str, str]]:
            return {type_: tables[pin] for type_, pin in pins.items()}

        for name, line in lines.items():
            for place, commit_id in reversed(list(enumerate(line))):
                if commit_id in found["commits"]:
                    self.lineage.compare(
                        commit_id, rows(found["commits"][commit_id]), f"{name}~{place}"
                    )
                else:
                    reason = found["gaps"].get(commit_id, "it could not be read earlier")
                    self.lineage.check_gap(commit_id, place, name, reason)
            head = rows(found["heads"][name])
            self.lineage.compare(line[0], head, f"branch {name}")
            if found["people"][name] != head["Person"]:
                raise Violation(f"a query on {name} gives other people than its table")
        self.lineage.gone |= found["gaps"].keys()
        for kind, commit_id in found["recoveries"]:
            if kind == "RolledBack" and commit_id in self.lineage.commits:
                raise Violation(f"{commit_id} was published, and its intent was rolled back")
        self.crew.seen["commits read"] += len(found["commits"])
        self.crew.seen["inspections"] += 1

    def _probe(self, process: Process) -> None:
        """A write, a branch, a merge and a deletion: nothing may stand in their way."""
        self._do(process, self.draw.probe(MAIN))
        if PROBE in self._do(process, self.draw.special("names"))["names"]:
            self._do(process, self.draw.special("delete", PROBE))
        source = self.random.choice((MAIN, *self._open_names(process)))
        self._do(process, self.draw.special("create", PROBE, **{"from": source}))
        self._do(process, self.draw.probe(PROBE))
        self._do(
            process,
            self.draw.special("merge", source, **{"from": PROBE}, delete_source=False),
        )
        self._do(process, self.draw.special("delete", PROBE))

    def _open_names(self, process: Process) -> list[str]:
        found = self._do(process, self.draw.special("names"))["names"]
        return [
            name
            for name in sorted(set(found) & set(NAMES))
            if "error" not in self._try(process, self.draw.special("read", name, back=None))
        ]

    def _settle(self, process: Process, name: str) -> None:
        """A name is never stuck: it can be opened, or deleted, or created."""
        if name in self._do(process, self.draw.special("names"))["names"]:
            read = self._try(process, self.draw.special("read", name, back=None))
            if "error" not in read:
                return
            deleted = self._try(process, self.draw.special("delete", name))
            if "error" not in deleted:
                self._do(process, self.draw.special("create", name, **{"from": MAIN}))
                return
        self._do(process, self.draw.special("create", name, **{"from": MAIN}))

    def finish(self) -> None:
        """Let everybody end what it does, clean up, and look once more."""
        self._resume(everybody=True)
        for process in self.crew.workers:
            self._await(process)
        self._inspect_anew_beside()

    def _inspect_anew_beside(self) -> None:
        oldest = self.crew.workers.pop(0)
        oldest.kill()
        self._pending.pop(oldest, None)
        self.crew.workers.append(self.crew.nurseries.take())
        process = self.crew.workers[-1]
        self._do(process, self.draw.special("open"))
        self._compare(process)
        for name in NAMES:
            self._settle(process, name)
        self._do(process, self.draw.special("verify", deep=True))
        self._do(process, self.draw.special("maintain", keep=None))
        self._do(process, self.draw.special("cleanup", None, keep=1, grace=0.0, older_than=None))
        self._compare(process)
        self._do(process, self.draw.special("verify", deep=True))
