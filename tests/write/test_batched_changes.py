"""Updates and deletes that follow one another and name their rows: one question for all of them."""

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
from omnigraph.storage.objects.meter import measure
from tests import profile
from tests.write.writing import mutate, overtaken

SCHEMA = """
node Film {
    title: String @key
    year: I32
    rank: I32? @default(9)
    plot: String?
    meaning: Vector(2)? @embed(plot)
}
node Shot { number: I32 @key  take: I32? }
node Fact { text: String? }
edge Before: Film -> Film { note: String? }
edge Of: Shot -> Film
"""
APART = ' update Fact set { text: "x" } where text = "nobody" delete Fact where text = "nobody" '
"""Touches nothing, and parts two batches."""
TITLES = ["Rain", "Fog", "Snow", "New"]
NUMBERS = [1, 2, 3]
VALUES: dict[str, list[Any]] = {
    "year": [1, 2],
    "rank": [None, 1],
    "plot": [None, "it rains", "it snows"],
    "meaning": [None, [1.0, 0.0]],
}
branches = count()


def node(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data}


def edge(kind: str, id_: str, source: str, target: str) -> dict[str, Any]:
    return {"edge": kind, "from": source, "to": target, "data": {"id": id_}}


STORED = [
    node("Film", title="Rain", year=1999, plot="it rains", meaning=[0.6, 0.8]),
    node("Film", title="Fog", year=2001),
    node("Film", title="Snow", year=1),
    *(node("Shot", number=number, take=number) for number in (1, 2)),
    edge("Before", "b1", "Rain", "Fog"),
    edge("Before", "b2", "Fog", "Fog"),
    edge("Before", "b3", "Snow", "Rain"),
    edge("Of", "o1", "1", "Rain"),
    edge("Of", "o2", "2", "Fog"),
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.init(tmp_path_factory.mktemp("changes") / "graph", SCHEMA)
    graph.load(STORED, mode="append")
    return graph


# -- what they do --------------------------------------------------------------------------------


@st.composite
def conditions(draw: st.DrawFn, kind: str) -> str:
    """Rows by their key or an end, by several of them, and sometimes more than that."""
    if kind == "Shot":
        named = st.sampled_from(NUMBERS).map(lambda n: f"number = {n}")
    elif kind == "Film":
        several = st.lists(st.sampled_from(TITLES), min_size=1, max_size=3)
        named = st.one_of(
            st.sampled_from(TITLES).map(lambda title: f'title = "{title}"'),
            several.map(lambda titles: f"title in {json.dumps(titles)}"),
            st.just("year > 1"),
        )
    else:
        ends = st.sampled_from(["from", "to"])
        named = st.tuples(ends, st.sampled_from(TITLES)).map(lambda one: f'{one[0]} = "{one[1]}"')
    more = {"Film": ["year > 1", "rank = 9", 'plot = "it rains"'], "Before": ['note = "x"']}
    found = draw(named)
    if kind in more and draw(st.integers(0, 3)) == 0:
        return f"{found} and {draw(st.sampled_from(more[kind]))}"
    return found


@st.composite
def statements(draw: st.DrawFn) -> str:
    verb = draw(st.sampled_from(["update"] * 4 + ["delete"] * 4 + ["insert", "edge"]))
    titles = st.sampled_from(TITLES)
    if verb == "edge":
        return f'insert Before {{ from: "{draw(titles)}" to: "{draw(titles)}" }}'
    if verb == "insert":
        return f'insert Film {{ title: "{draw(titles)}" year: 5 }}'
    if verb == "delete":
        kind = draw(st.sampled_from(["Film", "Film", "Shot", "Before"]))
        return f"delete {kind} where {draw(conditions(kind))}"
    kind = draw(st.sampled_from(["Film", "Film", "Film", "Shot", "Before"]))
    if kind == "Film":
        names = draw(st.sets(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3))
        given = {name: draw(st.sampled_from(VALUES[name]), name) for name in sorted(names)}
    else:
        given = {"take": draw(st.integers(1, 2))} if kind == "Shot" else {"note": "x"}
    assigned = " ".join(f"{name}: {json.dumps(value)}" for name, value in given.items())
    return f"update {kind} set {{ {assigned} }} where {draw(conditions(kind))}"  # noqa: S608 - no SQL


def outcome(graph: og.Graph, body: str) -> tuple[Any, ...]:
    """What becomes of the statements, on a branch of their own; new edges have any ids."""
    branch = f"b{next(branches)}"
    graph.branches.create(branch)
    try:
        result = mutate(graph, body, branch=branch)
    except errors.OmniGraphError as error:
        return type(error), error.message
    shown = [json.loads(line) for line in graph.export(branch=branch)]
    for line in shown:
        if "edge" in line and len(line["data"]["id"]) > 2:
            del line["data"]["id"]
    counts = (result.affected_nodes, result.affected_edges, result.warnings)
    return counts, sorted(map(json.dumps, shown))


@pytest.mark.slow
def test_a_batch_does_what_its_statements_do(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")

    @profile.costly
    @given(st.lists(statements(), min_size=2, max_size=7))
    def same(drawn: list[str]) -> None:
        assert outcome(graph, " ".join(drawn)) == outcome(graph, APART.join(drawn))

    same()


def test_a_row_that_several_statements_name_counts_for_each_update_and_one_delete(
    graph: og.Graph,
) -> None:
    updates = (
        'update Film set { rank: 1 } where title = "Rain" '
        'update Film set { rank: 2 year: 7 } where title in ["Rain", "Fog", "Fog"] '
        'update Film set { rank: 3 } where title = "Fog" '
        'update Film set { rank: 4 } where title = "nobody" '
    )
    counts, shown = outcome(graph, updates)
    assert counts[0] == 4
    films = [json.loads(line)["data"] for line in shown if '"title"' in line]
    ranks = {film["title"]: (film.get("rank"), film["year"]) for film in films}
    assert ranks == {"Rain": (2, 7), "Fog": (3, 7), "Snow": (9, 1)}
    deletes = (
        'delete Before where from = "Rain" delete Film where title = "Rain" '
        'delete Film where title in ["Rain", "Fog"] delete Before where to = "Fog" '
        'delete Film where title = "Snow" and year > 1 '
    )
    counts, shown = outcome(graph, deletes)
    assert counts[:2] == (2, 5)
    assert sum('"Film"' in line for line in shown) == 1


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ('update Film set { year: null } where title = "nobody"', "year"),
        ("update Film set { year: 3000000000 } where title = $p", "year"),
    ],
)
def test_what_is_wrong_with_one_is_told_although_no_row_gets_it(
    graph: og.Graph, statement: str, told: str
) -> None:
    fine = 'update Film set { rank: 1 } where title = "Rain"'
    query = f"query q($p: String) {{ {fine} {statement} {fine} }}"
    before = graph.commits.list()
    with pytest.raises(errors.OmniGraphError, match=told):
        graph.mutate(query, params={"p": "nobody"})
    assert graph.commits.list() == before


# -- what they depend on -------------------------------------------------------------------------

DELETES = (
    'delete Film where title = "Fog" and year > 2000 delete Film where title = "Snow" and year > 1'
)


@pytest.mark.parametrize(
    ("other", "is_refused"),
    [
        ('update Film set { rank: 5 } where title = "Rain"', False),
        ('insert Film { title: "Other" year: 9 }', False),
        # It was not chosen, and is not now.
        ('update Film set { year: 0 } where title = "Snow"', False),
        ('update Film set { year: 5 } where title = "Snow"', True),
        ('update Film set { year: 3 } where title = "Fog"', True),
        ('delete Film where title = "Fog"', True),
        ('insert Before { from: "Rain" to: "Fog" }', True),
    ],
)
def test_a_batch_depends_on_what_its_statements_depend_on(
    tmp_path: Path, other: str, is_refused: bool
) -> None:
    graph = og.init(tmp_path / "graph", SCHEMA)
    graph.load(STORED, mode="append")
    with overtaken(graph, "changes_checked", lambda rival: mutate(rival, other)):
        if is_refused:
            with pytest.raises(errors.ReadSetChanged):
                mutate(graph, DELETES)
        else:
            assert mutate(graph, DELETES).affected_nodes == 1


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


MANY: dict[str, Callable[[int], str]] = {
    "delete": lambda n: f'delete Film where title = "t{n}"',
    "delete with more": lambda n: f'delete Film where title = "t{n}" and year >= 0',
    "delete edges": lambda n: f'delete Before where from = "t{n}"',
    "update": lambda n: f'update Film set {{ rank: {n} }} where title = "t{n}"',  # noqa: S608 - no SQL
    "update edges": lambda n: f'update Before set {{ note: "{n}" }} where from = "t{n}"',  # noqa: S608 - no SQL
    "both kinds": lambda n: f'delete Shot where number = {n} delete Film where title = "t{n}"',
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", MANY)
def test_work_grows_as_the_statements_do_and_requests_do_not(tmp_path: Path, kind: str) -> None:
    graph = og.init(tmp_path / "graph", SCHEMA)
    rows = [
        line
        for n in range(1_200)
        for line in (
            node("Film", title=f"t{n}", year=n),
            node("Shot", number=n),
            edge("Before", f"e{n}", f"t{n}", f"t{n}"),
        )
    ]
    graph.load(rows, mode="append")

    def run(start: int, size: int) -> tuple[int, int]:
        body = "\n".join(map(MANY[kind], range(start, start + size)))
        with measure() as meter:
            called = calls(lambda: mutate(graph, body))
        return called, meter.total

    run(0, 60)
    few, requests = run(100, 100)
    many, as_many = run(300, 800)
    assert as_many <= requests + 8
    assert many < 10 * few, (few, many)
