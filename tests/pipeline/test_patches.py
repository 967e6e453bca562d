"""Patches: what a load leaves as it is, the same on the request path and in bulk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv

import omnigraph as og
from omnigraph.errors import KeyConflict, ValidationError
from omnigraph.pipeline.load import operation as bulk_load
from omnigraph.write.load import input as load_input
from omnigraph.write.load import operation as request_load
from omnigraph.write.load import sifting
from tests.pipeline.engines import Twins, files_of, run_tasks_here
from tests.write.writing import mutate

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    level: I32 @default(1)
    born: Date? @default("2020-01-02")
    tags: [String]?
    photo: Blob?
    mail: String? @unique
    rank: I32
    @range(age, 0..150)
}

node Note {
    text: String?
    about: String?
    meaning: Vector(64)? @embed(text)
}

edge Knows: Person -> Person {
    since: Date?
    how: String?
    @key(src, dst)
}

edge Likes: Person -> Person @card(0..2) {
    how: String?
}
"""


def person(name: str, **data: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **data}}


def edge(type_: str, ends: tuple[str, str] | None, **data: Any) -> dict[str, Any]:
    named = {} if ends is None else dict(zip(("from", "to"), ends, strict=True))
    return {"edge": type_, **named, "data": data}


BEFORE = [
    person("Ann", age=3, level=7, tags=["a"], photo=b"x", mail="ann", rank=1),
    person("Ben", mail="ben", rank=2),
    {"type": "Note", "data": {"id": "n1", "text": "rain", "about": "weather"}},
    edge("Knows", ("Ann", "Ben"), since="2020-01-01", how="work"),
    edge("Likes", ("Ann", "Ben"), id="l1", how="much"),
]


@pytest.fixture(params=["bulk", "tasks"])
def twins(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Twins:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    if request.param == "tasks":
        run_tasks_here(monkeypatch)
    made = Twins.make(tmp_path, SCHEMA, way="bulk" if request.param == "bulk" else "spark")
    for graph in made.both():
        graph.load(BEFORE, mode="append")
    return made


def patch(twins: Twins, *records: dict[str, Any], **options: Any) -> Any:
    """Patch both graphs with the same lines and compare them."""
    place = twins.directory / f"patch-{twins.loads}.jsonl"
    place.write_text("".join(json.dumps(one) + "\n" for one in records))
    return twins._compared(
        twins.directory / f"done-{twins.loads}", place, place, mode="patch", **options
    )


def found(graph: og.Graph, *, of: str) -> dict[str, Any]:
    lines = map(json.loads, graph.export())
    return {
        one["data"]["id"]: one["data"] | {k: one[k] for k in ("from", "to") if k in one}
        for one in lines
        if of in (one.get("type"), one.get("edge"))
    }


@pytest.mark.slow
@pytest.mark.parametrize("refuses_bulk", [False, True])
def test_what_is_not_mentioned_stays(
    twins: Twins, refuses_bulk: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if refuses_bulk:
        monkeypatch.setattr(sifting, "read_bulk", lambda *_, **__: None)
    before = found(twins.inline, of="Person")["Ann"]
    done = patch(
        twins,
        person("Ann", age=4, mail=None),
        person("Cat", rank=3, born=None),
        edge("Knows", ("Ann", "Ben"), how=None),
        edge("Knows", ("Ben", "Cat"), how="school"),
        edge("Likes", None, id="l1", how="little"),
        edge("Likes", ("Cat", "Ann"), id="l2"),
    )
    assert done.error is None
    people = found(twins.inline, of="Person")
    assert people["Ann"] == before | {"age": 4, "mail": None}
    assert people["Cat"] | {"tags": None} == {
        "id": "Cat", "name": "Cat", "rank": 3, "level": 1, "born": None, "age": None,
        "tags": None, "photo": None, "mail": None,
    }  # fmt: skip
    knows = found(twins.inline, of="Knows")
    assert knows['["Ann","Ben"]']["since"] == "2020-01-01"
    assert knows['["Ann","Ben"]']["how"] is None
    assert knows['["Ben","Cat"]']["how"] == "school"
    likes = found(twins.inline, of="Likes")
    assert (likes["l1"]["from"], likes["l1"]["to"], likes["l1"]["how"]) == ("Ann", "Ben", "little")
    assert set(likes) == {"l1", "l2"}


@pytest.mark.slow
def test_what_cannot_be_patched_is_told_with_its_line(twins: Twins) -> None:
    done = patch(
        twins,
        person("Dan", age=1),
        person("Ann", rank=None),
        person("Ben", age=151),
        person("Ben", age=1),
        person("Eve", rank=1, mail="ann"),
        edge("Likes", ("Ann", "Ben")),
        edge("Likes", None, id="l9"),
        edge("Likes", ("Ann", "Ben"), id="l3"),
        edge("Likes", ("Ann", "Ben"), id="l4"),
        {"edge": "Likes", "from": None, "data": {"id": "l1"}},
        {"type": "Note", "data": {"text": "no id"}},
        on_error="skip",
    )
    told = {(one["line"], one["code"]) for one in done.rejects}
    assert told == {
        (1, "required"), (2, "required"), (3, "range"), (5, "unique"), (6, "required"),
        (7, "required"), (8, "cardinality"), (9, "cardinality"), (10, "format"), (11, "required"),
    }  # fmt: skip
    assert "no Likes 'l9' to patch" in {one["line"]: one["message"] for one in done.rejects}[7]
    assert found(twins.inline, of="Person")["Ben"]["age"] == 1
    refused = patch(twins, person("Fay"))
    assert isinstance(refused.error, ValidationError)
    twice = [{"type": "Note", "data": {"id": "n1", "about": text}} for text in ("a", "b")]
    assert isinstance(patch(twins, *twice).error, KeyConflict)


@pytest.mark.slow
def test_a_vector_follows_its_text(twins: Twins) -> None:
    old = found(twins.inline, of="Note")["n1"]["meaning"]
    assert old
    patch(twins, {"type": "Note", "data": {"id": "n1", "about": "sky"}})
    assert found(twins.inline, of="Note")["n1"]["meaning"] == old
    patch(twins, {"type": "Note", "data": {"id": "n1", "text": "snow"}})
    new = found(twins.inline, of="Note")["n1"]["meaning"]
    assert new
    assert new != old
    patch(twins, {"type": "Note", "data": {"id": "n1", "text": "hail", "meaning": old}})
    assert found(twins.inline, of="Note")["n1"]["meaning"] == old
    patch(twins, {"type": "Note", "data": {"id": "n1", "text": None}})
    assert found(twins.inline, of="Note")["n1"]["meaning"] is None


@pytest.mark.slow
def test_a_column_that_is_not_there_is_absent(twins: Twins, tmp_path: Path) -> None:
    before = found(twins.inline, of="Person")["Ann"]
    frames = {"Person": pa.table({"name": ["Ann", "Cat"], "age": [9, None], "rank": [5, 6]})}
    done = twins.load_tables(frames, mode="patch")
    assert done.error is None
    assert found(twins.inline, of="Person")["Ann"] == before | {"age": 9, "rank": 5}
    file = tmp_path / "Person.csv"
    file.write_text('name,age,mail\nAnn,,""\n')
    twins.inline.load(file, mode="patch")
    after = found(twins.inline, of="Person")["Ann"]
    assert after == before | {"age": None, "rank": 5, "mail": ""}


@pytest.mark.parametrize("way", ["lines", "frame", "file"])
def test_of_what_is_all_key_nothing_is_left_to_mention(tmp_path: Path, way: str) -> None:
    schema = """
    node Tag { word: String @key }
    edge Near: Tag -> Tag { year: I32  @key(src, dst, year) }
    """
    graph = og.init(tmp_path / "graph", schema)
    graph.load([{"type": "Tag", "data": {"word": "a"}}], mode="append")
    tags = [{"word": word} for word in "ab"]
    near = [{"from": "a", "to": "b", "year": year} for year in (1, 2)]
    data: Any = {"Tag": pa.Table.from_pylist(tags), "Near": pa.Table.from_pylist(near)}
    if way == "lines":
        data = [
            *({"type": "Tag", "data": one} for one in tags),
            *(edge("Near", ("a", "b"), year=one["year"]) for one in near),
        ]
    elif way == "file":
        for name, rows in data.items():
            csv.write_csv(rows, tmp_path / f"{name}.csv")
        data = {name: tmp_path / f"{name}.csv" for name in data}
    for _ in range(2):
        graph.load(data, mode="patch")
        assert sorted(found(graph, of="Tag")) == ["a", "b"]
        assert sorted(found(graph, of="Near")) == ['["a","b","1"]', '["a","b","2"]']


@pytest.mark.slow
@pytest.mark.parametrize("bulk", [False, True])
def test_others_are_patched_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bulk: bool
) -> None:
    graph = og.init(tmp_path / "graph", SCHEMA)
    graph.load(BEFORE, mode="append")
    if bulk:
        monkeypatch.setattr(load_input, "is_request_sized", lambda *_: False)
    begun: list[str] = []
    target, name = (bulk_load, "check_staged") if bulk else (request_load, "load_changes")
    real = getattr(target, name)

    def overtaken(*args: Any, **options: Any) -> Any:
        if not begun:
            begun.append("once")
            mutate(graph, 'update Person set { level: 99 } where name = "Ann"')
        return real(*args, **options)

    monkeypatch.setattr(target, name, overtaken)
    graph.load([person("Ann", age=8)], mode="patch", engine="inline", run_id="once")
    ann = found(graph, of="Person")["Ann"]
    assert begun
    assert (ann["age"], ann["level"]) == (8, 99)
    mutate(graph, 'update Person set { age: 1 } where name = "Ann"')
    again = graph.load([person("Ann", age=8)], mode="patch", engine="inline", run_id="once")
    assert again.repeats_run
    assert found(graph, of="Person")["Ann"]["age"] == 1
    assert not [one for one in files_of(graph) if one.startswith("__staging")]
