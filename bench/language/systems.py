"""The two systems that are asked: ours, and DuckDB over the same rows in memory as Arrow.

Owns how each gets at the files, and answers in Python rows. Each runs in a process of its own.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from bench.traversal.data import EDGES_FILE, PEOPLE_FILE
from bench.traversal.questions import Params, Question
from bench.traversal.systems import OURS, Omnigraph, Rows, System

PEER = "duckdb"

SCHEMA = """
node Person {
    name: String @key
    age: I32
    city: String
    mail: String?
    born: Date
    joined: DateTime
    number: I64
}
edge Knows: Person -> Person { weight: F64  since: Date }
"""


def system(name: str, directory: Path) -> System:
    """A system, and where it may store what it is given."""
    return Ours(directory) if name == OURS else ArrowDuck()


class Ours(Omnigraph):
    """Ours, with its own schema."""

    def load(self, files: Path) -> None:
        """As one commit."""
        import pyarrow.parquet as pq

        import omnigraph.graph as og

        self.graph = og.init(self.path, SCHEMA)
        edges = pq.read_table(files / EDGES_FILE, columns=["from", "to", "weight", "since"])
        people = pq.read_table(files / PEOPLE_FILE)
        self.graph.load({"Person": people, "Knows": edges}, mode="append")


class ArrowDuck:
    """DuckDB, which reads Arrow's memory as it is."""

    def load(self, files: Path) -> None:
        """The tables into memory; edges by number and moments without a zone are its best case."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        duckdb: Any = import_module("duckdb")
        self.connection = duckdb.connect()
        columns = ["src", "dst", "weight", "since"]
        people = pq.read_table(files / PEOPLE_FILE)
        place = people.schema.get_field_index("joined")
        moments = people["joined"].cast(pa.timestamp("ms"))
        self.connection.register("person", people.set_column(place, "joined", moments))
        self.connection.register("knows", pq.read_table(files / EDGES_FILE, columns=columns))

    def open(self) -> None:
        """It is in memory, or nowhere."""

    def ask(self, question: Question, params: Params) -> Rows:
        """With the parameters bound."""
        found = self.connection.execute(question.text(PEER), params).fetchall()
        return [list(row) for row in found]
