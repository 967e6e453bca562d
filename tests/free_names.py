"""A graph whose properties have the names of structural columns, and its rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import omnigraph as og

SCHEMA = """
node Thing {
    id: String @key
    title: String?
}
node Item {
    id: I64?
    name: String
    note: String?
    @unique(id)
    @index(id)
}
node Box { id: I32  lang: String  size: F32?  @key(id, lang) }
edge Holds: Thing -> Item {
    id: String?
    src: String?
    dst: I32?
    @unique(@src, @dst)
    @index(src)
}
edge Near: Thing -> Thing { src: String? }
edge In: Thing -> Box { dst: Bool? }
"""
"""Of `Near`, `id` and `dst` stay what they are; of `In`, `id` and `src`."""

LINES = [
    '{"edge":"Holds","from":"t1","to":"i7","data":{"@id":"h1","dst":3,"id":"x","src":"s"}}',
    '{"edge":"Holds","from":"t2","to":"i8","data":{"@id":"h2","dst":null,"id":null,"src":"t1"}}',
    '{"edge":"In","from":"t1","to":"[\\"5\\",\\"en\\"]","data":{"id":"b1","dst":true}}',
    '{"edge":"Near","from":"t1","to":"t2","data":{"id":"n1","src":"t2"}}',
    '{"type":"Box","data":{"@id":"[\\"5\\",\\"en\\"]","id":5,"lang":"en","size":0.5}}',
    '{"type":"Item","data":{"@id":"i7","id":7,"name":"seven","note":null}}',
    '{"type":"Item","data":{"@id":"i8","id":null,"name":"eight","note":"n"}}',
    '{"type":"Thing","data":{"@id":"t1","id":"t1","title":"one"}}',
    '{"type":"Thing","data":{"@id":"t2","id":"t2","title":null}}',
]
"""What is in it, as an export says it."""


def make_graph(root: Path, lines: list[str] | None = None) -> og.Graph:
    """A graph with these rows."""
    graph = og.init(root, SCHEMA)
    graph.load("\n".join(LINES if lines is None else lines), mode="append")
    return graph


def exported(graph: og.Graph, *types: str, branch: str = "main") -> list[str]:
    """The lines of an export."""
    return list(graph.export(types=types or None, branch=branch))


def shown(graph: og.Graph, pattern: str, columns: str, **options: Any) -> list[tuple[Any, ...]]:
    """The rows of a query, as tuples."""
    query = f"query q() {{ match {{ {pattern} }} return {{ {columns} }} }}"
    return [tuple(row.values()) for row in graph.query(query, **options).rows]
