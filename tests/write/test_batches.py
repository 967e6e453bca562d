"""Statements that follow one another run as one batch: what they do, and what it costs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph as og
from omnigraph import errors
from omnigraph.lang.structural import DST, SRC
from omnigraph.write.publish.read_set import ReadSet
from tests import profile
from tests.write.writing import mutate, rows

SCHEMA = """
node Film {
    title: String @key
    year: I32
    tags: [String]?
    rank: I32? @default(9)
    plot: String?
    meaning: Vector(2)? @embed(plot)
}
node Fact { text: String? }
edge Before: Film -> Film { note: String? }
"""
BETWEEN = ' delete Fact where text = "nobody" '
"""Touches nothing, and parts two batches."""

VALUES: dict[str, list[Any]] = {
    "year": [1, 2],
    "tags": [None, ["a"], []],
    "rank": [None, 1],
    "plot": [None, "it rains", "it rains", "it snows"],
    "meaning": [None, [1.0, 0.0], [0.0, 1.0]],
}


@st.composite
def statements(draw: st.DrawFn) -> str:
    verb = draw(
        st.sampled_from(["insert", "insert", "upsert", "upsert", "upsert", "create", "edge"])
    )
    titles = st.sampled_from(["Rain", "Fog", "New", "Old"])
    if verb == "edge":
        return f'insert Before {{ from: "{draw(titles)}" to: "{draw(titles)}" }}'
    names = draw(st.sets(st.sampled_from(sorted(VALUES)), max_size=4))
    if verb != "upsert":
        names.add("year")
    given = {"title": draw(titles)}
    given |= {name: draw(st.sampled_from(VALUES[name]), name) for name in sorted(names)}
    assigned = " ".join(f"{name}: {json.dumps(value)}" for name, value in given.items())
    return f"{verb} Film {{ {assigned} }}"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.init(tmp_path_factory.mktemp("batches") / "graph", SCHEMA)
    graph.load(
        [
            {
                "type": "Film",
                "data": {
                    "title": "Rain",
                    "year": 1999,
                    "tags": ["wet"],
                    "plot": "it rains",
                    "meaning": [0.6, 0.8],
                },
            },
            {"type": "Film", "data": {"title": "Fog", "year": 2001}},
        ],
        mode="append",
    )
    return graph


branches = count()


def outcome(graph: og.Graph, body: str) -> tuple[Any, ...]:
    """What becomes of the statements, on a branch of their own."""
    branch = f"b{next(branches)}"
    graph.branches.create(branch)
    try:
        result = mutate(graph, body, branch=branch)
    except errors.OmniGraphError as error:
        # A batch tells all that is wrong, one by one only the first of it.
        return type(error), getattr(error, "rule", None)
    edges = sorted((row[SRC], row[DST]) for row in rows(graph, "Before", branch).values())
    counts = (result.affected_nodes, result.affected_edges, result.warnings)
    return counts, rows(graph, "Film", branch), edges


@pytest.mark.slow
def test_a_batch_does_what_its_statements_do(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")

    @profile.costly
    @given(st.lists(statements(), min_size=2, max_size=7))
    def same(drawn: list[str]) -> None:
        assert outcome(graph, " ".join(drawn)) == outcome(graph, BETWEEN.join(drawn))

    same()


# -- work ----------------------------------------------------------------------------------------


def calls(action: Callable[[], object]) -> int:
    """How many functions are called in this thread."""
    counted = 0

    def note(_: Any, event: str, __: Any) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return counted


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["insert", "create", "upsert"])
def test_work_grows_as_the_statements_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    graph = og.init(tmp_path / "graph", SCHEMA)
    mutate(
        graph, 'insert Film { title: "first" year: 1 } insert Before { from: "first" to: "first" }'
    )
    asked: list[str] = []
    really = ReadSet.ask

    def spy(self: ReadSet, base: Any, type_key: str, question: Any) -> Any:
        asked.append(type_key)
        return really(self, base, type_key, question)

    monkeypatch.setattr(ReadSet, "ask", spy)

    def run(start: int, size: int) -> tuple[int, int]:
        body = "\n".join(
            f'{verb} Film {{ title: "t{n}" year: {n} tags: ["x"] }} insert Fact {{ text: "{n}" }} '
            f'insert Before {{ from: "first" to: "t{n}" }}'
            for n in range(start, start + size)
        )
        asked.clear()
        return calls(lambda: mutate(graph, body)), len(asked)

    run(0, 10)
    few, questions = run(1_000, 100)
    many, as_many = run(2_000, 800)
    assert as_many == questions
    assert many < 10 * few, (few, many)
    assert graph.table("Film").count_rows() == 911


@pytest.mark.slow
def test_the_same_key_over_and_over(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", SCHEMA)
    body = "\n".join(f'upsert Film {{ title: "one" year: {n} }}' for n in range(2_000))
    assert mutate(graph, body).affected_nodes == 2_000
    assert rows(graph, "Film")["one"]["year"] == 1_999
