"""Declared pipelines: the document, what is wrong with it, and what it loads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from obstore.store import S3Store

import omnigraph as og
from omnigraph.errors import BadRequest, CheckFailed, Conflict, ValidationError
from omnigraph.pipeline.declared.checks import require_sound
from omnigraph.pipeline.declared.document import Expression, KeyExpressions, read_document
from omnigraph.pipeline.declared.types import typed_rows
from omnigraph.pipeline.load.entry import load_given
from omnigraph.pipeline.load.stage.frames import given
from omnigraph.pipeline.load.staged_checks import StagedCheck
from omnigraph.pipeline.task_runner import InProcessRunner
from omnigraph.storage.objects.location import s3_options
from omnigraph.write.load.operation import LoadOptions
from omnigraph.write.publish.driver import Target
from tests import faults
from tests.docs.examples import blocks_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = """\
node Person { name: String @key  born: I32? }
node Film { title: String  year: I32  genre: String?  released: Date?  @key(title, year) }
node Review { text: String }
edge ActedIn: Person -> Film { role: String? }
"""
HEAD = """\
mode: append
sources:
  people: { format: csv, path: raw/people.csv, options: { header: true } }
  films: { format: json, path: raw/films.json }
  casting: { format: parquet, path: raw/casting.parquet }
"""
FILM = (
    HEAD
    + """\
nodes:
  Person: { from: people, where: name > '', set: { name: trim(name), born: cast(born as int) } }
  Film: { from: films, set: { title: t, year: cast(y as int), released: to_date(r) } }
edges:
  ActedIn:
    from: casting
    src: person
    dst: { Film: { title: film, year: year } }
    set: { role: role }
"""
)


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "film.omni", SCHEMA)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """The files that the documents speak of."""
    directory = tmp_path / "raw"
    directory.mkdir()
    (directory / "people.csv").write_text("name,born\n Ann ,1980\nBen,\n,7\n", encoding="utf-8")
    films = [{"t": "Rain", "y": 1999, "r": "1999-05-01"}, {"t": 'Snow "2"', "y": 2004, "r": None}]
    (directory / "films.json").write_text("\n".join(map(json.dumps, films)), encoding="utf-8")
    casting = pa.table(
        {
            "person": ["Ann", "Ben"],
            "film": ["Rain", 'Snow "2"'],
            "year": pa.array([1999, 2004], pa.int64()),
            "role": ["singer", None],
        }
    )
    pq.write_table(casting, directory / "casting.parquet")
    return directory


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a document; returns its path."""

    def _write(text: str, name: str = "film.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return _write


Write = Callable[..., Path]


def problems(path: Path, graph: og.Graph | None = None) -> list[str]:
    """What is wrong with a document, without its file."""
    document, found = read_document(path)
    if graph is not None:
        for part in document.parts:
            require_sound(part.checks.values(), graph.catalog, found)
            typed_rows(part, graph.catalog, found)
    with pytest.raises(BadRequest) as refused:
        found.raise_if_any()
    assert str(refused.value).startswith(f"{path}:")
    return [
        f"{one['line']} {one['path']}: {one['message']}"
        for one in refused.value.details["problems"]
    ]


def content(graph: og.Graph, *types: str, branch: str = "main") -> list[dict[str, Any]]:
    found = map(json.loads, graph.export(branch=branch, types=list(types) or None))
    return [{name: value for name, value in one["data"].items() if name != "id"} for one in found]


def data_files(graph: og.Graph) -> list[str]:
    root = Path(str(graph.location))
    return sorted(str(path) for path in root.rglob("*.lance") if path.parent.name == "data")


# -- the document ------------------------------------------------------------------


def test_a_document_is_read(write: Write, tmp_path: Path) -> None:
    document, found = read_document(
        write(
            """\
graph: ${WHERE}/film.omni
branch: import/2026-11
from: main
mode: merge
on_error: skip
max_rejects: 10
rejects: left-out
run_id: night-${NIGHT}
sources:
  people:
    format: csv
    path: [raw/*.csv, "s3://raw/people/", /elsewhere/x.csv]
    options: { header: true, sep: ";" , password: "${SECRET}" }
    schema: name string
  stars: { query: "select * from people where name = '${NIGHT}'" }
  old: { table: db.people }
nodes:
  Person:
    - { from: people, where: born > 1, set: { name: trim(name), born: null } }
    - { from: stars, id: "concat('a', name)" }
edges:
  ActedIn: { from: old, src: p, dst: { Film: { title: t, year: y } } }
"""
        ),
        {"WHERE": "../graphs", "NIGHT": "7", "SECRET": "hush"},
    )
    assert found.found == []
    assert document.graph == f"{tmp_path}/../graphs/film.omni"
    assert (document.branch, document.from_branch) == ("import/2026-11", "main")
    options = document.options
    assert (options.mode, options.on_error, options.max_rejects) == ("merge", "skip", 10)
    assert (options.run_id, options.rejects) == ("night-7", str(tmp_path / "left-out"))
    people = document.sources["people"]
    assert people.paths == (
        f"{tmp_path}/raw/*.csv",
        "s3://raw/people/",
        "/elsewhere/x.csv",
    )
    assert dict(people.options) == {"header": "true", "sep": ";", "password": "hush"}
    assert document.sources["stars"].query == "select * from people where name = '${NIGHT}'"
    assert document.sources["old"].table == "db.people"
    first, second, third = document.mapped
    assert [one.label for one in document.mapped] == [
        "nodes.Person[0]",
        "nodes.Person[1]",
        "edges.ActedIn",
    ]
    assert {name: one.text for name, one in first.values.items()} == {
        "name": "trim(name)",
        "born": "null",
    }
    assert first.where is not None
    assert (first.where.text, first.where.spot.line) == ("born > 1", 19)
    assert second.id is not None
    assert isinstance(third.ends["src"], Expression)
    end = third.ends["dst"]
    assert isinstance(end, KeyExpressions)
    assert (end.type_name, {name: one.text for name, one in end.members.items()}) == (
        "Film",
        {"title": "t", "year": "y"},
    )


def test_everything_wrong_with_the_shape_is_told_at_once(write: Write) -> None:
    path = write("""\
grph: x
branch: "a b"
mode: appnd
max_rejects: -1
on_error: skip
run_id: ${NOT_SET_ANYWHERE}
sources:
  people: { format: csv, path: "people/*.csv" }
  people: { format: csv }
  c: { table: a, query: b }
  d: {}
  e: [1]
  f: { path: x.csv }
  g: { table: a, options: { x: y } }
nodes:
  Person: { from: people, where: , set: { name: trim(name), born: 1, born: 1, x: [1] } }
  Film:
    - { set: { a: b } }
    - { from: people, src: x }
  Empty: []
edges:
  ActedIn: { from: casting, src: { Person: { name: p }, Film: { title: t } } }
  Knows: text
""")
    assert problems(path) == [
        "1 grph: there is no such key; did you mean `graph`?",
        "2 branch: 'a b' is not a branch name: use letters and digits of any script, and . _ - /",
        "3 mode: there is no load mode 'appnd': choose append, merge, patch, overwrite",
        "4 max_rejects: this must be a number of rows, found '-1'",
        "6 run_id: the environment variable NOT_SET_ANYWHERE is not set",
        "9 sources.people: this is written twice, first in line 8",
        "10 sources.c: table and query: a source has only one of them",
        "11 sources.d: where does it come from? write `format` and `path`, `table`, or `query`",
        "12 sources.e: this must be a mapping (name: value), and is a list",
        "13 sources.f: `format` is missing: csv, json, parquet, orc or any other that Spark reads",
        "14 sources.g.options: a source with `table` has no `options`",
        "16 nodes.Person.set.born: this is written twice, first in line 16",
        "16 nodes.Person.set.x: this must be a text, and is a list",
        "16 nodes.Person.where: this is empty",
        "18 nodes.Film[0]: `from` is missing: the name of a source",
        "19 nodes.Film[1].src: there is no such key; known here: `from`, `id`, `set`, `where`",
        "20 nodes.Empty: this is empty",
        "22 edges.ActedIn.src: an end is one node: write { Type: { key property: expression } }",
        "22 edges.ActedIn: `dst` is missing: an expression for the id of a node, or its key",
        "23 edges.Knows: this must be a mapping (name: value), and is a text",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mode: append\nnodes: {}\n", "1 sources: this key is missing"),
        ("sources: {}\nnodes: {}\n", "1 mode: this key is missing"),
        (
            "mode: append\nmax_rejects: 5\nsources: {}\nnodes: {}\n",
            '2 max_rejects: max_rejects is for loads that skip rows: add on_error="skip"',
        ),
        (
            "mode: append\nsources: {}\n",
            "1 : there is nothing to load: write `nodes` or `edges`",
        ),
    ],
)
def test_what_is_missing(write: Write, text: str, said: str) -> None:
    assert problems(write(text)) == [said]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1\n", "is no YAML: line 2, column 1: "),
        ("", "is empty: a pipeline has at least"),
        ("[" * 2000, "nests too deeply"),
    ],
)
def test_what_is_no_document(write: Write, text: str, said: str) -> None:
    with pytest.raises(BadRequest) as refused:
        read_document(write(text))
    assert said in str(refused.value)


def test_an_expression_with_a_comma_needs_quotes(write: Write) -> None:
    text = HEAD + "nodes:\n  Person: { from: people, set: { name: concat(a, b) } }\n"
    (found,) = problems(write(text))
    assert found.startswith("7 nodes.Person.set.b): this was cut off at a comma: put an expression")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"cannot read .*none.yaml: No such file"):
        read_document(tmp_path / "none.yaml")
    (tmp_path / "odd.yaml").write_bytes(b"a: \xff")
    with pytest.raises(BadRequest, match=r"odd.yaml is not UTF-8 text \(byte 3\)"):
        read_document(tmp_path / "odd.yaml")


STEPS = """\
branch: night
from: main
mode: merge
run_id: r1
sources:
  people: { format: csv, path: raw/people.csv, options: { header: true } }
checks:
  young: "query q($most: I32) { match { $p: Person  $p.born > 2020 } return { $p.name, $p.born } }"
steps:
  - name: people
    nodes:
      Person:
        from: people
        where: name > ''
        set: { name: trim(name), born: try_cast(born as int) }
  - name: reviews
    mode: append
    sources:
      stored: { format: omnigraph, path: film.omni, options: { type: Person, branch: night } }
    nodes:
      Review: { from: stored, id: name, set: { text: "concat(name, ' was here')" } }
    checks:
      empty: { file: checks.gq, query: without, params: { text: "2" } }
"""
QUERIES = """\
query without($text: String) { match { $r: Review { text: $text } } return { $r } }
query lost() { match { $p: Person  not { $p actedIn $f } } return { $p.name } order { $p.name } }
"""


def test_steps_say_what_the_document_does_not(write: Write, tmp_path: Path) -> None:
    (tmp_path / "checks.gq").write_text(QUERIES, encoding="utf-8")
    document, found = read_document(write(STEPS))
    assert found.found == []
    assert document.mapped == ()
    first, second = document.parts
    assert [one.options.mode for one in document.parts] == ["merge", "append"]
    assert [one.options.run_id for one in document.parts] == ["r1/people", "r1/reviews"]
    assert [one.branch for one in document.parts] == ["night", "night"]
    assert list(first.sources) == ["people"]
    assert list(second.sources) == ["people", "stored"]
    assert list(first.checks) == ["young"]
    assert list(second.checks) == ["young", "empty"]
    empty = second.checks["empty"].check
    assert (empty.query, dict(empty.params)) == ("without", {"text": "2"})


def test_what_is_wrong_with_steps_and_checks(write: Write, graph: og.Graph, tmp_path: Path) -> None:
    (tmp_path / "checks.gq").write_text(QUERIES, encoding="utf-8")
    path = write("""\
sources: {}
nodes: {}
checks: { gone: none.gq, which: checks.gq, bad: { query: q } }
steps:
  - { name: a, mode: merge, branch: x, nodes: {} }
  - { name: a, nodes: {}, checks: { typo: "query q() { match { $p: Persn } return { $p } }" } }
  - { mode: append, edges: {}, checks: { del: 'query q() { delete Person where born = 1 }' } }
""")
    assert problems(path, graph) == [
        "2 nodes: in a document with `steps`, this belongs into one of them",
        f"3 checks.gone: cannot read {tmp_path}/none.gq: No such file or directory",
        "3 checks.bad: `file` is missing: the path of a file of queries",
        "3 checks.which: the text holds 2 queries (without, lost): say which one to run",
        "5 steps[0].branch: there is no such key",
        "6 steps[1].mode: this key is missing",
        "6 steps[1]: there is a step 'a' before it",
        "6 steps[1].checks.typo: type error: T1: unknown node type Persn",
        "7 steps[2]: `name` is missing: what the step is called",
        "7 steps[2].checks.del: query `q` is a mutation: run it with mutate, not query",
    ]


def test_a_check_is_made_again_when_others_were_faster(graph: og.Graph) -> None:
    """A rival commits between the check and the publish: both together break what each keeps."""
    twins = StagedCheck(
        "twins",
        "query q() { match { $a: Person  $b: Person  $a.born = $b.born  $a.name < $b.name }"
        " return { $a.name, $b.name } }",
    )
    rivals = [{"type": "Person", "data": {"name": "Cid", "born": 1}}]

    def overtake(point: str, _: str) -> None:
        if point == "publish_ready" and rivals:
            row = rivals.pop()
            og.open(graph.location.uri).load([row], mode="append")

    born = pa.table({"name": ["Ben"], "born": pa.array([1], pa.int32())})
    target = Target(graph.location, graph.manifest, "main")
    with faults.watched(overtake), pytest.raises(CheckFailed) as refused:
        load_given(
            given({"Person": born}, graph.catalog),
            LoadOptions.of("append"),
            target,
            InProcessRunner(),
            checks=[twins],
        )
    assert refused.value.details["checks"][0]["rows"] == [{"a.name": "Ben", "b.name": "Cid"}]
    assert [one["name"] for one in content(graph, "Person")] == ["Cid"]


# -- against a schema --------------------------------------------------------------


def test_everything_that_the_schema_refuses(write: Write, graph: og.Graph) -> None:
    path = write(
        HEAD
        + """\
nodes:
  Persn: { from: people, set: { name: name } }
  Person: { from: peple, set: { nam: trim(name), id: x } }
  Film: { from: films, set: { title: t } }
  ActedIn: { from: casting }
edges:
  Film: { from: films, src: a, dst: b }
  ActedIn:
    - { from: casting, src: { Film: { title: x } }, dst: { Film: { title: f, yer: y } } }
    - { from: casting, src: { node:Person: { name: p } }, dst: d, set: { rolle: r } }
"""
    )
    assert problems(path, graph) == [
        "7 nodes.Persn: unknown node type 'Persn'; did you mean `Person`?",
        "8 nodes.Person.from: there is no source 'peple'; did you mean `people`?",
        "8 nodes.Person.set.nam: unknown property 'nam' for Person; did you mean `name`?",
        "8 nodes.Person.set.id: `id` stands beside `set`, not in it",
        "8 nodes.Person: Person.name must have a value: write it into `set`",
        "9 nodes.Film: Film.year must have a value: write it into `set`",
        "10 nodes.ActedIn: ActedIn is an edge type: write it below `edges`",
        "12 edges.Film: Film is a node type: write it below `nodes`",
        "14 edges.ActedIn[0].src.Film: this end is a Person, not a Film",
        "14 edges.ActedIn[0].dst.Film.yer: 'yer' is not in the key of Film; did you mean `year`?",
        "14 edges.ActedIn[0].dst.Film: the key of Film needs year as well",
        "15 edges.ActedIn[1].set.rolle: unknown property 'rolle' for ActedIn; did you mean `role`?",
    ]


def test_a_sound_document_has_no_problems(write: Write, graph: og.Graph) -> None:
    document, found = read_document(write(FILM))
    assert [typed.type.name for typed in typed_rows(document, graph.catalog, found)] == [
        *("Person", "Film", "ActedIn"),
    ]
    assert found.found == []


def test_the_document_of_the_guide_is_sound(write: Write, tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs/user/pipelines.md"
    blocks = blocks_of(page.read_text(encoding="utf-8"), page.name)
    files = {block.title: block.text for block in blocks if block.title is not None}
    graph = og.init(tmp_path / "guide.omni", files["film.pg"])
    document, found = read_document(write(files["film.yaml"]), {"RAW": "raw"})
    assert len(typed_rows(document, graph.catalog, found)) == len(document.mapped) == 3
    assert found.found == []


def test_the_whole_schema_is_looked_at_before_spark_starts(write: Write, graph: og.Graph) -> None:
    path = write(FILM.replace("trim(name)", "trim(").replace("role: role", "rolle: role"))
    with pytest.raises(BadRequest) as refused:
        graph.validate_pipeline(path, spark="spark://127.0.0.1:1")
    assert [one["path"] for one in refused.value.details["problems"]] == ["edges.ActedIn.set.rolle"]


# -- on Spark ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("raw", "spark")
def test_all_sources_are_one_commit(write: Write, graph: og.Graph) -> None:
    before = graph.snapshot().commit_id
    done = graph.run_pipeline(write(FILM), actor="ann")
    assert (done.nodes, done.edges) == ({"Person": 2, "Film": 2}, {"ActedIn": 2})
    assert done.commit.parent_id == before
    assert done.commit.actor == "ann"
    assert done.commit.metadata["pipeline"] == "film.yaml"
    assert content(graph, "Person") == [
        {"name": "Ann", "born": 1980},
        {"name": "Ben", "born": None},
    ]
    assert [(one["title"], one["released"]) for one in content(graph, "Film")] == [
        ("Rain", "1999-05-01"),
        ('Snow "2"', None),
    ]
    ends = {(one["from"], one["to"]) for one in map(json.loads, graph.export(types=["ActedIn"]))}
    assert ends == {("Ann", '["Rain","1999"]'), ("Ben", '["Snow \\"2\\"","2004"]')}


@pytest.mark.slow
@pytest.mark.usefixtures("raw")
def test_several_mappings_of_one_type_and_queries(
    write: Write, graph: og.Graph, spark: SparkSession
) -> None:
    text = FILM.replace("  Person: {", "  Person:\n   - {").replace(
        "  Film: {",
        "   - { from: extras, set: { name: \"concat('extra ', n)\" } }\n"
        "  Review: { from: reviews, set: { text: film } }\n"
        "  Film: {",
    )
    text = text.replace(
        "nodes:",
        "  extras: { query: select id as n from range(2) }\n"
        "  reviews: { query: select film from casting where role is not null }\n"
        "nodes:",
    )
    before = spark.catalog.listTables()
    done = graph.run_pipeline(write(text))
    assert done.nodes == {"Person": 4, "Film": 2, "Review": 1}
    assert content(graph, "Review") == [{"text": "Rain"}]
    assert spark.catalog.listTables() == before


@pytest.mark.slow
@pytest.mark.usefixtures("raw")
def test_a_view_of_the_session_stays_what_it_is(
    write: Write, graph: og.Graph, spark: SparkSession
) -> None:
    spark.range(3).createOrReplaceTempView("people")
    text = FILM.replace("nodes:", "  few: { query: select * from films limit 1 }\nnodes:")
    try:
        with pytest.raises(BadRequest, match="the session has a view 'people' already"):
            graph.run_pipeline(write(text))
        assert spark.table("people").count() == 3
    finally:
        spark.catalog.dropTempView("people")


@pytest.mark.slow
@pytest.mark.usefixtures("raw", "spark")
def test_what_only_spark_can_tell(write: Write, graph: og.Graph) -> None:
    path = write("""\
mode: append
sources:
  people: { format: csv, path: raw/people.csv, options: { header: true } }
  casting: { format: parquet, path: raw/casting.parquet }
  nowhere: { format: csv, path: raw/none.csv }
  misspelt: { format: cvs, path: raw/people.csv }
  joined: { query: select frm people }
nodes:
  Person: { from: people, where: nam is not null, set: { name: "trim(name", born: born } }
  Film: { from: casting, where: year, set: { title: film, year: role, genre: 1 } }
  Review: { from: nowhere, set: { text: x } }
edges:
  ActedIn:
    from: casting
    src: 1 + 1
    dst: { Film: { title: year, year: year } }
    set: { role: sing(role) }
""")
    with pytest.raises(BadRequest) as refused:
        graph.validate_pipeline(path)
    found = {one["path"]: one["message"] for one in refused.value.details["problems"]}
    assert found.pop("sources.nowhere").startswith("Path does not exist: file:")
    assert found.pop("sources.joined").startswith("A column, variable, or function parameter")
    assert found.pop("nodes.Film.where").endswith('"year" of type "BIGINT" is not a boolean')
    assert found.pop("edges.ActedIn.set.role").startswith("Cannot resolve routine `sing`")
    assert found == {
        "sources.misspelt": "Spark has no data source 'cvs'; did you mean `csv`?",
        "nodes.Person.where": "source 'people' has no column 'nam'; did you mean `name`?",
        "nodes.Person.set.name": "Syntax error at or near end of input: missing ')'",
        "nodes.Person.set.born": "Person.born: a column of string cannot hold I32;"
        " write cast(born as int)",
        "nodes.Film.set.year": "Film.year: a column of string cannot hold I32;"
        " write cast(role as int)",
        "nodes.Film.set.genre": "Film.genre: a column of int32 cannot hold String;"
        " write cast(1 as string)",
        "edges.ActedIn.src": "'src' must be a column of strings, found int32;"
        " write cast(1 + 1 as string)",
        "edges.ActedIn.dst.Film.title": "'dst': Film.title: a column of int64 cannot hold"
        " String; write cast(year as string)",
    }


@pytest.mark.slow
@pytest.mark.usefixtures("raw", "spark")
def test_validating_reads_no_rows(write: Write, graph: og.Graph) -> None:
    source = '{ query: "select string(1/0) as t, 1 as y, null as r" }'
    path = write(FILM.replace("{ format: json, path: raw/films.json }", source))
    graph.validate_pipeline(path)
    with pytest.raises(BadRequest, match=r"frame 'nodes.Film' could not be computed: Division by"):
        graph.run_pipeline(path)
    assert graph.table("Person").count_rows() == 0


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_rows_that_are_wrong_are_told_by_their_mapping(
    write: Write, graph: og.Graph, raw: Path
) -> None:
    (raw / "people.csv").write_text("name,born\nAnn,1\nAnn,2\nBen,3\n", encoding="utf-8")
    with pytest.raises(ValidationError) as refused:
        graph.run_pipeline(write(FILM))
    assert refused.value.details["violations"][0]["source"] == "nodes.Person"
    text = FILM.replace("mode: append", "mode: append\non_error: skip\nrejects: left-out")
    dry = graph.run_pipeline(write(text), dry_run=True)
    assert (dry.published, dry.rejects) == (None, {"unique": 1})
    assert graph.table("Person").count_rows() == 0
    done = graph.run_pipeline(write(text))
    assert done.rejects_file is not None
    assert Path(done.rejects_file).parent == raw.parent / "left-out"
    (found,) = map(json.loads, Path(done.rejects_file).read_text(encoding="utf-8").splitlines())
    assert (found["file"], found["line"]) == ("nodes.Person", 2)
    assert json.loads(found["raw"]) == {"name": "Ann", "born": 2}


@pytest.mark.slow
@pytest.mark.usefixtures("raw", "spark")
def test_a_branch_and_a_run_of_its_own(write: Write, graph: og.Graph) -> None:
    path = write("branch: night\nfrom: main\nrun_id: one\n" + FILM)
    done = graph.run_pipeline(path)
    assert (done.branch, done.branch_created, done.base_branch) == ("night", True, "main")
    assert graph.table("Person").count_rows() == 0
    assert graph.table("Person", branch="night").count_rows() == 2
    again = graph.run_pipeline(path)
    assert (again.repeats_run, again) == (True, done)
    with pytest.raises(Conflict, match=done.commit.id):
        graph.run_pipeline(write("branch: night\nrun_id: one\n" + FILM))


@pytest.mark.slow
@pytest.mark.usefixtures("raw", "spark")
def test_steps_are_commits_and_checks_refuse_them(
    write: Write, graph: og.Graph, tmp_path: Path
) -> None:
    (tmp_path / "checks.gq").write_text(QUERIES, encoding="utf-8")
    text = STEPS.replace('{ text: "2" }', "{ text: Ben was here }")
    with pytest.raises(CheckFailed) as refused:
        graph.run_pipeline(write(text))
    told = refused.value.details
    assert str(refused.value).splitlines() == [
        "step 'reviews': check 'empty' finds 1 rows that must not be there:",
        '  {"r":{"@id":"Ben","text":"Ben was here"}}',
        "1 of the checks failed; nothing was written",
        "published before: people",
    ]
    assert [one["name"] for one in told["checks"]] == ["empty"]
    first = graph.snapshot("night").commit_id
    assert told["published"] == [{"step": "people", "commit": first}]
    assert content(graph, "Review", branch="night") == []

    done = graph.run_pipeline(write(STEPS))
    people, reviews = done.steps
    assert (people.load.repeats_run, people.load.commit.id) == (True, first)
    assert reviews.checks == ("young", "empty")
    assert reviews.load.commit.parent_id == first
    assert reviews.load.commit.metadata["step"] == "reviews"
    assert [one["text"] for one in content(graph, "Review", branch="night")] == [
        "Ann was here",
        "Ben was here",
    ]
    assert content(graph, "Person") == []


@pytest.mark.slow
@pytest.mark.usefixtures("raw", "spark")
def test_a_refused_load_leaves_nothing(write: Write, graph: og.Graph, tmp_path: Path) -> None:
    (tmp_path / "checks.gq").write_text(QUERIES, encoding="utf-8")
    graph.load([{"type": "Person", "data": {"name": "Old"}}], mode="append")
    head = graph.snapshot().commit_id
    check = "checks: { lost: { file: checks.gq, query: lost } }\n"
    path = write(FILM.replace("mode: append", "mode: merge") + check)
    files = data_files(graph)
    for dry_run in (True, False):
        with pytest.raises(CheckFailed) as refused:
            graph.run_pipeline(path, dry_run=dry_run)
        assert refused.value.details["checks"] == [
            {"name": "lost", "total": 1, "rows": [{"p.name": "Old"}]}
        ]
        assert graph.snapshot().commit_id == head
        assert data_files(graph) == files
    graph.mutate('query q() { delete Person where name = "Old" }')
    graph.run_pipeline(path, dry_run=True)
    assert content(graph, "Person") == []
    done = graph.run_pipeline(path)
    assert (done.total, done.steps[0].checks) == (6, ("lost",))


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_sources_in_an_object_store(
    write: Write, graph: og.Graph, raw: Path, s3_bucket: str
) -> None:
    bucket, _, prefix = s3_bucket.removeprefix("s3://").partition("/")
    store = S3Store(bucket, config=s3_options())  # type: ignore[arg-type]
    for number, name in enumerate(("Ann", "Ben")):
        data = f"name,born\n{name},198{number}\n".encode()
        obstore.put(store, f"{prefix}/people/year=202{number}/part.csv", data)
    obstore.put(store, f"{prefix}/films.json", (raw / "films.json").read_bytes())
    text = FILM.replace("raw/people.csv", f"{s3_bucket}/people/").replace(
        "raw/films.json", f'"{s3_bucket}/fil*.json"'
    )
    text = text.replace("cast(born as int)", "year")
    path = write(text)
    graph.validate_pipeline(path)
    done = graph.run_pipeline(path)
    assert done.nodes == {"Person": 2, "Film": 2}
    assert content(graph, "Person") == [
        {"name": "Ann", "born": 2020},
        {"name": "Ben", "born": 2021},
    ]
