"""Every pair of the page for those who know SQL or Cypher: run, and SQL by DuckDB beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import omnigraph
from omnigraph import Graph

PAGE = Path(__file__).parents[2] / "docs/user/from-sql-and-cypher.md"
SCHEMA = re.search(r"```pg\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]  # type: ignore[index]  # it is there
PAIRS = re.findall(r"^\| `(.+?)` \| `(.+?)` \|$", PAGE.read_text(), re.MULTILINE)
WRITES = re.compile(r"(match \{.*\} )?(create|insert|upsert|update|delete) ")

PEOPLE = [
    ("Ann", 30, "Rome", "2020-01-31", ["chess", "go"]),
    ("Ben", 25, "Oslo", "2019-03-05", ["go"]),
    ("Cat", 35, None, "2021-12-31", None),
    ("Dan", None, "Rome", "2018-02-28", []),
    ("Annika", 52, "Bern", "2020-06-15", ["chess"]),
]
COMPANIES = [("Brell", "NO"), ("Arda", "IT")]
KNOWS = [
    ("Ann", "Ben", "2020-05-01"),
    ("Ann", "Cat", None),
    ("Ben", "Dan", "2018-01-01"),
    ("Ann", "Ben", "2024-01-01"),
]
WORKS_AT = [("Ann", "Brell", "chair"), ("Cat", "Arda", None)]
TABLES = """
    CREATE TABLE person (name VARCHAR, age INT, city VARCHAR, joined DATE, tags VARCHAR[]);
    CREATE TABLE company (name VARCHAR PRIMARY KEY, country VARCHAR);
    CREATE TABLE knows (src VARCHAR, dst VARCHAR, since DATE);
    CREATE TABLE works_at (src VARCHAR, dst VARCHAR, role VARCHAR);
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    made = omnigraph.init(tmp_path_factory.mktemp("pairs") / "graph", schema=SCHEMA)
    made.load("\n".join(map(json.dumps, _lines())), mode="append")
    return made


def _lines() -> Iterator[dict[str, Any]]:
    for name, age, city, joined, tags in PEOPLE:
        data = {"name": name, "age": age, "city": city, "joined": joined, "tags": tags}
        yield {"type": "Person", "data": data}
    for name, country in COMPANIES:
        yield {"type": "Company", "data": {"name": name, "country": country}}
    for src, dst, since in KNOWS:
        yield {"edge": "Knows", "from": src, "to": dst, "data": {"since": since}}
    for src, dst, role in WORKS_AT:
        yield {"edge": "WorksAt", "from": src, "to": dst, "data": {"role": role}}


@pytest.fixture(scope="module")
def filled() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        made.execute(TABLES)
        for table, several in (("person", PEOPLE), ("company", COMPANIES), ("knows", KNOWS)):
            for row in several:
                made.table(table).insert(row)
        for row in WORKS_AT:
            made.table("works_at").insert(row)
        yield made


@pytest.fixture
def database(filled: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    filled.begin()
    yield filled
    filled.rollback()


def test_there_are_sixty_pairs() -> None:
    assert len(PAIRS) >= 60
    assert len({pair[0] for pair in PAIRS}) == len(PAIRS)


@pytest.mark.parametrize(("theirs", "ours"), PAIRS, ids=[theirs for theirs, _ in PAIRS])
def test_a_pair_says_the_same(
    theirs: str, ours: str, graph: Graph, database: duckdb.DuckDBPyConnection
) -> None:
    theirs = theirs.replace("¦", "|")
    text = f"query q() {{ {ours} }}"
    if WRITES.match(ours):
        # The pairs share a graph, and each change has a branch of its own.
        branch = f"pair{[pair[1] for pair in PAIRS].index(ours)}"
        graph.branches.create(branch)
        done = graph.mutate(text, branch=branch)
        affected = done.affected_nodes + done.affected_edges
        if theirs.startswith("MATCH"):
            assert affected
        else:
            assert database.execute(theirs).fetchall() == [(affected,)]
        return
    found = [tuple(row.values()) for row in json.loads(graph.query(text).json_rows())]
    assert found
    if theirs.startswith("MATCH"):
        return
    meant = [tuple(map(_plain, row)) for row in database.execute(theirs).fetchall()]
    if re.search(r"ORDER BY [^()]*(\(.*\)[^()]*)?$", theirs) is None or "QUALIFY" in theirs:
        found, meant = sorted(found, key=repr), sorted(meant, key=repr)
    assert found == meant


def _plain(value: Any) -> Any:
    return str(value)[:10] if hasattr(value, "isoformat") else value
