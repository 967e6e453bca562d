"""Schema changes beside four processes that write: nobody waits, and nothing is lost.

Writers know rows of their own, so that each of their writes must go through, or be refused by the
schema that they met.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import errors
from tests.evolve.evolving import held, make, node, shown
from tests.write.processes import check_chain, context

pytestmark = pytest.mark.slow
PROCESSES = 4
PATIENCE = 300
KNOWN = 10
"""So many rows of every writer are there from the beginning."""
LARGE = 1000
KNOWS = "edge Knows: Person -> Person { since: I32? }"
CITY = "node City { name: String @key }"
FILLED = "@default(-1) @range(years, -1..999)"


def schema(body: str, *others: str) -> str:
    return "\n".join([f"node Person {{ name: String @key  {body} }}", *others, ""])


SCHEMAS = [
    schema("age: I32?  note: String?", KNOWS),
    # Widened, and a column with a default.
    schema("age: I64?  note: String?  rank: I32 @default(5)", KNOWS),
    # Renamed, and a type more.
    schema('years: I64? @rename_from("age")  note: String?  rank: I32 @default(5)', CITY, KNOWS),
    # Tightened, with values for those that have none, and a limit that some writes break.
    schema(f"years: I64 {FILLED}  note: String?  rank: I32 @default(5)", CITY, KNOWS),
    # Dropped, and edges under another name.
    schema(
        f"years: I64 {FILLED}  rank: F64 @default(5)",
        'edge Met: Person -> Person @rename_from("Knows") { since: I32? }',
    ),
]
COLUMNS = [
    {"name", "age", "note"},
    {"name", "age", "note", "rank"},
    {"name", "years", "note", "rank"},
    {"name", "years", "note", "rank"},
    {"name", "years", "rank"},
]


@dataclass
class Ledger:
    """What a writer has done: its rows by name with their ages, and what it was refused."""

    ages: dict[str, int | None] = field(default_factory=dict)
    edges: int = 0
    done: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)


class Writer:
    """Inserts, updates and deletes rows of its own, in the words of the schema of the moment."""

    def __init__(self, root: str, actor: str) -> None:
        self.graph = og.open(root, actor=actor)
        self.actor = actor
        self.ledger = Ledger({f"{actor}-old{n}": n for n in range(KNOWN)})
        self.number = 0

    def work(self) -> None:
        """One write of each kind."""
        self.number += 1
        name = f"{self.actor}-{self.number}"
        age = None if self.number % 5 == 0 else self.number % LARGE
        self._run("insert", name, age, self._insert)
        if self.graph.catalog.nodes["Person"].ranges:
            self._run("insert", f"{name}-large", LARGE, self._insert)
        known = sorted(self.ledger.ages)
        changed = known[self.number % len(known)]
        self._run("update", changed, self.number % LARGE, self._update)
        if self.number % 3 == 0:
            self._run("delete", known[-1], None, self._delete)

    def _names(self) -> tuple[str, str]:
        """What an age and an edge are called."""
        catalog = self.graph.catalog
        age = "age" if "age" in catalog.nodes["Person"].properties else "years"
        return age, next(iter(catalog.edges))

    def _run(
        self, kind: str, name: str, age: int | None, write: Callable[[str, int | None], None]
    ) -> None:
        while True:
            try:
                write(name, age)
            except errors.TypeCheckError:
                # The schema has changed since it was looked at.
                self.ledger.refused["other names"] += 1
                continue
            except errors.ValidationError:
                if age is None or age < LARGE:
                    raise
                self.ledger.refused["too large"] += 1
            else:
                self.ledger.done[kind] += 1
            return

    def _insert(self, name: str, age: int | None) -> None:
        column, edge = self._names()
        given = "" if age is None else f"{column}: {age}"
        self.graph.mutate(
            f"query q($n: String) {{ insert Person {{ name: $n {given} }} "
            f"insert {edge} {{ from: $n, to: $n }} }}",
            params={"n": name},
        )
        self.ledger.ages[name] = age
        self.ledger.edges += 1

    def _update(self, name: str, age: int | None) -> None:
        column, _ = self._names()
        self.graph.mutate(
            f"query q($n: String) {{ update Person set {{ {column}: {age} }} where name = $n }}",  # noqa: S608 - no SQL
            params={"n": name},
        )
        self.ledger.ages[name] = age

    def _delete(self, name: str, _: int | None) -> None:
        self.graph.mutate(
            "query q($n: String) { delete Person where name = $n }", params={"n": name}
        )
        del self.ledger.ages[name]
        self.ledger.edges -= 0 if "old" in name else 1


def write_until(root: str, actor: str, line: Barrier, over: Event, answer: Connection) -> None:
    writer = Writer(root, actor)
    line.wait(PATIENCE)
    while not over.is_set():
        writer.work()
    answer.send(writer.ledger)


def test_schemas_change_beside_writing_processes(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    actors = [f"w{number}" for number in range(PROCESSES)]
    graph = make(
        root,
        SCHEMAS[0],
        [node("Person", name=f"{a}-old{n}", age=n) for a in actors for n in range(KNOWN)],
    )
    line, over = context.Barrier(PROCESSES + 1), context.Event()
    answers, processes = [], []
    for actor in actors:
        receiver, sender = context.Pipe(duplex=False)
        arguments = (str(root), actor, line, over, sender)
        processes.append(context.Process(target=write_until, args=arguments))
        answers.append(receiver)
        processes[-1].start()
        sender.close()
    line.wait(PATIENCE)
    changes: list[str] = []
    beside: list[int] = []
    try:
        for text in SCHEMAS[1:]:
            wait_for_writers(graph)
            done = graph.apply_schema(text, actor="schemas")
            assert done.commit is not None
            changes.append(done.commit.id)
            beside.append(len(graph.commits.list()))
        wait_for_writers(graph)
    finally:
        over.set()
    ledgers: list[Ledger] = [answer.recv() for answer in answers]
    for process in processes:
        process.join(PATIENCE)
        assert process.exitcode == 0
    check_rows(graph, ledgers)
    check_past(graph, changes)
    counts = check_chain(root)
    assert counts["schemas"] == len(SCHEMAS) - 1
    for actor, ledger in zip(actors, ledgers, strict=True):
        assert counts[actor] == sum(ledger.done.values())
    assert all(ledger.done[kind] for ledger in ledgers for kind in ("insert", "update", "delete"))
    assert beside == sorted(set(beside))


def wait_for_writers(graph: og.Graph) -> None:
    """Until every writer has written something."""
    before = Counter(commit.actor for commit in graph.commits.list())
    while True:
        now = Counter(commit.actor for commit in graph.commits.list())
        if all(now[f"w{n}"] > before[f"w{n}"] + 2 for n in range(PROCESSES)):
            return


def check_rows(graph: og.Graph, ledgers: list[Ledger]) -> None:
    """Every row that was written is there, and none that was not."""
    expected = {name: age for ledger in ledgers for name, age in ledger.ages.items()}
    rows = shown(og.open(str(graph.location)))
    found = {name: row["years"] for name, row in rows["Person"].items()}
    assert found == {name: -1 if age is None else age for name, age in expected.items()}
    assert {row["rank"] for row in rows["Person"].values()} == {5.0}
    assert len(rows["Met"]) == sum(ledger.edges for ledger in ledgers)


def check_past(graph: og.Graph, changes: list[str]) -> None:
    """What every commit shows obeys the schema that it has."""
    commits = [commit.id for commit in graph.commits.list()][::-1]
    places = [commits.index(change) for change in changes]
    near = {place + step for place in places for step in (-1, 0, 1)}
    for place in sorted(near | set(range(0, len(commits), 25))):
        if place >= len(commits):
            continue
        rows = held(graph.snapshot(commit=commits[place]))["Person"]
        era = len([one for one in places if one <= place])
        for row in rows.values():
            assert set(row) == COLUMNS[era]
            assert era < 1 or row["rank"] == 5
            assert era < 3 or -1 <= row["years"] < LARGE
