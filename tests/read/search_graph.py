"""The graph that searches are tested on: memos that cite each other and lie on desks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import omnigraph as og
from tests.read.model import Data, EdgeType, NodeType, PropType, Row, Schema

SCHEMA = """\
node Memo { code: String @key  subject: String?  body: String?  n: I32?  v: Vector(3)? }
node Desk { name: String @key  motto: String?  w: Vector(3)? }
edge Cites: Memo -> Memo { note: String? }
edge LiesOn: Memo -> Desk
"""
_TEXT, _VECTOR = PropType("String"), PropType("Vector")
MODEL = Schema(
    {
        "Memo": NodeType(
            "Memo",
            "code",
            {
                "code": PropType("String", nullable=False),
                "subject": _TEXT,
                "body": _TEXT,
                "n": PropType("I32"),
                "v": _VECTOR,
            },
        ),
        "Desk": NodeType(
            "Desk",
            "name",
            {"name": PropType("String", nullable=False), "motto": _TEXT, "w": _VECTOR},
        ),
    },
    {
        "Cites": EdgeType("Cites", "Memo", "Memo", {"note": _TEXT}),
        "LiesOn": EdgeType("LiesOn", "Memo", "Desk", {}),
    },
)


def memo(code: str, subject: str | None, v: Any = None, n: int | None = None, **others: Any) -> Row:
    """A memo."""
    return {"code": code, "subject": subject, "body": None, "n": n, "v": v} | others


def search_data(
    memos: Iterable[Row],
    desks: Iterable[Row] = (),
    cites: Iterable[tuple[str, str]] = (),
    lies_on: Iterable[tuple[str, str]] = (),
) -> Data:
    """A graph; edges have ids that are known."""
    nodes = {
        "Memo": {row["code"]: row for row in memos},
        "Desk": {row["name"]: {"motto": None, "w": None} | row for row in desks},
    }
    edges: dict[str, dict[str, Row]] = {
        "Cites": {
            f"c{n}": {"@src": src, "@dst": dst, "note": None} for n, (src, dst) in enumerate(cites)
        },
        "LiesOn": {f"l{n}": {"@src": src, "@dst": dst} for n, (src, dst) in enumerate(lies_on)},
    }
    return Data(nodes, edges)


def lines(data: Data) -> list[dict[str, Any]]:
    """The graph as lines of a load."""
    made: list[dict[str, Any]] = []
    for name, rows in data.nodes.items():
        made += [{"type": name, "data": dict(row)} for row in rows.values()]
    for name, rows in data.edges.items():
        made += [
            {"edge": name, "from": row["@src"], "to": row["@dst"], "data": {"id": id_} | _own(row)}
            for id_, row in rows.items()
        ]
    return made


def _own(row: Mapping[str, Any]) -> Row:
    return {name: value for name, value in row.items() if not name.startswith("@")}


def make_search_graph(root: str | Path, data: Data) -> og.Graph:
    """The graph on disk."""
    graph = og.init(root, SCHEMA)
    graph.load(lines(data), mode="append")
    return graph
