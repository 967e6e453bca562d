"""The people graph: its sizes, its spread, and that the same arguments give the same rows."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import omnigraph as og
from omnigraph.errors import BadRequest
from omnigraph.generate.people_graph import GraphSize, generate, schema, tables
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.schema.syntax.format import format_schema
from omnigraph.lang.source import Source

ROOT = Path(__file__).parents[2]
SMALL = GraphSize.of(60)


def content(root: Path) -> bytes:
    """All data of a directory, in the order in which a load reads it."""
    return b"".join(path.read_bytes() for path in sorted(root.glob("data/*")))


def whole(size: GraphSize, seed: int = 0, **options: Any) -> dict[str, pa.Table]:
    parts = defaultdict(list)
    for name, table in tables(size, seed, **options):
        parts[name].append(table)
    return {name: pa.concat_tables(some) for name, some in parts.items()}


# -- sameness ----------------------------------------------------------------------


def test_the_rows_are_these_and_no_others(tmp_path: Path) -> None:
    """A change of this sum changes every graph that somebody has made before."""
    generate(GraphSize.of(500), tmp_path, seed=7)
    found = hashlib.sha256(content(tmp_path)).hexdigest()
    assert found == "57b277f560219d8503e28c7db46815ccfe2ccebd53919c4fbfde857cdb190dde"


def test_the_same_seed_gives_the_same_bytes_whatever_is_made_at_once(tmp_path: Path) -> None:
    generate(SMALL, tmp_path / "a", seed=1, dirty=0.1)
    generate(SMALL, tmp_path / "b", seed=1, dirty=0.1, chunk_rows=7)
    generate(SMALL, tmp_path / "c", seed=1, dirty=0.1, files=3, chunk_rows=11)
    generate(SMALL, tmp_path / "d", seed=2, dirty=0.1)
    assert content(tmp_path / "a") == content(tmp_path / "b") == content(tmp_path / "c")
    assert content(tmp_path / "a") != content(tmp_path / "d")
    lists = [(tmp_path / name / "dirty.json").read_bytes() for name in "ab"]
    assert lists[0] == lists[1]


def test_tables_do_not_depend_on_what_is_made_at_once() -> None:
    assert whole(SMALL, 3) == whole(SMALL, 3, chunk_rows=9)


def test_files_have_the_rows_of_the_tables(tmp_path: Path) -> None:
    generate(SMALL, tmp_path, seed=3)
    for name, table in whole(SMALL, 3).items():
        (path,) = tmp_path.glob(f"data/*-{name}-0000.jsonl")
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        rows = [line.get("data", {}) for line in lines]
        if table.column_names[0] == "src":
            assert [line["edge"] for line in lines] == [name] * len(lines)
            assert [line["from"] for line in lines] == table.column("src").to_pylist()
            assert [line["to"] for line in lines] == table.column("dst").to_pylist()
        else:
            assert [line["type"] for line in lines] == [name] * len(lines)
        for column in set(table.column_names) - {"src", "dst"}:
            values = table.column(column)
            if pa.types.is_date(values.type):
                values = values.cast(pa.string())
            elif pa.types.is_timestamp(values.type):
                values = pc.strftime(values.cast(pa.timestamp("s", "UTC")), "%Y-%m-%dT%H:%M:%SZ")
            assert [row.get(column) for row in rows] == values.to_pylist()


# -- sizes -------------------------------------------------------------------------


def test_what_follows_from_the_number_of_people() -> None:
    size = GraphSize.of(10_000)
    assert size == GraphSize(10_000, 100, 2_500, 100_000, 9_500, 3_750, 5_000)
    assert (size.nodes, size.edges) == (12_600, 118_250)


def test_edges_change_how_many_people_know_each_other() -> None:
    size = GraphSize.of(10_000, edges=50_000)
    assert size.edges == 50_000
    assert size.works_at == GraphSize.of(10_000).works_at


@pytest.mark.parametrize("people", [0, 1, 2, 3, 5, 99, 100])
def test_there_are_exactly_so_many_of_each(people: int, tmp_path: Path) -> None:
    size = GraphSize.of(people)
    counts = {name: table.num_rows for name, table in whole(size).items()}
    assert counts == {
        "Person": people,
        "Company": size.companies,
        "Document": size.documents,
        "Knows": size.knows,
        "WorksAt": size.works_at,
        "Wrote": size.wrote,
        "Mentions": size.mentions,
    }
    made = generate(size, tmp_path)
    assert made.counts == counts
    for file in made.files:
        assert file.path.read_bytes().count(b"\n") == file.rows == counts[file.type_name]
        assert file.path.stat().st_size == file.bytes


def test_everybody_can_know_everybody() -> None:
    size = GraphSize.of(20, edges=GraphSize.of(20).edges - GraphSize.of(20).knows + 20 * 19)
    knows = whole(size)["Knows"]
    assert len(set(zip(*knows.select(["src", "dst"]).to_pydict().values(), strict=True))) == 380


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (lambda: GraphSize.of(100, edges=10), "at least so many"),
        (lambda: GraphSize.of(10, edges=1000), "room for 90 edges of knows"),
        (lambda: GraphSize.of(-1), "people must be from 0"),
        (lambda: GraphSize(5, 0, 0, 0, 1, 0, 0), "room for 0 edges of works_at"),
    ],
)
def test_sizes_that_cannot_be(size: Any, said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        size()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_graph(tmp_path: Path) -> None:
    program = """
import resource, sys
from pathlib import Path
from omnigraph.generate.people_graph import GraphSize, generate
generate(GraphSize.of(int(sys.argv[1])), Path(sys.argv[2]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    peaks = []
    for people in (20_000, 200_000):
        command = [sys.executable, "-c", program, str(people), str(tmp_path / str(people))]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks.append(int(ran.stdout) * (1 if sys.platform == "darwin" else 1024))
    # The larger one writes 330 MB; what it may add is some bytes for each person.
    assert peaks[1] - peaks[0] < 100_000_000


# -- spread ------------------------------------------------------------------------


def test_a_few_people_are_known_by_many() -> None:
    knows = whole(GraphSize.of(2_000))["Knows"]
    for end in ("src", "dst"):
        counts = sorted(Counter(knows.column(end).to_pylist()).values(), reverse=True)
        assert counts[0] > 20 * np.mean(counts)
        assert np.median(counts) < np.mean(counts)


def test_a_few_companies_have_many_people() -> None:
    works = whole(GraphSize.of(2_000))["WorksAt"]
    counts = Counter(works.column("dst").to_pylist())
    assert max(counts.values()) > 3 * works.num_rows / 20
    assert len(counts) == 20


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["Knows", "WorksAt", "Wrote", "Mentions"])
def test_no_pair_has_two_edges_of_one_type(name: str, seed: int) -> None:
    edges = whole(GraphSize.of(300), seed)[name]
    pairs = list(zip(edges["src"].to_pylist(), edges["dst"].to_pylist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    if name == "Knows":
        assert all(source != target for source, target in pairs)


def test_values_of_every_sort_occur() -> None:
    made = whole(GraphSize.of(500))
    people, documents = made["Person"], made["Document"]
    assert 0 < people["score"].null_count < 500
    assert 0 < people["tags"].null_count < 500
    assert 0 < people["joined"].null_count < 500
    assert set(people["active"].to_pylist()) == {True, False}
    tags = people["tags"].drop_null().to_pylist()
    assert {len(some) for some in tags} == {0, 1, 2, 3, 4}
    assert all(len(set(some)) == len(some) for some in tags)
    assert len(set(made["Company"]["industry"].to_pylist())) > 1
    titles, bodies = documents["title"].to_pylist(), documents["body"].to_pylist()
    assert any('"' in title for title in titles)
    assert any("," in title for title in titles)
    assert any(not name.isascii() for name in people["name"].to_pylist())
    assert all(key.isascii() for key in people["handle"].to_pylist())
    assert [len(body.split()) for body in bodies] == documents["words"].to_pylist()
    assert len({body.partition(".")[0] for body in bodies}) > 100
    assert not any(mark in text for text in (*titles, *bodies) for mark in "\n\r\\")


# -- the schema --------------------------------------------------------------------


def test_the_schema_is_canonical_and_compiles() -> None:
    for text in (schema(), schema(embeddings=True)):
        assert format_schema(Source(text, "people.pg")) == text
    catalog = compile_schema(Source(schema(), "people.pg")).catalog
    assert {*catalog.nodes, *catalog.edges} == set(whole(GraphSize.of(5)))


def test_embeddings_are_a_matter_of_the_schema_alone(tmp_path: Path) -> None:
    made = generate(SMALL, tmp_path / "a", embeddings=True)
    generate(SMALL, tmp_path / "b")
    assert content(tmp_path / "a") == content(tmp_path / "b")
    text = made.schema_path.read_text(encoding="utf-8")
    document = compile_schema(Source(text, "schema.pg")).catalog.nodes["Document"]
    embedding = document.properties["embedding"]
    assert embedding.type.dimension == 64
    assert embedding.embedding is not None


def test_the_page_shows_the_schema() -> None:
    page = (ROOT / "docs/user/generate.md").read_text(encoding="utf-8")
    assert f"```pg\n{schema()}```\n" in page


# -- loading -----------------------------------------------------------------------


def test_it_loads(tmp_path: Path) -> None:
    made = generate(GraphSize.of(200), tmp_path / "data", files=2)
    graph = og.init(tmp_path / "graph", made.schema_path)
    done = graph.load(tmp_path / "data" / "data", mode="append", engine="inline")
    assert {**done.nodes, **done.edges} == made.counts


def test_its_tables_load(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", schema())
    size = GraphSize.of(200)
    done = graph.load(whole(size), mode="append")
    assert done.total == size.nodes + size.edges
    assert graph.table("Document").count_rows() == size.documents


# -- what is refused ---------------------------------------------------------------


def test_a_directory_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    with pytest.raises(BadRequest, match="is not empty"):
        generate(SMALL, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("mine")
    with pytest.raises(BadRequest, match="cannot write to"):
        generate(SMALL, path)
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"format": "xml"}, "choose jsonl, csv, parquet"),
        ({"format": "parquet", "compression": "gzip"}, "compressed already"),
        ({"files": 0}, "at least one file"),
        ({"dirty": 1.5}, "from 0 to 1"),
        ({"dirty": 0.1, "kinds": ["rude"]}, "choose from malformed, "),
        ({"dirty": 0.1, "format": "parquet", "kinds": ["malformed"]}, "parquet files have no"),
    ],
)
def test_arguments_that_make_no_sense(tmp_path: Path, options: Any, said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        generate(SMALL, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()
