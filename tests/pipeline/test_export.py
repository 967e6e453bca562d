"""Exports on Spark: which files there are, what is in them, and that a load reads them back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.cli.main import main
from omnigraph.errors import BadRequest, NotFound, StorageError
from omnigraph.pipeline.export.operation import choose_export_engine
from omnigraph.pipeline.export.tasks import (
    ExportDirectory,
    Format,
    PartJob,
    move,
    open_sink,
    write_part,
)
from omnigraph.pipeline.source.reading import parts_of
from omnigraph.read.output.export import open_export
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from tests.pipeline.every_type import SCHEMA, make_graph
from tests.pipeline.scripts import output_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    return make_graph(tmp_path_factory.mktemp("every") / "graph")


def files_below(directory: Path) -> list[str]:
    return sorted(
        path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()
    )


def lines_below(directory: Path) -> list[str]:
    parts = sorted(directory.rglob("*.jsonl"))
    return [line for part in parts for line in part.read_text("utf-8").split("\n")[:-1]]


# -- which engine ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "format_", "wanted", "chosen"),
    [
        (None, "jsonl", "auto", "inline"),
        ("out.jsonl", "jsonl", "auto", "inline"),
        (Path("out"), "jsonl", "auto", "inline"),
        ("out/", "jsonl", "auto", "spark"),
        ("out", "parquet", "auto", "spark"),
        ("out", "jsonl", "spark", "spark"),
        ("out/", "jsonl", "inline", "inline"),
    ],
)
def test_directories_and_parquet_are_for_spark(
    path: str | Path | None, format_: str, wanted: str, chosen: str
) -> None:
    assert choose_export_engine(path, format_, wanted) == chosen


def test_what_no_engine_can_do_is_refused(graph: og.Graph) -> None:
    with pytest.raises(BadRequest, match="'csv': the formats are jsonl, parquet"):
        graph.export("out", format="csv")
    with pytest.raises(BadRequest, match="no export engine 'flink'"):
        graph.export("out", engine="flink")
    with pytest.raises(BadRequest, match="Parquet is written by the engine spark"):
        graph.export("out", format="parquet", engine="inline")
    with pytest.raises(BadRequest, match="goes into a directory"):
        graph.export(format="parquet")


def test_a_place_that_is_taken_is_refused_before_spark_starts(
    graph: og.Graph, tmp_path: Path
) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / ".hidden").touch()
    with pytest.raises(BadRequest, match="there is something in it already"):
        graph.export(f"{taken}/")
    with pytest.raises(BadRequest, match="it is a file; name a directory"):
        graph.export(f"{taken}/.hidden", format="parquet")
    with pytest.raises(NotFound, match=r"there is no type Sampl: did you mean `Sample`\?"):
        graph.export(f"{tmp_path}/new/", types=["Sampl"])
    assert files_below(tmp_path) == ["taken/.hidden"]


def test_parquet_of_two_types_of_one_name_is_refused(tmp_path: Path) -> None:
    source = "node Likes { key: String @key }\nedge Likes: Likes -> Likes\n"
    twins = og.init(tmp_path / "graph", source)
    with pytest.raises(BadRequest, match="both named Likes"):
        twins.export(f"{tmp_path}/out", format="parquet")


# -- parts, without Spark ----------------------------------------------------------


@pytest.mark.parametrize("format_", ["jsonl", "parquet"])
def test_parts_are_ordered_and_complete(graph: og.Graph, tmp_path: Path, format_: Format) -> None:
    directory = ExportDirectory.of(tmp_path / "out")
    export = open_export(graph.snapshot(), graph.catalog, ["Sample"])
    [(type_, table)] = export.tables
    parts = parts_of(table, rows=2)
    assert [part.pin.row_count for part in parts] == [2, 1]
    names = [f"Sample/{number}.{format_}" for number in range(len(parts))]
    with directory.drafting():
        places = [directory.draft.join(name) for name in names]
        jobs = [PartJob(type_, *pair) for pair in zip(parts, [format_] * 2, places, strict=True)]
        written = list(map(write_part, jobs))
        # A killed attempt leaves a file that nobody wants.
        (Path(directory.draft.path) / "Sample" / ".0.tmp").touch()
        assert directory.moves(names) == []
        assert not (tmp_path / "out").exists()
        directory.show(names)
    assert files_below(tmp_path) == [
        "out/Sample/0." + format_,
        "out/Sample/1." + format_,
        "out/_SUCCESS",
    ]
    sizes = [(tmp_path / "out" / name).stat().st_size for name in names]
    assert [(part.rows, part.bytes) for part in written] == list(zip([2, 1], sizes, strict=True))
    if format_ == "jsonl":
        assert sorted(lines_below(tmp_path)) == sorted(export)
    else:
        first, second = (pq.read_table(tmp_path / "out" / name)["id"] for name in names)
        assert first.to_pylist() == sorted(first.to_pylist())
        assert second.to_pylist() == ["nothing at all"]


def write_half(place: Location) -> None:
    with open_sink(place) as sink:
        sink.write(b"half")
        raise OSError(28, "No space left on device")


def test_a_draft_that_is_not_shown_vanishes(tmp_path: Path) -> None:
    directory = ExportDirectory.of(tmp_path / "out")
    with directory.drafting():
        with open_sink(directory.draft.join("A/0")) as sink:
            sink.write(b"whole")
        with pytest.raises(StorageError, match="No space"):
            write_half(directory.draft.join("A/1"))
        assert files_below(Path(directory.draft.path)) == ["A/0"]
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_was_filled_meanwhile_is_left_alone(tmp_path: Path) -> None:
    directory = ExportDirectory.of(tmp_path / "out")
    directory.require_free()
    with directory.drafting():
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "other").touch()
        with pytest.raises(BadRequest, match="something in it already"):
            directory.moves([])
    assert files_below(tmp_path) == ["out/other"]


@pytest.mark.slow
def test_objects_get_their_names_at_the_end(s3_bucket: str) -> None:
    directory = ExportDirectory.of(f"{s3_bucket}/out")
    directory.require_free()
    objects = ControlObjects(directory.target)
    with directory.drafting():
        with open_sink(directory.draft.join("A/0")) as sink:
            sink.write(b"some ")
            sink.write(b"bytes")
            assert sink.tell() == 10
        with pytest.raises(StorageError):
            write_half(directory.draft.join("A/1"))
        assert [name.split("/", 1)[1] for name in objects.list()] == ["A/0"]
        [wanted] = directory.moves(["A/0"])
        move(wanted)
        move(wanted)  # as another attempt would
        directory.show(["A/0"])
    assert objects.list() == ["A/0", "_SUCCESS"]
    assert objects.read("A/0") == b"some bytes"
    with pytest.raises(BadRequest, match="something in it already"):
        ExportDirectory.of(f"{s3_bucket}/out").require_free()


# -- the command -------------------------------------------------------------------


def test_the_command_writes_a_file(
    graph: og.Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "samples.jsonl"
    assert main(["export", str(graph.location), "--out", str(place), "--type", "Sample"]) == 0
    size = place.stat().st_size
    assert capsys.readouterr().out == (
        f"exported {graph.location} on branch main to {place}: "
        f"3 entities across 1 node types and 0 edge types, {size:,} bytes\n"
    )
    assert place.read_text("utf-8").split("\n")[:-1] == list(graph.export(types=["Sample"]))


@pytest.mark.parametrize(
    "options", [["--format", "parquet"], ["--engine", "spark"], ["--json"], ["--master", "local"]]
)
def test_stdout_gets_lines_only(
    graph: og.Graph, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    assert main(["export", str(graph.location), *options]) == 2
    captured = capsys.readouterr()
    if "--json" in options:
        assert json.loads(captured.out)["code"] == "bad_request"
    else:
        assert captured.out == ""
    assert "name a place with --out" in captured.err


@pytest.mark.slow
def test_the_command_writes_a_directory(
    spark: SparkSession, graph: og.Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert spark is not None
    out = f"{tmp_path}/out"
    arguments = ["--out", out, "--format", "parquet", "--type", "Follows", "--json"]
    assert main(["export", str(graph.location), *arguments]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said.pop("bytes") == Path(out, "Follows/part-00000.parquet").stat().st_size
    assert said == {
        "uri": str(graph.location),
        "branch": "main",
        "out": out,
        "nodes": [],
        "edges": [{"name": "Follows", "entities": 3}],
        "total_entities": 3,
    }


# -- the whole way -----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["jsonl", "parquet"])
def test_a_load_reads_back_all_there_is(
    spark: SparkSession, graph: og.Graph, tmp_path: Path, format_: str
) -> None:
    assert spark is not None
    out = tmp_path / "out"
    out.mkdir()  # an empty directory is a place
    report = graph.export(f"{out}/", format=format_)
    assert report.nodes == {"Counter": 3, "Nothing": 0, "Sample": 3}
    assert report.edges == {"Follows": 3}
    assert files_below(tmp_path) == [
        f"out/Counter/part-00000.{format_}",
        f"out/Follows/part-00000.{format_}",
        f"out/Sample/part-00000.{format_}",
        "out/_SUCCESS",
    ]
    parts = [path for path in out.rglob("part-*") if path.is_file()]
    assert report.bytes == sum(path.stat().st_size for path in parts)
    if format_ == "jsonl":
        assert sorted(lines_below(out)) == sorted(graph.export())
    copy = og.init(tmp_path / "copy", SCHEMA)
    assert copy.load(out, mode="append", engine="spark").total == report.total
    assert list(copy.export()) == list(graph.export())


@pytest.mark.slow
def test_a_branch_and_some_types(spark: SparkSession, graph: og.Graph, tmp_path: Path) -> None:
    graph.branches.create("draft")
    graph.load([{"type": "Nothing", "data": {"key": "new"}}], mode="append", branch="draft")
    report = graph.export(
        tmp_path / "out", branch="draft", types=["Nothing"], engine="spark", spark=spark
    )
    assert (report.nodes, report.edges) == ({"Nothing": 1}, {})
    [line] = lines_below(tmp_path)
    assert json.loads(line) == {"type": "Nothing", "data": {"id": "new", "key": "new"}}


@pytest.mark.slow
def test_an_empty_export_is_a_directory_with_a_marker(
    spark: SparkSession, graph: og.Graph, tmp_path: Path
) -> None:
    report = graph.export(f"{tmp_path}/new/out/", types=["Nothing"], spark=spark)
    assert report.total == 0
    assert files_below(tmp_path) == ["new/out/_SUCCESS"]


@pytest.mark.slow
def test_a_failed_export_leaves_nothing(
    spark: SparkSession, graph: og.Graph, tmp_path: Path
) -> None:
    root = tmp_path / "broken"
    shutil.copytree(graph.location.path, root)
    broken = og.open(root)
    path = broken.snapshot().tables["node:Sample"].table.path
    for file in root.joinpath(path, "data").glob("*.lance"):
        file.unlink()
    with pytest.raises(StorageError, match="nodes"):
        broken.export(f"{tmp_path}/out/", spark=spark)
    assert [path.name for path in tmp_path.iterdir()] == ["broken"]


@pytest.mark.slow
def test_a_graph_on_s3(s3_bucket: str) -> None:
    text = """
        import sys
        import omnigraph as og
        bucket = sys.argv[1]
        schema = "node Person { name: String @key }"
        graph = og.init(f"{bucket}/graph", schema)
        graph.load([{"type": "Person", "data": {"name": name}} for name in "ab"], mode="append")
        print(graph.export(f"{bucket}/out", format="parquet").total)
        copy = og.init(f"{bucket}/copy", schema)
        copy.load(f"{bucket}/out", mode="append")
        print(sorted(row.id for row in copy.to_spark("Person").collect()))
    """
    assert output_of(text, s3_bucket) == ["2", "['a', 'b']"]
    out = ExportDirectory.of(f"{s3_bucket}/out").target
    assert ControlObjects(out).list() == ["Person/part-00000.parquet", "_SUCCESS"]
