"""The systems side by side: how each stores the library, indexes it and answers.

Owns ours, and the raw Lance tables that our index builds are measured against. Rows come
back as Python rows. Every system runs in a process of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from bench.search.data import AUTHORS_FILE, DIMENSION, DOCUMENTS_FILE, WROTE_FILE
from bench.search.fusion import Rows
from bench.search.questions import Params, Question

OURS, PEER, RAW = "omnigraph", "lancedb", "lance"

SCHEMA = f"""
node Author {{ name: String @key  city: String @index }}
node Document {{
    slug: String @key
    text: String @index
    year: I32 @index
    meaning: Vector({DIMENSION}) @index
}}
edge Wrote: Author -> Document
"""


class System(Protocol):
    """What a process does on behalf of the benchmark."""

    def load(self, files: Path) -> None:
        """Store the library that these files hold."""

    def index(self) -> list[str]:
        """Build the indexes that the questions want; their names."""

    def ask(self, question: Question, params: Params) -> Rows:
        """The answer, as rows of Python values."""


def system(name: str, directory: Path) -> System:
    """A system that stores its library in a directory."""
    match name:
        case "omnigraph":
            return Omnigraph(directory)
        case "lance":
            return RawLance(directory)
    from bench.search.peer import LanceDb

    return LanceDb(directory)


class Omnigraph:
    """Ours."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "graph.omni"

    def load(self, files: Path) -> None:
        """As one commit, in this process: starting Spark is not what is measured."""
        import pyarrow.parquet as pq

        import omnigraph as og

        self.graph = og.init(self.path, SCHEMA)
        names = {"Document": DOCUMENTS_FILE, "Author": AUTHORS_FILE, "Wrote": WROTE_FILE}
        tables = {type_name: pq.read_table(files / name) for type_name, name in names.items()}
        self.graph.load(tables, mode="append", engine="inline")

    def index(self) -> list[str]:
        """What the schema asks for."""
        report = self.graph.ensure_indices()
        return [f"{one.type_key} {one.property} {one.kind}" for one in report.changes]

    def ask(self, question: Question, params: Params) -> Rows:
        """Through the façade, as a caller does."""
        result = self.graph.query(question.text, params=params)
        return [list(row.values()) for row in result.rows]


class RawLance:
    """The rows of our graph as plain Lance tables, which nobody asks anything."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.tables: dict[str, Any] = {}
        self.wanted: list[str] = []

    def load(self, files: Path) -> None:
        """From the graph that lies in a directory; its indexes are what is to be built."""
        import lance

        import omnigraph as og

        graph = og.open(files, read_only=True)
        for index in graph.index_status().indexes:
            if index.state == "complete":
                self.wanted.append(f"{index.type_key} {index.property} {index.kind}")
        for type_key in sorted({name.split()[0] for name in self.wanted}):
            rows = graph.table(type_key).to_table()
            path = self.directory / type_key.replace(":", "-")
            self.tables[type_key] = lance.write_dataset(
                rows, path, enable_stable_row_ids=True, max_bytes_per_file=2**30
            )

    def index(self) -> list[str]:
        """The same indexes, one after the other."""
        from omnigraph.storage.indexes.build import (
            ANALYZER,
            VECTOR_KINDS,
            build_options,
            partitions,
        )

        for name in self.wanted:
            type_key, property_, kind = name.split()
            table = self.tables[type_key]
            # An id is shown as `id`, and stored as `@id`.
            column = property_ if property_ in table.schema.names else f"@{property_}"
            named = f"{property_}_{kind}"
            if kind in VECTOR_KINDS:
                count = partitions(table.count_rows())
                table.create_index(
                    column,
                    kind,
                    named,
                    metric="cosine",
                    num_partitions=count,
                    **build_options(kind),
                )
            elif kind == "INVERTED":
                table.create_scalar_index(column, kind, named, with_position=True, **ANALYZER)
            else:
                table.create_scalar_index(column, kind, named)
        return self.wanted

    def ask(self, question: Question, params: Params) -> Rows:
        """It only stands beside the building of indexes."""
        raise AssertionError(f"raw Lance is asked {question.name} of {sorted(params)}")
