"""Both engines side by side: the same input into two graphs, and what became of it.

What only one of them can know is put aside: the ids and addresses that a load makes up, and
where the files of the input lie.
"""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.errors import OmniGraphError
from omnigraph.pipeline.load import entry
from omnigraph.pipeline.spark import tasks
from omnigraph.pipeline.spark.engine import SparkEngine
from omnigraph.write.load import input as load_input
from tests.pipeline.batches import Batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ULID = re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b")
# What is kept about operations, and not of the graph.
_RECORDS = ("__recovery", "_graph_commit_recoveries.lance")


def plain(text: str) -> str:
    """A text without the ids that a load made up."""
    return _ULID.sub("<made up>", text)


def content(graph: og.Graph, branch: str = "main") -> list[str]:
    """Every entity of a branch, as it would be exported, in some order."""
    return sorted(map(plain, graph.export(branch=branch)))


def files_of(graph: og.Graph) -> set[str]:
    """All files below the root of a graph but the records of operations."""
    root = Path(graph.location.path)
    found = (one.relative_to(root) for one in root.rglob("*") if one.is_file())
    return {str(one) for one in found if one.parts[0] not in _RECORDS}


@dataclass(frozen=True)
class Outcome:
    """What became of a load."""

    error: OmniGraphError | None = None
    nodes: Mapping[str, int] = field(default_factory=dict)
    edges: Mapping[str, int] = field(default_factory=dict)
    codes: Mapping[str, int] = field(default_factory=dict)
    rejects: tuple[Mapping[str, Any], ...] = ()
    is_published: bool = False

    @property
    def refusal(self) -> tuple[str, str | None] | None:
        """The kind of the error, and the rule it names."""
        if self.error is None:
            return None
        return type(self.error).__name__, self.error.details.get("rule")

    def verdict(self) -> Mapping[str, Any]:
        """All that the engines must agree on."""
        return {
            "refusal": self.refusal,
            "nodes": dict(self.nodes),
            "edges": dict(self.edges),
            "codes": dict(self.codes),
            "is_published": self.is_published,
            "too many": self.error is not None
            and "max_rejects" in self.error.details
            and self.error.details["codes"],
        }


def run(
    graph: og.Graph,
    given: object,
    engine: str,
    listed: Path,
    spark: SparkSession | None = None,
    **options: Any,
) -> Outcome:
    """Load with one engine; ``listed`` is the directory for the rejects.

    "bulk" is the bulk load of this process, also of what a request could carry.
    """
    named = "inline" if engine == "bulk" else engine
    try:
        with pytest.MonkeyPatch.context() as patch:
            if engine == "bulk":
                patch.setattr(load_input, "is_request_sized", lambda *_: False)
            result = graph.load(given, engine=named, rejects=str(listed), spark=spark, **options)
    except OmniGraphError as error:
        return Outcome(error, rejects=rejects_in(listed))
    assert result.engine == named
    assert (result.work is None) == (engine == "inline")
    assert result.rejected == len(rejects_in(listed))
    return Outcome(
        None,
        result.nodes,
        result.edges,
        result.rejects,
        rejects_in(listed),
        result.published is not None,
    )


def rejects_in(directory: Path) -> tuple[Mapping[str, Any], ...]:
    """The rejects that a load has listed, files known by their names alone."""
    found = [
        json.loads(line)
        for file in sorted(directory.glob("*.jsonl"))
        for line in file.read_bytes().split(b"\n")
        if line
    ]
    return tuple(
        {**one, "file": Path(one["file"]).stem, "message": plain(one["message"])} for one in found
    )


@dataclass
class Twins:
    """Two graphs that are given the same, one inline and one on Spark or in bulk."""

    directory: Path
    inline: og.Graph
    on_spark: og.Graph
    spark: SparkSession | None = None
    way: str = "spark"
    loads: int = 0

    @classmethod
    def make(
        cls, directory: Path, schema: str, spark: SparkSession | None = None, way: str = "spark"
    ) -> Twins:
        """Two empty graphs."""
        inline, on_spark = (og.init(directory / name, schema) for name in ("inline", "spark"))
        return cls(directory, inline, on_spark, spark, way)

    def both(self) -> tuple[og.Graph, og.Graph]:
        """The graphs."""
        return self.inline, self.on_spark

    def load(self, batch: Batch, **options: Any) -> Outcome:
        """Load lines into both, and hold what became of it together."""
        place = self._place()
        paths = batch.write(place)
        return self._compared(place, paths, paths, **options)

    def load_tables(self, tables: Mapping[str, pa.Table], **options: Any) -> Outcome:
        """The same for tables by type: as they are, and as files."""
        place = self._place()
        place.mkdir(parents=True)
        paths = {name: place / f"{name}.parquet" for name in tables}
        for name, table in tables.items():
            pq.write_table(table, paths[name], row_group_size=50)
        return self._compared(place, tables, paths, **options)

    def _place(self) -> Path:
        self.loads += 1
        return self.directory / f"load-{self.loads}"

    def _compared(
        self, place: Path, inline: object, on_spark: object, *, branch: str = "main", **options: Any
    ) -> Outcome:
        options["branch"] = branch
        before = [_heads(graph) for graph in self.both()]
        expected = run(self.inline, inline, "inline", place / "inline", **options)
        found = run(self.on_spark, on_spark, self.way, place / "spark", self.spark, **options)
        assert_same("rejects", found.rejects, expected.rejects)
        assert_same("results", list(found.verdict().items()), list(expected.verdict().items()))
        if expected.is_published:
            assert_same("graphs", content(self.on_spark, branch), content(self.inline, branch))
            assert_same("branches", *(graph.branches.list() for graph in self.both()))
        else:
            assert [_heads(graph) for graph in self.both()] == before
        return expected


def _heads(graph: og.Graph) -> dict[str, str]:
    """The commit that every branch shows."""
    return {branch: graph.snapshot(branch).commit_id for branch in graph.branches.list()}


def assert_same(what: str, found: Sequence[object], expected: Sequence[object]) -> None:
    """The same in the same order; only what differs is shown."""
    if list(found) == list(expected):
        return
    told = [f"  only on Spark: {one}" for one in found if one not in expected]
    told += [f"  only inline: {one}" for one in expected if one not in found]
    raise AssertionError("\n".join([f"{what} differ", *(told or ["  in order or number"])]))


# -- without Spark ---------------------------------------------------------------------


def run_tasks_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let loads on Spark run their tasks in this process, one after another.

    What a task is sent and answers is copied, as if it had been elsewhere.
    """
    monkeypatch.setattr(entry, "spark_session", _no_session)
    monkeypatch.setattr(entry, "stages", _no_stages)
    monkeypatch.setattr(tasks, "run_tasks", _run_one_by_one)


@contextmanager
def _no_session(*_: object, **__: object) -> Iterator[SparkEngine]:
    session = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2))
    yield SparkEngine(cast("SparkSession", session), "local[2]")


@contextmanager
def _no_stages(*_: object, **__: object) -> Iterator[_NoStages]:
    yield _NoStages()


class _NoStages:
    @contextmanager
    def stage(self, *_: object) -> Iterator[None]:
        yield


def _run_one_by_one(
    _: SparkEngine, function: Callable[[Any], Any], items: Sequence[Any]
) -> list[Any]:
    return [_copied(_copied(function)(_copied(item))) for item in items]


def _copied(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own, a moment ago
