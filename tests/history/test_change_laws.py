"""Laws of changes over random histories: applied to one state, they give the other."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.errors import MergeConflicts
from omnigraph.history.stream import ChangeStream
from omnigraph.rows.external_sort import SortLimits
from omnigraph.storage.indexes.table_indexes import compact
from tests import profile
from tests.history.changing import SCHEMA, State, apply, follow, lines_of, state_of
from tests.write.writing import maintain


def node(type_: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"type": type_, "data": data}


def key(entity: dict[str, Any]) -> tuple[str, str]:
    return entity["type"], entity["data"]["name"]


NAMES = st.sampled_from(["a", "b", "c", "ż", "long" * 80])
BRANCHES = st.sampled_from(["main", "draft"])
PERSON = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "age": st.none() | st.integers(-(2**31), 2**31 - 1),
        "born": st.none() | st.dates().map(str),
        "score": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "tags": st.none() | st.lists(st.text('x\n"', max_size=2), max_size=2),
        "photo": st.none() | st.binary(max_size=3),
    },
).map(lambda data: node("Person", data))
PLACE = NAMES.map(lambda name: node("Place", {"name": name}))
ENTITIES = st.lists(PERSON | PLACE, min_size=1, max_size=6, unique_by=key)
EDGES = st.lists(
    st.fixed_dictionaries({"edge": st.just("Knows"), "from": NAMES, "to": NAMES, "id": NAMES}),
    max_size=3,
    unique_by=lambda edge: edge["id"],
)
STEPS = st.lists(
    st.tuples(st.just("merge"), BRANCHES, ENTITIES, EDGES)
    | st.tuples(st.just("delete"), BRANCHES, NAMES)
    | st.tuples(st.just("age"), BRANCHES, NAMES, st.integers(0, 9))
    | st.tuples(st.just("compact"), BRANCHES)
    | st.tuples(st.sampled_from(["fork", "join"])),
    min_size=1,
    max_size=10,
)
TINY = SortLimits(run_rows=3, batch_rows=2, fan_in=2)


def run(graph: og.Graph, step: tuple[Any, ...]) -> None:
    """One step of a history; one that the graph refuses changes nothing."""
    match step:
        case ("fork",):
            if "draft" not in graph.branches.list():
                graph.branches.create("draft")
        case ("join",):
            if "draft" in graph.branches.list():
                with suppress(MergeConflicts):
                    graph.branches.merge("draft")
        case (_, branch, *_) if branch not in graph.branches.list():
            pass
        case ("merge", branch, entities, edges):
            people = {e["data"]["name"] for e in entities if e["type"] == "Person"}
            rows = [
                {"edge": e["edge"], "from": e["from"], "to": e["to"], "data": {"id": e["id"]}}
                for e in edges
                if {e["from"], e["to"]} <= people
            ]
            graph.load([*entities, *rows], mode="merge", branch=branch)
        case ("delete", branch, name):
            text = (
                "query q($n: String) { delete Person where name = $n delete Place where name = $n }"
            )
            graph.mutate(text, params={"n": name}, branch=branch)
        case ("age", branch, name, age):
            text = "query q($n: String, $a: I32) { update Person set { age: $a } where name = $n }"
            graph.mutate(text, params={"n": name, "a": age}, branch=branch)
        case ("compact", branch):
            maintain(graph, branch, lambda _, table, __: compact(table))


@pytest.mark.slow
@settings(
    profile.dear,
    derandomize=True,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
@given(STEPS, st.integers(1, 7))
def test_changes_take_one_state_to_the_other(steps: list[tuple[Any, ...]], limit: int) -> None:
    with TemporaryDirectory() as directory:
        root = Path(directory)
        graph = og.init(root / "g.omni", SCHEMA)
        genesis = graph.snapshot()
        states: dict[str, State] = {genesis.commit_id: {}}
        for step in steps:
            run(graph, step)
            for branch in graph.branches.list():
                states.setdefault(
                    graph.snapshot(branch).commit_id, state_of(graph.export(branch=branch))
                )
        for a, before in states.items():
            for b, after in states.items():
                found = graph.diff(a, b)
                state = dict(before)
                apply(state, found)
                assert state == after
                assert len(found) == len(list(found))
        for number, branch in enumerate(graph.branches.list()):
            state = {}
            blocks, _ = follow(og.open(root / "g.omni"), branch=branch, limit=limit)
            for block in blocks:
                apply(state, block.changes)
                assert state == states[block.cause.graph_commit_id]
            copy = og.init(root / f"copy{number}.omni", SCHEMA)
            copy.load("\n".join(lines_of(state)), mode="append")
            assert list(copy.export()) == list(graph.export(branch=branch))


def test_how_much_is_held_at_a_time_changes_nothing(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g.omni", SCHEMA)
    before = graph.snapshot()
    rows = [node("Person", {"name": f"p{n * 7 % 23:02}", "age": n}) for n in range(23)]
    graph.load(rows, mode="append")
    middle = graph.snapshot()
    graph.load(rows[:9], mode="merge")
    graph.load([node("Person", {**row["data"], "age": -1}) for row in rows[5:14]], mode="merge")
    graph.mutate("query q() { delete Person where age > 15 }")
    for a, b in ((before, middle), (middle, graph.snapshot()), (before, graph.snapshot())):
        found = graph.diff(a, b)
        tiny = ChangeStream(found._types, found._wanted, limits=TINY)
        assert list(tiny) == list(found)
        assert len(found) > 5
