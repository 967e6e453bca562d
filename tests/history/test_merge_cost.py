"""What branches and merges cost: requests on a real S3-compatible server, and memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import omnigraph as og
from omnigraph.history.merge import operation, tables
from omnigraph.lang.structural import ID
from omnigraph.rows.external_sort import DEFAULT_LIMITS, Spool
from omnigraph.storage.objects.meter import RequestMeter, measure
from tests.write.writing import image, mutate

pytestmark = pytest.mark.slow

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    email: String? @unique
    note: String?
}

edge Knows: Person -> Person @card(0..1000) {
    since: I32?
}
"""
SMALL, LARGE = 200, 20_000
SLACK = 6
"""A publish that seals history costs one or two requests more, and so does a row in a long file."""


def persons(prefix: str, start: int, end: int) -> list[dict[str, Any]]:
    return [
        {"name": f"{prefix}{n:06}", "age": n, "email": f"{prefix}{n}@x"} for n in range(start, end)
    ]


def people(count: int, prefix: str = "p") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {"type": "Person", "data": person} for person in persons(prefix, 0, count)
    ]
    edges = [
        {"edge": "Knows", "from": f"{prefix}{n:06}", "to": f"{prefix}{n + 1:06}", "data": {}}
        for n in range(count - 1)
    ]
    return rows + edges


def requests(action: Callable[[], object]) -> RequestMeter:
    with measure() as meter:
        action()
    return meter


def graph_of(place: str, count: int, commits: int = 0) -> og.Graph:
    graph = og.init(place, SCHEMA)
    graph.load(people(count), mode="append")
    for number in range(commits):
        mutate(graph, f'update Person set {{ age: {number} }} where name = "p000000"')  # noqa: S608 - no SQL
    return graph


def test_a_branch_costs_the_same_whatever_it_is_forked_from(s3_bucket: str) -> None:
    costs: dict[str, list[int]] = {}
    for name, count, commits in (("small", SMALL, 0), ("large", LARGE, 0), ("deep", SMALL, 90)):
        graph = graph_of(f"{s3_bucket}/{name}", count, commits)
        graph.branches.create("first")
        made = requests(lambda graph=graph: graph.branches.create("second"))  # type: ignore[misc]
        gone = requests(lambda graph=graph: graph.branches.delete("second"))  # type: ignore[misc]
        costs[name] = [made.total, gone.total]
    assert costs["small"] == costs["large"] == costs["deep"], costs
    made_by, gone_by = costs["small"]
    assert made_by <= 12, costs
    assert gone_by <= 18, costs


def diverge(graph: og.Graph, *, both: bool) -> None:
    """A small difference: one row of each kind, on one side or on both."""
    graph.branches.create("dev")
    mutate(
        graph,
        'update Person set { note: "there" } where name = "p000001" '
        'insert Person { name: "new", email: "new@x" } insert Knows { from: "new", to: "p000003" }',
        branch="dev",
    )
    if both:
        mutate(
            graph,
            'update Person set { note: "here" } where name = "p000002" '
            'insert Person { name: "own", email: "own@x" } '
            'insert Knows { from: "own", to: "p000004" }',
        )


@pytest.mark.parametrize(("both", "most"), [(False, 40), (True, 40)], ids=["forward", "three-way"])
def test_a_merge_of_little_costs_the_same_into_much(s3_bucket: str, both: bool, most: int) -> None:
    costs: dict[int, RequestMeter] = {}
    for count in (SMALL, LARGE):
        place = f"{s3_bucket}/{count}"
        diverge(graph_of(place, count), both=both)
        graph = og.open(place)
        costs[count] = requests(lambda graph=graph: graph.branches.merge("dev"))  # type: ignore[misc]
        assert graph.table("Person").count_rows() == count + 1 + both
    told = {count: str(meter) for count, meter in costs.items()}
    assert abs(costs[LARGE].total - costs[SMALL].total) <= SLACK, told
    assert costs[LARGE].total <= most, told


def far_apart(count: int, offset: int) -> list[dict[str, Any]]:
    return persons("p", 0, count)[offset :: count // 500]


def test_a_merge_of_much_costs_the_same_into_more(tmp_path: Path) -> None:
    """A thousand rows of one side, fifty of the other, half of which both have changed."""
    costs: dict[int, RequestMeter] = {}
    for count in (10_000, 200_000):
        graph = og.init(str(tmp_path / str(count)), SCHEMA)
        graph.load({"Person": pa.Table.from_pylist(persons("p", 0, count))}, mode="append")
        graph.branches.create("dev")
        aged = [{**row, "age": -1} for row in far_apart(count, 0)]
        theirs = [*persons("new", 0, 500), *aged]
        graph.load({"Person": pa.Table.from_pylist(theirs)}, mode="merge", branch="dev")
        ours = [*far_apart(count, 0)[::20], *far_apart(count, 1)[::20]]
        noted = [{**row, "note": "here"} for row in ours]
        graph.load({"Person": pa.Table.from_pylist(noted)}, mode="merge")
        costs[count] = requests(lambda graph=graph: graph.branches.merge("dev"))  # type: ignore[misc]
        found = graph.table("Person").to_table(columns=[ID, "age", "note"])
        assert found.num_rows == count + 500
        assert found.filter(pc.less(found["age"], 0)).num_rows == 500
        assert found.filter(pc.equal(found["note"], "here")).num_rows == 50
    told = {count: str(meter) for count, meter in costs.items()}
    assert costs[200_000].total <= 2 * costs[10_000].total, told


# -- memory ----------------------------------------------------------------------------------


def big_difference(root: Path) -> og.Graph:
    """Both sides change many rows, some of them the same, in many commits."""
    graph = og.init(root, SCHEMA)
    graph.load(people(600), mode="append")
    graph.branches.create("dev")
    for start in range(0, 400, 80):
        graph.load(
            [
                {"type": "Person", "data": person | {"note": "there"}}
                for person in persons("p", start, start + 80)
            ],
            mode="merge",
            branch="dev",
        )
        graph.load(people(40, f"there{start}-"), mode="append", branch="dev")
    for start in range(300, 600, 60):
        graph.load(
            [
                {"type": "Person", "data": person | {"age": -1}}
                for person in persons("p", start, start + 60)
            ],
            mode="merge",
        )
        graph.load(people(40, f"here{start}-"), mode="append")
    mutate(graph, "delete Person where age < 50", branch="dev")
    return graph


def test_a_merge_of_more_than_memory_holds_gives_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = big_difference(tmp_path / "plain")
    plain.branches.merge("dev")
    tight = big_difference(tmp_path / "tight")
    spilled = tmp_path / "spilled"
    spilled.mkdir()
    tiny = replace(DEFAULT_LIMITS, run_rows=64, batch_rows=16, fan_in=3, directory=str(spilled))
    monkeypatch.setattr(operation, "Merge", partial(operation.Merge, limits=tiny))
    monkeypatch.setattr(tables, "Spool", partial(Spool, held_bytes=1024))
    places: list[str] = []
    really = tempfile.TemporaryFile
    with ExitStack() as files:

        def spy(*args: Any, **options: Any) -> Any:
            places.append(str(options.get("dir")))
            return files.enter_context(really(*args, **options))

        monkeypatch.setattr(tempfile, "TemporaryFile", spy)
        done = tight.branches.merge("dev")
    assert done.outcome == "merged"
    # Sorted runs of what each side changed, and the rows that wait to be written.
    assert len(places) > 10
    assert set(places) == {str(spilled)}
    assert not list(spilled.iterdir()), "what was spilled is gone"
    assert shown(tight) == shown(plain)
    merged = image(tight)["node:Person"].values()
    assert any((row["age"], row["note"]) == (-1, "there") for row in merged), "rows are combined"


def shown(graph: og.Graph) -> dict[str, list[str]]:
    """All rows; ids of edges are made up anew in every graph."""
    return {
        key: sorted(str((id_ if key.startswith("node") else "", row)) for id_, row in rows.items())
        for key, rows in image(graph).items()
    }
