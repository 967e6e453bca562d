"""Broken rows: they are where `dirty.json` says, a load finds them, and it finds nothing else."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.errors import ValidationError
from omnigraph.generate.bad_rows import FORMATS, KINDS, DirtKind, Format
from omnigraph.generate.people_graph import (
    GeneratedGraph,
    GraphSize,
    Planted,
    generate,
    schema,
    tables,
)

ROOT = Path(__file__).parents[2]
SIZE = GraphSize.of(60)
# A load checks the rules of the second sort only when every line can be read.
READING = [kind.name for kind in KINDS.values() if kind.rule in ("format", "type", "required")]
RULES = [name for name in KINDS if name not in READING]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """A graph that refuses whatever is loaded here, so that all tests can have it."""
    return og.init(tmp_path_factory.mktemp("graph") / "people", schema())


def refused(graph: og.Graph, data: object) -> list[dict[str, Any]]:
    """What a load has to say, all of it."""
    with pytest.raises(ValidationError) as caught:
        graph.load(data, mode="append", engine="inline")
    found: list[dict[str, Any]] = caught.value.details["violations"]
    assert caught.value.details["total"] == len(found)
    return found


def places(planted: Iterable[Planted]) -> list[tuple[str, int, str]]:
    return sorted((str(row.path), row.line, row.rule) for row in planted)


def clean_lines(made: GeneratedGraph, format_: Format = "jsonl") -> dict[str, list[bytes]]:
    """The lines of every type without those that are said to be planted."""
    kept: dict[str, list[bytes]] = {}
    for file in made.files:
        lines = file.path.read_bytes().split(b"\n")[:-1]
        planted = {row.line for row in made.planted if row.path == file.path}
        if format_ == "csv":
            planted.add(1)
        kept.setdefault(file.type_name, []).extend(
            line for number, line in enumerate(lines, start=1) if number not in planted
        )
    return kept


@pytest.mark.parametrize("kinds", [READING, RULES], ids=["reading", "rules"])
def test_a_load_refuses_exactly_the_planted_lines(
    kinds: list[str], graph: og.Graph, tmp_path: Path
) -> None:
    made = generate(SIZE, tmp_path, dirty=0.05, kinds=kinds, files=2)
    found = refused(graph, sorted((tmp_path / "data").iterdir()))
    assert sorted((row["source"], row["line"], row["rule"]) for row in found) == places(
        made.planted
    )
    assert len(found) >= 3 * len(kinds)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_refused_by_its_rule(kind: str, graph: og.Graph, tmp_path: Path) -> None:
    made = generate(SIZE, tmp_path, dirty=0.02, kinds=[kind])
    assert {row.kind for row in made.planted} == {kind}
    assert {row.type_name for row in made.planted} == set(KINDS[kind].values)
    found = refused(graph, sorted((tmp_path / "data").iterdir()))
    assert sorted((row["source"], row["line"], row["rule"]) for row in found) == places(
        made.planted
    )


@pytest.mark.parametrize("format_", ["jsonl", "csv"])
def test_without_the_planted_lines_the_data_is_clean(format_: Format, tmp_path: Path) -> None:
    dirty = generate(SIZE, tmp_path / "dirty", format=format_, dirty=0.1, files=3, chunk_rows=50)
    clean = generate(SIZE, tmp_path / "clean", format=format_)
    assert clean.planted == ()
    assert len({row.kind for row in dirty.planted}) == len(
        [kind for kind in KINDS.values() if format_ in kind.formats]
    )
    assert clean_lines(dirty, format_) == clean_lines(clean, format_)


def test_without_the_planted_rows_parquet_is_clean(tmp_path: Path) -> None:
    made = generate(SIZE, tmp_path, format="parquet", dirty=0.1, chunk_rows=50)
    tables_by_type = dict(tables(SIZE))
    for file in made.files:
        table = pq.read_table(file.path)
        planted = {row.line - 1 for row in made.planted if row.path == file.path}
        assert planted
        kept = [row for row in range(table.num_rows) if row not in planted]
        assert table.take(pa.array(kept)) == tables_by_type[file.type_name]


@pytest.mark.parametrize("kinds", [["missing_required"], RULES], ids=["reading", "rules"])
def test_a_load_refuses_exactly_the_planted_rows_of_parquet(
    kinds: list[str], graph: og.Graph, tmp_path: Path
) -> None:
    made = generate(SIZE, tmp_path, format="parquet", dirty=0.05, kinds=kinds)
    frames = {file.type_name: pq.read_table(file.path) for file in made.files}
    found = refused(graph, frames)
    assert sorted((row["source"], row["line"], row["rule"]) for row in found) == sorted(
        (row.type_name, row.line, row.rule) for row in made.planted
    )


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, id=kind.name) for kind in KINDS.values() if "csv" in kind.formats]
)
def test_the_broken_cells_of_csv(kind: DirtKind, tmp_path: Path) -> None:
    made = generate(SIZE, tmp_path, format="csv", dirty=0.02, kinds=[kind.name])
    assert {row.type_name for row in made.planted} == set(kind.values)
    for row in made.planted:
        lines = row.path.read_bytes().split(b"\n")
        assert (b"\xff\xfe" in lines[row.line - 1]) == (kind.name == "bad_utf8")
        found = [lines[0].decode(), lines[row.line - 1].decode(errors="replace")]
        columns, cells = csv.reader(found)
        assert (len(cells) > len(columns)) == (kind.name == "malformed")
        read = dict(zip(columns, cells, strict=kind.name != "malformed"))
        for name, value in kind.values[row.type_name].items():
            written = "" if value is None else json.dumps(value).strip('"')
            if kind.name == "missing_endpoint":
                assert read[name].startswith(written)
            else:
                assert read[name] == written


def test_the_list_of_what_was_planted(tmp_path: Path) -> None:
    made = generate(SIZE, tmp_path, seed=5, dirty=0.2, files=2)
    written = json.loads((tmp_path / "dirty.json").read_text(encoding="utf-8"))
    assert written == {
        "seed": 5,
        "rate": 0.2,
        "total": len(made.planted),
        "kinds": dict(sorted(Counter(row.kind for row in made.planted).items())),
        "planted": [
            {
                "file": row.path.relative_to(tmp_path).as_posix(),
                "line": row.line,
                "type": row.type_name,
                "kind": row.kind,
                "rule": row.rule,
            }
            for row in made.planted
        ],
    }
    assert made.planted_kinds == written["kinds"]


def test_the_page_has_a_row_for_every_kind() -> None:
    page = (ROOT / "docs/user/generate.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|.*\| ([^|]+) \|$", page, re.MULTILINE)
    shown = {
        kind.name: (kind.rule, ", ".join(map("`{}`".format, kind.formats)))
        for kind in KINDS.values()
    }
    every = ", ".join(map("`{}`".format, FORMATS))
    assert {
        name: (rule, every if formats == "all" else formats) for name, rule, formats in rows
    } == shown


def test_clean_data_has_no_list(tmp_path: Path) -> None:
    generate(SIZE, tmp_path)
    assert not (tmp_path / "dirty.json").exists()


def test_the_rate_is_kept_by_every_type(tmp_path: Path) -> None:
    made = generate(GraphSize.of(1_000), tmp_path, dirty=0.1)
    planted = Counter(row.type_name for row in made.planted)
    assert planted == {name: -(-count // 10) for name, count in made.counts.items()}


def test_as_many_broken_rows_as_good_ones(tmp_path: Path) -> None:
    made = generate(SIZE, tmp_path, dirty=1.0)
    assert len(made.planted) == SIZE.nodes + SIZE.edges
    assert len({(row.path, row.line) for row in made.planted}) == len(made.planted)
