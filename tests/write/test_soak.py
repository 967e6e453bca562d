"""Random kills: writers that work together die at random, and the graph agrees with a model."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

import omnigraph as og
from omnigraph.errors import Conflict, VersionMismatch
from omnigraph.manifest.changes import CommitIntent
from omnigraph.manifest.store import Manifest
from omnigraph.storage.indexes import compact
from omnigraph.storage.objects import ControlObjects
from omnigraph.storage.table import Table, TablePin
from omnigraph.write.stamps import stamp
from omnigraph.write.sweep import stored_intents, sweep
from tests.write.processes import check_chain
from tests.write.soak_model import SCHEMA, WORKERS, Draw, Operation, Rows, read, together
from tests.write.soak_worker import Worker
from tests.write.writing import maintain, mutate

ROUNDS = 200
WRITES = 4
LONGEST_PAUSE = 0.03
FAR_FUTURE = 4_000_000_000_000_000


class Soak:
    """The workers, what they were told, and what must have become of it."""

    def __init__(self, root: Path, random: Random) -> None:
        self.random = random
        self.graph = og.init(root, SCHEMA, actor="soak")
        mutate(self.graph, 'insert Counter { name: "all", value: 0 }')
        self.workers = [Worker(str(root), f"worker{number}") for number in range(WORKERS)]
        self.draws = [Draw(random, number) for number in range(WORKERS)]
        self.model = [Rows() for _ in range(WORKERS)]
        self.commits = {commit.id for commit in self.graph.commits.list()}
        self._others = 0
        self.seen = Counter[str]()

    def play(self, number: int) -> None:
        """One round: everybody writes, one is killed, and the graph is compared."""
        plans = [self._plan(worker) for worker in range(WORKERS)]
        for worker, plan in zip(self.workers, plans, strict=True):
            worker.ask([operation.write for operation in plan])
        victim = number % WORKERS
        is_compacted = number % 5 == 0 and self._compact()
        done = self._kill(victim)
        for alive in set(range(WORKERS)) - {victim}:
            done[alive] = self.workers[alive].acknowledged(WRITES)
        for own, commits in done.items():
            self.commits.update(commits)
            self.seen["acknowledged writes"] += len(commits)
            if commits:
                self.model[own] = plans[own][len(commits) - 1].after
        self._compare(victim, plans[victim][len(done[victim]) :])
        self.seen["compactions between writes"] += is_compacted
        if number % 5 == 0 and not is_compacted:
            assert self._compact()

    def _plan(self, worker: int) -> list[Operation]:
        plan: list[Operation] = []
        for _ in range(WRITES):
            rows = plan[-1].after if plan else self.model[worker]
            plan.append(self.draws[worker].next(rows))
        return plan

    def _kill(self, victim: int) -> dict[int, list[str]]:
        """Kill somewhere in its work; gives what it acknowledged."""
        worker = self.workers[victim]
        commits = worker.acknowledged(self.random.randrange(WRITES))
        time.sleep(self.random.uniform(0, LONGEST_PAUSE))
        commits += worker.kill()
        worker.start()
        return {victim: commits}

    def _compact(self) -> bool:
        """Maintenance in the middle of it, unless others are faster each time."""

        def work(_: str, table: Table, commit: CommitIntent) -> TablePin:
            return compact(table, stamp=stamp(commit.id, "compaction", "maintenance"))

        for _ in range(3):
            with suppress(Conflict, VersionMismatch):
                maintain(self.graph, "main", work)
                self._others += 1
                return True
        return False

    def _compare(self, victim: int, unsure: list[Operation]) -> None:
        """All that was acknowledged is there, and of the write in flight all or nothing."""
        seen = read(self.graph)
        landed = 0
        if unsure:
            self.seen["kills that hit a write"] += 1
            possible = [*self.model]
            possible[victim] = unsure[0].after
            if seen == together(possible):
                landed = 1
                self.model = possible
        assert seen == together(self.model)
        self.seen["writes that had happened when their writer was killed"] += landed
        self._compare_commits(landed)

    def _compare_commits(self, landed: int) -> None:
        commits = [commit.id for commit in self.graph.commits.list()]
        assert self.commits <= set(commits)
        assert len(commits) == len(self.commits) + self._others + landed
        self.commits.update(commits)
        self._others = 0

    def abandon(self) -> None:
        """Leave no process behind."""
        for worker in self.workers:
            with suppress(AssertionError):
                worker.kill()

    def finish(self) -> None:
        """Let the workers end, settle what the killed ones left, and look once more."""
        for worker in self.workers:
            worker.stop()
        left = len(stored_intents(ControlObjects(self.graph.location)).intents)
        report = sweep(self.graph.location, Manifest(self.graph.location), now=FAR_FUTURE)
        assert len(report.recoveries) == left
        assert not report.notices
        for found in self.graph.recoveries():
            is_published = found.graph_commit_id in self.commits
            assert found.recovery_kind == ("RolledForward" if is_published else "RolledBack")
            self.seen[f"intents {found.recovery_kind}"] += 1
        assert read(og.open(str(self.graph.location))) == together(self.model)
        check_chain(str(self.graph.location))


@pytest.mark.slow
def test_random_kills(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    soak = Soak(tmp_path / "graph", Random(7))  # noqa: S311 - the same run every time
    for number in range(ROUNDS):
        try:
            soak.play(number)
        except BaseException as error:
            error.add_note(f"in round {number}")
            soak.abandon()
            raise
    soak.finish()
    assert soak.seen["kills that hit a write"] > ROUNDS / 2
    record_property("soak, rounds", ROUNDS)
    for name, count in soak.seen.items():
        record_property(f"soak, {name}", count)
