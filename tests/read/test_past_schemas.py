"""Every commit, and every branch, is read under the schema that it has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.read.access import topology_cache
from omnigraph.read.access.column_cache import columns
from omnigraph.read.access.topology_cache import topologies
from omnigraph.storage.objects.meter import measure
from omnigraph.storage.tables.row_lookup import fragment_maps
from tests.history.changing import change_schema, mutate, told

SCHEMA = """\
node Person {
    name: String @key
    age: I32?
    city: String? @index
    bio: String?
}

node Pet {
    name: String @key
}

edge Owns: Person -> Pet

edge Knows: Person -> Person
"""
RENAMED = (
    SCHEMA.replace("node Person {", 'node Human @rename_from("Person") {')
    .replace("Owns: Person", "Owns: Human")
    .replace("Knows: Person -> Person", "Knows: Human -> Human")
    .replace("city: String?", 'town: String? @rename_from("city")')
    .replace("    age: I32?\n", "")
)
PLAIN_RENAMED = RENAMED.replace(' @rename_from("Person")', "").replace(' @rename_from("city")', "")
PEOPLE = "query q() { match { $p: Person } return { $p.name, $p.age, $p.city } order { $p.name } }"
HUMANS = "query q() { match { $p: Human } return { $p.name, $p.town } order { $p.name } }"
OWNERS = "query q() { match { $p: Person $p owns $x } return { $p.name, $p.city, $x.name } }"
WALK = "query q() { match { $p: Person $p knows $q } return { $p.name, $q.name } }"
ROWS: list[dict[str, Any]] = [
    {"type": "Person", "data": {"name": "Ann", "age": 30, "city": "Rome", "bio": "likes tea"}},
    {"type": "Person", "data": {"name": "Ben", "age": 40, "city": "Bern", "bio": "likes rye"}},
    {"type": "Pet", "data": {"name": "Rex"}},
    {"edge": "Owns", "from": "Ann", "to": "Rex", "data": {"id": "o1"}},
    {"edge": "Knows", "from": "Ann", "to": "Ben", "data": {"id": "k1"}},
]


@pytest.fixture(autouse=True)
def _empty_caches() -> Iterator[None]:
    yield
    for cache in (columns, topologies, fragment_maps):
        cache.clear()


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "people.omni", SCHEMA)
    graph.load(ROWS, mode="append")
    return graph


@pytest.fixture
def old(graph: og.Graph) -> str:
    """The commit before the schema was changed."""
    commit = graph.snapshot().commit_id
    change_schema(graph, RENAMED)
    return commit


def rows(graph: og.Graph, text: str, **options: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in graph.query(text, **options).rows]


# -- commits ------------------------------------------------------------------------------


def test_a_commit_is_queried_by_the_names_that_it_had(graph: og.Graph, old: str) -> None:
    mutate(graph, 'update Human set { town: "Oslo" } where name = "Ann"')
    people = [("Ann", 30, "Rome"), ("Ben", 40, "Bern")]
    for reader in (graph, og.open(str(graph.location), read_only=True)):
        assert rows(reader, PEOPLE, snapshot=old) == people
        assert rows(reader, OWNERS, snapshot=old) == [("Ann", "Rome", "Rex")]
        assert rows(reader, HUMANS) == [("Ann", "Oslo"), ("Ben", "Bern")]
        for text, commit in ((HUMANS, old), (PEOPLE, None)):
            with pytest.raises(errors.TypeCheckError):
                reader.query(text, snapshot=commit)


def test_a_type_that_went_is_read_in_the_past(graph: og.Graph) -> None:
    old = graph.snapshot().commit_id
    change_schema(graph, SCHEMA[: SCHEMA.index("node Pet")])
    assert rows(graph, OWNERS, snapshot=old) == [("Ann", "Rome", "Rex")]
    assert graph.table("Owns", snapshot=old).count_rows() == 1
    with pytest.raises(errors.NotFound, match="Owns"):
        graph.table("Owns")


def test_a_commit_is_explained_by_the_names_that_it_had(graph: og.Graph, old: str) -> None:
    text = 'query q() { match { $p: Person $p.city starts_with "R" } return { $p.age } }'
    for analyze in (False, True):
        past = graph.explain(text, snapshot=old, analyze=analyze).text
        assert "Person" in past
        assert "city" in past
    text = text.replace("Person", "Human").replace("city", "town").replace("$p.age", "$p.name")
    assert "town" in graph.explain(text).text
    with pytest.raises(errors.TypeCheckError):
        graph.explain(text, snapshot=old)


def test_the_schema_of_a_branch_or_a_commit(graph: og.Graph, old: str) -> None:
    graph.branches.create("draft")
    change_schema(graph, f"{PLAIN_RENAMED}\nnode Cat {{\n    name: String @key\n}}\n", "draft")
    assert graph.schema_at(old) == SCHEMA
    assert graph.schema_at("main") == graph.schema == RENAMED
    assert "node Cat" in graph.schema_at("draft")
    assert graph.schema_at(graph.snapshot(commit=old)) == SCHEMA
    with pytest.raises(errors.NotFound, match="no branch and no commit"):
        graph.schema_at("nowhere")


def test_queries_are_checked_against_any_schema(graph: og.Graph, old: str) -> None:
    graph.branches.create("draft")
    change_schema(graph, PLAIN_RENAMED.replace("town", "place"), "draft")
    assert graph.lint(HUMANS).ok
    assert not graph.lint(PEOPLE).ok
    assert graph.lint(PEOPLE, snapshot=old).ok
    assert not graph.lint(HUMANS, branch="draft").ok


# -- exports and tables ---------------------------------------------------------------------


def test_an_export_of_the_past_is_what_it_was(graph: og.Graph, tmp_path: Path) -> None:
    old, exported = graph.snapshot().commit_id, list(graph.export())
    change_schema(graph, RENAMED)
    mutate(graph, 'delete Human where name = "Ben"')
    assert list(graph.export(snapshot=old)) == exported
    assert list(graph.export(snapshot=old, types=["Person"])) == [
        line for line in exported if '"type":"Person"' in line
    ]
    report = graph.export(tmp_path / "old.jsonl", snapshot=old)
    assert report.nodes == {"Person": 2, "Pet": 1}
    assert (tmp_path / "old.jsonl").read_text().splitlines() == exported
    with pytest.raises(errors.NotFound, match="Human"):
        graph.export(snapshot=old, types=["Human"])
    copy = og.init(tmp_path / "copy.omni", graph.schema_at(old))
    copy.load(tmp_path / "old.jsonl", mode="append")
    assert list(copy.export()) == exported


def test_a_table_says_where_its_names_are_stored(graph: og.Graph, old: str) -> None:
    now, then = graph.snapshot(), graph.snapshot(commit=old)
    assert now.tables["node:Human"].columns["town"] == "city"
    assert "age" not in now.tables["node:Human"].columns
    assert then.tables["node:Person"].columns["age"] == "age"
    for name, snapshot in (("Human", None), ("Person", old)):
        stored = graph.table(name, snapshot=snapshot)
        assert sorted(stored.to_table()["city"].to_pylist()) == ["Bern", "Rome"]


# -- branches ---------------------------------------------------------------------------------


def test_a_branch_has_its_own_schema(graph: og.Graph) -> None:
    graph.branches.create("draft")
    change_schema(graph, RENAMED, "draft")
    mutate(graph, 'insert Human { name: "Cid", town: "Oslo" }', branch="draft")
    graph.load([{"type": "Human", "data": {"name": "Dan"}}], mode="append", branch="draft")
    assert rows(graph, PEOPLE) == [("Ann", 30, "Rome"), ("Ben", 40, "Bern")]
    assert [row[0] for row in rows(graph, HUMANS, branch="draft")] == ["Ann", "Ben", "Cid", "Dan"]
    assert sorted(graph.catalog.nodes) == ["Person", "Pet"]
    exported = list(graph.export(branch="draft", types=["Human"]))
    assert len(exported) == 4
    assert all('"town"' in line for line in exported)
    assert list(graph.changes.baseline(branch="draft", types="Human"))[:-1] == exported
    named = {(one.type_key, one.property) for one in graph.index_status("draft").indexes}
    assert ("node:Human", "town") in named
    assert not any(type_key == "node:Person" for type_key, _ in named)
    with pytest.raises(errors.TypeCheckError):
        graph.query(HUMANS)


# -- indexes -----------------------------------------------------------------------------------


def test_a_renamed_property_keeps_its_index(graph: og.Graph) -> None:
    graph.ensure_indices()
    old = graph.snapshot().commit_id

    def states(key: str) -> dict[tuple[str, str | None], str]:
        found = graph.index_status().indexes
        return {(one.property, one.kind): one.state for one in found if one.type_key == key}

    before = states("node:Person")
    change_schema(graph, RENAMED)
    assert states("node:Human") == {
        ("town" if name == "city" else name, kind): state for (name, kind), state in before.items()
    }
    assert graph.ensure_indices().commit_id is None
    search = 'query q() { match { $p: Human search($p.town, "rome") } return { $p.name } }'
    assert rows(graph, search) == [("Ann",)]
    past = search.replace("Human", "Person").replace("town", "city")
    assert rows(graph, past, snapshot=old) == [("Ann",)]


# -- caches ------------------------------------------------------------------------------------


def swap(graph: og.Graph) -> str:
    """Let `city` and `bio` change names, which changes no table; returns the commit before."""
    old = graph.snapshot().commit_id
    schema = SCHEMA.replace(" @index", "")
    if graph.schema != schema:
        change_schema(graph, schema)
        old = graph.snapshot().commit_id
    for former, name in (("city", "other"), ("bio", "city"), ("other", "bio")):
        schema = schema.replace(f" {former}: String?", f" {name}: String?")
        hint = f'{name}: String? @rename_from("{former}")'
        change_schema(graph, schema.replace(f"{name}: String?", hint))
    return old


@pytest.mark.parametrize(
    ("text", "then", "now"),
    [
        (
            "query q() { match { $p: Person } return { $p.city } order { $p.name } }",
            ["Rome", "Bern"],
            ["likes tea", "likes rye"],
        ),
        (
            'query q() { match { $p: Person { name: "Ann" } } return { $p.city } }',
            ["Rome"],
            ["likes tea"],
        ),
        (
            'query q() { match { $p: Person search($p.city, "likes") } return { count($p) } }',
            [0],
            [2],
        ),
        (
            'query q() { match { $p: Person $p.city contains "ern" } return { $p.name } }',
            ["Ben"],
            [],
        ),
        (
            "query q() { match { $p: Person } return { $p.city, count($p) } order { $p.city } }",
            ["Bern", "Rome"],
            ["likes rye", "likes tea"],
        ),
        (
            'query q() { match { $p: Person $p knows $q $q.city = "Bern" } return { $q.city } }',
            ["Bern"],
            [],
        ),
    ],
    ids=["columns", "lookup", "words", "filter", "groups", "walk"],
)
def test_nothing_cached_under_a_name_answers_for_another_schema(
    graph: og.Graph, text: str, then: list[Any], now: list[Any]
) -> None:
    old = swap(graph)
    for _ in range(6):  # patience: what is asked often is kept in other ways
        assert [row[0] for row in rows(graph, text, snapshot=old)] == then
        assert [row[0] for row in rows(graph, text)] == now


@pytest.mark.parametrize(
    "next_schema",
    [
        SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")'),
        SCHEMA.replace("Knows: Person -> Person", 'Likes: Person -> Person @rename_from("Knows")'),
        SCHEMA.replace("bio: String?", 'bio: String? @description("a life")'),
        SCHEMA.replace(" @index", ""),
        SCHEMA.replace("    bio: String?\n", ""),
        SCHEMA.replace("age: I32?", "age: I32?\n    rank: I64?"),
        SCHEMA.replace("Knows: Person -> Person", "Knows: Person -> Person {\n    since: I32?\n}"),
    ],
    ids=["property", "type", "description", "index", "dropped", "null node", "null edge"],
)
def test_topologies_and_columns_outlive_a_change_of_the_schema_alone(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch, next_schema: str
) -> None:
    assert rows(graph, WALK) == [("Ann", "Ben")]
    before = graph.snapshot().tables.values()
    change_schema(graph, next_schema)
    read: list[Any] = []
    monkeypatch.setattr(topology_cache, "stream_parts", lambda *given: read.append(given))
    monkeypatch.setattr(
        "omnigraph.read.access.column_cache.read_parts",
        lambda _, names, parts, *__: {name: [] for name in names} if not parts else read.append(1),
    )
    walk = WALK.replace("knows", "likes") if "Likes" in next_schema else WALK
    assert rows(graph, walk) == [("Ann", "Ben")]
    assert read == []
    moved = {found.pin for found in graph.snapshot().tables.values()} - {
        found.pin for found in before
    }
    if not moved:
        graph.snapshot()
        with measure() as meter:
            rows(graph, walk)
        assert set(meter.by_operation) <= {"head", "list"}, "one look whether there is more"


# -- the change feed -----------------------------------------------------------------------------


def test_the_feed_goes_on_over_changes_that_readers_can_follow(graph: og.Graph) -> None:
    start = graph.snapshot().commit_id
    change_schema(
        graph,
        RENAMED.replace("    bio", "    age: I32?\n    bio").replace(
            "town: String?", 'town: String? @default("Bern")'
        ),
    )
    mutate(graph, 'update Human set { town: "Oslo" } where name = "Ann"')
    page = graph.changes.poll(start=f"after:{start}")
    assert page.caught_up
    renamed, updated = page.blocks
    assert renamed.changes == ()
    (change,) = updated.changes
    assert told([change]) == [("update", "node", "Human", "Ann")]
    assert change.changed == ("town",)
    assert change.before is not None
    assert sorted(change.before.properties) == ["age", "bio", "name", "town"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("bio: String?", "bio: String?\n    rank: I64?"),
        ("    bio: String?\n", ""),
        ("age: I32?", "age: I64?"),
        ("edge Owns: Person -> Pet\n", ""),
    ],
    ids=["added", "dropped", "retyped", "type with rows"],
)
def test_the_feed_stops_where_readers_cannot_follow(graph: og.Graph, old: str, new: str) -> None:
    start = graph.snapshot().commit_id
    commit = change_schema(graph, SCHEMA.replace(old, new))
    for look in (
        lambda: graph.changes.poll(start=f"after:{start}"),
        lambda: graph.commits.changes(commit),
    ):
        with pytest.raises(errors.ChangeDiffRefused, match="schema") as error:
            look()
        assert error.value.details["reason"] == "schema_boundary"
        assert error.value.details["graph_commit_id"] == commit
    mutate(graph, 'insert Person { name: "Cid" }')
    (block,) = graph.changes.poll(start=f"after:{commit}").blocks
    assert told(block.changes) == [("insert", "node", "Person", "Cid")]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: String @key\n}\n\nedge Owns", "name: String @key\n}\n\nedge Owns"),
        ("edge Knows", "node Toy {\n    name: String @key\n}\n\nedge Knows"),
        ("age: I32?", "age: I32? @default(5)"),
        ("edge Owns: Person -> Pet", "edge Owns: Person -> Pet @card(0..9)"),
    ],
    ids=["nothing", "new type", "default", "cardinality"],
)
def test_what_changes_no_property_is_no_boundary(graph: og.Graph, old: str, new: str) -> None:
    assert old in SCHEMA
    start = graph.snapshot().commit_id
    changed = SCHEMA.replace(old, new)
    if changed != SCHEMA:
        change_schema(graph, changed)
    mutate(graph, 'insert Person { name: "Cid" }')
    page = graph.changes.poll(start=f"after:{start}")
    assert [told(block.changes) for block in page.blocks][-1] == [
        ("insert", "node", "Person", "Cid")
    ]


def test_a_merge_that_brings_a_type_with_rows_is_delivered(graph: og.Graph) -> None:
    graph.branches.create("draft")
    change_schema(graph, f"{SCHEMA}\nnode Toy {{\n    name: String @key\n}}\n", "draft")
    graph.load([{"type": "Toy", "data": {"name": "ball"}}], mode="append", branch="draft")
    mutate(graph, 'insert Person { name: "Cid" }')
    start = graph.snapshot().commit_id
    graph.branches.merge("draft")
    page = graph.changes.poll(start=f"after:{start}")
    assert [told(block.changes) for block in page.blocks] == [[("insert", "node", "Toy", "ball")]]


def test_arrow_is_typed_as_the_past_was(graph: og.Graph) -> None:
    old = graph.snapshot().commit_id
    change_schema(graph, SCHEMA.replace("age: I32?", "age: I64?"))
    text = "query q() { match { $p: Person } return { $p.age as age } order { $p.age } }"
    for commit, type_ in ((old, pa.int32()), (None, pa.int64())):
        found = graph.query(text, snapshot=commit).to_arrow()
        assert found.schema.field("age").type == type_
        assert found["age"].to_pylist() == [30, 40]
