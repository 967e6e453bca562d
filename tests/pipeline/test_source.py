"""A graph read by Spark: types, columns, pins, partitions, and filters that storage evaluates."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pytest
from pyspark.sql import datasource as asked

import omnigraph as og
from omnigraph.errors import BadRequest, NotFound, OmniGraphError
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.structural import ID
from omnigraph.pipeline.source.datasource import GraphSource
from omnigraph.pipeline.source.reading import (
    TypeSelection,
    blob_bytes,
    find_snapshot,
    parts_of,
    select,
)
from omnigraph.pipeline.source.views import view_names
from omnigraph.pipeline.spark.settings import SparkSettings
from omnigraph.spark import register
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.table import Table, TablePin
from tests.docs.examples import blocks_of
from tests.pipeline.every_type import EXTREMES, make_graph
from tests.pipeline.scripts import output_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "user" / "spark.md"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
MOST = EXTREMES["key"]
NONE = "nothing at all"
PEOPLE = "node Person { name: String @key\n    age: I32? }\n"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    return make_graph(tmp_path_factory.mktemp("every") / "graph")


@pytest.fixture
def people(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "people", PEOPLE)
    for name, age in (("Ann", 30), ("Ben", 40), ("Cid", None)):
        add(graph, name, age)
    return graph


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[SparkSession]:
    before = spark.conf.get(PUSHDOWN)
    spark.conf.set(PUSHDOWN, "true")
    yield spark
    spark.conf.set(PUSHDOWN, before or "false")


def add(graph: og.Graph, name: str, age: int | None = None, branch: str = "main") -> str:
    row = {"type": "Person", "data": {"name": name, "age": age}}
    return graph.load([row], mode="append", branch=branch).commit.id


def chosen(graph: og.Graph, type_name: str, columns: list[str] | None = None) -> TypeSelection:
    return select(graph.snapshot(), type_name, columns)


def ids(frame: DataFrame) -> list[str]:
    return sorted(row["id"] for row in frame.collect())


# -- names, without Spark ----------------------------------------------------------


def test_all_columns_but_blobs_unless_they_are_named(graph: og.Graph) -> None:
    every = chosen(graph, "Follows")
    assert [column.name for column in every.columns] == ["id", "src", "dst", "since", "weight"]
    assert [column.nullable for column in every.columns] == [False, False, False, True, False]
    named = chosen(graph, "edge:Follows", ["proof", "id"])
    assert [column.name for column in named.columns] == ["proof", "id"]
    assert named.blobs == ("proof",)


def test_wrong_names_are_explained(graph: og.Graph) -> None:
    with pytest.raises(NotFound, match=r"there is no type Sampel: did you mean `Sample`\?"):
        graph.to_spark("Sampel")
    with pytest.raises(NotFound, match="there is no type edge:Sample"):
        graph.to_spark("edge:Sample")
    with pytest.raises(NotFound, match=r"Sample has no column txt: did you mean `text`\?"):
        graph.to_spark("Sample", columns=["id", "txt"])
    with pytest.raises(BadRequest, match="the column id of Sample is named twice"):
        graph.to_spark("Sample", columns=["id", "id"])
    with pytest.raises(BadRequest, match="name at least one"):
        graph.to_spark("Sample", columns=[])
    with pytest.raises(NotFound, match="there is no branch nowhere"):
        graph.to_spark("Sample", branch="nowhere")
    with pytest.raises(NotFound, match="there is no commit 01X"):
        graph.to_spark("Sample", snapshot="01X")


def test_a_frame_needs_a_session_that_lives_on(graph: og.Graph) -> None:
    for spark in ("spark://elsewhere.example:7077", SparkSettings(remote="sc://elsewhere")):
        with pytest.raises(BadRequest, match="lives no longer than its session"):
            graph.to_spark("Sample", spark=spark)


def test_a_snapshot_is_of_a_branch_or_a_commit(people: og.Graph) -> None:
    before = people.snapshot().commit_id
    people.branches.create("draft")
    after = add(people, "Dan", branch="draft")
    root = people.location
    assert find_snapshot(root, None, None).commit_id == before
    assert find_snapshot(root, "draft", None).commit_id == after
    assert find_snapshot(root, None, after).commit_id == after
    with pytest.raises(BadRequest, match="a branch or a snapshot, not both"):
        find_snapshot(root, "draft", after)
    with pytest.raises(NotFound, match="there is no graph at"):
        find_snapshot(root.join("below"), None, None)


def test_importing_it_imports_no_spark() -> None:
    assert output_of("""
        import sys
        import omnigraph.spark
        print(sorted({"pyspark", "pyarrow", "lance"} & set(sys.modules)))
    """) == ["[]"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"type": "Persn"}, "there is no type Persn: did you mean `Person`?"),
        ({"type": "Person", "branch": "nowhere"}, "there is no branch nowhere"),
        ({"type": "Person", "snapshot": "01X"}, "there is no commit 01X"),
        ({"type": "Person", "columns": "id,nam"}, "has no column nam: did you mean `name`?"),
        ({"type": "Person", "columns": ""}, "has no column : known here"),
        ({"type": "Person", "partition_rows": "0"}, "partition_rows is a number of rows"),
        ({"tpe": "Person"}, "there is no option tpe: did you mean `type`?"),
        ({}, 'which type? say .option("type", "Person")'),
        ({"type": "Person", "path": ""}, "which graph? give its path or URI to load(…)"),
    ],
)
def test_wrong_options_are_explained(people: og.Graph, options: dict[str, str], said: str) -> None:
    with pytest.raises(OmniGraphError) as raised:
        GraphSource({"path": str(people.location), **options}).schema()
    assert said in str(raised.value)


def test_the_source_tells_its_columns(people: og.Graph) -> None:
    source = GraphSource({"path": str(people.location), "type": "Person"})
    assert source.schema().simpleString() == "struct<id:string,age:int,name:string>"
    assert [field.nullable for field in source.schema()] == [False, True, False]
    # Here Spark does not ask for filters, and refuses whoever takes them.
    assert type(source.reader(source.schema())).pushFilters is asked.DataSourceReader.pushFilters


def test_content_outside_of_the_graph_is_refused(tmp_path: Path) -> None:
    uri = f"file://{tmp_path}/outside.bin"
    Path(tmp_path, "outside.bin").write_bytes(b"outside")
    dataset = lance.write_dataset(
        pa.table(
            [pa.array(["a", "b"]), lance.blob_array([b"inside", lance.Blob.from_uri(uri)])],
            schema=pa.schema([pa.field(ID, pa.string()), lance.blob_field("blob")]),
        ),
        str(tmp_path / "table"),
        data_storage_version="2.2",
        allow_external_blob_outside_bases=True,
    )
    table = Table(Location.parse(str(tmp_path / "table")), TablePin(dataset.version, None, 2))
    [rows] = table.batches([ID, "blob"], with_row_address=True)
    assert blob_bytes(table, rows.slice(0, 1), "blob").to_pylist() == [b"inside"]
    with pytest.raises(BadRequest, match=r"outside of the graph \(file://.*outside\.bin\)"):
        blob_bytes(table, rows, "blob")


# -- parts -------------------------------------------------------------------------


def rows_of(table: Table) -> list[str]:
    found: list[str] = table.scan([ID]).column(ID).to_pylist()
    return found


def test_parts_are_groups_of_fragments(graph: og.Graph) -> None:
    table = chosen(graph, "Sample").table
    whole = rows_of(table)
    assert len(whole) == 3
    for rows, counts in ((1, [1, 1, 1]), (2, [2, 1]), (500, [3])):
        parts = parts_of(table, rows)
        assert [part.pin.row_count for part in parts] == counts
        assert [id_ for part in parts for id_ in rows_of(part)] == whole
    assert parts_of(chosen(graph, "Nothing").table) == []


# -- on Spark ----------------------------------------------------------------------


@pytest.mark.slow
def test_every_type_of_property(spark: SparkSession, graph: og.Graph) -> None:
    columns = [column.name for column in chosen(graph, "Sample").columns]
    frame = graph.to_spark("Sample", columns=[*columns, "blob"], spark=spark)
    types = dict(frame.dtypes)
    assert types.pop("key") == types.pop("id") == "string"
    assert types == {
        "text": "string",
        "yes": "boolean",
        "i32": "int",
        "i64": "bigint",
        "u32": "bigint",
        "u64": "decimal(20,0)",
        "f32": "float",
        "f64": "double",
        "day": "date",
        "moment": "timestamp",
        "kind": "string",
        "texts": "array<string>",
        "flags": "array<boolean>",
        "i32s": "array<int>",
        "i64s": "array<bigint>",
        "f32s": "array<float>",
        "f64s": "array<double>",
        "days": "array<date>",
        "vector": "array<float>",
        "blob": "binary",
    }
    rows = {row["id"]: row for row in frame.toArrow().to_pylist()}
    assert rows.keys() == {MOST, NONE, "plain"}
    empty = dict.fromkeys(rows[NONE]) | {"id": NONE, "key": NONE, "kind": "left"}
    assert rows[NONE] == empty
    assert rows["plain"] == empty | {
        "id": "plain",
        "key": "plain",
        "text": "100% sure",
        "yes": True,
        "i32": 7,
        "i64": -7,
        "u32": 0,
        "u64": 1,
        "f32": 0.5,
        "f64": 0.0,
        "day": date(2024, 2, 29),
        "moment": datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC),
        "texts": [],
        "blob": b"",
    }
    assert rows[MOST] == EXTREMES | {
        "id": MOST,
        "day": date(1, 1, 1),
        "moment": datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC),
        "f32s": pa.array([0.1, -0.0], pa.float32()).to_pylist(),
        "vector": pa.array([0.25, -1.0, 0.1], pa.float32()).to_pylist(),
        "days": [date(9999, 12, 31), date(1969, 12, 31)],
    }


@pytest.mark.slow
def test_unsigned_lists_and_edges(spark: SparkSession, graph: og.Graph) -> None:
    register(spark)
    read = spark.read.format("omnigraph")
    counters = read.option("type", "Counter").load(str(graph.location))
    assert dict(counters.dtypes)["u64s"] == "array<decimal(20,0)>"
    rows = {row["id"]: row for row in counters.toArrow().to_pylist()}
    assert rows["a"]["u32s"] == [2**32 - 1, 0]
    assert rows["a"]["u64s"] == [Decimal(2**64 - 1)]
    assert [moment.timestamp() for moment in rows["a"]["moments"]] == [0.0, -0.001]
    assert (rows["b"]["moments"], rows["c"]["moments"]) == ([], None)
    edges = spark.read.format("omnigraph").options(TYPE="Follows", columns="id, src,dst,proof")
    found = edges.load(f"file://{graph.location}").orderBy("id").collect()
    assert [(row.src, row.dst, row.proof) for row in found] == [
        (MOST, "b", None),
        (MOST, "a", b"seen"),
        ("plain", "a", None),
    ]
    assert graph.to_spark("Nothing", spark=spark).collect() == []


@pytest.mark.slow
def test_a_frame_shows_one_commit(spark: SparkSession, people: og.Graph) -> None:
    register(spark)
    read = spark.read.format("omnigraph").option("type", "Person")
    before = people.snapshot().commit_id
    of_graph, of_reader = people.to_spark("Person"), read.load(str(people.location))
    add(people, "Dan")
    people.mutate('query q() { delete Person where name = "Ann" }')
    people.branches.create("draft")
    add(people, "Eve", branch="draft")
    old = ["Ann", "Ben", "Cid"]
    assert ids(of_graph) == ids(of_reader) == old
    assert ids(people.to_spark("Person", snapshot=before)) == old
    assert ids(read.option("snapshot", before).load(str(people.location))) == old
    assert ids(people.to_spark("Person")) == ["Ben", "Cid", "Dan"]
    of_branch = people.to_spark("Person", branch="draft")
    people.branches.delete("draft")
    assert ids(people.to_spark("Person")) == ["Ben", "Cid", "Dan"]
    assert of_branch.columns == ["id", "age", "name"]


@pytest.mark.slow
def test_partitions_and_projection(spark: SparkSession, people: og.Graph) -> None:
    register(spark)
    read = spark.read.format("omnigraph").option("type", "Person")
    one = read.load(str(people.location))
    each = read.option("partition_rows", "1").option("columns", "age").load(str(people.location))
    assert (one.rdd.getNumPartitions(), each.rdd.getNumPartitions()) == (1, 3)
    assert each.columns == ["age"]
    assert sorted(row.age or 0 for row in each.collect()) == [0, 30, 40]
    narrow = read.schema("age int").load(str(people.location))
    assert sorted(row.age or 0 for row in narrow.collect()) == [0, 30, 40]


@pytest.mark.slow
def test_filters_reach_the_scan_only_where_they_are_switched_on(
    pushing: SparkSession, people: og.Graph, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = people.to_spark("Person", spark=pushing)
    wanted = frame.where("age >= 30 and name like 'A%'")
    wanted.explain()
    assert "Filter" not in capsys.readouterr().out.replace("RuntimeFilters", "")
    assert ids(wanted) == ["Ann"]
    mixed = frame.where("age >= 30 and length(name) = 3 and name <> 'Ben'")
    mixed.explain()
    plan = capsys.readouterr().out
    assert "length(name" in plan
    assert ">= 30" not in plan
    assert ids(mixed) == ["Ann"]
    pushing.conf.set(PUSHDOWN, "false")
    again = frame.where("age >= 30 and name like 'A%'")
    again.explain()
    assert ">= 30" in capsys.readouterr().out
    assert ids(again) == ["Ann"]


def test_names_of_views() -> None:
    catalog = compile_schema(
        "node Likes { name: String @key }\nnode Person { name: String @key }\n"
        "edge Likes: Person -> Likes\nedge Knows: Person -> Person\n"
    ).catalog
    assert view_names(catalog, "old_", None) == {
        "node:Likes": "old_Likes",
        "node:Person": "old_Person",
        "edge:Likes": "old_Likes_edge",
        "edge:Knows": "old_Knows",
    }
    assert view_names(catalog, "", ["edge:Likes"]) == {"edge:Likes": "Likes_edge"}
    with pytest.raises(BadRequest, match="'a b' cannot begin the name of a view"):
        view_names(catalog, "a b", None)
    with pytest.raises(NotFound, match=r"there is no type Persn: did you mean `Person`\?"):
        view_names(catalog, "", ["Persn"])
    same = compile_schema("node AB { name: String @key }\nnode Ab { name: String @key }\n").catalog
    with pytest.raises(BadRequest, match="node:AB and node:Ab would have one name, Ab"):
        view_names(same, "", None)


@pytest.mark.slow
def test_views_of_branches_and_commits(spark: SparkSession, people: og.Graph) -> None:
    before = people.snapshot().commit_id
    people.branches.create("draft")
    add(people, "Dan", 50, branch="draft")
    people.mutate('query q() { update Person set { age: 31 } where name = "Ann" }')
    assert people.create_views(spark, commit=before, prefix="old_") == ["old_Person"]
    people.create_views(spark, prefix="new_", columns={"Person": ["age", "id"]})
    people.create_views(branch="draft", prefix="draft_", types=["Person"])
    changed = "select n.id, o.age, n.age from new_Person n join old_Person o using (id)"
    assert [*map(tuple, spark.sql(f"{changed} where n.age <> o.age").collect())] == [
        ("Ann", 30, 31)
    ]
    added = "select id from draft_Person except select id from old_Person"
    assert ids(spark.sql(added)) == ["Dan"]
    assert spark.table("new_Person").columns == ["age", "id"]
    add(people, "Eve")
    assert spark.table("new_Person").count() == 3
    people.create_views(spark, prefix="new_")
    assert ids(spark.table("new_Person")) == ["Ann", "Ben", "Cid", "Eve"]
    with pytest.raises(BadRequest, match="columns of node:Person are named, but no view of it"):
        people.create_views(spark, types=[], columns={"Person": ["id"]})
    for name in ("old_Person", "new_Person", "draft_Person"):
        assert spark.catalog.dropTempView(name)


@pytest.mark.slow
def test_a_limit_reads_no_more_parts_than_it_needs(spark: SparkSession, people: og.Graph) -> None:
    register(spark)
    read = spark.read.format("omnigraph").options(type="Person", partition_rows="1")
    frame = read.load(str(people.location))
    spark.sparkContext.setJobGroup("limited", "limited")
    assert len(frame.limit(1).collect()) == 1
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup("limited")]
    tasks = [
        stage.numTasks
        for job in jobs
        if job is not None
        for number in job.stageIds
        if (stage := tracker.getStageInfo(number)) is not None
    ]
    assert tasks == [1]


@pytest.mark.slow
def test_what_is_wrong_is_said_by_spark(spark: SparkSession, people: og.Graph) -> None:
    from pyspark.errors import AnalysisException

    register(spark)
    read = spark.read.format("omnigraph")
    with pytest.raises(AnalysisException, match="there is no type Persn: did you mean `Person`"):
        read.option("type", "Persn").load(str(people.location))
    typed = read.option("type", "Person").schema("age long")
    with pytest.raises(AnalysisException, match="the column age of Person is int"):
        typed.load(str(people.location)).collect()


@pytest.mark.slow
def test_the_page_about_spark_works(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = blocks_of(PAGE.read_text("utf-8"), PAGE.name)
    [schema] = (block.text for block in blocks if block.info == "pg")
    graph = og.init(tmp_path / "film.omni", schema)
    rows: list[dict[str, Any]] = [
        {"type": "Person", "data": {"name": "Ann", "age": 30}},
        {"type": "Person", "data": {"name": "Ben", "age": 9}},
        {"edge": "Knows", "from": "Ann", "to": "Ben", "data": {"since": "2020-05-01"}},
    ]
    graph.load(rows, mode="append")
    names: dict[str, Any] = {"spark": spark}
    before = spark.conf.get(PUSHDOWN)
    for block in blocks:
        if block.info == "python":
            exec(block.text.replace("/data/", f"{tmp_path}/"), names)  # noqa: S102 - our own page
    spark.conf.set(PUSHDOWN, before or "false")
    shown = capsys.readouterr().out
    table = shown.replace(" ", "").splitlines()
    assert ["Ann", "Ben", "2020-05-01"] in [line.strip("|").split("|") for line in table]
    assert "{'Person': 4} {'Knows': 1}" in shown
    ages = {(row.op, row.id, row.age) for row in spark.read.parquet(f"{tmp_path}/ages").collect()}
    assert ages >= {("insert", "Ann", "30"), ("insert", "Cid", "12")}
    copy = og.init(tmp_path / "copy", schema)
    copy.load(tmp_path / "backup", mode="append")
    assert list(copy.export()) == list(graph.export())
