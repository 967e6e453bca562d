"""Loads in this process: tables and many files, without Spark, and what runs their tasks."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, KeyConflict, StorageError, ValidationError
from omnigraph.pipeline.load import entry
from omnigraph.pipeline.load.check import round_rows
from omnigraph.pipeline.task_runner import InProcessRunner
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.write.load.input import is_request_sized
from omnigraph.write.recovery.intents import STAGING
from tests.pipeline.engines import files_of

SCHEMA = "node Person { name: String @key\n age: I32? }\nedge Knows: Person -> Person"
PEOPLE = "name,age\nann,3\nben,\ncat,5\n"
KNOWS = "from,to\nann,ben\nben,cat\n"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "people", SCHEMA)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    place = tmp_path / "data"
    (place / "Person").mkdir(parents=True)
    (place / "Person" / "part-0.csv").write_text(PEOPLE)
    pq.write_table(pa.table({"name": ["dan"], "age": [7]}), place / "Person" / "part-1.parquet")
    (place / "Knows.csv").write_text(KNOWS)
    (place / "more.jsonl").write_text('{"edge":"Knows","from":"dan","to":"ann"}\n')
    return place


def names(graph: og.Graph) -> list[str]:
    found = graph.query(
        "query q() { match { $p: Person } return { $p.name } order { $p.name asc } }"
    )
    return [row["p.name"] for row in found.rows]


def test_a_directory_of_all_formats_is_one_commit(graph: og.Graph, data: Path) -> None:
    before = len(list(graph.commits.list()))
    done = graph.load(data, mode="append")
    assert done.engine == "inline"
    assert (dict(done.nodes), dict(done.edges)) == ({"Person": 4}, {"Knows": 3})
    assert names(graph) == ["ann", "ben", "cat", "dan"]
    assert len(list(graph.commits.list())) == before + 1
    assert not list(Path(graph.location.path).glob("__staging/*"))


@pytest.mark.parametrize("what", ["Person/*.csv", {"Person": "Person/part-1.parquet"}])
def test_patterns_and_paths_by_type(graph: og.Graph, data: Path, what: object) -> None:
    given = {k: data / v for k, v in what.items()} if isinstance(what, dict) else f"{data}/{what}"
    assert graph.load(given, mode="append").engine == "inline"
    assert names(graph)


def test_what_is_wrong_is_told_and_leaves_nothing(graph: og.Graph, data: Path) -> None:
    (data / "Person" / "part-2.csv").write_text("name,age\neve,x\nfay,1\n")
    before = files_of(graph)
    with pytest.raises(ValidationError, match=r"part-2\.csv:2: Person\.age: expected I32"):
        graph.load(data, mode="append")
    assert files_of(graph) == before
    done = graph.load(data, mode="append", on_error="skip")
    assert dict(done.rejects) == {"type": 1}
    with pytest.raises(KeyConflict):
        graph.load(data / "Person" / "part-0.csv", mode="append")


@pytest.mark.slow
def test_keys_are_cut_on_an_object_store(
    s3_bucket: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slices are fetched from there, and nothing is left there."""
    monkeypatch.setattr(round_rows, "ranges_for", lambda _: 3)
    graph = og.init(f"{s3_bucket}/people", SCHEMA)
    (data / "Knows.csv").write_text(KNOWS + "ann,nobody\n")
    with pytest.raises(ValidationError, match="'nobody' not found in Person"):
        graph.load(data, mode="append")
    done = graph.load(data, mode="append", on_error="skip")
    assert dict(done.rejects) == {"endpoint": 1}
    with pytest.raises(KeyConflict):
        graph.load(data / "Person" / "part-0.csv", mode="append")
    assert dict(graph.load(data / "Person" / "part-0.csv", mode="merge").nodes) == {"Person": 3}
    assert names(graph) == ["ann", "ben", "cat", "dan"]
    assert not ControlObjects(graph.location.join(STAGING)).list()


@pytest.mark.slow
def test_no_spark_is_imported(graph: og.Graph, data: Path) -> None:
    script = (
        "import sys, omnigraph as og; "
        f"og.open({graph.location.path!r}).load({str(data)!r}, mode='append'); "
        "assert not [one for one in sys.modules if one.split('.')[0] in ('pyspark', 'py4j')]"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
    assert len(names(og.open(graph.location.path))) == 4


def test_what_goes_where(
    graph: og.Graph, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = data / "more.jsonl"
    assert is_request_sized(small)
    assert is_request_sized(str(small), "inline")
    assert not is_request_sized(small, "spark")
    assert not is_request_sized(data / "Knows.csv", "inline")
    assert not is_request_sized([small, data / "Knows.csv"])
    assert not is_request_sized(data)
    assert is_request_sized({"Person": pa.table({"name": ["a"]})})
    odd = tmp_path / "people.txt"
    odd.write_text('{"type":"Person","data":{"name":"zoe"}}\n')
    assert is_request_sized(odd, "inline")
    # Spark takes over where the setting says.
    asked: list[object] = []

    def no_session(*given: object, **_: object) -> None:
        asked.append(given)
        raise BadRequest("there is none")

    monkeypatch.setattr(entry, "spark_session", no_session)
    monkeypatch.setenv("OMNIGRAPH_INLINE_BYTES", "10")
    with pytest.raises(BadRequest, match="there is none"):
        graph.load(data, mode="append")
    assert len(asked) == 1
    assert graph.load(data, mode="append", engine="inline").engine == "inline"
    monkeypatch.setenv("OMNIGRAPH_INLINE_BYTES", "much")
    with pytest.raises(StorageError, match="OMNIGRAPH_INLINE_BYTES"):
        graph.load(data, mode="merge")


def test_tasks_side_by_side_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InProcessRunner, "cores", property(lambda _: 2))
    both = threading.Barrier(2, timeout=30)

    def meet(number: int) -> int:
        both.wait()
        return number * 10

    runner = InProcessRunner()
    assert runner.run("meet", meet, [1, 2, 3, 4]) == [10, 20, 30, 40]
    assert runner.run("none", meet, []) == []
    assert list(runner.seconds) == ["meet"]


def test_a_task_that_fails_ends_the_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InProcessRunner, "cores", property(lambda _: 1))
    done: list[int] = []

    def work(number: int) -> None:
        if number == 1:
            raise BadRequest("no")
        done.append(number)

    with pytest.raises(BadRequest, match="no"):
        InProcessRunner().run("work", work, range(50))
    assert len(done) < 50
