"""Readers while writers commit: every answer is of one commit, never a mixture of two."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from random import Random

import pytest

import omnigraph as og
from omnigraph.read.plan.physical import Expansion
from tests.write.processes import context

pytestmark = pytest.mark.slow
PATIENCE = 300
WRITERS = 2
READERS = 2
COMMITS = 20
SCHEMA = """\
node Debit { name: String @key  amount: I64 }
node Credit { name: String @key  amount: I64 }
edge Settles: Debit -> Credit { amount: I64 }
"""
PAY = """
query pay($n: String, $a: I64) {
  insert Debit { name: $n, amount: $a }
  insert Credit { name: $n, amount: $a }
  insert Settles { from: $n, to: $n, amount: $a }
}
query change($n: String, $a: I64) {
  update Debit set { amount: $a } where name = $n
  update Credit set { amount: $a } where name = $n
  update Settles set { amount: $a } where from = $n
}
query drop($n: String) {
  delete Debit where name = $n
  delete Credit where name = $n
}
"""
# With as many debits as credits, each sum of the product is the sum times the same count.
BALANCE = """
query balance() {
  match { $d: Debit $c: Credit }
  return { sum($d.amount) as debit, sum($c.amount) as credit, count($d) as n }
}
query unsettled() {
  match {
    $d: Debit
    not { $d $s:settles $c $s.amount = $d.amount $c.amount = $d.amount $c.name = $d.name }
  }
  return { $d.name, $d.amount }
}
query settled() {
  match { $d: Debit count { $d settles $c } = 1 }
  return { count($d) as n }
}
query debits() {
  match { $d: Debit }
  return { count($d) as n }
}
"""


def write(root: str, actor: str, seed: int, line: Barrier, answer: Connection) -> None:
    """Commit changes of three types at once, each of which keeps the books balanced."""
    graph = og.open(root, actor=actor)
    rng = Random(seed)  # noqa: S311 - for tests, not for secrets
    mine: list[str] = []
    line.wait(PATIENCE)
    for number in range(COMMITS):
        roll = rng.random()
        if len(mine) < 3 or roll < 0.4:
            name = f"{actor}-{number}"
            graph.mutate(PAY, "pay", {"n": name, "a": rng.randint(1, 1000)})
            mine.append(name)
        elif roll < 0.8:
            graph.mutate(PAY, "change", {"n": rng.choice(mine), "a": rng.randint(1, 1000)})
        else:
            graph.mutate(PAY, "drop", {"n": mine.pop(rng.randrange(len(mine)))})
    answer.send(COMMITS)


def read(root: str, number: int, line: Barrier, over: Event, answer: Connection) -> None:
    """Ask until the writers are done; tells at how many commits, and what was wrong."""
    graph = og.open(root, read_only=True)
    ways: tuple[Expansion, ...] = ("auto", "csr", "indexed")
    commits: set[str] = set()
    problems: list[str] = []
    line.wait(PATIENCE)
    last = False
    turn = number
    while not last:
        # Once more after the last commit.
        last = over.is_set()
        turn += 1
        way = ways[turn % 3]
        balance = graph.query(BALANCE, "balance", expansion=way)
        (row,) = balance.rows
        if row["debit"] != row["credit"]:
            problems.append(f"{balance.commit_id}: {row}")
        unsettled = graph.query(BALANCE, "unsettled", expansion=way)
        if unsettled.rows:
            problems.append(f"{unsettled.commit_id}: {unsettled.rows}")
        # Two queries of one commit agree, however many commits there were in between.
        at = unsettled.commit_id
        settled = graph.query(BALANCE, "settled", snapshot=at, expansion=way)
        debits = graph.query(BALANCE, "debits", snapshot=at)
        if settled.rows != debits.rows:
            problems.append(f"{at}: {settled.rows} settled of {debits.rows}")
        commits |= {balance.commit_id, at}
    answer.send((len(commits), problems))


def test_readers_never_see_a_mixture(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    root = str(tmp_path / "graph")
    og.init(root, SCHEMA).mutate(PAY, "pay", {"n": "first", "a": 1})
    line = context.Barrier(WRITERS + READERS)
    over = context.Event()
    writers, readers = [], []
    for number in range(WRITERS):
        answer, theirs = context.Pipe(duplex=False)
        arguments = (root, f"w{number}", number, line, theirs)
        writers.append((context.Process(target=write, args=arguments, daemon=True), answer))
    for number in range(READERS):
        answer, theirs = context.Pipe(duplex=False)
        process = context.Process(target=read, args=(root, number, line, over, theirs), daemon=True)
        readers.append((process, answer))
    for process, _ in (*writers, *readers):
        process.start()
    for process, answer in writers:
        assert answer.poll(PATIENCE), "a writer gave no answer"
        assert answer.recv() == COMMITS
        process.join(PATIENCE)
    over.set()
    for process, answer in readers:
        assert answer.poll(PATIENCE), "a reader gave no answer"
        seen, problems = answer.recv()
        assert problems == []
        assert seen > 1, "the reader saw no commit happen"
        record_property("commits seen by readers", seen)
        process.join(PATIENCE)
        assert process.exitcode == 0


def test_a_result_stays_what_it_was(tmp_path: Path) -> None:
    """A snapshot taken before a write answers the same after it, deletes and updates included."""
    graph = og.init(tmp_path / "graph", SCHEMA)
    for name in ("a", "b"):
        graph.mutate(PAY, "pay", {"n": name, "a": 5})
    before = graph.query(BALANCE, "balance")
    text = "query q() { match { $d: Debit $d settles $c } return { $d.name, $c.amount } }"
    old = graph.query(text)
    graph.mutate(PAY, "change", {"n": "a", "a": 9})
    graph.mutate(PAY, "drop", {"n": "b"})
    for way in ("auto", "csr", "indexed"):
        again = graph.query(text, snapshot=old.commit_id, expansion=way)
        assert again.to_arrow().sort_by("d.name") == old.to_arrow().sort_by("d.name")
        assert (again.snapshot, again.branch) == (old.commit_id, None)
        assert graph.query(text, expansion=way).rows == [{"d.name": "a", "c.amount": 9}]
    assert graph.query(BALANCE, "balance", snapshot=before.commit_id).rows == before.rows
