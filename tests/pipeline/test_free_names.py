"""`id`, `src` and `dst` as properties, on Spark: files, frames, pipelines, export and reading."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import datasource as asked

import omnigraph as og
from omnigraph.errors import ValidationError
from omnigraph.lang.structural import ID, SRC
from omnigraph.pipeline.source.datasource import expression_of
from omnigraph.pipeline.source.reading import select
from tests.free_names import LINES, SCHEMA, exported, make_graph
from tests.pipeline.engines import run_tasks_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = {
    "Thing": "id,title\nt1,one\nt2,\n",
    "Item": "name,id,@id,note\nseven,7,i7,\neight,,i8,n\n",
    "Box": "lang,id,size\nen,5,0.5\n",
    "Holds": "from,to,src,dst,id,@id\nt1,i7,s,3,x,h1\nt2,i8,t1,,,h2\n",
    "Near": "@src,dst,src,id\nt1,t2,t2,n1\n",
    "In": 'src,@dst,dst,id\nt1,"[""5"",""en""]",true,b1\n',
}
"""The rows of the graph; what no property has the name of may be written either way."""


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "g.omni", SCHEMA)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """The files, by the names of their types."""
    directory = tmp_path / "raw"
    directory.mkdir()
    for name, text in FILES.items():
        (directory / f"{name}.csv").write_text(text, encoding="utf-8")
    return directory


# -- tasks, without Spark ------------------------------------------------------------


def test_csv(graph: og.Graph, raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_tasks_here(monkeypatch)
    graph.load(raw, mode="append")
    assert exported(graph) == LINES
    graph.load("\n".join(LINES), mode="merge", engine="spark")
    graph.load("\n".join(LINES), mode="overwrite", engine="spark")
    assert exported(graph) == LINES


@pytest.mark.parametrize(
    ("text", "type_name", "said"),
    [
        ("id,@id\nt5,t6\n", "Thing", "@id 't6' is not the id its key gives: 't5'; leave it out"),
        ("id,name\nseven,a\n", "Item", 'Item.id: expected I64, found the string "seven"'),
        ("src,to\nt1,i7\n", "Holds", "an edge needs a column 'from' with the ids of nodes"),
        ("from,to\nt9,t2\n", "Near", "@src 't9' not found in Thing"),
        ("from,to\nt1,t9\n", "Near", "dst 't9' not found in Thing"),
        (
            "from,to,@id\nt1,i7,h3\n",
            "Holds",
            "@unique violation on Holds.(@dst, @src): value '(i7, t1)' held by 'h1' and 'h3'",
        ),
    ],
)
def test_csv_that_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, type_name: str, said: str
) -> None:
    run_tasks_here(monkeypatch)
    graph = make_graph(tmp_path / "g.omni")
    (tmp_path / f"{type_name}.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValidationError) as caught:
        graph.load(tmp_path / f"{type_name}.csv", mode="append")
    (found,) = caught.value.details["violations"]
    assert said in found["message"]
    assert exported(graph) == LINES


def test_filters_reach_the_right_columns(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "g.omni")
    holds = select(graph.snapshot(), "Holds", None)
    assert [one.name for one in holds.columns] == ["@id", "@src", "@dst", "dst", "id", "src"]
    for name, value, found in (("src", "t1", "h2"), ("@src", "t1", "h1"), ("id", "x", "h1")):
        where = expression_of(holds, asked.EqualTo((name,), value))
        assert holds.table.scan([ID], where)[ID].to_pylist() == [found]
    near = select(graph.snapshot(), "Near", ["id", "@src", "dst", "src"])
    assert [one.stored for one in near.columns] == [ID, SRC, "@dst", "src"]


# -- with Spark ----------------------------------------------------------------------


@pytest.mark.slow
def test_reading_and_loading(spark: SparkSession, tmp_path: Path, graph: og.Graph) -> None:
    source = make_graph(tmp_path / "source.omni")
    types = ("Holds", "Item", "Near", "Thing")
    frames = {name: source.to_spark(name, spark=spark) for name in types}
    assert frames["Holds"].columns == ["@id", "@src", "@dst", "dst", "id", "src"]
    assert frames["Near"].columns == ["id", "@src", "dst", "src"]
    mine = frames["Holds"].where("src = 't1'").select("`@id`", "`@src`", "id")
    assert [tuple(row) for row in mine.collect()] == [("h2", "t2", None)]
    graph.load(frames, mode="append", spark=spark)
    assert exported(graph) == exported(source, *types)


@pytest.mark.slow
def test_an_export_on_spark(spark: SparkSession, tmp_path: Path, graph: og.Graph) -> None:
    source = make_graph(tmp_path / "source.omni")
    source.export(tmp_path / "out", format="parquet", spark=spark)
    (part,) = (tmp_path / "out" / "Item").glob("*.parquet")
    assert pq.read_table(part).select(["@id", "id"]).to_pydict() == {
        "@id": ["i7", "i8"],
        "id": [7, None],
    }
    graph.load(tmp_path / "out", mode="append", spark=spark)
    assert exported(graph) == LINES


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_a_declared_pipeline(graph: og.Graph, raw: Path, tmp_path: Path) -> None:
    pairs = pa.table({"a": ["t1"], "n": pa.array([5], pa.int32()), "l": ["en"], "k": ["b1"]})
    pq.write_table(pairs, raw / "pairs.parquet")
    path = tmp_path / "free.yaml"
    path.write_text(
        """\
mode: append
sources:
  things: { format: csv, path: raw/Thing.csv, options: { header: true } }
  items: { format: csv, path: raw/Item.csv, options: { header: true } }
  boxes: { format: csv, path: raw/Box.csv, options: { header: true } }
  holding: { format: csv, path: raw/Holds.csv, options: { header: true } }
  near: { format: csv, path: raw/Near.csv, options: { header: true } }
  pairs: { format: parquet, path: raw/pairs.parquet }
nodes:
  Thing: { from: things, set: { id: id, title: title } }
  Item:
    from: items
    id: "`@id`"
    set: { id: cast(id as bigint), name: name, note: note }
  Box: { from: boxes, set: { id: cast(id as int), lang: lang, size: cast(size as float) } }
edges:
  Holds:
    from: holding
    id: "`@id`"
    src: from
    dst: to
    set: { id: id, src: src, dst: cast(dst as int) }
  Near: { from: near, id: id, src: { Thing: { id: "`@src`" } }, dst: dst, set: { src: src } }
  In:
    from: pairs
    id: k
    src: a
    dst: { Box: { id: n, lang: l } }
    set: { dst: "true" }
""",
        encoding="utf-8",
    )
    graph.run_pipeline(path)
    assert exported(graph) == LINES
