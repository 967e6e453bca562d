"""Edges with a key: ids made of ends and members, on every way into a graph and out of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph as og
from omnigraph import errors
from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.schema.keys import keyed_edge_id
from omnigraph.storage.objects.meter import measure
from omnigraph.write.change.change_set import key_ids, row_columns
from omnigraph.write.load import sifting
from omnigraph.write.load.ndjson.envelopes import LineErrors
from omnigraph.write.load.ndjson.exact import read_exact
from omnigraph.write.load.ndjson.lines import Lines, NdjsonSource
from omnigraph.write.load.ndjson.typed_lines import read_bulk
from omnigraph.write.publish.read_set import KeyLookup
from tests.write.test_identity import VALUES
from tests.write.writing import mutate, overtaken, unchanged

SCHEMA = """
node Person { name: String @key }
node Slot { room: String  hour: I32  @key(room, hour) }
edge Knows: Person -> Person { note: String?  weight: I32 @default(1)  @key(src, dst) }
edge Met: Person -> Person @card(0..3) {
    year: I32
    place: String @default("here")
    why: String
    memo: String?
    @key(src, dst, year, place)
    @unique(dst, memo)
}
edge Holds: Person -> Slot { since: Date? @key(src, dst) }
edge Calls: Person -> Person { id: I64?  src: String  @key(@src, @dst, src) }
edge Likes: Person -> Person { since: Date? }
"""
PEOPLE = ("Ann", "Ben", "Cat")
Line = dict[str, Any]


def edge(type_: str, source: str, target: str, **data: Any) -> Line:
    return {"edge": type_, "from": source, "to": target, "data": data}


def edges(graph: og.Graph, type_: str, branch: str = "main") -> dict[str, Line]:
    """The edges of a type by id, as an export has them."""
    found: dict[str, Line] = {}
    for text in graph.export(types=[type_], branch=branch):
        line = json.loads(text)
        data = line["data"]
        id_ = data.pop("@id") if "@id" in data else data.pop("id")
        assert id_ not in found, id_
        found[id_] = {"from": line["from"], "to": line["to"], **data}
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of people, two of whom know each other."""
    place = tmp_path_factory.mktemp("made") / "graph"
    graph = og.init(place, SCHEMA)
    nodes: list[Line] = [{"type": "Person", "data": {"name": name}} for name in (*PEOPLE, 'Zo"ë')]
    nodes.append({"type": "Slot", "data": {"room": "r", "hour": 9}})
    met = edge("Met", "Ann", "Ben", year=2020, why="rain", memo="m")
    graph.load([*nodes, edge("Knows", "Ann", "Ben", note="old", weight=5), met], mode="append")
    return place


@pytest.fixture
def graph(made: Path, tmp_path: Path) -> og.Graph:
    shutil.copytree(made, tmp_path / "graph")
    return og.open(tmp_path / "graph")


ANN_BEN, ANN_CAT = '["Ann","Ben"]', '["Ann","Cat"]'
RAIN = '["Ann","Ben","here","2020"]'


# -- ids -------------------------------------------------------------------------------------


def keyed(*scalars: str) -> EdgeType:
    members = [f"k{at}" for at in range(len(scalars))]
    body = " ".join(f"{name}: {scalar}" for name, scalar in zip(members, scalars, strict=True))
    listed = ", ".join(["src", "dst", *members])
    schema = f"node A {{}}\nedge E: A -> A {{ {body} @key({listed}) }}"
    return compile_schema(schema).catalog.edges["E"]


@given(st.data())
def test_ids_agree_with_the_language(data: st.DataObject) -> None:
    scalars = data.draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=3))
    type_ = keyed(*scalars)
    kinds = [st.text(), st.text(), *(VALUES[scalar] for scalar in scalars)]
    rows = data.draw(st.lists(st.tuples(*kinds), max_size=5))
    columns = row_columns(type_)
    arrays = [
        pa.array([row[at] for row in rows], columns.field(name).type)
        for at, name in enumerate(type_.key)
    ]
    expected = [keyed_edge_id(type_, dict(zip(type_.key, row, strict=True))) for row in rows]
    assert key_ids(type_, pa.table(arrays, names=list(type_.key))).to_pylist() == expected


TIED = compile_schema(
    'node A {}\nedge E: A -> A { a: F32  b: Date @default("2020-01-01")  @key(src, dst, a, b) }'
).catalog.edges["E"]
ATOMS = ["null", "0", "-0", "1", "1.5", "0.1", "1e2", '"x"', '"é\\n"', "18262", '"2020-01-01"']
ENDS = ['"x"', '"[\\"1\\",\\"r\\"]"', '"\\u0001\\\\"', '"é"', "null", "5"]
IDS = ["", '"id":"x",', '"id":null,', '"id":"[\\"x\\",\\"x\\",\\"1\\",\\"18262\\"]",']


@pytest.mark.slow
@given(st.data())
def test_both_ways_through_lines_agree(data: st.DataObject) -> None:
    """The quick reading of lines takes nothing that the exact one refuses, and gives its rows."""
    atoms, ends = st.sampled_from(ATOMS), st.sampled_from([*ENDS, *ENDS[:1] * 6])
    texts = []
    for _ in range(data.draw(st.integers(1, 3))):
        inner = data.draw(st.sampled_from([*IDS, *IDS[:1] * 4])) + f'"a":{data.draw(atoms)}'
        inner += data.draw(st.one_of(st.just(""), atoms.map(lambda value: f',"b":{value}')))
        source, target = data.draw(ends), data.draw(ends)
        texts.append(f'{{"edge":"E","from":{source},"to":{target},"data":{{{inner}}}}}')
    lines = Lines([NdjsonSource(None, "\n".join(texts).encode())])
    problems = LineErrors(lines.where())
    exact = read_exact(TIED, lines.texts, range(len(lines)), problems)
    bulk = read_bulk(TIED, lines.texts)
    assert (exact is None) == bool(problems.total)
    if bulk is not None:
        assert exact is not None
        assert bulk.to_pylist() == exact.to_pylist()


SCALARS: dict[str, dict[Any, str]] = {
    "String": {"a": "a", 'b"\n': 'b"\n'},
    "Bool": {True: "true", False: "false"},
    "I32": {-1: "-1", 2: "2"},
    "I64": {2**53 + 1: "9007199254740993", 0: "0"},
    "U32": {2**32 - 1: "4294967295", 0: "0"},
    "U64": {2**64 - 1: "18446744073709551615", 0: "0"},
    "F32": {0.5: "0.5", 1.0: "1"},
    "F64": {1e21: "1000000000000000000000", 0.1: "0.1"},
    "Date": {"2020-01-01": "18262", "1969-12-31": "-1"},
    "DateTime": {"2020-01-01T00:00:00Z": "1577836800000", "1970-01-01T00:00:00.001Z": "1"},
    "enum(x, y)": {"x": "x", "y": "y"},
}
"""Values of each kind, and how a key spells them."""
MEMBERS = [f"p{at:02}" for at in range(len(SCALARS))]


def lines_of(rows: list[Line]) -> object:
    return "\n".join(json.dumps(row) for row in rows)


def frame_of(rows: list[Line]) -> dict[str, Any]:
    wide = {name: pa.uint64() for name, kind in zip(MEMBERS, SCALARS, strict=True) if kind == "U64"}
    columns = {
        name: pa.array([row["data"][name] for row in rows], wide.get(name)) for name in MEMBERS
    }
    ends = {end: [row[end] for row in rows] for end in ("from", "to")}
    return {"E": pa.table({**ends, **columns})}


def pandas_of(rows: list[Line]) -> dict[str, Any]:
    return {"E": frame_of(rows)["E"].to_pandas()}


@pytest.mark.parametrize(
    ("given_as", "quick"),
    [(list, True), (list, False), (lines_of, True), (frame_of, True), (pandas_of, True)],
)
def test_every_scalar_may_be_a_member(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given_as: Callable[[list[Line]], object],
    quick: bool,
) -> None:
    if not quick:
        monkeypatch.setattr(sifting, "read_bulk", lambda *_, **__: None)
    body = " ".join(f"{name}: {kind}" for name, kind in zip(MEMBERS, SCALARS, strict=True))
    key = f"@key(src, dst, {', '.join(MEMBERS)})"
    graph = og.init(
        tmp_path / "graph", f"node A {{ name: String @key }}\nedge E: A -> A {{ {body} {key} }}"
    )
    graph.load([{"type": "A", "data": {"name": "a"}}], mode="append")
    rows = [
        edge("E", "a", "a", **dict(zip(MEMBERS, values, strict=True)))
        for values in zip(*SCALARS.values(), strict=True)
    ]
    graph.load(given_as(rows), mode="append")
    assert [json.loads(id_)[2:] for id_ in sorted(edges(graph, "E"))] == [
        list(texts) for texts in zip(*(one.values() for one in SCALARS.values()), strict=True)
    ]
    with unchanged(graph), pytest.raises(errors.KeyConflict, match="2 ids conflict"):
        graph.load(given_as(rows), mode="append")


def test_ids_of_ends_that_are_made_of_keys(graph: og.Graph) -> None:
    graph.load(
        [edge("Holds", 'Zo"ë', '["9","r"]'), edge("Calls", "Ann", "Ann", src="x")], mode="append"
    )
    (held,) = edges(graph, "Holds")
    assert json.loads(held) == ['Zo"ë', '["9","r"]']
    assert edges(graph, "Calls") == {
        '["Ann","Ann","x"]': {"from": "Ann", "to": "Ann", "id": None, "src": "x"}
    }


# -- loads -----------------------------------------------------------------------------------


def test_an_id_may_be_left_out_or_right(graph: og.Graph) -> None:
    graph.load(
        [
            edge("Knows", "Ann", "Cat", id=ANN_CAT),
            edge("Knows", "Ben", "Cat"),
            edge("Calls", "Ann", "Ben", src="s", id=7, **{"@id": '["Ann","Ben","s"]'}),
        ],
        mode="append",
    )
    assert sorted(edges(graph, "Knows")) == [ANN_BEN, ANN_CAT, '["Ben","Cat"]']
    assert edges(graph, "Calls")['["Ann","Ben","s"]']["id"] == 7


@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_another_id_is_refused(graph: og.Graph, mode: str) -> None:
    wrong = [edge("Knows", "Ben", "Cat"), edge("Knows", "Ann", "Cat", id="k1")]
    said = "id 'k1' is not the id its key gives: '[\"Ann\",\"Cat\"]'; leave it out"
    with unchanged(graph), pytest.raises(errors.ValidationError) as caught:
        graph.load(wrong, mode=mode)
    assert str(caught.value) == f"line 2, column 62: {said}"
    frame = pa.table({"from": ["Ben", "Ann"], "to": ["Cat"] * 2, "id": ['["Ben","Cat"]', "k1"]})
    with unchanged(graph), pytest.raises(errors.ValidationError) as caught:
        graph.load({"Knows": frame}, mode=mode)
    assert str(caught.value) == f"Knows:2: {said}"


def test_append_refuses_a_second_edge(graph: og.Graph) -> None:
    with unchanged(graph), pytest.raises(errors.KeyConflict) as caught:
        graph.load([edge("Knows", "Ann", "Cat"), edge("Knows", "Ann", "Ben")], mode="append")
    assert str(caught.value) == f"line 2: '{ANN_BEN}' exists already in Knows"
    assert caught.value.details["type_key"] == "edge:Knows"
    graph.load([edge("Likes", "Ann", "Ben"), edge("Likes", "Ann", "Ben")], mode="append")
    assert len(edges(graph, "Likes")) == 2, "without a key the same edge twice is two edges"


@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_one_key_twice_in_the_data_is_refused(graph: og.Graph, mode: str) -> None:
    twice = [
        edge("Met", "Ann", "Cat", year=2021, why="a"),
        edge("Met", "Cat", "Ann", year=2021, why="b"),
        edge("Met", "Ann", "Cat", year=2021, why="c", place="here"),
    ]
    with unchanged(graph), pytest.raises(errors.ValidationError) as caught:
        graph.load(twice, mode=mode)
    assert caught.value.rule == "unique"
    assert str(caught.value).startswith("line 3, column 25: @unique violation on Met.(")
    assert "value '(Ann, Cat, here, 2021)' held by" in str(caught.value)


def test_merge_addresses_an_edge(graph: og.Graph) -> None:
    merged = [edge("Knows", "Ann", "Ben", weight=7), edge("Knows", "Ben", "Ann")]
    graph.load(merged, mode="merge")
    assert edges(graph, "Knows") == {
        ANN_BEN: {"from": "Ann", "to": "Ben", "note": None, "weight": 7},
        '["Ben","Ann"]': {"from": "Ben", "to": "Ann", "note": None, "weight": 1},
    }
    # The edge that is replaced does not count beside its successor.
    more = [edge("Met", "Ann", "Ben", year=year, why="x") for year in (2020, 2021, 2022)]
    graph.load(more, mode="merge")
    with unchanged(graph), pytest.raises(errors.ValidationError, match=r"has 4 edges \(max 3\)"):
        graph.load([edge("Met", "Ann", "Ben", year=2023, why="x")], mode="merge")


def test_overwrite_replaces_all_edges_of_the_type(graph: og.Graph) -> None:
    graph.load([edge("Knows", "Cat", "Cat"), edge("Knows", "Ann", "Ben")], mode="overwrite")
    assert sorted(edges(graph, "Knows")) == [ANN_BEN, '["Cat","Cat"]']
    assert edges(graph, "Knows")[ANN_BEN]["note"] is None
    assert list(edges(graph, "Met")) == [RAIN]


def test_skipping_takes_the_first_edge_of_a_key(graph: og.Graph, tmp_path: Path) -> None:
    given = [
        edge("Knows", "Ann", "Ben", note="stored"),
        edge("Knows", "Ann", "Cat", note="first"),
        edge("Knows", "Ann", "Cat", note="second"),
        edge("Knows", "Ann", "Cat", id="x"),
        edge("Knows", "Ann", "Nobody"),
        edge("Met", "Ann", "Cat", place="there", why="no year"),
        edge("Met", "Cat", "Ben", year=1, why="the memo of another", memo="m"),
    ]
    told = graph.load(given, mode="append", on_error="skip", rejects=str(tmp_path / "rejects"))
    assert (told.edges, told.rejected) == ({"Knows": 1}, 6)
    rejects = [json.loads(line) for line in Path(told.rejects_file or "").read_text().splitlines()]
    assert [(one["line"], one["code"]) for one in rejects] == [
        (1, "key_conflict"),
        (3, "unique"),
        (4, "format"),
        (5, "endpoint"),
        (6, "required"),
        (7, "unique"),
    ]
    assert edges(graph, "Knows")[ANN_CAT]["note"] == "first"
    assert edges(graph, "Knows")[ANN_BEN]["note"] == "old"


def test_two_loads_of_one_edge_at_once(graph: og.Graph) -> None:
    line = edge("Knows", "Ann", "Cat")

    def beside(other: og.Graph) -> None:
        other.load([line], mode="append")

    with (
        overtaken(graph, "table_staged", beside),
        pytest.raises(errors.KeyConflict, match="exists already in Knows"),
    ):
        graph.load([line], mode="append")
    assert sorted(edges(graph, "Knows")) == [ANN_BEN, ANN_CAT]


# -- mutations -------------------------------------------------------------------------------


def test_insert_replaces_and_says_what_it_empties(graph: og.Graph) -> None:
    result = mutate(graph, 'insert Knows { from: "Ann" to: "Ben" weight: 2 }')
    assert (result.affected_nodes, result.affected_edges) == (0, 1)
    assert [str(warning) for warning in result.warnings] == [
        "insert replaced 1 Knows and emptied note; upsert changes only what is given"
    ]
    assert edges(graph, "Knows") == {
        ANN_BEN: {"from": "Ann", "to": "Ben", "note": None, "weight": 2}
    }


@pytest.mark.parametrize(
    "body",
    [
        'create Knows { from: "Ann" to: "Ben" }',
        'create Knows { from: "Ben" to: "Cat" } create Knows { from: "Ann" to: "Ben" note: "n" }',
        'update Knows set { note: "n" } where from = "Ann" create Knows { from: "Ann" to: "Ben" }',
        'create Knows { from: "Ann" to: "Ben" } delete Knows where from = "Ann"',
        """delete Knows where to = "Ben" insert Knows { from: "Ann" to: "Ben" }
        create Knows { from: "Ann" to: "Ben" }""",
    ],
)
def test_create_refuses_a_second_edge(graph: og.Graph, body: str) -> None:
    with unchanged(graph), pytest.raises(errors.KeyConflict) as caught:
        mutate(graph, body)
    assert str(caught.value) == f"'{ANN_BEN}' exists already in Knows"
    assert caught.value.details["type_key"] == "edge:Knows"


def test_create_takes_another_key(graph: og.Graph) -> None:
    mutate(
        graph,
        'create Met { from: "Ann" to: "Ben" year: 2021 why: "x" } '
        'create Met { from: "Ann" to: "Ben" year: 2020 place: "there" why: "x" } '
        'create Met { from: "Ben" to: "Ann" year: 2020 why: "x" }',
    )
    assert sorted(edges(graph, "Met")) == [
        RAIN,
        '["Ann","Ben","here","2021"]',
        '["Ann","Ben","there","2020"]',
        '["Ben","Ann","here","2020"]',
    ]


def test_upsert_changes_only_what_is_given(graph: og.Graph) -> None:
    source = """
    query q($a: String, $b: String, $y: I32) {
        upsert Met { from: $a, to: $b, year: $y, memo: "new" }
        upsert Met { from: $b, to: $a, year: $y, why: "fog" }
        upsert Met { from: $b, to: $a, year: $y, memo: "later" }
    }
    """
    result = graph.mutate(source, params={"a": "Ann", "b": "Ben", "y": 2020})
    assert result.affected_edges == 3
    shared = {"year": 2020, "place": "here"}
    assert edges(graph, "Met") == {
        RAIN: {"from": "Ann", "to": "Ben", **shared, "why": "rain", "memo": "new"},
        '["Ben","Ann","here","2020"]': {
            "from": "Ben",
            "to": "Ann",
            **shared,
            "why": "fog",
            "memo": "later",
        },
    }
    with unchanged(graph), pytest.raises(errors.ValidationError, match="'why'"):
        mutate(graph, 'upsert Met { from: "Cat" to: "Ben" year: 1 }')


def test_ends_and_members_never_change(graph: og.Graph) -> None:
    for body in (
        'update Met set { year: 2021 } where from = "Ann"',
        'update Met set { place: "there" } where from = "Ann"',
        'update Knows set { to: "Cat" } where from = "Ann"',
    ):
        with unchanged(graph), pytest.raises(errors.OmniGraphError) as caught:
            mutate(graph, body)
        assert "^" in str(caught.value)
    mutate(graph, 'update Met set { why: "sun" } where from = "Ann" and year = 2020')
    assert edges(graph, "Met")[RAIN]["why"] == "sun"


def test_rules_are_judged_on_what_is_left(graph: og.Graph) -> None:
    mutate(
        graph,
        'delete Knows where to = "Ben" create Knows { from: "Ann" to: "Ben" } '
        'delete Person where name = "Ann" insert Person { name: "Ann" } '
        'create Knows { from: "Ann" to: "Ben" note: "again" } '
        'create Met { from: "Ann" to: "Ben" year: 2020 why: "again" }',
    )
    assert edges(graph, "Knows")[ANN_BEN] == {
        "from": "Ann",
        "to": "Ben",
        "note": "again",
        "weight": 1,
    }
    assert edges(graph, "Met")[RAIN]["memo"] is None
    with unchanged(graph), pytest.raises(errors.ValidationError, match="Nobody"):
        mutate(graph, 'upsert Knows { from: "Ann" to: "Nobody" }')
    four = " ".join(f'upsert Met {{ from: "Ann" to: "Ben" year: {y} why: "x" }}' for y in range(4))
    with unchanged(graph), pytest.raises(errors.ValidationError, match="@card violation"):
        mutate(graph, four)
    mutate(graph, f'{four} delete Met where from = "Ann" and year >= 2')
    assert len(edges(graph, "Met")) == 2


def test_two_creates_at_once(graph: og.Graph) -> None:
    body = 'create Knows { from: "Ann" to: "Cat" }'
    with (
        overtaken(graph, "table_staged", lambda other: mutate(other, body)),
        pytest.raises(errors.KeyConflict, match="exists already in Knows"),
    ):
        mutate(graph, body)
    with overtaken(
        graph,
        "table_staged",
        lambda other: mutate(other, 'insert Knows { from: "Cat" to: "Cat" note: "beside" }'),
    ):
        mutate(graph, 'upsert Knows { from: "Cat" to: "Cat" weight: 9 }')
    assert edges(graph, "Knows")['["Cat","Cat"]'] == {
        "from": "Cat",
        "to": "Cat",
        "note": "beside",
        "weight": 9,
    }


# -- out of the graph ------------------------------------------------------------------------


def test_export_comes_back_byte_for_byte(graph: og.Graph, tmp_path: Path) -> None:
    graph.load(
        [edge("Holds", 'Zo"ë', '["9","r"]'), edge("Calls", "Ann", "Ben", src="é", id=1)],
        mode="append",
    )
    written = list(graph.export())
    (knows,) = graph.export(types=["Knows"])
    assert json.loads(knows)["data"]["id"] == ANN_BEN, "as nodes with a key have it"
    copy = og.init(tmp_path / "copy", SCHEMA)
    copy.load("\n".join(written), mode="append")
    assert list(copy.export()) == written
    copy.load("\n".join(written), mode="merge")
    copy.load("\n".join(written), mode="overwrite")
    assert list(copy.export()) == written


def test_what_is_read_of_an_edge(graph: og.Graph) -> None:
    source = "query q() { match { $a $e: knows $b } return { $e.@id, $e.@src, $b.name } }"
    assert graph.query(source).rows == [{"e.@id": ANN_BEN, "e.@src": "Ann", "b.name": "Ben"}]


def test_the_key_asks_for_no_index_of_its_own(graph: og.Graph) -> None:
    built = graph.ensure_indices().changes
    assert sorted((one.property, one.kind) for one in built if one.type_key == "edge:Met") == [
        (label, "BTREE")
        for label in sorted(one.property for one in built if one.type_key == "edge:Knows")
    ]
    (told,) = [
        one for one in graph.index_status().indexes if one.type_key == "edge:Met" and not one.kind
    ]
    assert (told.property, told.state) == ("src, dst, place, year", "none")
    assert told.reason == "@key of an edge builds nothing: its id is made of it"
    mutate(graph, 'upsert Met { from: "Ann" to: "Ben" year: 2020 why: "found by its id" }')
    assert edges(graph, "Met")[RAIN]["why"] == "found by its id"


def test_an_edge_keeps_its_id_through_changes(graph: og.Graph) -> None:
    before = graph.snapshot().commit_id
    graph.load([edge("Knows", "Ann", "Ben", weight=9), edge("Knows", "Ben", "Ben")], mode="merge")
    mutate(graph, 'delete Met where from = "Ann"')
    mutate(graph, 'create Met { from: "Ann" to: "Ben" year: 2020 why: "fog" memo: "m" }')
    found = [(one.op, one.type.name, one.id) for one in graph.diff(before, "main")]
    assert sorted(found) == [
        ("insert", "Knows", '["Ben","Ben"]'),
        ("update", "Knows", ANN_BEN),
        ("update", "Met", RAIN),
    ]


@pytest.mark.parametrize(
    ("type_", "where", "id_"),
    [
        ("Knows", 'from = "Ann" and to = "Cat"', '["Ann","Cat"]'),
        ("Knows", 'weight >= 0 and to = "Cat" and from = "Ann"', '["Ann","Cat"]'),
        (
            "Met",
            'from = "Cat" and to = "Ben" and place = "a \\"b\\"" and year = 7',
            '["Cat","Ben","a \\"b\\"","7"]',
        ),
        ("Slot", 'hour = 9 and room = "A"', '["9","A"]'),
    ],
)
def test_a_key_whose_members_are_all_given_is_looked_up_by_the_id(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch, type_: str, where: str, id_: str
) -> None:
    """As by `@id`: the same rows with the same requests, and not all edges of one end."""
    graph.load(
        [
            *(edge("Knows", "Ann", name) for name in PEOPLE),
            edge("Met", "Cat", "Ben", year=7, place='a "b"', why="x"),
            edge("Met", "Cat", "Ben", year=8, place='a "b"', why="x"),
            {"type": "Slot", "data": {"room": "A", "hour": 9}},
            {"type": "Slot", "data": {"room": "A", "hour": 10}},
        ],
        mode="merge",
    )
    asked: list[tuple[str, list[str]]] = []

    def noted(column: str, texts: pa.Array, wanted: tuple[str, ...]) -> KeyLookup:
        asked.append((column, texts.to_pylist()))
        return KeyLookup(column, texts, wanted)

    monkeypatch.setattr("omnigraph.write.mutation.execute.KeyLookup", noted)
    graph.branches.create("other")
    graph.snapshot("other")
    spelled = id_.replace("\\", "\\\\").replace('"', '\\"')
    with measure() as by_id:
        mutate(graph, f'delete {type_} where @id = "{spelled}"', branch="other")
    with measure() as by_key:
        done = mutate(graph, f"delete {type_} where {where}")
    assert (done.affected_nodes, done.affected_edges) in ((1, 0), (0, 1))
    assert asked == [("@id", [id_]), ("@id", [id_])]
    assert by_key.total <= by_id.total


def test_a_part_of_a_key_is_looked_up_by_an_end(graph: og.Graph) -> None:
    graph.load(
        [
            edge("Met", "Cat", "Ben", year=year, why=why)
            for year, why in ((7, "x"), (8, "x"), (9, "y"))
        ],
        mode="merge",
    )
    later = mutate(graph, 'delete Met where from = "Cat" and to = "Ben" and year > 7')
    assert later.affected_edges == 2
    assert mutate(graph, 'delete Met where from = "Cat" and to = "Nobody"').affected_edges == 0
