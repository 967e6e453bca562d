"""The systems that branch and merge: ours, and a peer with branches in SQL.

Owns how each makes a branch, changes rows on it, counts what differs and merges. Each step
returns its own seconds: what leads up to it costs nobody anything.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.objects.meter import measure

OURS, PEER = "omnigraph", "doltlite"
SCHEMA = "node Person { name: String @key  age: I32?  city: String?  score: F64? }"

Sums = tuple[int, int, float]


@dataclass(frozen=True, slots=True)
class Differing:
    """How many rows differ between two branches, and how long it took to know."""

    seconds: float
    rows: int


@dataclass(frozen=True, slots=True)
class Merged:
    """How long a merge took, and its requests to storage where they can be counted."""

    seconds: float
    requests: int = 0


class Brancher(Protocol):
    """What is asked of a system; the table is called Person, the target main."""

    def load(self, rows: pa.Table) -> None:
        """Make the table."""

    def branch(self, name: str) -> float:
        """Fork a branch from main."""

    def change(self, branch: str, rows: pa.Table) -> float:
        """Insert or replace rows, as one commit."""

    def diff(self, name: str) -> Differing:
        """What a branch has that main has otherwise."""

    def merge(self, name: str) -> Merged:
        """Merge a branch into main."""

    def sums(self) -> Sums:
        """Rows, the sum of their ages, the sum of the scores of those from the beginning."""


class Omnigraph:
    """Ours, through the façade."""

    def __init__(self, directory: Path) -> None:
        import omnigraph.graph as og

        self.graph = og.init(directory / "graph.omni", SCHEMA)

    def load(self, rows: pa.Table) -> None:
        """As one commit."""
        self.graph.load({"Person": rows}, mode="append", engine="inline")

    def branch(self, name: str) -> float:
        """Fork a branch from main."""
        begun = time.perf_counter()
        self.graph.branches.create(name)
        return time.perf_counter() - begun

    def change(self, branch: str, rows: pa.Table) -> float:
        """Insert or replace rows by their key."""
        begun = time.perf_counter()
        self.graph.load({"Person": rows}, mode="merge", branch=branch, engine="inline")
        return time.perf_counter() - begun

    def diff(self, name: str) -> Differing:
        """Every row of difference is found and counted."""
        begun = time.perf_counter()
        found = self.graph.diff("main", name).stats
        seconds = time.perf_counter() - begun
        return Differing(seconds, sum(counted.total for counted in found))

    def merge(self, name: str) -> Merged:
        """As one commit with two parents."""
        with measure() as meter:
            begun = time.perf_counter()
            self.graph.branches.merge(name)
            seconds = time.perf_counter() - begun
        return Merged(seconds, meter.total)

    def sums(self) -> Sums:
        """As main has them."""
        rows = self.graph.table("Person").to_table(columns=["name", "age", "score"])
        first = rows.filter(pc.starts_with(rows["name"], "p"))
        return rows.num_rows, pc.sum(rows["age"]).as_py(), pc.sum(first["score"]).as_py()


class Doltlite:
    """A table with a primary key in a database that has branches; one connection."""

    def __init__(self, directory: Path) -> None:
        # The engine takes the place of SQLite in this process, so it has to come first.
        import_module("doltlite")
        sqlite: Any = import_module("sqlite3")
        self.connection = sqlite.connect(str(directory / "people.db"), isolation_level=None)

    def load(self, rows: pa.Table) -> None:
        """With the name as the primary key."""
        columns = "name TEXT PRIMARY KEY, age INTEGER, city TEXT, score REAL"
        self._ask(f"CREATE TABLE person({columns})")
        self._put(rows)
        self._commit()

    def branch(self, name: str) -> float:
        """Fork a branch from main."""
        return self._timed("SELECT dolt_branch(?)", name)

    def change(self, branch: str, rows: pa.Table) -> float:
        """In one transaction, then one commit; main is checked out again."""
        self._ask("SELECT dolt_checkout(?)", branch)
        begun = time.perf_counter()
        self._put(rows)
        self._commit()
        seconds = time.perf_counter() - begun
        self._ask("SELECT dolt_checkout('main')")
        return seconds

    def diff(self, name: str) -> Differing:
        """As its statistics count it."""
        counts = "SUM(rows_added + rows_deleted + rows_modified)"
        begun = time.perf_counter()
        ((rows,),) = self._ask(f"SELECT {counts} FROM dolt_diff_stat('main', ?)", name)  # noqa: S608 - a constant
        return Differing(time.perf_counter() - begun, int(rows))

    def merge(self, name: str) -> Merged:
        """Into main, which is checked out."""
        return Merged(self._timed("SELECT dolt_merge(?)", name))

    def sums(self) -> Sums:
        """As main has them."""
        ((count, ages),) = self._ask("SELECT COUNT(*), SUM(age) FROM person")
        ((scores,),) = self._ask("SELECT SUM(score) FROM person WHERE name LIKE 'p%'")
        return count, ages, scores

    def _put(self, rows: pa.Table) -> None:
        values = zip(*(column.to_pylist() for column in rows.columns), strict=True)
        self._ask("BEGIN")
        self.connection.executemany("INSERT OR REPLACE INTO person VALUES (?, ?, ?, ?)", values)
        self._ask("COMMIT")

    def _commit(self) -> None:
        self._ask("SELECT dolt_commit('-A', '-m', 'change')")

    def _timed(self, statement: str, *values: object) -> float:
        begun = time.perf_counter()
        self._ask(statement, *values)
        return time.perf_counter() - begun

    def _ask(self, statement: str, *values: object) -> list[Any]:
        found: list[Any] = self.connection.execute(statement, values).fetchall()
        return found
