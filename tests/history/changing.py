"""What the tests of changes share: a graph with every sort of value, and states as plain dicts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.history.changes import Change, ChangeBlock
from omnigraph.history.feed import FeedPage
from omnigraph.wire.changes import ImageBody
from tests.wire.plain import plain

SCHEMA = """\
node Person {
    name: String @key
    age: I32?
    born: Date?
    score: F64?
    tags: [String]?
    face: Vector(2)?
    photo: Blob?
}

node Place {
    name: String @key
}

edge Knows: Person -> Person {
    since: DateTime?
}

edge Lives: Person -> Place
"""

Entity = tuple[str, str, str]
"""Kind, name of the type and id."""
State = dict[Entity, dict[str, Any]]


def person(name: str, **properties: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **properties}}


def place(name: str) -> dict[str, Any]:
    return {"type": "Place", "data": {"name": name}}


def knows(id_: str, source: str, target: str, **properties: Any) -> dict[str, Any]:
    return {"edge": "Knows", "from": source, "to": target, "data": {"id": id_, **properties}}


def lives(id_: str, source: str, target: str) -> dict[str, Any]:
    return {"edge": "Lives", "from": source, "to": target, "data": {"id": id_}}


def make_people(root: Path) -> og.Graph:
    """Ann and Ben in Rome; they know each other."""
    graph = og.init(root, SCHEMA)
    graph.load(
        [
            person("Ann", age=30, born="1990-05-01", score=0.5, tags=["a"], face=[0.1, 1.0]),
            person("Ben", photo=b"\x00\xff"),
            place("Rome"),
            knows("k1", "Ann", "Ben", since="2020-01-02T03:04:05.678Z"),
            lives("l1", "Ann", "Rome"),
        ],
        mode="append",
        actor="ann",
    )
    return graph


def mutate(graph: og.Graph, body: str, **options: Any) -> str:
    """Run statements as one commit, and return its id."""
    commit = graph.mutate(f"query q() {{ {body} }}", **options).commit
    assert commit is not None
    return commit.id


def state_of(lines: Iterable[str]) -> State:
    """The entities of an export."""
    found: State = {}
    for line in lines:
        envelope = json.loads(line)
        data = envelope["data"]
        id_ = data.pop("id")
        if "edge" in envelope:
            ends = {"from": envelope["from"], "to": envelope["to"]}
            found["edge", envelope["edge"], id_] = {"properties": data, "endpoints": ends}
        else:
            found["node", envelope["type"], id_] = {"properties": data}
    return found


def apply(state: State, changes: Iterable[Change]) -> None:
    """Take a state to the next one; what is said about the one before has to be true."""
    for change in changes:
        entity = (change.kind, change.type.name, change.id)
        before = None if change.before is None else plain(ImageBody.of(change.before))
        after = None if change.after is None else plain(ImageBody.of(change.after))
        assert state.pop(entity, None) == before
        assert before != after
        assert change.op == {(True, False): "insert", (False, True): "delete"}.get(
            (before is None, after is None), "update"
        )
        if after is not None:
            state[entity] = after


def lines_of(state: State) -> list[str]:
    """The entities as lines to load."""
    return [
        json.dumps(
            {
                **({"type": name} if kind == "node" else {"edge": name, **said["endpoints"]}),
                "data": {"id": id_, **said["properties"]},
            }
            if kind == "edge"
            else {"type": name, "data": said["properties"]}
        )
        for (kind, name, id_), said in state.items()
    ]


def told(changes: Iterable[Change]) -> list[tuple[str, str, str, str]]:
    """Changes in short: operation, kind, type and id."""
    return [(change.op, change.kind, change.type.name, change.id) for change in changes]


def follow(graph: og.Graph, **options: Any) -> tuple[list[ChangeBlock], list[FeedPage]]:
    """Poll until the head is reached: the blocks, whole, and the pages they came on."""
    start = {"start": options.pop("start", "beginning")}
    pages: list[FeedPage] = []
    blocks: list[ChangeBlock] = []
    while not pages or not pages[-1].caught_up:
        page = graph.changes.poll(**start, **options)
        assert (page.next_page_token is None) != (page.cursor is None)
        was_open = bool(pages) and pages[-1].next_page_token is not None
        for number, block in enumerate(page.blocks):
            if was_open and number == 0:
                assert blocks[-1].cause == block.cause
                blocks[-1] = ChangeBlock(block.cause, blocks[-1].changes + block.changes)
            else:
                blocks.append(block)
        pages.append(page)
        token = {"page_token": page.next_page_token, "cursor": page.cursor}
        start = {name: value for name, value in token.items() if value is not None}
    return blocks, pages


def change_schema(graph: og.Graph, source: str, branch: str = "main") -> str:
    """Give a branch another schema, and return the commit."""
    commit = graph.apply_schema(source, branch=branch).commit
    assert commit is not None
    return commit.id
