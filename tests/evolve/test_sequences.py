"""Changes one after another, over rows that were written and rewritten in between."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import errors
from tests.evolve.evolving import (
    Rows,
    ask,
    edge,
    held,
    make,
    node,
    reopened,
    run,
    shown,
    steps,
    unchanged,
)

PEOPLE = [node("Person", name=name, a=n, b=f"b{n}") for n, name in enumerate(("Ann", "Ben", "Cy"))]


def make_people(place: Path, body: str = "name: String @key  a: I32?  b: String?") -> og.Graph:
    return make(place / "graph", f"node Person {{ {body} }}", PEOPLE)


class Remembered:
    """What every commit on the way held, to be compared in the end."""

    def __init__(self, graph: og.Graph) -> None:
        self.graph = graph
        self.known: dict[str, Rows] = {}
        self.note()

    def note(self) -> None:
        snapshot = self.graph.snapshot()
        self.known[snapshot.commit_id] = held(snapshot)

    def apply(self, text: str, **options: Any) -> list[tuple[str, ...]]:
        done = self.graph.apply_schema(text, **options)
        assert done.applied
        self.note()
        return steps(done)

    def run(self, body: str) -> None:
        run(self.graph, body)
        self.note()

    def load(self, *lines: dict[str, Any], mode: str = "append") -> None:
        self.graph.load(list(lines), mode=mode)
        self.note()

    def check(self) -> None:
        for graph in (self.graph, reopened(self.graph)):
            for commit, rows in self.known.items():
                assert held(graph.snapshot(commit=commit)) == rows


def test_a_name_that_was_dropped_comes_back_as_another_property(tmp_path: Path) -> None:
    past = Remembered(make_people(tmp_path))
    graph = past.graph
    past.apply("node Person { name: String @key  b: String? }")
    past.run('insert Person { name: "Dee" }')
    past.apply("node Person { name: String @key  a: I32?  b: String? }")
    assert {row["a"] for row in shown(graph)["Person"].values()} == {None}
    past.run('update Person set { a: 7 } where name = "Ann"')
    past.apply("node Person { name: String @key  b: String? }")
    past.apply('node Person { name: String @key  a: String @default("x")  b: String? }')
    past.load(node("Person", name="Eve", a="y"))
    rows = shown(graph)["Person"]
    assert {name: row["a"] for name, row in rows.items()} == {
        **dict.fromkeys(("Ann", "Ben", "Cy", "Dee"), "x"),
        "Eve": "y",
    }
    assert ask(graph, '$p: Person $p.a = "y"', "$p.name") == [{"p.name": "Eve"}]
    past.check()


def test_a_type_that_was_dropped_comes_back_empty(tmp_path: Path) -> None:
    text = "node Person { name: String @key  a: I32?  b: String? }"
    past = Remembered(make_people(tmp_path))
    former = past.graph.snapshot().tables["node:Person"].identity
    past.apply("node Film { title: String @key }")
    past.apply(text)
    assert past.graph.snapshot().tables["node:Person"].identity != former
    assert shown(past.graph) == {"Person": {}}
    past.load(node("Person", name="Ann", a=5))
    past.check()


def test_types_swap_their_names(tmp_path: Path) -> None:
    body = "{ name: String @key }"
    graph = make(
        tmp_path / "graph",
        f"node A {body} node B {body} edge E: A -> B",
        [node("A", name="a"), node("B", name="b"), edge("E", "a", "b", id="e")],
    )
    past = Remembered(graph)
    past.apply(f'node T @rename_from("A") {body} node B {body} edge E: T -> B')
    past.apply(f'node T {body} node A @rename_from("B") {body} edge E: T -> A')
    done = past.apply(f'node B @rename_from("T") {body} node A {body} edge E: B -> A')
    assert done == [("rename_type", "safe", "metadata")]
    assert shown(graph) == {
        "A": {"b": {"name": "b"}},
        "B": {"a": {"name": "a"}},
        "E": {"e": {"from": "a", "to": "b"}},
    }
    past.run('insert A { name: "b2" } insert E { from: "a", to: "b2" }')
    assert ask(graph, "$x: B $x e $y", "$y.name") == [{"y.name": "b"}, {"y.name": "b2"}]
    past.run('delete A where name = "b"')
    assert ask(graph, "$x: B $x e $y", "$y.name") == [{"y.name": "b2"}]
    past.check()


def test_properties_swap_their_names(tmp_path: Path) -> None:
    past = Remembered(make_people(tmp_path))
    past.apply('node Person { name: String @key  t: I32? @rename_from("a")  b: String? }')
    past.apply('node Person { name: String @key  t: I32?  a: String? @rename_from("b") }')
    past.apply('node Person { name: String @key  b: I32? @rename_from("t")  a: String? }')
    past.load(node("Person", name="Dee", a="x", b=9))
    past.run('update Person set { b: 10 } where a = "b1"')
    rows = shown(past.graph)["Person"]
    assert {name: (row["a"], row["b"]) for name, row in rows.items()} == {
        "Ann": ("b0", 0),
        "Ben": ("b1", 10),
        "Cy": ("b2", 2),
        "Dee": ("x", 9),
    }
    found = ask(past.graph, "$p: Person $p.b >= 9", "$p.name", "$p.a")
    assert found == [{"p.name": "Ben", "p.a": "b1"}, {"p.name": "Dee", "p.a": "x"}]
    past.check()


def test_a_name_moves_on_and_on(tmp_path: Path) -> None:
    past = Remembered(make_people(tmp_path))
    past.apply('node Person { name: String @key  z: I32? @rename_from("a")  b: String? }')
    past.apply("node Person { name: String @key  z: I32?  a: Bool?  b: String? }")
    past.run('update Person set { a: true, z: 3 } where name = "Ben"')
    names = ["z", "y", "x", "w"]
    for former, name in itertools.pairwise(names):
        text = f'{name}: I32? @rename_from("{former}")  a: Bool?  b: String?'
        past.apply(f"node Person {{ name: String @key  {text} }}")
        past.run(f'insert Person {{ name: "{name}", {name}: 1 }}')
    rows = shown(past.graph)["Person"]
    assert {name: (row["w"], row["a"]) for name, row in rows.items()} == {
        "Ann": (0, None),
        "Ben": (3, True),
        "Cy": (2, None),
        "y": (1, None),
        "x": (1, None),
        "w": (1, None),
    }
    past.check()


def test_the_name_of_what_was_dropped_goes_to_another(tmp_path: Path) -> None:
    past = Remembered(make_people(tmp_path))
    past.apply("node Person { name: String @key  a: I32? }")
    past.apply('node Person { name: String @key  b: I32? @rename_from("a") }')
    assert shown(past.graph)["Person"]["Ben"] == {"name": "Ben", "b": 1}
    past.run("update Person set { b: 11 } where b = 1")
    assert shown(past.graph)["Person"]["Ben"] == {"name": "Ben", "b": 11}
    past.check()


def test_widened_twice_filled_and_loosened(tmp_path: Path) -> None:
    past = Remembered(make_people(tmp_path))
    past.run('insert Person { name: "Dee" }')
    past.apply("node Person { name: String @key  a: I64?  b: String? }")
    past.run("update Person set { a: 9000000000 } where a = 2")
    past.apply("node Person { name: String @key  a: I64 @default(-1)  b: String? }")
    past.run('insert Person { name: "Eve" }')
    past.apply("node Person { name: String @key  a: I64? @default(-1)  b: String? }")
    past.run('update Person set { a: null } where name = "Ben"')
    past.apply("node Person { name: String @key  a: I64 @default(4)  b: String? }")
    rows = shown(past.graph)["Person"]
    assert {name: row["a"] for name, row in rows.items()} == {
        "Ann": 0,
        "Ben": 4,
        "Cy": 9_000_000_000,
        "Dee": -1,
        "Eve": -1,
    }
    past.check()


def test_from_u32_to_i64_and_to_f64_by_the_way(tmp_path: Path) -> None:
    graph = make(tmp_path / "graph", "node A { k: String @key  n: U32? }", [node("A", k="x", n=7)])
    past = Remembered(graph)
    past.apply("node A { k: String @key  n: I64? }")
    past.load(node("A", k="y", n=-(2**60)))
    with unchanged(graph), pytest.raises(errors.SchemaChangeRefused, match="OG-MF-106"):
        graph.apply_schema("node A { k: String @key  n: F64? }")
    past.run("update A set { n: null } where n < 100")
    past.apply("node A { k: String @key  n: F64? }")
    past.load(node("A", k="z", n=0.5))
    assert {row["n"] for row in shown(graph)["A"].values()} == {None, 0.5}
    past.check()


def test_an_enum_there_and_back(tmp_path: Path) -> None:
    past = Remembered(make_people(tmp_path))
    past.apply("node Person { name: String @key  a: I32?  b: enum(b0, b1, b2)? }")
    with unchanged(past.graph), pytest.raises(errors.TypeCheckError):
        run(past.graph, 'insert Person { name: "Dee", b: "b3" }')
    with unchanged(past.graph), pytest.raises(errors.ValidationError):
        past.graph.load([node("Person", name="Dee", b="b3")], mode="append")
    past.apply("node Person { name: String @key  a: I32?  b: String? }")
    past.run('insert Person { name: "Dee", b: "b3" }')
    with unchanged(past.graph), pytest.raises(errors.SchemaChangeRefused, match="Dee"):
        past.graph.apply_schema("node Person { name: String @key  a: I32?  b: enum(b0, b1, b2)? }")
    past.apply("node Person { name: String @key  a: I32?  b: enum(b0, b1, b2, b3)? }")
    past.run('delete Person where name = "Dee"')
    past.apply("node Person { name: String @key  a: I32?  b: enum(b0, b1, b2)? }")
    past.check()


def test_a_property_with_its_rules_in_one_change(tmp_path: Path) -> None:
    past = Remembered(make_people(tmp_path))
    past.apply(
        "node Person { name: String @key  a: I32?  b: String?  "
        "rank: I32 @default(5) @index @range(rank, 1..9)  mail: String? @unique @index }"
    )
    for wrong in ("rank: 10", "rank: 0"):
        with unchanged(past.graph), pytest.raises(errors.ValidationError):
            run(past.graph, f'insert Person {{ name: "Dee", {wrong} }}')
    past.run('update Person set { mail: "x" } where name = "Ann"')
    with unchanged(past.graph), pytest.raises(errors.OmniGraphError, match="mail"):
        run(past.graph, 'update Person set { mail: "x" } where name = "Ben"')
    past.graph.ensure_indices()
    past.note()
    assert ask(past.graph, "$p: Person $p.rank = 5", "$p.name", "$p.rank") == [
        {"p.name": name, "p.rank": 5} for name in ("Ann", "Ben", "Cy")
    ]
    past.check()


def test_an_interface_comes_and_goes_and_comes(tmp_path: Path) -> None:
    past = Remembered(make_people(tmp_path))
    body = "name: String @key  b: String?"
    past.apply(f"interface Aged {{ a: I32?  c: Bool? }} node Person implements Aged {{ {body} }}")
    past.run('insert Person { name: "Dee", a: 4, c: true }')
    past.apply(f"node Person {{ {body}  a: I32?  c: Bool? }}")
    past.apply(f"interface Old {{ a: I32? }} node Person implements Old {{ {body}  c: Bool? }}")
    rows = shown(past.graph)["Person"]
    assert rows["Dee"] == {"name": "Dee", "a": 4, "b": None, "c": True}
    assert rows["Ben"] == {"name": "Ben", "a": 1, "b": "b1", "c": None}
    past.check()


def test_rows_that_were_rewritten_and_deleted_before(tmp_path: Path) -> None:
    """Fragments with holes, fragments that are gone, and rows that moved."""
    past = Remembered(make_people(tmp_path))
    for number in range(6):
        past.run(f'insert Person {{ name: "n{number}", a: {number}, b: "x" }}')
    past.run('delete Person where name = "Ben"')
    past.run('update Person set { a: 40 } where name = "Ann"')
    past.run('delete Person where name = "n3"')
    past.run("update Person set { b: null } where a = 5")
    past.apply('node Person { name: String @key  a: F64?  b: String @default("-") c: Bool? }')
    expected = {
        "Ann": (40.0, "b0"),
        "Cy": (2.0, "b2"),
        "n0": (0.0, "x"),
        "n1": (1.0, "x"),
        "n2": (2.0, "x"),
        "n4": (4.0, "x"),
        "n5": (5.0, "-"),
    }
    rows = shown(past.graph)["Person"]
    assert {name: (row["a"], row["b"]) for name, row in rows.items()} == expected
    past.run("update Person set { a: 0.25 } where a = 2.0")
    past.run("delete Person where a > 4.5")
    rows = shown(past.graph)["Person"]
    assert {name: row["a"] for name, row in rows.items()} == {
        "Cy": 0.25,
        "n0": 0.0,
        "n1": 1.0,
        "n2": 0.25,
        "n4": 4.0,
    }
    past.check()


def test_every_row_deleted_is_a_table_without_rows(tmp_path: Path) -> None:
    past = Remembered(make_people(tmp_path))
    past.run('delete Person where name != ""')
    past.apply("node Person { name: String @key  a: Bool  c: I32 }")
    past.load(node("Person", name="Ann", a=True, c=1))
    assert shown(past.graph)["Person"] == {"Ann": {"name": "Ann", "a": True, "c": 1}}
    past.check()


ODD = ("_distance", "_score", "_relevance_score", "id", "src", "dst", "nAME", "order", "type")


def test_properties_that_are_called_like_columns_and_words(tmp_path: Path) -> None:
    past = Remembered(make_people(tmp_path))
    body = " ".join(f"{name}: I64?" for name in ODD)
    past.apply(f"node Person {{ name: String @key  a: I32?  b: String?  {body} }}")
    values = {name: number for number, name in enumerate(ODD)}
    past.load(node("Person", name="Dee", **values))
    expected = {"name": "Dee", "a": None, "b": None} | values
    assert shown(past.graph)["Person"]["Dee"] == expected
    wanted = [f"$p.{name}" for name in ODD]
    (found,) = ask(past.graph, "$p: Person $p._distance = 0 $p._score = 1 $p.id = 3", *wanted)
    assert found == {f"p.{name}": value for name, value in values.items()}
    past.apply("node Person { name: String @key  a: I32?  b: String?  src: I64? }")
    past.apply(
        'node Person { name: String @key  a: I32?  dst: String? @rename_from("b") '
        'id: I64? @rename_from("src") }'
    )
    past.run('update Person set { dst: "x" } where id = 4')
    assert shown(past.graph)["Person"]["Dee"] == {"name": "Dee", "a": None, "dst": "x", "id": 4}
    past.check()


@pytest.mark.slow
def test_types_with_many_properties(tmp_path: Path) -> None:
    many = range(200)
    before = " ".join(f"p{n}: I32?" for n in many)
    after = " ".join(
        f'q{n}: {"I64" if n % 3 == 0 else "I32"}? @rename_from("p{n}")' for n in many if n % 7
    )
    graph = make(
        tmp_path / "graph",
        f"node A {{ k: String @key {before} }}",
        [node("A", k="x", **{f"p{n}": n for n in many})],
    )
    past = Remembered(graph)
    new = " ".join(f"r{n}: I32 @default({n})" for n in many)
    done = past.apply(f"node A {{ k: String @key {after} {new} }}")
    assert len(done) == 200 + 171 + len([n for n in many if n % 7 and n % 3 == 0]) + 29
    assert shown(graph)["A"]["x"] == {
        "k": "x",
        **{f"q{n}": n for n in many if n % 7},
        **{f"r{n}": n for n in many},
    }
    past.load(node("A", k="y", q3=2**40))
    past.check()


def test_blobs_vectors_and_lists_come_as_nothing(tmp_path: Path) -> None:
    past = Remembered(make_people(tmp_path))
    body = "name: String @key  a: I32?  b: String?"
    past.apply(f"node Person {{ {body}  data: Blob?  v: Vector(3)?  tags: [I32]?  at: [Date]? }}")
    past.load(
        node("Person", name="Dee", data="base64:aGk=", v=[1, 0, 0], tags=[1, 2], at=["2020-01-02"])
    )
    past.load(node("Person", name="Ann", v=[0, 1, 0], a=0, b="b0"), mode="merge")
    rows = shown(past.graph)["Person"]
    assert rows["Dee"]["tags"] == [1, 2]
    assert rows["Dee"]["at"] == ["2020-01-02"]
    assert rows["Dee"]["v"] == [1, 0, 0]
    assert rows["Dee"]["data"] == "base64:aGk="
    assert rows["Ben"] == {"name": "Ben", "a": 1, "b": "b1"} | dict.fromkeys(
        ("data", "v", "tags", "at")
    )
    near = past.graph.query(
        "query q($v: Vector(3)) { match { $p: Person } return { $p.name } "
        "order { nearest($p.v, $v) } limit 1 }",
        params={"v": [0.9, 0.1, 0.0]},
    )
    assert near.rows == [{"p.name": "Dee"}]
    assert ask(past.graph, "$p: Person $p.tags contains 2", "$p.name") == [{"p.name": "Dee"}]
    past.apply(
        f'node Person {{ {body}  file: Blob? @rename_from("data")  w: Vector(3)? @rename_from("v") '
        'marks: [I32]? @rename_from("tags")  at: [Date]? }'
    )
    rows = shown(past.graph)["Person"]
    assert (rows["Dee"]["file"], rows["Dee"]["w"]) == ("base64:aGk=", [1, 0, 0])
    assert ask(past.graph, "$p: Person $p.marks contains 2", "$p.name") == [{"p.name": "Dee"}]
    past.run('update Person set { a: 9 } where name = "Dee"')
    assert shown(past.graph)["Person"]["Dee"]["file"] == "base64:aGk="
    past.apply(f"node Person {{ {body} }}")
    past.check()


def test_edges_get_a_key_lose_it_and_get_another(tmp_path: Path) -> None:
    text = "node P {{ name: String @key }} edge E: P -> P {{ year: I32? {} }}"
    graph = make(
        tmp_path / "graph",
        text.format("data: Blob?"),
        [
            *(node("P", name=name) for name in "ab"),
            edge("E", "a", "b", id="e1", year=1, data="base64:aGk="),
            edge("E", "b", "a", id="e2", year=None),
        ],
    )
    past = Remembered(graph)
    past.apply(text.format("data: Blob? @key(src, dst)"))
    rows = shown(graph)["E"]
    assert rows == {
        '["a","b"]': {"from": "a", "to": "b", "year": 1, "data": "base64:aGk="},
        '["b","a"]': {"from": "b", "to": "a", "year": None, "data": None},
    }
    past.apply(text.format("data: Blob?"))
    assert shown(graph)["E"] == rows
    past.apply(
        text.format("data: Blob? @key(src, dst, year)").replace(
            "year: I32?", "year: I64 @default(7)"
        )
    )
    assert set(shown(graph)["E"]) == {'["a","b","1"]', '["b","a","7"]'}
    assert ask(graph, "$x: P $x e $y", "$x.name", "$y.name") == [
        {"x.name": "a", "y.name": "b"},
        {"x.name": "b", "y.name": "a"},
    ]
    past.run('delete P where name = "a"')
    assert shown(graph)["E"] == {}
    past.check()
