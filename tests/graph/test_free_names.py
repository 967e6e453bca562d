"""`id`, `src` and `dst` as properties, from loading to merging: they are never the structure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import KeyConflict, MergeConflicts, TypeCheckError, ValidationError
from omnigraph.history.changes import Endpoints
from omnigraph.write.load import sifting
from tests.free_names import LINES, SCHEMA, exported, make_graph, shown

HOLDS = "$t: Thing $t $h:holds $i"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return make_graph(tmp_path / "g.omni")


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """A graph that nobody changes."""
    return make_graph(tmp_path_factory.mktemp("still") / "g.omni")


def mutate(graph: og.Graph, body: str, branch: str = "main") -> Any:
    return graph.mutate(f"query q() {{ {body} }}", branch=branch)


def refusals(graph: og.Graph, data: Any) -> list[tuple[Any, str]]:
    """What is said about input: which member, and what is wrong with it."""
    before = exported(graph)
    with pytest.raises(ValidationError) as caught:
        graph.load(data, mode="append")
    assert exported(graph) == before
    return [(one["property"], one["message"]) for one in caught.value.details["violations"]]


# -- lines -------------------------------------------------------------------------


def test_an_export_is_loaded_to_the_same_letters(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "one.omni")
    assert exported(graph) == LINES
    graph.export(tmp_path / "all.jsonl")
    again = og.init(tmp_path / "two.omni", SCHEMA)
    again.load(tmp_path / "all.jsonl", mode="append")
    assert exported(again) == LINES
    again.load([json.loads(line) for line in LINES], mode="merge")
    again.load("\n".join(LINES), mode="overwrite")
    assert exported(again) == LINES


@pytest.mark.parametrize("refused", ["read_exact", "read_bulk"])
def test_both_ways_of_reading_lines_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    def no_bulk(*_: object, **__: object) -> None:
        return None

    def no_exact(*_: object, **__: object) -> None:
        raise AssertionError("lines like these are read in bulk")

    monkeypatch.setattr(sifting, refused, no_bulk if refused == "read_bulk" else no_exact)
    assert exported(make_graph(tmp_path / "g.omni")) == LINES


def test_an_id_that_is_not_given_is_made(graph: og.Graph) -> None:
    mine = [
        '{"type":"Item","data":{"id":1,"name":"one"}}',
        '{"type":"Thing","data":{"id":"t3"}}',
        '{"edge":"Holds","from":"t3","to":"i7","data":{"id":"y","src":"a","dst":2}}',
    ]
    graph.load("\n".join(mine), mode="append")
    ((made,),) = shown(graph, "$i: Item { id: 1 }", "$i.@id")
    assert len(made) == 26
    (found,) = shown(
        graph, '$t: Thing { id: "t3" } $t $h:holds $i', "$h.@id, $h.id, $h.src, $h.dst"
    )
    assert len(found[0]) == 26
    assert found[1:] == ("y", "a", 2)


def test_either_spelling_where_no_property_has_the_name(graph: og.Graph) -> None:
    graph.load('{"edge":"Near","from":"t2","to":"t1","data":{"@id":"n2"}}', mode="append")
    graph.load({"Near": pa.table({"@src": ["t1"], "@dst": ["t1"], "@id": ["n3"]})}, mode="append")
    assert exported(graph, "Near")[1:] == [
        '{"edge":"Near","from":"t2","to":"t1","data":{"id":"n2","src":null}}',
        '{"edge":"Near","from":"t1","to":"t1","data":{"id":"n3","src":null}}',
    ]


@pytest.mark.parametrize(
    ("line", "member", "said"),
    [
        (
            '{"type":"Thing","data":{"id":"t5","@id":"t6"}}',
            "@id",
            "@id 't6' is not the id its key gives: 't5'; leave it out",
        ),
        (
            '{"type":"Item","data":{"id":"x","name":"a"}}',
            "id",
            'Item.id: expected I64, found the string "x"',
        ),
        (
            '{"type":"Item","data":{"@id":5,"name":"a"}}',
            "@id",
            "'@id' must be a string, found the number 5",
        ),
        (
            '{"type":"Box","data":{"@id":"5","lang":"en"}}',
            "id",
            "non-nullable property 'id' has null or invalid values",
        ),
        (
            '{"edge":"Near","from":"t1","to":"t2","data":{"@id":"a","id":"a"}}',
            "id",
            "'id' and '@id' both give the id: keep one",
        ),
        (
            '{"edge":"Near","from":"t1","to":"t2","data":{"dst":"t2"}}',
            "dst",
            '\'dst\' is reserved structural state; give "to" beside "data"',
        ),
        (
            '{"edge":"Near","from":"t1","to":"t2","data":{"@src":"t2"}}',
            "@src",
            '\'@src\' is reserved structural state; give "from" beside "data"',
        ),
        (
            '{"edge":"Near","from":"t9","to":"t2","data":{"src":"t1"}}',
            "from",
            "@src 't9' not found in Thing",
        ),
        (
            '{"edge":"Near","from":"t1","to":"t9"}',
            "to",
            "dst 't9' not found in Thing",
        ),
        (
            '{"edge":"Holds","from":"t1","to":"i7","data":{"@id":"h3"}}',
            "@dst",
            "@unique violation on Holds.(@dst, @src): value '(i7, t1)' held by 'h1' and 'h3'",
        ),
        (
            '{"type":"Item","data":{"@id":"i9","id":7,"name":"a"}}',
            "id",
            "@unique violation on Item.id: value '7' held by 'i7' and 'i9'",
        ),
    ],
)
def test_lines_that_are_wrong(still: og.Graph, line: str, member: str, said: str) -> None:
    assert refusals(still, line) == [(member, said)]


def test_an_id_that_exists(still: og.Graph) -> None:
    with pytest.raises(KeyConflict, match="column 30: 'i7' exists already in Item"):
        still.load('{"type":"Item","data":{"@id":"i7","name":"a"}}', mode="append")


# -- frames ------------------------------------------------------------------------


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame])
def test_frames(tmp_path: Path, make: Any) -> None:
    graph = og.init(tmp_path / "g.omni", SCHEMA)
    graph.load(
        {
            "Thing": make({"id": ["t1", "t2"], "title": ["one", None]}),
            "Item": make(
                {
                    "@id": ["i7", "i8"],
                    "id": pd.array([7, None], "Int64") if make is pd.DataFrame else [7, None],
                    "name": ["seven", "eight"],
                    "note": [None, "n"],
                }
            ),
            "Box": make({"id": [5], "lang": ["en"], "size": [0.5]}),
            "Holds": make(
                {
                    "@id": ["h1", "h2"],
                    "from": ["t1", "t2"],
                    "@dst": ["i7", "i8"],
                    "id": ["x", None],
                    "src": ["s", "t1"],
                    "dst": pd.array([3, None], "Int32") if make is pd.DataFrame else [3, None],
                }
            ),
            "Near": make({"id": ["n1"], "@src": ["t1"], "dst": ["t2"], "src": ["t2"]}),
            "In": make({"id": ["b1"], "src": ["t1"], "to": ['["5","en"]'], "dst": [True]}),
        },
        mode="append",
    )
    assert exported(graph) == LINES


@pytest.mark.parametrize(
    ("name", "columns", "said"),
    [
        ("Holds", {"src": ["t1"], "to": ["i8"]}, "an edge needs a column 'from' with the ids"),
        ("Near", {"src": ["t1"], "dst": ["t2"]}, "an edge needs a column 'from' with the ids"),
        (
            "Near",
            {"from": ["t1"], "@dst": ["t2"], "dst": ["t2"]},
            "an edge needs only one of the columns '@dst' and 'dst'",
        ),
        (
            "Near",
            {"from": ["t1"], "to": ["t2"], "id": ["a"], "@id": ["a"]},
            "only one of the columns '@id' and 'id' can be the id",
        ),
        ("Thing", {"id": ["t5"], "@id": ["t6"]}, "@id 't6' is not the id its key gives: 't5'"),
        ("Item", {"@id": [None], "name": ["a"]}, "'@id' must be a string, found null"),
        ("Item", {"@src": ["a"], "name": ["a"]}, "unknown property '@src' for Item"),
    ],
)
def test_frames_that_are_wrong(still: og.Graph, name: str, columns: Any, said: str) -> None:
    ((_, message),) = refusals(still, {name: pa.table(columns)})
    assert said in message


# -- queries and mutations -----------------------------------------------------------


def test_queries_tell_properties_from_the_structure(graph: og.Graph) -> None:
    columns = "$h.@id, $h.@src, $h.@dst, $h.id, $h.src, $h.dst, $i.id"
    assert shown(graph, HOLDS, columns) == [
        ("h1", "t1", "i7", "x", "s", 3, 7),
        ("h2", "t2", "i8", None, "t1", None, None),
    ]
    assert shown(graph, f'{HOLDS} $h.src = "t1"', "$h.@id") == [("h2",)]
    assert shown(graph, f'{HOLDS} $h.@src = "t1"', "$h.@id") == [("h1",)]
    assert shown(graph, "$i: Item { id: 7 }", "$i") == [
        ({"@id": "i7", "id": 7, "name": "seven", "note": None},)
    ]
    assert shown(graph, '$i: Item { @id: "i8" }', "$i.id, $i.name") == [(None, "eight")]
    assert shown(graph, "$i: Item", "count($i.id), count($i.@id)") == [(1, 2)]
    assert shown(graph, '$b: Box { id: 5, lang: "en" }', "$b.@id, $b.id") == [('["5","en"]', 5)]
    assert shown(graph, '$t: Thing $t near $u $u.id = "t2"', "$t.id, $u.@id") == [("t1", "t2")]
    with pytest.raises(TypeCheckError, match="edge type Near has no property `dst`"):
        shown(graph, "$t: Thing $t $n:near $u", "$n.dst")


def test_mutations_write_properties_and_never_the_structure(graph: og.Graph) -> None:
    mutate(
        graph,
        """
        insert Thing { id: "t3" title: "three" }
        upsert Thing { id: "t2" title: "two" }
        update Item set { id: 70 } where id = 7
        update Holds set { id: "y" src: "S" dst: 4 } where src = "s" and from = "t1"
        insert Near { from: "t3" to: "t1" src: "t2" }
        delete Near where src = "t2" and @src = "t1"
        delete In where dst = true
        """,
    )
    assert shown(graph, "$t: Thing", "$t.@id, $t.id, $t.title") == [
        ("t1", "t1", "one"),
        ("t2", "t2", "two"),
        ("t3", "t3", "three"),
    ]
    assert shown(graph, "$i: Item", "$i.@id, $i.id") == [("i7", 70), ("i8", None)]
    assert exported(graph, "Holds")[0] == (
        '{"edge":"Holds","from":"t1","to":"i7","data":{"@id":"h1","dst":4,"id":"y","src":"S"}}'
    )
    assert shown(graph, "$t: Thing $t $n:near $u", "$n.@src, $n.@dst, $n.src") == [
        ("t3", "t1", "t2")
    ]
    assert exported(graph, "In") == []
    with pytest.raises(KeyConflict, match="'t3' exists already in Thing"):
        mutate(graph, 'create Thing { id: "t3" }')
    with pytest.raises(TypeCheckError, match="cannot update @key property 'id'"):
        mutate(graph, 'update Thing set { id: "q" } where @id = "t1"')
    mutate(graph, 'delete Thing where id = "t1"')
    assert shown(graph, HOLDS, "$h.@id") == [("h2",)]


def test_indexes_are_of_both(graph: og.Graph) -> None:
    graph.load(
        [
            {"type": "Item", "data": {"@id": f"j{n}", "id": 1000 + n, "name": "x"}}
            for n in range(50)
        ],
        mode="append",
    )
    done = {(one.type_key, one.property) for one in graph.ensure_indices().changes}
    assert {property_ for key, property_ in done if key == "edge:Holds"} == {"@id", "@src", "@dst"}
    assert {property_ for key, property_ in done if key == "edge:Near"} == {"id", "@src", "dst"}
    assert {property_ for key, property_ in done if key == "node:Item"} == {"@id", "id"}
    left = [one for one in graph.index_status().indexes if one.state == "none"]
    assert [(one.type_key, one.property) for one in left] == [
        ("edge:Holds", "src"),
        ("node:Box", "id, lang"),
    ]
    assert shown(graph, "$i: Item { id: 1007 }", "$i.@id") == [("j7",)]
    assert shown(graph, '$i: Item { @id: "j7" }', "$i.id") == [(1007,)]
    found = graph.explain('query q() { match { $i: Item { @id: "j7" } } return { $i.id } }')
    assert "lookup by @id" in str(found)


# -- history -------------------------------------------------------------------------


def test_changes_show_properties_and_ends_apart(graph: og.Graph) -> None:
    before = graph.snapshot().commit_id
    moved = '{"edge":"Holds","from":"t2","to":"i7","data":{"@id":"h1","dst":3,"id":"z","src":"s"}}'
    graph.load(moved, mode="merge")
    mutate(graph, "update Item set { id: 70 } where id = 7")
    edge, item = sorted(graph.diff(before, "main"), key=lambda change: change.id)
    assert (edge.id, edge.changed, edge.endpoints) == ("h1", ("id",), Endpoints("t2", "i7"))
    assert edge.before is not None
    assert edge.before.properties == {"dst": 3, "id": "x", "src": "s"}
    assert edge.before.endpoints == Endpoints("t1", "i7")
    assert (item.id, item.changed) == ("i7", ("id",))
    assert item.after is not None
    assert item.after.properties == {"id": 70, "name": "seven", "note": None}


def test_branches_that_change_different_properties_are_merged(graph: og.Graph) -> None:
    graph.branches.create("draft")
    mutate(graph, "update Item set { id: 70 } where id = 7", "draft")
    mutate(graph, 'update Holds set { src: "S" } where @id = "h1"', "draft")
    mutate(graph, 'update Item set { note: "m" } where id = 7')
    mutate(graph, 'update Holds set { dst: 9 } where @id = "h1"')
    assert graph.branches.merge("draft").outcome == "merged"
    assert shown(graph, '$i: Item { @id: "i7" }', "$i.id, $i.note") == [(70, "m")]
    assert exported(graph, "Holds")[0] == (
        '{"edge":"Holds","from":"t1","to":"i7","data":{"@id":"h1","dst":9,"id":"x","src":"S"}}'
    )


def test_conflicts_name_properties_and_ends_apart(graph: og.Graph) -> None:
    graph.branches.create("draft")
    holds = '{"edge":"Holds","from":"%s","to":"i7","data":{"@id":"h1","dst":3,"id":"x","src":"%s"}}'
    near = '{"edge":"Near","from":"t1","to":"t2","data":{"id":"n2","src":"%s"}}'
    again = '{"edge":"Holds","from":"t1","to":"i8","data":{"@id":"%s"}}'
    graph.load("\n".join([holds % ("t1", "A"), near % "a", again % "h8"]), mode="merge")
    mine = [holds % ("t2", "B"), near % "b", again % "h9"]
    graph.load("\n".join(mine), branch="draft", mode="merge")
    with pytest.raises(MergeConflicts) as caught:
        graph.branches.merge("draft")
    found = {(one.kind, one.entity_id): one for one in caught.value.conflicts}
    assert {key: one.property for key, one in found.items()} == {
        ("divergent_update", "h1"): "src",
        ("divergent_insert", "n2"): None,
        ("unique_violation", "h8"): "to",
    }
    told = found["divergent_update", "h1"]
    assert (told.base, told.source, told.target) == ("s", "B", "A")
    told = found["divergent_insert", "n2"]
    assert told.source == {"from": "t1", "to": "t2", "src": "b"}
    told = found["unique_violation", "h8"]
    assert told.message.startswith("@unique violation on Holds.(@dst, @src): value '(i8, t1)'")
    mutate(graph, 'delete Holds where @id = "h8"')
    graph.branches.merge("draft", resolve={"Holds:h1": "source", "Near:n2": "target"})
    assert exported(graph, "Near")[1] == near % "a"
    assert exported(graph, "Holds")[0] == holds % ("t2", "B")


# -- vectors -------------------------------------------------------------------------


def test_embedding_what_is_called_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    schema = "node Word { id: String? sense: Vector(4)? @embed(id) }"
    graph = og.init(tmp_path / "g.omni", schema)
    graph.load('{"type":"Word","data":{"@id":"w1","id":"river","sense":[1,0,0,0]}}', mode="append")
    mutate(graph, 'insert Word { id: "stream" }')
    found = shown(graph, "$w: Word $w.sense is not null", "$w.id, $w.@id")
    assert sorted(id_ for id_, _ in found) == ["river", "stream"]
    assert dict(found)["river"] == "w1"
    assert graph.embed("Word", where='@id = "river"', only_missing=False).rows == 0
    assert graph.embed("Word", where='id = "river"', only_missing=False).rows == 1
    assert sorted(shown(graph, "$w: Word", "$w.id, $w.@id")) == sorted(found)
