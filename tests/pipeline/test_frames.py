"""Frames and lines on Spark: what is taken, what it becomes, and how its rows are told."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import obstore
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from obstore.store import S3Store

import omnigraph as og
from omnigraph.errors import BadRequest, ValidationError
from omnigraph.pipeline.input.load_files import InputFile
from omnigraph.pipeline.load.stage.area import StagingArea, new_file
from omnigraph.pipeline.load.stage.frames import Frame, GivenLines, given
from omnigraph.storage.objects.location import Location, s3_options
from tests.pipeline.scripts import run_script
from tests.s3_server import S3Server

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = """\
node Person {
    name: String @key
    age: I32?
    big: U64?
    score: F64?
    born: Date?
    seen: DateTime?
    visits: [DateTime]?
    photo: Blob?
    tags: [String]?
    at: Vector(3)?
}
node Note { text: String?  size: I64? }
edge Knows: Person -> Person { since: I64? }
"""
ENVELOPES = [
    {"type": "Person", "data": {"name": "Ann", "age": 30}},
    {"type": "Person", "data": {"name": "Ben"}},
    {"edge": "Knows", "from": "Ann", "to": "Ben", "data": {"id": "k1"}},
]


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "people.omni", SCHEMA)


@pytest.fixture
def area(tmp_path: Path) -> StagingArea:
    return StagingArea(Location.parse(str(tmp_path / "staged")), "an-operation")


class Exporting:
    """A frame of whatever library, which only exports an Arrow stream."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def written(frame: Frame, area: StagingArea) -> tuple[InputFile, pa.Table]:
    (file,) = frame.write(area)
    return file, pq.read_table(file.uri)


def person(graph: og.Graph, rows: object) -> Frame:
    return Frame(graph.catalog.nodes["Person"], "people", rows)


def staged(graph: og.Graph) -> list[Path]:
    return [one for one in Path(graph.location.path).rglob("*") if "__staging" in one.parts]


def rejects(path: str | None) -> list[dict[str, Any]]:
    assert path is not None
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


# -- what was given ----------------------------------------------------------------


def test_text_and_envelopes_are_lines(graph: og.Graph, area: StagingArea) -> None:
    text = "".join(json.dumps(one) + "\n" for one in ENVELOPES)
    for data in (text, text.encode(), ENVELOPES, iter(ENVELOPES), (one for one in ENVELOPES)):
        found = given(data, graph.catalog)
        assert found.files == ()
        (lines,) = found.unwritten
        (file,) = lines.write(area)
        assert (file.format, file.name) == ("jsonl", None)
        content = Path(file.uri).read_bytes()
        assert len(content) == file.size
        assert [json.loads(line) for line in content.splitlines()] == ENVELOPES


def test_nothing_is_a_file_without_lines(graph: og.Graph, area: StagingArea) -> None:
    (lines,) = given([], graph.catalog).unwritten
    (file,) = lines.write(area)
    assert file.size == 0


def test_paths_are_files_whatever_they_come_in(graph: og.Graph, tmp_path: Path) -> None:
    path = tmp_path / "people.jsonl"
    path.write_text("{}\n", encoding="utf-8")
    for data in (path, str(path), [path], iter([str(path)])):
        found = given(data, graph.catalog)
        assert [file.name for file in found.files] == [str(path)]
        assert found.unwritten == ()


def test_frames_and_paths_by_type(graph: og.Graph, tmp_path: Path) -> None:
    path = tmp_path / "some.parquet"
    pq.write_table(pa.table({"from": ["a"], "to": ["b"]}), path)
    found = given({"Person": pa.table({"name": ["a"]}), "Knows": path}, graph.catalog)
    assert [file.type_name for file in found.files] == ["Knows"]
    (frame,) = found.unwritten
    assert isinstance(frame, Frame)
    assert (frame.type.name, frame.label) == ("Person", "Person")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"Persn": pa.table({"name": ["a"]})}, "no type 'Persn' for this frame; did you mean"),
        ({"Person": 5}, "'Person' is no frame but int"),
        ({"Person": []}, "'Person' is no frame but list"),
        ({5: pa.table({"name": ["a"]})}, "found the name 5"),
        ({"type": "Person", "data": {"name": "a"}}, "this is one envelope: put it into a list"),
        (5, "cannot load int"),
        (pa.table({"name": ["a"]}), 'frames by type name, like {"Person": frame}'),
        ("{\ud800}", "the text is not Unicode"),
        (
            {"Knows": pa.table({"from": ["a"]}), "knows": pa.table({"from": ["a"]})},
            "'Knows' and 'knows' are frames of one type; join them",
        ),
    ],
)
def test_what_cannot_be_taken(graph: og.Graph, data: object, said: str) -> None:
    with pytest.raises(BadRequest) as refused:
        given(data, graph.catalog)
    assert said in str(refused.value)


def test_a_record_that_is_none_is_found_when_it_is_written(
    graph: og.Graph, area: StagingArea
) -> None:
    (lines,) = given([*ENVELOPES, 5], graph.catalog).unwritten
    with pytest.raises(BadRequest, match="record 4 must be a dict, found int"):
        list(lines.write(area))
    assert list(Path(area.location.path).iterdir()) == []


# -- what is written ---------------------------------------------------------------


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(lambda table: table, id="table"),
        pytest.param(lambda table: table.to_batches()[0], id="batch"),
        pytest.param(lambda table: table.to_reader(), id="reader"),
        pytest.param(Exporting, id="stream"),
        pytest.param(lambda table: table.to_pandas(), id="pandas"),
    ],
)
def test_frames_of_every_library(
    graph: og.Graph, area: StagingArea, frame: Callable[[pa.Table], object]
) -> None:
    table = pa.table({"name": ["Ann", "Ben"], "age": pa.array([30, 40], pa.int32())})
    file, kept = written(person(graph, frame(table)), area)
    assert kept.equals(table)
    assert (file.format, file.type_name, file.name) == ("parquet", "node:Person", "people")
    assert file.size == Path(file.uri).stat().st_size


def test_columns_come_back_as_they_were(graph: og.Graph, area: StagingArea) -> None:
    table = pa.table(
        {
            "name": pa.array(["Ann", None], pa.string_view()),
            "big": pa.array([2**64 - 1, None], pa.uint64()),
            "seen": pa.array([dt.datetime(2020, 1, 1, tzinfo=dt.UTC), None]),
            "tags": pa.array([["a"], None], pa.list_(pa.string())),
            "at": pa.array([[1, 2, 3], None], pa.list_(pa.float32(), 3)),
            "photo": pa.array([b"x", None], pa.large_binary()),
            "age": pa.array([None, None], pa.null()),
            "score": pa.array(["b", "c"]).dictionary_encode(),
        }
    )
    _, kept = written(person(graph, table), area)
    assert kept.equals(table)


def test_integers_with_gaps_of_pandas_are_integers(graph: og.Graph, area: StagingArea) -> None:
    rows = pd.DataFrame({"name": ["Ann", "Ben"], "age": [30, None], "score": [1.0, None]})
    assert rows["age"].dtype == "float64"
    _, kept = written(person(graph, rows), area)
    assert kept.column("age").to_pylist() == [30, None]
    assert kept.schema.field("age").type == pa.int64()
    assert kept.schema.field("score").type == pa.float64()


def test_a_fraction_among_them_leaves_them_floats(graph: og.Graph, area: StagingArea) -> None:
    rows = pd.DataFrame({"name": ["Ann", "Ben"], "age": [30.5, None]})
    _, kept = written(person(graph, rows), area)
    assert kept.schema.field("age").type == pa.float64()


def test_milliseconds_are_not_rounded_to_days(graph: og.Graph, area: StagingArea) -> None:
    millis = pa.array([1_500_000_000_123], pa.int64()).cast(pa.date64(), safe=False)
    table = pa.table({"name": ["Ann"], "seen": millis, "born": millis})
    _, kept = written(person(graph, table), area)
    assert kept.schema.field("seen").type == pa.timestamp("ms", "UTC")
    assert kept.schema.field("born").type == pa.timestamp("ms")
    assert kept.column("seen").cast(pa.int64()).to_pylist() == [1_500_000_000_123]


def test_milliseconds_in_lists_are_not_rounded_to_days(graph: og.Graph, area: StagingArea) -> None:
    millis = pa.array([1_500_000_000_123], pa.int64()).cast(pa.date64(), safe=False)
    for visits in (
        pa.ListArray.from_arrays([0, 1], millis),
        pa.LargeListArray.from_arrays([0, 1], millis),
        pa.FixedSizeListArray.from_arrays(millis, 1),
    ):
        _, kept = written(person(graph, pa.table({"name": ["Ann"], "visits": visits})), area)
        (found,) = kept.column("visits").to_pylist()
        assert found == [dt.datetime(2017, 7, 14, 2, 40, 0, 123_000, tzinfo=dt.UTC)]


def test_a_frame_without_rows_keeps_its_columns(graph: og.Graph, area: StagingArea) -> None:
    _, kept = written(person(graph, pa.schema([("name", pa.string())]).empty_table()), area)
    assert (kept.num_rows, kept.column_names) == (0, ["name"])


def test_large_frames_have_several_row_groups(graph: og.Graph, area: StagingArea) -> None:
    count = 300_000
    batches = pa.table({"name": [str(one) for one in range(count)]}).to_batches(10_000)
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, iter(batches))
    (file,) = person(graph, reader).write(area)
    footer = pq.ParquetFile(file.uri).metadata
    groups = [footer.row_group(at).num_rows for at in range(footer.num_row_groups)]
    assert sum(groups) == count
    assert 2 <= len(groups) <= 4


def test_a_frame_that_fails_leaves_no_file(graph: og.Graph, area: StagingArea) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"name": ["Ann"]})
        raise BadRequest("no more")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("name", pa.string())]), batches())
    with pytest.raises(BadRequest, match="no more"):
        list(person(graph, reader).write(area))
    assert list(Path(area.location.path).iterdir()) == []


@pytest.mark.slow
def test_files_of_an_object_store(s3_bucket: str) -> None:
    area = StagingArea(Location.parse(s3_bucket), "an-operation")
    piece = b"0123456789abcdef" * (1 << 16)
    with new_file(area, "lines", ".jsonl") as sink:
        for _ in range(20):
            sink.write(piece)
    assert area.read_bytes(sink.name) == piece * 20
    assert sink.size == 20 * len(piece)

    def fail() -> None:
        with new_file(area, "lines", ".jsonl") as broken:
            broken.write(piece)
            raise BadRequest(broken.name)

    with pytest.raises(BadRequest) as failed:
        fail()
    with pytest.raises(FileNotFoundError):
        area.read_bytes(str(failed.value))


def test_lines_have_no_name(area: StagingArea) -> None:
    (file,) = GivenLines([b"{}\n", b"{}\n"]).write(area)
    assert (file.label, file.name, file.size) == ("", None, 6)


# -- loading -----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["envelopes", "text", "tables", "pandas"])
def test_both_engines_make_the_same_graph(tmp_path: Path, kind: str) -> None:
    people = pa.table({"name": ["Ann", "Ben"], "age": pa.array([30, None], pa.int64())})
    knows = pa.table({"id": ["k1"], "from": ["Ann"], "to": ["Ben"]})
    data: Any = {
        "envelopes": ENVELOPES,
        "text": "".join(json.dumps(one) + "\n" for one in ENVELOPES),
        "tables": {"Person": people, "Knows": knows},
        "pandas": {"Person": people.to_pandas(), "Knows": knows.to_pandas()},
    }[kind]
    exports = []
    for engine in ("inline", "spark"):
        graph = og.init(tmp_path / f"{engine}.omni", SCHEMA)
        done = graph.load(data, mode="append", engine=engine)
        assert (done.engine, done.nodes, done.edges) == (engine, {"Person": 2}, {"Knows": 1})
        exports.append(list(graph.export()))
        assert staged(graph) == []
    assert exports[0] == exports[1]


@pytest.mark.slow
def test_the_types_of_spark(graph: og.Graph, spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [
            (
                *("Ann", Decimal(30), Decimal(2**64 - 1), Decimal("1.25")),
                *(dt.date(1980, 1, 2), dt.datetime(2020, 1, 1, 12, tzinfo=dt.UTC)),
                *(b"picture", ["a", "b"], [Decimal("1.5"), Decimal(2), Decimal(3)]),
            ),
            ("Ben", *([None] * 8)),
        ],
        "name string, age decimal(9, 0), big decimal(20, 0), score decimal(10, 2), born date,"
        " seen timestamp, photo binary, tags array<string>, at array<decimal(5, 2)>",
    )
    knows = spark.createDataFrame([("Ann", "Ben", 7)], "`from` string, `to` string, since smallint")
    notes = spark.sql("select 'x' as text, null as size")
    done = graph.load({"Person": rows, "Knows": knows, "node:Note": notes}, mode="append")
    assert done.engine == "spark"
    assert (done.nodes, done.edges) == ({"Person": 2, "Note": 1}, {"Knows": 1})
    found = {
        line["data"]["name"]: line["data"]
        for line in map(json.loads, graph.export(types=["Person"]))
    }
    assert found["Ann"] == {
        "id": "Ann",
        "name": "Ann",
        "age": 30,
        "big": 2**64 - 1,
        "score": 1.25,
        "born": "1980-01-02",
        "seen": "2020-01-01T12:00:00.000Z",
        "visits": None,
        "photo": found["Ann"]["photo"],
        "tags": ["a", "b"],
        "at": [1.5, 2.0, 3.0],
    }
    assert found["Ann"]["photo"] == "base64:cGljdHVyZQ=="
    assert set(found["Ben"].values()) == {"Ben", None}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("name int", "frame 'Person': Person.name: a column of int32 cannot hold String"),
        ("name string, age decimal(9, 2)", "a column of decimal128(9, 2) cannot hold I32"),
        ("name string, seen timestamp_ntz", "have no time zone; cast them to timestamp"),
        ("name string, nam int", "unknown property 'nam' for Person; did you mean `name`?"),
        ("name string, at array<string>", "cannot hold Vector(3)"),
    ],
)
def test_columns_that_cannot_fit_are_told_without_computing(
    graph: og.Graph, spark: SparkSession, columns: str, said: str
) -> None:
    from pyspark.sql.functions import lit, raise_error

    rows = spark.createDataFrame([], columns).where(raise_error(lit("computed")).isNotNull())
    with pytest.raises(ValidationError) as refused:
        graph.load({"Person": rows}, mode="append")
    assert said in str(refused.value)
    assert staged(graph) == []


@pytest.mark.slow
def test_a_plan_that_fails_says_why(graph: og.Graph, spark: SparkSession) -> None:
    rows = spark.sql("select concat('p', id) name, cast(concat('x', id) as int) age from range(3)")
    before = graph.snapshot().commit_id
    with pytest.raises(BadRequest) as failed:
        graph.load({"Person": rows}, mode="append")
    assert str(failed.value).startswith("frame 'Person' could not be computed: The value 'x")
    assert "try_cast" in str(failed.value)
    assert (graph.snapshot().commit_id, staged(graph)) == (before, [])


@pytest.mark.slow
def test_numbers_beyond_64_bits_are_refused(graph: og.Graph, spark: SparkSession) -> None:
    rows = spark.sql("select 'p' name, cast('99999999999999999999' as decimal(38, 0)) age")
    with pytest.raises(BadRequest, match="column 'age' of frame 'Person' has a number that does"):
        graph.load({"Person": rows}, mode="append")


@pytest.mark.slow
def test_rejects_name_the_frame_and_the_row(
    graph: og.Graph, spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.range(40, numPartitions=4).selectExpr(
        "concat('p', id) as name", "cast(if(id % 10 = 3, 5000000000, id) as bigint) as age"
    )
    knows = spark.createDataFrame([("p1", "p2"), ("p1", "p13")], "`from` string, `to` string")
    done = graph.load(
        {"Person": rows, "Knows": knows},
        mode="append",
        on_error="skip",
        rejects=str(tmp_path / "rejects"),
    )
    assert (done.nodes, done.edges) == ({"Person": 36}, {"Knows": 1})
    found = rejects(done.rejects_file)
    # The parts of the range are in its order, so the n-th row has the number n - 1.
    assert [(one["file"], one["line"], one["code"]) for one in found] == [
        *(("Person", line, "type") for line in (4, 14, 24, 34)),
        ("Knows", 2, "endpoint"),
    ]
    assert json.loads(found[1]["raw"]) == {"name": "p13", "age": 5_000_000_000}


@pytest.mark.slow
def test_lines_without_a_name_are_told_by_their_number(graph: og.Graph, tmp_path: Path) -> None:
    data = [*ENVELOPES, {"edge": "Knows", "from": "Ann", "to": "Zed"}]
    with pytest.raises(ValidationError, match=r"^line 4: dst 'Zed' not found in Person"):
        graph.load(data, mode="append", engine="spark")
    directory = str(tmp_path / "rejects")
    done = graph.load(data, mode="append", engine="spark", on_error="skip", rejects=directory)
    (found,) = rejects(done.rejects_file)
    assert (found["file"], found["line"]) == (None, 4)


@pytest.mark.slow
def test_a_task_that_is_tried_again_writes_no_row_twice(
    graph: og.Graph, spark: SparkSession, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()

    def fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            names = [f"p{one}" for one in batch.column(0).to_pylist()]
            mark = marks / names[0]
            if number == 1 and not mark.exists():
                mark.touch()
                raise OSError("the machine is gone")
            yield pa.record_batch({"name": names})

    before = spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10")
    try:
        rows: DataFrame = spark.range(80, numPartitions=2).mapInArrow(fail_once, "name string")
        done = graph.load({"Person": rows}, mode="append")
    finally:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(before))
    assert len(list(marks.iterdir())) == 2
    assert done.nodes == {"Person": 80}
    assert graph.table("Person").count_rows() == 80


@pytest.mark.slow
def test_an_empty_frame_touches_its_type(graph: og.Graph, spark: SparkSession) -> None:
    graph.load({"Note": pa.table({"text": ["a", "b"]})}, mode="append")
    none = spark.createDataFrame([], "text string")
    assert graph.load({"Note": none}, mode="append").nodes == {"Note": 0}
    assert graph.table("Note").count_rows() == 2
    graph.load({"Note": none}, mode="overwrite")
    assert graph.table("Note").count_rows() == 0
    with pytest.raises(BadRequest, match="frame 'Note' has no columns"):
        graph.load({"Note": spark.range(3).select()}, mode="append")


@pytest.mark.slow
def test_a_dry_run_publishes_nothing(graph: og.Graph, spark: SparkSession) -> None:
    before = graph.snapshot().commit_id
    rows = spark.createDataFrame([("Ann",)], "name string")
    done = graph.load({"Person": rows}, mode="append", dry_run=True)
    assert (done.nodes, done.published) == ({"Person": 1}, None)
    assert (graph.snapshot().commit_id, staged(graph)) == (before, [])


@pytest.mark.slow
def test_a_graph_in_an_object_store(s3_bucket: str, s3_server: S3Server) -> None:
    # In a process of its own: the workers of a session have the environment it was started with.
    ran = run_script(
        """\
        import sys

        import pyarrow as pa

        import omnigraph as og
        from omnigraph.pipeline.spark.session import spark_session

        schema = "node Person { name: String @key } edge Knows: Person -> Person"
        graph = og.init(sys.argv[1], schema)
        with spark_session() as engine:
            numbers = engine.session.range(100, numPartitions=3)
            people = numbers.selectExpr("concat('p', id) as name")
            knows = pa.table({"from": ["p1", "p99"], "to": ["p2", "p0"]})
            done = graph.load({"Person": people, "Knows": knows}, mode="append")
        print(done.engine, done.nodes, done.edges)
        print(graph.table("Person").count_rows(), graph.table("Knows").count_rows())
        """,
        f"{s3_bucket}/people.omni",
        environment=s3_server.environment,
    )
    assert ran.stdout.splitlines() == ["spark {'Person': 100} {'Knows': 2}", "100 2"], ran.stderr
    store = S3Store(s3_server.bucket, config=s3_options())  # type: ignore[arg-type]
    prefix = s3_bucket.rpartition("/")[2]
    listed = [one["path"] for page in obstore.list(store, prefix) for one in page]
    assert listed
    assert not [path for path in listed if "__staging" in path]
