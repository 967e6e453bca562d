"""Graphs under names that would mean something else in a URL, or nothing at all."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest
from tests.film_graph import files

SCHEMA = "node Person { name: String @key\n bio: String? @index }\nedge Knows: Person -> Person"
ALL = "query all() { match { $p: Person } return { $p.name as name } }"
LINES = """\
{"type": "Person", "data": {"name": "Ann", "bio": "x"}}
{"type": "Person", "data": {"name": "Ben"}}
{"edge": "Knows", "from": "Ann", "to": "Ben", "data": {}}
"""


@pytest.mark.parametrize(
    "name", ["a?b=c#d", "a%41%2F%zz%", "é e\u0301*[x]{y}", "a\\b'\"`|<>;&~", "#1", "file:", "..."]
)
def test_a_name_is_the_bytes_it_is(tmp_path: Path, name: str) -> None:
    place = tmp_path / name / name
    # What it would be if it were read as a URL.
    other = tmp_path / "aA"
    other.mkdir()
    graph = og.init(place, SCHEMA)
    graph.load(LINES, mode="append")
    graph.branches.create("dev")
    graph.mutate('query add() { insert Person { name: "Cid" } }', branch="dev")
    graph.branches.merge("dev", delete_source=True)
    graph.ensure_indices()
    assert graph.cleanup(1, grace=timedelta(0)).bytes_removed
    again = og.open(str(place))
    assert again.notices == []
    assert {row["name"] for row in again.query(ALL).rows} == {"Ann", "Ben", "Cid"}
    assert len(list(again.export())) == 4
    assert sorted(found.name for found in tmp_path.iterdir()) == sorted([name, "aA"])
    assert [found.name for found in (tmp_path / name).iterdir()] == [name]
    assert files(other) == {}


@pytest.mark.parametrize("character", ["\n", "\r", "\t", "\x01", "\x1f", "\x7f"])
def test_control_characters_are_refused_before_anything_is_made(
    tmp_path: Path, character: str
) -> None:
    for place in (tmp_path / f"a{character}b", tmp_path / f"a{character}b" / "graph"):
        for work in (lambda at: og.init(at, SCHEMA), og.open):
            with pytest.raises(BadRequest, match="control characters") as refused:
                work(place)
            assert character not in str(refused.value)
    with pytest.raises(BadRequest, match="control characters"):
        og.init(f"file://{tmp_path}/a%{ord(character):02x}b", SCHEMA)
    with pytest.raises(BadRequest, match="control characters"):
        og.open(f"s3://bucket/a{character}b")
    assert files(tmp_path) == {}
    assert list(tmp_path.iterdir()) == []
