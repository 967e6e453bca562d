"""Small fragments are folded by the writes that come after them, and nobody sees a difference."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import ReadSetChanged, StorageError
from omnigraph.lang.structural import ID
from omnigraph.storage.indexes.table_indexes import indexes_of
from omnigraph.storage.tables.fragments import FragmentPart, layout_of
from omnigraph.storage.tables.table import made_by, transaction_of
from omnigraph.write.publish import folding
from omnigraph.write.publish.folding import FOLDED_BYTES, FOLDED_ROWS, TIER, too_many
from omnigraph.write.publish.staging import is_maintenance
from tests.folding import fold_often
from tests.storage.sample import validate
from tests.write.writing import image, index_all, mutate, overtaken, rows, table_of

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    bio: String? @index
}

node Note {
    text: String?
    body: Blob?
}

edge Knows: Person -> Person {
    since: I32?
}
"""
PERSON = "node:Person"


# -- which fragments --------------------------------------------------------------------------


def parts(*counts: int, size: int = 100, physical: int | None = None) -> list[FragmentPart]:
    return [
        FragmentPart(number, f"f{number}", count, "", physical or count, size)
        for number, count in enumerate(counts)
    ]


def test_few_of_one_size_are_left_alone() -> None:
    assert not too_many([])
    assert not too_many(parts(*[1] * 7, *[8] * 7, *[64] * 7))
    assert not too_many(parts(*[FOLDED_ROWS] * 50)), "they are large enough"


def test_as_many_as_a_tier_become_one() -> None:
    assert {part.number for part in too_many(parts(500, *[1] * 8, 9, 9))} == set(range(1, 9))
    # The one they become is the eighth of the next tier, and so on.
    assert len(too_many(parts(*[1] * 8, *[8] * 7, *[64] * 7))) == 22
    assert len(too_many(parts(*[1] * 8, *[8] * 6))) == 8


def test_what_lives_in_them_counts() -> None:
    worn = parts(*[3] * 8, size=40_000, physical=100)
    assert len(too_many(worn)) == 8


def test_one_write_is_not_burdened_with_much() -> None:
    assert not too_many(parts(*[1] * 50, size=FOLDED_BYTES // 2)), "wide rows"
    assert not too_many(parts(*[1] * 50, size=2 * FOLDED_BYTES, physical=10**6)), "long to read"
    some = too_many(parts(*[1] * 5_000, size=FOLDED_BYTES // 100))
    assert TIER <= len(some) <= 100
    heavy = [(part, FOLDED_BYTES) for part in parts(*[1] * 10)[:5]]
    assert not too_many(parts(*[1] * 10), heavy), "blobs that lie elsewhere"


def test_the_number_of_fragments_is_logarithmic() -> None:
    counts: list[int] = []
    written = 0
    for _ in range(3_000):
        chosen = too_many(parts(*counts))
        gone = {part.number for part in chosen}
        counts = [count for number, count in enumerate(counts) if number not in gone]
        if chosen:
            counts.append(sum(part.rows for part in chosen))
            written += counts[-1]
        counts.append(1)
    assert sum(counts) == 3_000
    assert len(counts) <= 36
    assert written <= 4 * 3_000, "each row is written again a few times at most"


# -- in a graph ---------------------------------------------------------------------------------


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> og.Graph:
    fold_often(monkeypatch)
    return og.init(tmp_path / "graph", SCHEMA)


def fragments(graph: og.Graph, branch: str = "main", key: str = PERSON) -> int:
    return len(layout_of(table_of(graph, key, branch)).parts)


def insert(graph: og.Graph, *names: str, branch: str = "main") -> None:
    for name in names:
        mutate(graph, f'insert Person {{ name: "{name}", age: 1 }}', branch=branch)


@pytest.mark.slow
def test_inserts_leave_few_fragments(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", SCHEMA)
    insert(graph, *(f"p{number}" for number in range(70)))
    assert fragments(graph) <= 14
    found = rows(graph, PERSON)
    assert len(found) == 70
    dataset = graph.table("Person")
    row_ids = dataset.to_table(columns=[], with_row_id=True).column("_rowid").to_pylist()
    assert sorted(row_ids) == list(range(70)), "row ids are those of the first write"
    validate(table_of(graph, PERSON))
    again = og.open(str(graph.location))
    mutate(again, 'update Person set { age: 2 } where name = "p3"')
    mutate(again, 'delete Person where name = "p4"')
    assert rows(again, PERSON) == {
        **{name: row for name, row in found.items() if name != "p4"},
        "p3": {**found["p3"], "age": 2},
    }


def test_a_fold_is_no_maintenance(graph: og.Graph) -> None:
    insert(graph, "a", "b", "c")
    table = table_of(graph, PERSON)
    made = transaction_of(table)
    assert type(getattr(made, "operation", None)).__name__ == "Rewrite", "the fold comes last"
    properties = dict(getattr(made, "transaction_properties", {}))
    assert properties["omnigraph.class"] == "logical"
    assert properties["omnigraph.commit"] == graph.commits.list()[0].id
    assert not is_maintenance(None if made is None else made_by(made))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_every_commit_reads_back(graph: og.Graph, seed: int) -> None:
    """Writes, branches, merges and a new column; folding all the time, indexed and not."""
    chance = random.Random(seed)  # noqa: S311 - a test
    shown: dict[str, dict[str, Any]] = {}
    branches = ["main"]

    def note(branch: str) -> None:
        shown[graph.commits.list(branch)[0].id] = image(graph, branch)

    for step in range(45):
        branch, name = chance.choice(branches), f"p{chance.randrange(15)}"
        match chance.randrange(8):
            case 0 | 1 | 2:
                mutate(graph, f'insert Person {{ name: "{name}", age: {step} }}', branch=branch)
            case 3:
                change = f'set {{ bio: "b{step}" }} where name = "{name}"'
                mutate(graph, f"update Person {change}", branch=branch)
            case 4:
                mutate(graph, f'delete Person where name = "{name}"', branch=branch)
            case 5:
                lines = [{"type": "Person", "data": {"name": f"p{n}", "age": step}} for n in (1, 2)]
                graph.load(lines, mode="merge", branch=branch)
            case 6 if len(branches) < 3:
                graph.branches.create(f"b{step}", branch)
                branches.append(f"b{step}")
            case _ if branch != "main":
                graph.branches.merge(branch, "main", resolve="source")
                branch = "main"
        note(branch)
        if step == 15:
            index_all(graph)
        if step == 30 and seed:
            graph.apply_schema(SCHEMA.replace("age: I32?", "age: I32?\n rank: I32?"))
    for commit, expected in shown.items():
        for key, before in expected.items():
            dataset = graph.table(key, snapshot=commit)
            names = [field.name for field in dataset.schema if "blob" not in str(field.type)]
            found = {row.pop(ID): row for row in dataset.to_table(columns=names).to_pylist()}
            assert found == before, (commit, key)
    for branch in branches:
        for name, row in rows(graph, PERSON, branch).items():
            asked = (
                f'query q() {{ match {{ $p: Person {{ name: "{name}" }} }} return {{ $p.age }} }}'
            )
            assert [each["p.age"] for each in graph.query(asked, branch=branch)] == [row["age"]]


def test_both_sides_of_a_merge_have_folded(graph: og.Graph) -> None:
    insert(graph, "a", "b")
    graph.branches.create("dev")
    insert(graph, "c", "d", "e")
    insert(graph, "x", "y", "z", branch="dev")
    mutate(graph, 'update Person set { age: 7 } where name = "a"', branch="dev")
    mutate(graph, 'update Person set { bio: "m" } where name = "a"')
    mutate(graph, 'delete Person where name = "b"', branch="dev")
    before = graph.commits.list()[0].id
    graph.branches.merge("dev")
    found = rows(graph, PERSON)
    assert set(found) == {"a", "c", "d", "e", "x", "y", "z"}
    assert (found["a"]["age"], found["a"]["bio"]) == (7, "m")
    changes = {(change.op, change.id) for change in graph.diff(before, graph.snapshot())}
    assert changes == {
        ("insert", "x"),
        ("insert", "y"),
        ("insert", "z"),
        ("update", "a"),
        ("delete", "b"),
    }


def test_a_diff_shows_what_has_changed_and_not_what_has_moved(graph: og.Graph) -> None:
    insert(graph, "a", "b", "c")
    before = graph.commits.list()[0].id
    insert(graph, "d")
    mutate(graph, 'update Person set { age: 9 } where name = "b"')
    insert(graph, "e", "f")
    after = graph.commits.list()[0].id
    changes = {(change.op, change.id) for change in graph.diff(before, after)}
    assert changes == {("insert", "d"), ("update", "b"), ("insert", "e"), ("insert", "f")}


def test_a_strict_update_is_not_stopped_by_a_fold(graph: og.Graph) -> None:
    insert(graph, "a", "b", "c")
    with overtaken(graph, "table_staged", lambda other: insert(other, "d", "e", "f")):
        mutate(graph, 'update Person set { age: 5 } where name = "a"')
    assert rows(graph, PERSON)["a"]["age"] == 5
    assert len(rows(graph, PERSON)) == 6


def test_a_strict_update_is_stopped_where_its_row_has_changed(graph: og.Graph) -> None:
    insert(graph, "a", "b", "c")

    def other_does(other: og.Graph) -> None:
        mutate(other, 'update Person set { age: 8 } where name = "a"')
        insert(other, "d", "e", "f")

    with (
        overtaken(graph, "table_staged", other_does),
        pytest.raises(ReadSetChanged),
    ):
        mutate(graph, 'update Person set { age: 5 } where name = "a"')
    assert rows(graph, PERSON)["a"]["age"] == 8


def test_an_overtaken_write_brings_its_fold_along(graph: og.Graph) -> None:
    insert(graph, "a")
    mutate(graph, 'insert Note { text: "x" }')
    insert(graph, "b")
    assert fragments(graph) == 2
    with overtaken(graph, "table_staged", lambda other: mutate(other, 'insert Note { text: "y" }')):
        insert(graph, "c")
    assert fragments(graph) == 2, "a and b have become one"
    # Somebody else folds the same ones first: then there is nothing left to fold.
    with overtaken(graph, "table_staged", lambda other: insert(other, "d")):
        insert(graph, "e")
    assert set(rows(graph, PERSON)) == {"a", "b", "c", "d", "e"}


def test_a_fold_that_fails_fails_no_write(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise StorageError("no space left", kind="permanent")

    insert(graph, "a", "b")
    monkeypatch.setattr(folding, "fold_rows", fails)
    insert(graph, "c")
    monkeypatch.undo()
    fold_often(monkeypatch)
    monkeypatch.setattr(folding, "commit_rewritten", fails)
    insert(graph, "d")
    assert fragments(graph) == 4
    monkeypatch.undo()
    fold_often(monkeypatch)
    insert(graph, "e")
    assert fragments(graph) == 2
    assert set(rows(graph, PERSON)) == set("abcde")


def test_blobs_are_folded_too(graph: og.Graph) -> None:
    lines = [
        {"type": "Note", "data": {"id": f"n{number}", "body": "base64:" + "aGVsbG8="}}
        for number in range(5)
    ]
    for line in lines:
        graph.load([line], mode="append")
    assert fragments(graph, key="node:Note") == 2
    table = table_of(graph, "node:Note")
    assert table.scan(["body"], with_blobs=True).column("body").to_pylist() == [b"hello"] * 5


def covered(graph: og.Graph) -> dict[str, frozenset[int]]:
    found = indexes_of(table_of(graph, PERSON))
    return {index.kind: index.covered for index in found}


def found_by_words(graph: og.Graph, word: str) -> list[str]:
    asked = (
        "query q($w: String) { match { $p: Person search($p.bio, $w) } "
        "return { $p.name } order { $p.name asc } }"
    )
    return [row["p.name"] for row in graph.query(asked, params={"w": word})]


def test_what_an_index_covers_is_not_folded(graph: og.Graph) -> None:
    def tell(*names: str) -> None:
        for name in names:
            mutate(graph, f'insert Person {{ name: "{name}", bio: "tale of {name}" }}')

    tell("a", "b", "c")
    graph.ensure_indices()
    before = covered(graph)
    assert "INVERTED" in before
    tell(*"defghijk")
    assert covered(graph) == before
    assert fragments(graph) <= 3 + 6
    assert found_by_words(graph, "tale") == list("abcdefghijk")
    mutate(graph, 'update Person set { bio: "song" } where name = "b"')
    mutate(graph, 'delete Person where name = "d"')
    tell("l", "m")
    assert found_by_words(graph, "tale") == list("acefghijklm")
    assert found_by_words(graph, "song") == ["b"]


def test_an_index_that_is_built_meanwhile_ends_a_fold(graph: og.Graph) -> None:
    insert(graph, "a", "b")
    mutate(graph, 'update Person set { bio: "tale" } where name = "a"')

    def build(other: og.Graph) -> None:
        other.ensure_indices()

    with overtaken(graph, "table_staged", build) as fault:
        mutate(graph, 'insert Person { name: "c", bio: "tale" }')
    assert fault.fired == 1
    assert found_by_words(graph, "tale") == ["a", "c"]
    numbers = {part.number for part in layout_of(table_of(graph, PERSON)).parts}
    assert all(index <= numbers for index in covered(graph).values())
    assert covered(graph)["INVERTED"]
