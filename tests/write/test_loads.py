"""Loads: what append, merge and overwrite mean, line by line of the contract's table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped] # ships no types
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.lang.structural import DST, ID, SRC
from tests.write.writing import image, mutate, rows, unchanged

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    level: I32 @default(1)
    hired: Date? @default("2020-01-02")
    seen: DateTime?
    tags: [String]?
}

node Note {
    text: String?
}

node Place {
    name: String @key
}

edge Knows: Person -> Person {
    since: Date?
    weight: F64? @default(0.5)
}

edge LivesIn: Person -> Place
"""

MODES = ["append", "merge", "overwrite"]


def person(name: str, **data: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **data}}


def note(id_: str | None = None, **data: Any) -> dict[str, Any]:
    return {"type": "Note", "data": data if id_ is None else {"id": id_, **data}}


def place(name: str) -> dict[str, Any]:
    return {"type": "Place", "data": {"name": name}}


def edge(type_: str, id_: str | None, source: str, target: str, **data: Any) -> dict[str, Any]:
    given = data if id_ is None else {"id": id_, **data}
    return {"edge": type_, "from": source, "to": target, "data": given}


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "graph", SCHEMA)
    graph.load(
        [
            person("Ann", age=30, tags=["a"]),
            person("Ben", age=25),
            place("Arda"),
            note("n1", text="one"),
            edge("Knows", "k1", "Ann", "Ben", since="2020-05-01"),
            edge("LivesIn", "l1", "Ben", "Arda"),
        ],
        mode="append",
    )
    return graph


def test_append_inserts(graph: og.Graph) -> None:
    loaded = graph.load(
        [
            edge("Knows", None, "Cat", "Ann"),
            person("Cat", age=1),
            note(text="x"),
            note("n2", text="y"),
            edge("knows", "k2", "Ben", "Cat"),
        ],
        mode="append",
        actor="ann",
    )
    assert (loaded.branch, loaded.mode, loaded.engine) == ("main", "append", "inline")
    assert loaded.nodes == {"Note": 2, "Person": 1}
    assert loaded.edges == {"Knows": 2}
    assert loaded.total == 5
    assert (loaded.base_branch, loaded.branch_created, loaded.rejected) == (None, False, 0)
    assert loaded.commit == graph.commits.list()[0]
    assert loaded.commit.actor == "ann"
    assert loaded.commit.metadata == {"operation": "load", "mode": "append"}
    found = image(graph)
    assert found["node:Person"]["Cat"]["age"] == 1
    assert len(found["node:Note"]) == 3
    fresh = {id_ for id_ in found["node:Note"] if id_ not in ("n1", "n2")}
    assert {len(id_) for id_ in fresh} == {26}
    assert found["edge:Knows"]["k2"][DST] == "Cat"
    assert len(found["edge:Knows"]) == 3


@pytest.mark.parametrize(
    ("record", "type_key", "entity_id"),
    [
        (person("Ann"), "node:Person", "Ann"),
        (note("n1"), "node:Note", "n1"),
        (edge("Knows", "k1", "Ben", "Ann"), "edge:Knows", "k1"),
    ],
)
def test_append_refuses_an_id_that_exists(
    graph: og.Graph, record: dict[str, Any], type_key: str, entity_id: str
) -> None:
    name = type_key.split(":")[1]
    with (
        unchanged(graph),
        pytest.raises(
            errors.KeyConflict, match=f"'{entity_id}' exists already in {name}"
        ) as caught,
    ):
        graph.load([person("New"), note("n9"), record], mode="append")
    details = caught.value.details
    assert (details["type_key"], details["entity_id"], details["total"]) == (type_key, entity_id, 1)
    assert details["conflicts"][0]["line"] == 3
    assert "New" not in rows(graph, "Person")


def test_append_counts_every_id_that_exists(tmp_path: Path, graph: og.Graph) -> None:
    names = [f"p{number:03}" for number in range(150)]
    file = tmp_path / "people.jsonl"
    file.write_text("".join(json.dumps(person(name)) + "\n" for name in names))
    graph.load(file, mode="append")
    with unchanged(graph), pytest.raises(errors.KeyConflict) as caught:
        graph.load(file, mode="append")
    lines = str(caught.value).splitlines()
    assert lines[0].startswith(f"{file}:1:")
    assert lines[0].endswith("'p000' exists already in Person")
    assert lines[-2:] == ["… and 50 more", "150 ids conflict; nothing was written"]
    assert len(lines) == 102
    assert caught.value.details["total"] == 150
    assert len(caught.value.details["conflicts"]) == 100


def test_merge_replaces_the_whole_row(graph: og.Graph) -> None:
    loaded = graph.load(
        [
            person("Ann", age=31),
            person("New"),
            note("n1"),
            edge("Knows", "k1", "Ben", "Ann"),
        ],
        mode="merge",
    )
    assert loaded.nodes == {"Note": 1, "Person": 2}
    found = image(graph)
    assert found["node:Person"]["Ann"]["age"] == 31
    assert found["node:Person"]["Ann"]["tags"] is None
    assert found["node:Person"].keys() == {"Ann", "Ben", "New"}
    assert found["node:Note"] == {"n1": {"text": None}}
    assert found["edge:Knows"] == {"k1": {SRC: "Ben", DST: "Ann", "since": None, "weight": 0.5}}


def test_merge_keeps_the_place_of_a_row(graph: og.Graph) -> None:
    """A replaced row is the same row to whoever follows row ids."""
    before = graph.table("Person").to_table(with_row_id=True).to_pylist()
    graph.load([person("Ben", age=1), person("Ann", age=2), person("New")], mode="merge")
    after = graph.table("Person").to_table(with_row_id=True).to_pylist()
    ids = {row[ID]: row["_rowid"] for row in after}
    assert {row[ID]: row["_rowid"] for row in before} == {
        name: ids[name] for name in ("Ann", "Ben")
    }


def test_overwrite_replaces_each_touched_type(graph: og.Graph) -> None:
    before = graph.snapshot()
    loaded = graph.load(
        [person("Ben", age=1), person("New"), edge("Knows", "k9", "New", "Ben")],
        mode="overwrite",
    )
    assert loaded.nodes == {"Person": 2}
    found = image(graph)
    assert found["node:Person"].keys() == {"Ben", "New"}
    assert found["edge:Knows"].keys() == {"k9"}
    after = graph.snapshot()
    for key in ("node:Note", "node:Place", "edge:LivesIn"):
        assert after.tables[key] == before.tables[key]


def test_types_that_are_not_in_the_file_keep_their_version(graph: og.Graph) -> None:
    for mode in MODES:
        before = graph.snapshot()
        graph.load([note(text=mode)], mode=mode)
        after = graph.snapshot()
        changed = {key for key in after.tables if after.tables[key] != before.tables[key]}
        assert changed == {"node:Note"}
        assert after.tables["node:Note"].version == before.tables["node:Note"].version + 1


def test_overwrite_may_not_leave_edges_behind(graph: og.Graph) -> None:
    with unchanged(graph), pytest.raises(errors.ValidationError) as caught:
        graph.load([person("Cat")], mode="overwrite")
    assert caught.value.rule == "endpoint"
    assert str(caught.value).splitlines() == [
        "src 'Ann' not found in Person",
        "dst 'Ben' not found in Person",
        "src 'Ben' not found in Person",
        "3 problems; nothing was written",
    ]
    assert {found["entity_id"] for found in caught.value.details["violations"]} == {"k1", "l1"}


def test_overwrite_of_an_end_names_the_edges_of_other_types(graph: og.Graph) -> None:
    with (
        unchanged(graph),
        pytest.raises(errors.ValidationError, match=r"^src 'Ben' not found in Person$"),
    ):
        graph.load([person("Ann"), edge("Knows", None, "Ann", "Ann")], mode="overwrite")


def test_overwrite_of_edges_alone_uses_the_stored_nodes(graph: og.Graph) -> None:
    graph.load([edge("Knows", "k7", "Ben", "Ann")], mode="overwrite")
    assert rows(graph, "Knows").keys() == {"k7"}
    with unchanged(graph), pytest.raises(errors.ValidationError, match="dst 'Zed' not found"):
        graph.load([edge("Knows", "k8", "Ben", "Zed")], mode="overwrite")


def test_overwrite_cannot_use_a_node_it_drops(graph: og.Graph) -> None:
    with unchanged(graph), pytest.raises(errors.ValidationError, match="dst 'Ben' not found"):
        graph.load(
            [
                person("Ann"),
                edge("Knows", "k1", "Ann", "Ben"),
                edge("LivesIn", "l1", "Ann", "Arda"),
            ],
            mode="overwrite",
        )


def test_a_type_without_lines_cannot_be_emptied(graph: og.Graph) -> None:
    before = image(graph)
    graph.load("", mode="overwrite")
    assert image(graph) == before


@pytest.mark.parametrize("data", ["", "\n  \r\n\t\n", b"", []])
@pytest.mark.parametrize("mode", MODES)
def test_an_empty_load_is_a_commit(graph: og.Graph, mode: str, data: object) -> None:
    before = graph.snapshot()
    loaded = graph.load(data, mode=mode)
    assert (loaded.nodes, loaded.edges, loaded.total) == ({}, {}, 0)
    assert loaded.commit.parent_id == before.commit_id
    assert graph.snapshot().commit_id == loaded.commit.id
    assert graph.snapshot().tables == before.tables


@pytest.mark.parametrize("mode", MODES)
def test_a_key_twice_in_one_load_is_a_violation(graph: og.Graph, mode: str) -> None:
    with (
        unchanged(graph),
        pytest.raises(
            errors.ValidationError,
            match=r"@unique violation on Person\.name: value 'New' held by 'New' and 'New'",
        ) as caught,
    ):
        graph.load([person("New"), note(), person("New")], mode=mode)
    assert caught.value.rule == "unique"
    violation = caught.value.details["violations"][0]
    assert (violation["line"], violation["property"]) == (3, "name")


@pytest.mark.parametrize(
    ("record", "name"),
    [(note("n5", text="2"), "Note"), (edge("Knows", "n5", "Ann", "Ann"), "Knows")],
)
@pytest.mark.parametrize("mode", MODES)
def test_an_explicit_id_twice(
    graph: og.Graph, mode: str, record: dict[str, Any], name: str
) -> None:
    first = note("n5", text="1") if name == "Note" else edge("Knows", "n5", "Ben", "Ben")
    data = [first, record]
    if mode == "merge":
        loaded = graph.load(data, mode=mode)
        assert loaded.total == 2
        last = rows(graph, name)["n5"]
        assert last.get("text", last.get(SRC)) in ("2", "Ann")
        return
    with (
        unchanged(graph),
        pytest.raises(errors.KeyConflict, match=f"'n5' is there twice in the input for {name}"),
    ):
        graph.load(data, mode=mode)


def test_last_line_of_an_id_wins_among_many(graph: og.Graph) -> None:
    data = [note(f"n{number % 7}", text=str(number)) for number in range(100)]
    assert graph.load(data, mode="merge").nodes == {"Note": 100}
    assert {row["text"] for row in rows(graph, "Note").values()} == {
        str(number) for number in range(93, 100)
    }


@pytest.mark.parametrize("mode", MODES)
def test_defaults_fill_what_is_absent_and_never_what_is_null(graph: og.Graph, mode: str) -> None:
    graph.load(
        [
            person("A"),
            person("B", level=5, hired=None),
            person("C", level=1, hired="2024-02-29", age=None),
            edge("Knows", "d1", "A", "B"),
            edge("Knows", "d2", "A", "B", weight=None),
            # An overwrite has to give every edge a place to go to.
            edge("LivesIn", "l9", "A", "Arda"),
        ],
        mode=mode,
    )
    found = rows(graph, "Person")
    assert [(found[name]["level"], str(found[name]["hired"])) for name in "ABC"] == [
        (1, "2020-01-02"),
        (5, "None"),
        (1, "2024-02-29"),
    ]
    edges = rows(graph, "Knows")
    assert (edges["d1"]["weight"], edges["d2"]["weight"]) == (0.5, None)
    with unchanged(graph), pytest.raises(errors.ValidationError) as caught:
        graph.load([person("D", level=None)], mode=mode)
    assert caught.value.rule == "required"
    assert "non-nullable property 'level' has null or invalid values" in str(caught.value)


def test_a_missing_branch_is_forked(graph: og.Graph) -> None:
    loaded = graph.load([person("New")], mode="append", branch="dev", from_branch="main")
    assert (loaded.branch, loaded.base_branch, loaded.branch_created) == ("dev", "main", True)
    assert loaded.commit.parent_id == graph.snapshot().commit_id
    assert "New" not in rows(graph, "Person")
    again = graph.load([person("Newer")], mode="append", branch="dev", from_branch="main")
    assert (again.base_branch, again.branch_created) == ("main", False)
    assert {"New", "Newer"} <= rows(graph, "Person", "dev").keys()


def test_an_unknown_branch_is_not_found(graph: og.Graph) -> None:
    with pytest.raises(errors.BranchNotFound):
        graph.load([person("New")], mode="append", branch="nope")
    with pytest.raises(errors.BranchNotFound):
        graph.load([person("New")], mode="append", branch="dev", from_branch="nope")
    assert graph.branches.list() == ["main"]


def test_a_refused_load_forks_no_branch(graph: og.Graph) -> None:
    with unchanged(graph), pytest.raises(errors.KeyConflict):
        graph.load([person("Ann")], mode="append", branch="dev", from_branch="main")
    assert graph.branches.list() == ["main"]


def test_nonsense_is_refused(graph: og.Graph) -> None:
    wrong: list[dict[str, Any]] = [{"mode": "replace"}, {"mode": "append", "engine": "fast"}]
    for options in wrong:
        with pytest.raises(errors.BadRequest, match="choose"):
            graph.load([person("New")], **options)
    reader = og.open(str(graph.location), read_only=True)
    with pytest.raises(errors.BadRequest, match="read-only"):
        reader.load([person("New")], mode="append")


@pytest.mark.parametrize("kind", ["arrow", "pandas"])
def test_frames_are_loaded(graph: og.Graph, kind: str) -> None:
    people = pa.table({"name": ["X", "Y"], "age": pa.array([1, None], pa.int32())})
    ends = pa.table({"from": ["X"], "to": ["Y"]})
    data: dict[str, Any] = {"Person": people, "Knows": ends}
    if kind == "pandas":
        # A missing number makes a column of floats in pandas, unless its type says otherwise.
        frame = pd.DataFrame({"name": ["X", "Y"], "age": pd.array([1, None], dtype="Int32")})
        data = {"Person": frame, "Knows": pd.DataFrame({"from": ["X"], "to": ["Y"]})}
    loaded = graph.load(data, mode="append")
    assert (loaded.nodes, loaded.edges) == ({"Person": 2}, {"Knows": 1})
    found = rows(graph, "Person")
    assert (found["X"]["age"], found["Y"]["age"], found["Y"]["level"]) == (1, None, 1)


def test_an_export_is_reproduced_by_an_overwrite(graph: og.Graph, tmp_path: Path) -> None:
    mutate(graph, 'insert Note { text: "later" } insert Knows { from: "Ben", to: "Ben" }')
    copy = og.init(tmp_path / "copy", SCHEMA)
    copy.load("\n".join(graph.export()) + "\n", mode="overwrite")
    assert image(copy) == image(graph)


def test_a_large_load_is_one_version_of_each_table(graph: og.Graph) -> None:
    people = [person(f"p{number}", age=number % 90) for number in range(3000)]
    edges = [edge("Knows", None, f"p{number}", f"p{number // 2}") for number in range(3000)]
    before = graph.snapshot()
    graph.load([*edges, *people], mode="append")
    after = graph.snapshot()
    for key in ("node:Person", "edge:Knows"):
        assert after.tables[key].version == before.tables[key].version + 1
    assert after.tables["node:Person"].pin.row_count == 3002
    merged = graph.load([person(f"p{number}", age=1) for number in range(3000)], mode="merge")
    assert merged.total == 3000
    found = rows(graph, "Person")
    assert sum(row["age"] == 1 for row in found.values()) == 3000


def test_what_is_missing_at_several_edges_is_told_once(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g.omni", "node P { name: String @key }\nedge K: P -> P")
    edges = tmp_path / "K.csv"
    edges.write_text("from,to\n" + "a,zed\n" * 3 + "yve,a\na,a\nxi,a\nyve,a\n")
    people = tmp_path / "P.csv"
    people.write_text("name\na\n")
    with pytest.raises(errors.ValidationError) as raised:
        graph.load([str(people), str(edges)], mode="append")
    assert str(raised.value).splitlines() == [
        f"{edges}:5: src 'yve' not found in P (in 2 rows)",
        f"{edges}:7: src 'xi' not found in P",
        f"{edges}:2: dst 'zed' not found in P (in 3 rows)",
        "6 problems (6 endpoint); nothing was written",
    ]
    assert len(raised.value.details["violations"]) == 6
    # Of more than are shown only so many are known.
    edges.write_text("from,to\n" + "a,zed\n" * 300)
    with pytest.raises(errors.ValidationError, match=r"'zed' not found in P \(in at least 100 row"):
        graph.load([str(people), str(edges)], mode="append")
