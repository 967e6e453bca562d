"""Diffs between states of two schemas: matched by identity, whatever things are called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.history.changes import Change
from omnigraph.history.diff import TypeStats
from omnigraph.storage.objects.meter import measure
from omnigraph.storage.tables import fragments, rows_in_place, version_diff
from omnigraph.storage.tables.table import ROW_ADDRESS
from omnigraph.wire.body import encode
from omnigraph.wire.changes import DiffBody, streamed_diff
from tests.history.changing import change_schema, mutate, told
from tests.history.comparing import agree
from tests.wire.plain import plain
from tests.write.writing import compact_all

SCHEMA = """\
node Person {
    name: String @key
    age: I32?
    city: String?
    mood: enum(good, bad)?
    ratio: F32?
    tags: [String]?
    face: Vector(2)?
    photo: Blob?
}

node Pet {
    name: String @key
}

edge Owns: Person -> Pet {
    since: I32?
}
"""
ROWS = [
    {
        "type": "Person",
        "data": {
            "name": "Ann",
            "age": 30,
            "city": "Rome",
            "mood": "good",
            "ratio": 0.1,
            "tags": ["a", "b"],
            "face": [1.0, 2.0],
            "photo": b"\x00\xff",
        },
    },
    {"type": "Person", "data": {"name": "Ben", "age": 40}},
    {"type": "Person", "data": {"name": "Cid"}},
    {"type": "Pet", "data": {"name": "Rex"}},
    {"edge": "Owns", "from": "Ann", "to": "Rex", "data": {"id": "o1", "since": 5}},
    {"edge": "Owns", "from": "Ben", "to": "Rex", "data": {"id": "o2"}},
]


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "people.omni", SCHEMA)
    graph.load(ROWS, mode="append")
    return graph


@pytest.fixture(params=[0, version_diff.DENSE], ids=["picked", "as a whole"])
def dense(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that differ in place are read one by one, or with all of their fragment."""
    monkeypatch.setattr(version_diff, "DENSE", request.param)


def head(graph: og.Graph, branch: str = "main") -> str:
    return graph.snapshot(branch).commit_id


def changed(graph: og.Graph, old: str, new: str, *, schema: str = SCHEMA) -> tuple[str, str]:
    """The commits before and after some of the schema was written otherwise."""
    assert old in schema
    before = head(graph)
    return before, change_schema(graph, schema.replace(old, new))


def facts(change: Change) -> dict[str, tuple[Any, Any]]:
    return {name: (change.was(name), change.now(name)) for name in change.changed}


def kinds(graph: og.Graph, a: str, b: str) -> list[str]:
    return [step["kind"] for step in graph.diff(a, b).schema.to_json()["steps"]]


# -- names ------------------------------------------------------------------------------


def test_other_names_are_no_difference(graph: og.Graph) -> None:
    renamed = (
        SCHEMA.replace("node Person {", 'node Human @rename_from("Person") {')
        .replace("Owns: Person", "Owns: Human")
        .replace("age: I32?", 'years: I32? @rename_from("age")')
    )
    before = head(graph)
    change_schema(graph, renamed)
    assert list(agree(graph, before, "main")) == list(agree(graph, "main", before)) == []
    mutate(graph, 'update Human set { years: 31 } where name = "Ann"')
    (change,) = agree(graph, before, "main")
    assert (change.type.name, change.changed) == ("Human", ("years",))
    assert facts(change) == {"years": (30, 31)}
    assert change.before is not None
    assert change.after is not None
    assert (change.before.properties["age"], change.after.properties["years"]) == (30, 31)
    assert "years" not in change.before.properties
    (back,) = agree(graph, "main", before)
    assert (back.type.name, facts(back)) == ("Person", {"age": (31, 30)})
    for name in ("Human", "Person"):
        assert len(graph.diff(before, "main", types=name)) == 1
    assert kinds(graph, before, "main") == ["rename_type", "rename_property"]


def test_names_may_be_swapped(graph: og.Graph) -> None:
    mutate(graph, 'update Person set { city: "Rome", mood: "bad" } where name = "Ben"')
    before, schema = head(graph), SCHEMA.replace("enum(good, bad)", "String")
    for former, name in (("city", "other"), ("mood", "city"), ("other", "mood")):
        schema = schema.replace(f" {former}: String?", f" {name}: String?")
        hint = f'{name}: String? @rename_from("{former}")'
        change_schema(graph, schema.replace(f"{name}: String?", hint))
    assert list(agree(graph, before, "main")) == list(agree(graph, "main", before)) == []
    mutate(graph, 'update Person set { city: "odd" } where name = "Ann"')
    (change,) = agree(graph, before, "main")
    assert facts(change) == {"city": ("good", "odd")}
    (change,) = agree(graph, "main", before)
    assert facts(change) == {"mood": ("odd", "good")}


def test_a_name_that_went_to_another_property(graph: og.Graph) -> None:
    before, _ = changed(graph, "    city: String?\n", "")
    change_schema(graph, SCHEMA)
    mutate(graph, 'update Person set { city: "Bern" } where name = "Ben"')
    ann, ben = agree(graph, before, "main")
    assert facts(ann) == {"city": ("Rome", None)}
    assert facts(ben) == {"city": (None, "Bern")}


def test_a_name_that_was_given_up_and_taken(graph: og.Graph) -> None:
    before, _ = changed(graph, "city: String?", 'home: String? @rename_from("city")')
    change_schema(graph, SCHEMA.replace("city: String?", "home: String?\n    city: String?"))
    mutate(graph, 'update Person set { city: "Bern", home: "Oslo" } where name = "Ann"')
    (change,) = agree(graph, before, "main")
    assert facts(change) == {"city": (None, "Bern"), "home": ("Rome", "Oslo")}


# -- properties that come and go -----------------------------------------------------------


def test_a_new_property_without_values_is_no_difference(graph: og.Graph) -> None:
    before, after = changed(graph, "age: I32?", "age: I32?\n    rank: I64?")
    assert list(agree(graph, before, after)) == list(agree(graph, after, before)) == []
    mutate(graph, 'update Person set { rank: 1 } where name = "Ben"')
    (change,) = agree(graph, before, "main")
    assert (change.id, facts(change)) == ("Ben", {"rank": (None, 1)})
    (change,) = agree(graph, "main", before)
    assert (change.id, facts(change)) == ("Ben", {"rank": (1, None)})


@pytest.mark.usefixtures("dense")
def test_a_default_that_was_filled_is_an_update_of_every_row(graph: og.Graph) -> None:
    before, after = changed(graph, "age: I32?", "age: I32?\n    rank: I64 @default(7)")
    found = agree(graph, before, after)
    assert [facts(change) for change in found] == [{"rank": (None, 7)}] * 3
    assert len(agree(graph, after, before)) == 3
    assert kinds(graph, before, after) == ["add_property"]


@pytest.mark.usefixtures("dense")
def test_nulls_that_were_filled_are_updates(graph: og.Graph) -> None:
    before, after = changed(graph, "city: String?", 'city: String @default("Bern")')
    found = agree(graph, before, after)
    assert {change.id: facts(change) for change in found} == {
        "Ben": {"city": (None, "Bern")},
        "Cid": {"city": (None, "Bern")},
    }


@pytest.mark.usefixtures("dense")
@pytest.mark.parametrize(
    ("declared", "rows"),
    [
        ("    age: I32?\n", ["Ann", "Ben"]),
        ("    tags: [String]?\n", ["Ann"]),
        ("    face: Vector(2)?\n", ["Ann"]),
        ("    photo: Blob?\n", ["Ann"]),
        ("    since: I32?\n", ["o1"]),
    ],
)
def test_a_dropped_property_is_an_update_where_it_had_a_value(
    graph: og.Graph, declared: str, rows: list[str]
) -> None:
    before, after = changed(graph, declared, "")
    name = declared.split(":", maxsplit=1)[0].strip()
    found = list(agree(graph, before, after))
    assert [change.id for change in found] == rows
    for change in found:
        assert change.changed == (name,)
        assert change.was(name) is not None
        assert change.now(name) is None
    assert [change.changed for change in agree(graph, after, before)] == [(name,)] * len(rows)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("age: I32?", "age: I64?"),
        ("age: I32?", "age: F64?"),
        ("ratio: F32?", "ratio: F64?"),
        ("mood: enum(good, bad)?", "mood: String?"),
        ("mood: enum(good, bad)?", "mood: enum(good, bad, odd)?"),
        ("city: String?", 'city: String? @default("Bern")'),
    ],
)
def test_the_same_value_in_another_type_is_no_difference(
    graph: og.Graph, old: str, new: str
) -> None:
    before, after = changed(graph, old, new)
    assert told(graph.diff(before, after)) == told(graph.diff(after, before)) == []
    assert graph.diff(before, after).stats == ()
    found = graph.diff(before, after)
    assert len(found.schema.steps) == 1
    assert found, "a schema that differs is a difference"
    assert not graph.diff(after, "main")


def test_a_value_beyond_the_narrower_type_is_a_difference(graph: og.Graph) -> None:
    before, _ = changed(graph, "age: I32?", "age: I64?")
    mutate(graph, 'update Person set { age: 5000000000 } where name = "Ben"')
    (change,) = agree(graph, before, "main")
    assert facts(change) == {"age": (40, 5_000_000_000)}
    (change,) = agree(graph, "main", before)
    assert facts(change) == {"age": (5_000_000_000, 40)}


def test_types_that_have_nothing_in_common(graph: og.Graph) -> None:
    """On one branch a property was empty and became another type; on the other it got values."""
    mutate(graph, 'update Person set { city: null } where name = "Ann"')
    graph.branches.create("draft")
    change_schema(graph, SCHEMA.replace("city: String?", "city: I32?"), "draft")
    assert told(graph.diff("main", "draft")) == []
    mutate(graph, 'update Person set { city: "Rome" } where name = "Ann"')
    mutate(graph, 'update Person set { city: 5 } where name = "Ann"', branch="draft")
    mutate(graph, 'update Person set { city: 6 } where name = "Ben"', branch="draft")
    found = agree(graph, "main", "draft")
    assert [facts(change) for change in found] == [{"city": ("Rome", 5)}, {"city": (None, 6)}]


# -- types that come and go -----------------------------------------------------------------


def test_rows_of_a_type_that_went_are_deletions_and_of_a_new_one_insertions(
    graph: og.Graph,
) -> None:
    less = SCHEMA[: SCHEMA.index("edge Owns")]
    before = head(graph)
    change_schema(graph, f"{less}\nnode Toy {{\n    name: String @key\n}}\n")
    graph.load([{"type": "Toy", "data": {"name": "ball"}}], mode="append")
    assert told(agree(graph, before, "main")) == [
        ("delete", "edge", "Owns", "o1"),
        ("delete", "edge", "Owns", "o2"),
        ("insert", "node", "Toy", "ball"),
    ]
    assert told(agree(graph, "main", before)) == [
        ("insert", "edge", "Owns", "o1"),
        ("insert", "edge", "Owns", "o2"),
        ("delete", "node", "Toy", "ball"),
    ]
    assert sorted(kinds(graph, before, "main")) == ["add_type", "drop_type"]
    gone, _ = graph.diff(before, "main", types="Owns")
    assert gone.before is not None
    assert gone.before.endpoints is not None
    assert (gone.before.endpoints.source, gone.before.properties) == ("Ann", {"since": 5})


def test_a_type_that_came_again_is_another(graph: og.Graph) -> None:
    before = head(graph)
    change_schema(graph, SCHEMA[: SCHEMA.index("edge Owns")])
    change_schema(graph, SCHEMA)
    graph.load([{**ROWS[4], "data": {"id": "o1", "since": 5}}], mode="append")
    found = graph.diff(before, "main")
    assert sorted(told(found)) == [
        ("delete", "edge", "Owns", "o1"),
        ("delete", "edge", "Owns", "o2"),
        ("insert", "edge", "Owns", "o1"),
    ]
    assert found.stats == (TypeStats("edge", "Owns", inserted=1, deleted=2),)
    assert plain(DiffBody.of(found))["stats"] == [
        {"kind": "edge", "type_name": "Owns", "inserted": 1, "updated": 0, "deleted": 2}
    ]


def test_an_empty_type_that_goes_is_no_difference(graph: og.Graph) -> None:
    mutate(graph, "delete Owns where since = 5")
    mutate(graph, 'delete Person where name = "Ben"')
    before = head(graph)
    change_schema(graph, SCHEMA[: SCHEMA.index("edge Owns")])
    assert list(agree(graph, before, "main")) == list(agree(graph, "main", before)) == []


def test_edges_that_got_a_key_have_other_ids(graph: og.Graph) -> None:
    before, _ = changed(graph, "    since: I32?", "    since: I32?\n    @key(src, dst)")
    assert told(agree(graph, before, "main")) == [
        ("insert", "edge", "Owns", '["Ann","Rex"]'),
        ("insert", "edge", "Owns", '["Ben","Rex"]'),
        ("delete", "edge", "Owns", "o1"),
        ("delete", "edge", "Owns", "o2"),
    ]


# -- rows that lie elsewhere as well ------------------------------------------------------------


@pytest.mark.usefixtures("dense")
def test_branches_of_two_schemas(graph: og.Graph) -> None:
    graph.branches.create("draft")
    schema = SCHEMA.replace("age: I32?", 'years: I64? @rename_from("age")\n    rank: I64?')
    change_schema(graph, schema, "draft")
    change_schema(graph, SCHEMA.replace("    city: String?\n", "    job: String?\n"))
    mutate(graph, 'update Person set { age: 41, job: "cook" } where name = "Ben"')
    mutate(graph, 'delete Person where name = "Cid"')
    mutate(graph, 'insert Person { name: "Dan" }')
    mutate(graph, 'update Person set { rank: 3 } where name = "Cid"', branch="draft")
    mutate(graph, "delete Owns where since = 5", branch="draft")
    for a, b in (("main", "draft"), ("draft", "main")):
        assert len(agree(graph, a, b)) == 5
    compact_all(graph, "draft")
    for a, b in (("main", "draft"), ("draft", "main")):
        assert len(agree(graph, a, b)) == 5


def test_few_of_many_rows(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "many.omni", SCHEMA)
    people = [{"type": "Person", "data": {"name": f"p{n:04}"}} for n in range(1_000)]
    graph.load(people, mode="append")
    graph.load(people[500:], mode="merge")
    mutate(graph, 'update Person set { city: "Rome" } where name = "p0007"')
    mutate(graph, 'update Person set { city: "Bern" } where name = "p0800"')
    mutate(graph, 'delete Person where name = "p0008"')
    before, after = changed(graph, "    city: String?\n", "")
    mutate(graph, 'delete Person where name = "p0009"')
    assert [change.id for change in agree(graph, before, after)] == ["p0007", "p0800"]
    assert told(agree(graph, before, "main")) == [
        ("update", "node", "Person", "p0007"),
        ("delete", "node", "Person", "p0009"),
        ("update", "node", "Person", "p0800"),
    ]


# -- what is read ----------------------------------------------------------------------------


class Reads:
    """The columns of rows in place that were read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.columns: list[set[str]] = []
        stream = fragments.stream_parts

        def watched(table: Any, columns: Any, parts: Any, **options: Any) -> Any:
            self.columns.append(set(columns) - {ROW_ADDRESS})
            return stream(table, columns, parts, **options)

        monkeypatch.setattr(rows_in_place, "stream_parts", watched)


@pytest.mark.parametrize(
    ("old", "new", "read"),
    [
        ("age: I32?", "age: I32?\n    rank: I64?", []),
        ("age: I32?", 'years: I32? @rename_from("age")', []),
        ("mood: enum(good, bad)?", "mood: String?", []),
        ("age: I32?", "age: I32?\n    rank: I64 @default(7)", [set(), {"rank"}]),
        ("age: I32?", 'years: I64? @rename_from("age")', [{"age"}, {"years"}]),
        ("    city: String?\n", "", [{"city"}, set()]),
    ],
)
def test_only_what_may_differ_is_read(
    graph: og.Graph,
    monkeypatch: pytest.MonkeyPatch,
    old: str,
    new: str,
    read: list[set[str]],
) -> None:
    before, after = changed(graph, old, new)
    reads = Reads(monkeypatch)
    monkeypatch.setattr("omnigraph.history.changed_rows.rows_among", None)
    counted = graph.diff(before, after).stats
    assert reads.columns == read
    if not read:
        states = graph.snapshot(commit=before), graph.snapshot(commit=after)
        with measure() as meter:
            assert list(graph.diff(*states)) == []
            assert graph.diff(*states).stats == counted == ()
        assert meter.total == 0


# -- the schema part ---------------------------------------------------------------------------


def test_the_schema_part_is_there_where_schemas_differ(graph: og.Graph) -> None:
    before, after = changed(graph, "age: I32?", "age: I32?\n    rank: I64 @default(7)")
    found = graph.diff(before, after, types="Pet")
    assert len(found) == 0
    body = plain(DiffBody.of(graph.diff(before, after)))
    (step,) = body["schema"]["steps"]
    assert (step["kind"], step["property_name"]) == ("add_property", "rank")
    assert list(body) == [
        "from_graph_manifest_version",
        "to_graph_manifest_version",
        "schema",
        "changes",
        "stats",
    ]
    streamed = dict(streamed_diff(graph.diff(before, after)).members)
    assert streamed["schema"] == body["schema"]
    assert len(list(streamed["changes"])) == 3
    same = graph.diff(after, "main")
    assert same.schema.steps == ()
    assert "schema" not in plain(DiffBody.of(same))
    assert "schema" not in dict(streamed_diff(same).members)
    assert b"schema" not in encode(DiffBody.of(same))


def test_schema_differences_go_both_ways(graph: og.Graph) -> None:
    before, after = changed(graph, "    city: String?\n", "    town: String?\n")
    assert sorted(kinds(graph, before, after)) == ["add_property", "drop_property"]
    assert sorted(kinds(graph, after, before)) == ["add_property", "drop_property"]
    assert graph.diff(before, after).schema == graph.schema_diff(before, after)
