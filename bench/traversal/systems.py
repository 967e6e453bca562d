"""The systems that are asked: ours and its peers, each behind the same three calls.

Owns how each loads the files, opens what it has stored, and answers in Python rows.
Every system runs in a process of its own: some peers cannot share one.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from bench.traversal.data import EDGES_FILE, PEOPLE_FILE
from bench.traversal.questions import Params, Question

Rows = list[list[Any]]
OURS = "omnigraph"
PEERS = ("ladybug", "kuzu", "duckdb")

SCHEMA = """
node Person { name: String @key  age: I32  city: String }
edge Knows: Person -> Person { weight: F64 }
"""


class System(Protocol):
    """What a process does on behalf of the benchmark."""

    def load(self, files: Path) -> None:
        """Store the graph that these files hold."""

    def open(self) -> None:
        """Open what was stored."""

    def ask(self, question: Question, params: Params) -> Rows:
        """The answer, as rows of Python values."""


def is_installed(name: str) -> bool:
    """Whether a system can be asked here."""
    return find_spec(name) is not None


def system(name: str, directory: Path) -> System:
    """A system that stores its graph in a directory."""
    match name:
        case "omnigraph":
            return Omnigraph(directory)
        case "duckdb":
            return Duck(directory)
    return Cypher(name, directory)


class Omnigraph:
    """Ours."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "graph.omni"

    def load(self, files: Path) -> None:
        """As one commit."""
        import pyarrow.parquet as pq

        import omnigraph.graph as og

        self.graph = og.init(self.path, SCHEMA)
        people = pq.read_table(files / PEOPLE_FILE, columns=["name", "age", "city"])
        edges = pq.read_table(files / EDGES_FILE, columns=["from", "to", "weight"])
        self.graph.load({"Person": people, "Knows": edges}, mode="append")

    def open(self) -> None:
        """With the caches of this process as they are."""
        import omnigraph.graph as og

        self.graph = og.open(self.path)

    def ask(self, question: Question, params: Params) -> Rows:
        """Through the façade, as a caller does."""
        result = self.graph.query(question.text(OURS), params=params)
        return [list(row.values()) for row in result.rows]


class Cypher:
    """Kuzu and its successor, which share their interface."""

    def __init__(self, module: str, directory: Path) -> None:
        self.module: Any = import_module(module)
        self.path = directory / module
        self.prepared: dict[str, Any] = {}

    def load(self, files: Path) -> None:
        """With the name as the primary key."""
        self.open()
        run = self.connection.execute
        run("CREATE NODE TABLE Person(name STRING PRIMARY KEY, age INT32, city STRING)")
        run("CREATE REL TABLE Knows(FROM Person TO Person, weight DOUBLE)")
        people, edges = files / PEOPLE_FILE, files / EDGES_FILE
        run(f"COPY Person FROM (LOAD FROM '{people}' RETURN name, age, city)")
        run(f"COPY Knows FROM (LOAD FROM '{edges}' RETURN `from`, `to`, weight)")

    def open(self) -> None:
        """One connection with the threads it chooses."""
        self.database = self.module.Database(str(self.path))
        self.connection = self.module.Connection(self.database)

    def ask(self, question: Question, params: Params) -> Rows:
        """Prepared once."""
        text = question.text(self.module.__name__)
        statement = self.prepared.get(text)
        if statement is None:
            statement = self.connection.prepare(text, params)
            self.prepared[text] = statement
        return [list(row) for row in self.connection.execute(statement, params).get_all()]


class Duck:
    """Relational: people by number, edges as pairs of numbers, both indexed."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "duck.db"

    def load(self, files: Path) -> None:
        """Numbers instead of texts as the ends of edges: its best case."""
        self.open()
        people, edges = files / PEOPLE_FILE, files / EDGES_FILE
        columns = "number INTEGER PRIMARY KEY, name VARCHAR UNIQUE, age INTEGER, city VARCHAR"
        self.connection.execute(f"CREATE TABLE person({columns})")
        self.connection.execute("CREATE TABLE knows(src INTEGER, dst INTEGER)")
        read = "SELECT number, name, age, city FROM read_parquet(?)"
        self.connection.execute(f"INSERT INTO person {read}", [str(people)])
        self.connection.execute(
            "INSERT INTO knows SELECT src, dst FROM read_parquet(?)", [str(edges)]
        )
        self.connection.execute("CREATE INDEX knows_src ON knows(src)")

    def open(self) -> None:
        """One connection with the threads it chooses."""
        duckdb: Any = import_module("duckdb")
        self.connection = duckdb.connect(str(self.path))

    def ask(self, question: Question, params: Params) -> Rows:
        """With the parameters bound."""
        return [
            list(row) for row in self.connection.execute(question.text("duckdb"), params).fetchall()
        ]
