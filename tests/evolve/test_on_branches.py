"""Schemas of branches, and the copies of main's beside the manifest."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.manifest.root_copies import COPY_NAMES
from tests import faults
from tests.evolve.evolving import ask, held, make, node, reopened, run, shown, steps, unchanged

SCHEMA = "node Person { name: String @key  age: I32?  bio: String? }\n"
DEV = 'node Human @rename_from("Person") { name: String @key  age: I64 @default(-1)  rank: I32? }\n'
FIX = "node Person { name: String @key  age: I32?  bio: String?  rank: F64 @default(0.5) }\n"
ROWS = [node("Person", name="Ann", age=1, bio="x"), node("Person", name="Ben")]


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return make(tmp_path / "graph", SCHEMA, ROWS)


def copies(graph: og.Graph) -> dict[str, str]:
    place = Path(str(graph.location).removeprefix("file://"))
    return {name: (place / name).read_text(encoding="utf-8") for name in COPY_NAMES}


def test_a_branch_changes_its_schema_alone(graph: og.Graph) -> None:
    before, files = shown(graph), copies(graph)
    for branch, text in (("dev", DEV), ("fix", FIX)):
        graph.branches.create(branch)
        with unchanged(graph):
            done = graph.apply_schema(text, branch=branch)
        assert done.commit is not None
        assert (done.branch, done.commit.branch) == (branch, branch)
    run(graph, 'insert Human { name: "Cy", age: 5000000000, rank: 1 }', branch="dev")
    run(graph, 'update Person set { rank: 2.5 } where name = "Ann"', branch="fix")
    assert copies(graph) == files
    for handle in (graph, reopened(graph)):
        assert shown(handle) == before
        assert handle.schema == SCHEMA
        assert shown(handle, "dev") == {
            "Human": {
                "Ann": {"name": "Ann", "age": 1, "rank": None},
                "Ben": {"name": "Ben", "age": -1, "rank": None},
                "Cy": {"name": "Cy", "age": 5_000_000_000, "rank": 1},
            }
        }
        assert {row["rank"] for row in shown(handle, "fix")["Person"].values()} == {0.5, 2.5}
        found = ask(handle, "$p: Human $p.age > 0", "$p.name", branch="dev")
        assert found == [{"p.name": "Ann"}, {"p.name": "Cy"}]
    with pytest.raises(errors.TypeCheckError):
        ask(graph, "$p: Human", "$p.name")
    run(graph, 'insert Person { name: "Dee", bio: "y" }')
    assert shown(graph)["Person"]["Dee"] == {"name": "Dee", "age": None, "bio": "y"}


def test_branches_give_out_identities_once(graph: og.Graph) -> None:
    """The same text on two branches makes two tables and two columns."""
    text = SCHEMA + "node Film { title: String @key  year: I32? }\n"
    for branch in ("one", "two"):
        graph.branches.create(branch)
        graph.apply_schema(text, branch=branch)
        run(graph, f'insert Film {{ title: "{branch}" }}', branch=branch)
    tables = [graph.snapshot(branch).tables["node:Film"] for branch in ("one", "two")]
    assert tables[0].identity != tables[1].identity
    assert tables[0].table.path != tables[1].table.path
    assert set(shown(graph, "one")["Film"]) == {"one"}
    assert set(shown(graph, "two")["Film"]) == {"two"}


def test_a_branch_of_a_branch_begins_with_its_schema(graph: og.Graph) -> None:
    graph.branches.create("dev")
    graph.apply_schema(DEV, branch="dev")
    old = graph.snapshot("dev")
    graph.branches.create("later", "dev")
    graph.apply_schema(DEV.replace("  rank: I32?", ""), branch="later")
    assert shown(graph, "later")["Human"]["Ben"] == {"name": "Ben", "age": -1}
    assert shown(graph, "dev")["Human"]["Ben"] == {"name": "Ben", "age": -1, "rank": None}
    assert graph.snapshot("dev") == old
    assert held(graph.snapshot(commit=old.commit_id)) == held(old)


def test_what_leads_from_one_schema_to_another(graph: og.Graph) -> None:
    first = graph.snapshot().commit_id
    graph.branches.create("dev")
    graph.apply_schema(DEV, branch="dev")
    there = graph.schema_diff("main", "dev")
    assert [step[0] for step in steps(there)] == [
        "rename_type",
        "change_property_type",
        "change_nullability",
        "change_annotation",
        "add_property",
        "drop_property",
    ]
    back = graph.schema_diff("dev", first)
    assert steps(back)[0][0] == "rename_type"
    assert graph.schema_diff(first, "main").steps == ()


# -- copies ------------------------------------------------------------------------------


def test_copies_that_lag_are_mended_by_who_opens_the_graph(graph: og.Graph) -> None:
    old = copies(graph)

    def fail() -> errors.StorageError:
        return errors.StorageError("gone", kind="permanent")

    with faults.armed("copies_lagging", fail), pytest.raises(errors.StorageError):
        graph.apply_schema(FIX)
    assert copies(graph) == old
    looking = og.open(str(graph.location), read_only=True)
    assert looking.schema == FIX
    assert copies(graph) == old
    mended = og.open(str(graph.location))
    assert mended.notices == [f"rewrote {', '.join(COPY_NAMES)} from the manifest"]
    assert copies(graph)["_schema.pg"] == FIX
    assert og.open(str(graph.location)).notices == []


def test_a_copy_that_cannot_be_written_does_not_fail_the_change(graph: og.Graph) -> None:
    with faults.armed("before_put", matching="_schema", times=None):
        assert graph.apply_schema(FIX).applied
    assert copies(graph)["_schema.pg"] == SCHEMA
    graph.apply_schema(SCHEMA)
    assert og.open(str(graph.location)).notices == []
    assert copies(graph)["_schema.pg"] == SCHEMA


def test_the_commit_tells_its_steps(graph: og.Graph) -> None:
    done = graph.apply_schema(FIX, actor="smith")
    commit = graph.commits.list()[0]
    assert commit.actor == "smith"
    assert commit.metadata["schema_steps"] == [step.to_json() for step in done.steps]
