"""Queries as people type them: without a header, with parameters beside them, from a file."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, ParamError, TypeCheckError

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    big: U64?
    score: F32?
    born: Date?
    seen: DateTime?
    tags: [String]?
}
"""
NAMES = "match { $p: Person %s } return { $p.name } order { $p.name asc }"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.init(tmp_path_factory.mktemp("short") / "g.omni", SCHEMA)
    graph.mutate(
        "insert Person { name: $name, age: $age, big: $big, born: $born, tags: $tags }",
        {"name": "Ann", "age": 3, "big": 2**40, "born": "2001-02-03", "tags": ["a", "b"]},
    )
    seen = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    graph.mutate('insert Person { name: "Ben", seen: $seen, score: $s }', {"seen": seen, "s": 0.5})
    return graph


@pytest.mark.parametrize(
    ("where", "params", "found"),
    [
        ("", {}, ["Ann", "Ben"]),
        ("$p.age = $x", {"x": 3}, ["Ann"]),
        ("$p.big = $x", {"x": 2**40}, ["Ann"]),
        ("$p.score < $x", {"x": 1}, ["Ben"]),
        ("$p.score = $x", {"x": 0.5}, ["Ben"]),
        ("$p.born = $x", {"x": "2001-02-03"}, ["Ann"]),
        ("$p.born = $x", {"x": dt.date(2001, 2, 3)}, ["Ann"]),
        ("$p.seen >= $x", {"x": "2019-12-31T00:00:00Z"}, ["Ben"]),
        ("$p.name = $x", {"x": "2001-02-03"}, []),
        ("$p.name in $x", {"x": ["Ann", "Cem"]}, ["Ann"]),
        ("$p.age in $x", {"x": []}, []),
        ("$p.tags contains $x", {"x": "b"}, ["Ann"]),
        ("$p.age > $x  $p.born < $y", {"x": 1, "y": "2020-01-01"}, ["Ann"]),
    ],
)
def test_parameters_have_the_types_that_fit(
    graph: og.Graph, where: str, params: dict[str, Any], found: list[str]
) -> None:
    result = graph.query(NAMES % where, params)
    assert result["p.name"] == found
    assert "Person" in str(graph.explain(NAMES % where, params=params))


def test_a_header_is_what_it_was(graph: og.Graph, tmp_path: Path) -> None:
    by_age = NAMES % "$p.age = $x"
    text = f"query a($x: I32) {{ {by_age} }}\nquery b() {{ {NAMES % ''} }}"
    assert graph.query(text, "a", {"x": 3})["p.name"] == ["Ann"]
    path = tmp_path / "names.gq"
    path.write_text("// all of them\n" + NAMES % "")
    assert len(graph.query(path)) == 2
    path.write_text(text)
    assert len(graph.query(path, "b")) == 2
    with pytest.raises(BadRequest, match="cannot read"):
        graph.query(tmp_path / "nowhere.gq")


def test_mistakes_are_shown_as_written(graph: og.Graph) -> None:
    with pytest.raises(TypeCheckError, match="did you mean `name`"):
        graph.query(NAMES % "$p.nam = $x", {"x": "Ann"})
    with pytest.raises(TypeCheckError, match=r"variable \$y is not bound"):
        graph.query(NAMES % "$p.name = $y", {"x": "Ann"})
    with pytest.raises(BadRequest, match="given twice"):
        graph.query(NAMES % "$p.name = $x", {"x": "Ann"}, {"x": "Ben"})
    with pytest.raises(TypeCheckError, match="is a mutation"):
        graph.query("delete Person where age > 100")
    with pytest.raises(ParamError, match=r"x"):
        graph.query("query a() { %s }" % (NAMES % ""), params={"x": 1})


def test_a_result_at_hand(graph: og.Graph) -> None:
    result = graph.query("match { $p: Person } return { $p.name as name, $p.born as born }")
    assert result[0] == {"name": "Ann", "born": "2001-02-03"}
    assert result[-1]["name"] == "Ben"
    assert result["name"] == ["Ann", "Ben"]
    assert result[1:]["name"] == ["Ben"]
    assert result[::-1]["name"] == ["Ben", "Ann"]
    assert len(result.head(1)) == 1
    assert result.to_dicts()[0] == {"name": "Ann", "born": dt.date(2001, 2, 3)}
    assert graph.query("match { $p: Person } return { count($p) as n }").scalar() == 2
    with pytest.raises(BadRequest, match="2 rows and 2 columns"):
        result.scalar()
    with pytest.raises(BadRequest, match="did you mean `name`"):
        result["nam"]
    with pytest.raises(IndexError):
        result[2]


def test_other_libraries_read_a_result(graph: og.Graph) -> None:
    duckdb = pytest.importorskip("duckdb")
    polars = pytest.importorskip("polars")
    result = graph.query("match { $p: Person } return { $p.name as name, $p.age as age }")
    assert polars.DataFrame(result)["name"].to_list() == ["Ann", "Ben"]
    assert result.to_polars().shape == (2, 2)
    assert duckdb.sql("select sum(age) from result").fetchall() == [(3,)]


def test_not_before_a_call_that_is_called_like_an_operator(graph: og.Graph) -> None:
    assert graph.query(NAMES % 'not starts_with($p.name, "A")')["p.name"] == ["Ben"]
    assert graph.query(NAMES % 'not contains($p.tags, "a")')["p.name"] == []
    assert graph.query(NAMES % 'not contains($p.tags, "z")')["p.name"] == ["Ann"]
