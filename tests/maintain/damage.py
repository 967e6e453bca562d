"""Damage planted in the files of a graph, with Lance and plain files alone.

One small graph is made once and copied: a graph is a directory like any other.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from lance import LanceOperation
from lance.dataset import LanceDataset, Transaction
from lance.fragment import write_fragments

import omnigraph as og

SCHEMA = """
node Person {
    name: String @key
    age: I32
    @range(age, 0..150)
    mail: String? @unique
    bio: String? @index
    mood: enum(merry, grim)?
}
node City { title: String @key }
edge LivesIn: Person -> City @card(0..1) { since: I32? }
edge Knows: Person -> Person { weight: F64? }
"""
PEOPLE = 40


def people() -> Iterator[dict[str, Any]]:
    for number in range(PEOPLE):
        yield {
            "type": "Person",
            "data": {
                "name": f"p{number:02}",
                "age": number,
                "mail": f"p{number:02}@example.com",
                "bio": f"sailor number {number} of the fleet",
                "mood": "merry",
            },
        }
    for title in ("Oslo", "Bergen"):
        yield {"type": "City", "data": {"title": title}}
    for number in range(20):
        yield {"edge": "LivesIn", "from": f"p{number:02}", "to": "Oslo"}
        yield {"edge": "Knows", "from": f"p{number:02}", "to": f"p{number + 1:02}"}


def make_graph(place: Path) -> og.Graph:
    """Loaded, indexed, with a row deleted, then written to on main and on a branch."""
    graph = og.init(place, SCHEMA)
    graph.load(list(people()), mode="append")
    graph.ensure_indices()
    graph.mutate('query a() { delete Person where name = "p39" }')
    graph.branches.create("dev")
    graph.mutate('query a() { insert Person { name: "zoe", age: 3 } }', branch="dev")
    graph.mutate('query a() { insert City { title: "Tromsø" } }')
    return graph


@dataclass
class Patient:
    """A copy of the graph, and where its parts lie."""

    root: Path
    graph: og.Graph

    @classmethod
    def of(cls, source: Path, place: Path) -> Patient:
        shutil.copytree(source, place)
        return cls(place, og.open(place, read_only=True))

    def table(self, key: str = "node:Person", branch: str = "main") -> Path:
        return self.root / self.graph.snapshot(branch).tables[key].table.path

    def version(self, key: str = "node:Person", branch: str = "main") -> int:
        return self.graph.snapshot(branch).tables[key].pin.version

    def dataset(self, key: str = "node:Person", branch: str = "main") -> LanceDataset:
        return lance.dataset(str(self.table(key, branch)), version=self.version(key, branch))

    def version_file(self, key: str = "node:Person", branch: str = "main") -> Path:
        return self.table(key, branch) / "_versions" / f"d{self.version(key, branch)}.manifest"

    def data_file(self, key: str = "node:Person", branch: str = "main", at: int = 0) -> Path:
        file = self.dataset(key, branch).get_fragments()[at].metadata.files[0]
        return self.table(key, branch) / "data" / file.path

    def deletion_file(self) -> Path:
        (found,) = (self.table() / "_deletions").iterdir()
        return found

    def index_files(self, key: str = "node:Person", kind: str = "BTree") -> list[Path]:
        found = next(one for one in self.dataset(key).describe_indices() if one.index_type == kind)
        return sorted((self.table(key) / "_indices" / str(found.segments[0].uuid)).glob("*.*"))

    def branch_id(self, branch: str = "main") -> str:
        return self.graph.manifest.branch_id(branch)

    def manifest(self, branch: str = "main") -> Path:
        return self.root / "__manifest" / self.branch_id(branch)

    def manifest_data(self, branch: str = "main") -> Path:
        """The file of the newest head of a branch."""
        found = lance.dataset(str(self.manifest(branch)))
        newest = max(found.get_fragments(), key=lambda one: one.fragment_id)
        return self.manifest(branch) / "data" / newest.metadata.files[0].path

    # -- publishing what nobody checked ----------------------------------------------

    def publish_rows(self, key: str, rows: pa.Table) -> None:
        """Add rows to a table, and let the head of main show them."""
        dataset = self.dataset(key)
        whole = pa.table(
            [
                rows.column(one.name)
                if one.name in rows.column_names
                else pa.nulls(len(rows), one.type)
                for one in dataset.schema
            ],
            schema=dataset.schema,
        )
        staged = write_fragments(whole, dataset, mode="append", data_storage_version="2.2")
        self.publish(key, LanceOperation.Append(staged), dataset.count_rows() + len(rows))

    def publish(self, key: str, operation: Any, rows: int) -> None:
        """Commit to a table, and let the head of main show it."""
        transaction = Transaction(self.version(key), operation)
        made = LanceDataset.commit(self.dataset(key), transaction, detached=True)
        identity = self.graph.snapshot().tables[key].identity

        def moved(row: dict[str, Any]) -> dict[str, Any]:
            if row["object_type"] == "table_version" and row["object_id"] == newest:
                known = json.loads(row["metadata"])
                known = {
                    "lance_version": made.version,
                    "transaction_uuid": known["transaction_uuid"],
                }
                return row | {"row_count": rows, "metadata": json.dumps(known)}
            return row

        version = self.graph.snapshot().tables[key].version
        newest = f"table_version:{identity}:{version:020d}"
        self.rewrite_head(moved)

    def rewrite_head(
        self, change: Callable[[dict[str, Any]], dict[str, Any] | None], branch: str = "main"
    ) -> None:
        """Publish other rows as the head of a branch, as if its newest commit had."""
        dataset = lance.dataset(str(self.manifest(branch)))
        *log, head = sorted(dataset.get_fragments(), key=lambda one: one.fragment_id)
        branch_id, version = self.branch_id(branch), dataset.version

        def moved(row: dict[str, Any]) -> dict[str, Any]:
            known = json.loads(row["metadata"] or "{}")
            if row["object_type"] != "graph_commit" or known["stored"] != [branch_id, version]:
                return row
            return row | {"metadata": json.dumps(known | {"stored": [branch_id, version + 1]})}

        rows = [
            moved(one) for row in head.to_table().to_pylist() if (one := change(row)) is not None
        ]
        table = pa.Table.from_pylist(rows, schema=dataset.schema)
        (written,) = write_fragments(table, dataset, mode="append", data_storage_version="2.2")
        keep = [one.metadata for one in log]
        whole = LanceOperation.Overwrite(dataset.lance_schema, [*keep, written])
        LanceDataset.commit(dataset, Transaction(dataset.version, whole), max_retries=0)


def flip(path: Path, at: float = 0.5) -> None:
    """Turn over one bit."""
    data = bytearray(path.read_bytes())
    data[int(len(data) * at)] ^= 0x10
    path.write_bytes(data)


def cut(path: Path, at: float = 0.5) -> None:
    """Cut a file."""
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * at)])
