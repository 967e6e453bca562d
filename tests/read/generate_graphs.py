"""Generated schemas and graphs, and changes made to both the engine's graph and the naive one.

Everything comes from one `random.Random`, so a seed says it all.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from random import Random
from typing import Any

import omnigraph as og
from tests.read.model import Data, EdgeType, NodeType, PropType, Row, Schema, as_f32
from tests.read.query_ast import moment_text

# With the wildcards and quotes of SQL, and letters whose order differs in UTF-16.
WORDS = ("", "a", "ab", "aB", "a_%", "'\"", "\\\n", "\ufb00", "\U0001d518")
DATES = (date(1969, 12, 31), date(1970, 1, 1), date(2020, 2, 29), date(2024, 1, 31))
MOMENTS = (
    datetime(1969, 12, 31, 23, 59, 59, 999000, UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2024, 1, 31, 10, 0, 0, 1000, UTC),
    datetime(2024, 1, 31, 10, 0, 0, 2000, UTC),
)
# Exact at 32 bits, so that sums are the same in any order; both zeros are equal.
HALVES = (-1.5, -0.0, 0.0, 0.25, 1.0, 2.0, 2.5)
SMALL = (-2, -1, 0, 1, 2, 3)
WIDE: dict[str, tuple[Any, ...]] = {
    "I32": (-(2**31), 2**31 - 1),
    "I64": (-(2**63), -(2**53) - 1, 2**53, 2**53 + 1, 2**63 - 1),
    "U32": (2**32 - 1,),
    "U64": (2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1),
    "F32": (as_f32(0.1), as_f32(16777217.0), as_f32(3e38)),
    "F64": (0.1, 2.0**53, 2.0**63, 2.0**64, 1e300, -1e300, 2.7),
}
SCALARS = ("String", "Bool", "I32", "I64", "U32", "U64", "F32", "F64", "Date", "DateTime", "enum")
LISTED = ("String", "Bool", "I32", "I64", "U64", "F64", "Date", "DateTime")
NAMES = (
    "interval",
    "exists",
    "order",
    "in",
    "is",
    "fullName",
    "fullname",
    "size",
    "x",
    "y",
    "null",
)
MEMBERS = ("low", "mid-1", "zz")


def pool(type_: PropType) -> tuple[Any, ...]:
    """The values a property is drawn from."""
    match type_.base:
        case "String":
            return WORDS
        case "Bool":
            return (False, True)
        case "Date":
            return DATES
        case "DateTime":
            return MOMENTS
        case "enum":
            return type_.members
        case "F32" | "F64":
            return HALVES + (WIDE[type_.base] if type_.wide else ())
        case _:
            small = tuple(value for value in SMALL if value >= 0 or type_.base[0] == "I")
            return small + (WIDE[type_.base] if type_.wide else ())


def draw_schema(rng: Random) -> Schema:
    """Some node and edge types; one edge at least leads back to the type it starts from."""
    nodes = {}
    for number in range(rng.randint(2, 4)):
        name = f"N{number}" if number else "Thing"
        key = rng.choice(("name", "name", "code", None))
        props = {}
        if key is not None:
            base = "String" if key == "name" else "I64"
            props[key] = PropType(base, nullable=False, wide=True)
        nodes[name] = NodeType(name, key, props | _draw_props(rng, rng.randint(2, 6)))
    edges = {}
    for number in range(rng.randint(2, 4)):
        name = ("LinksTo", "Owns", "Sees", "E3")[number]
        source = rng.choice(list(nodes))
        target = source if number == 0 else rng.choice(list(nodes))
        edges[name] = EdgeType(name, source, target, _draw_props(rng, rng.randint(0, 3)))
    return Schema(nodes, edges)


def _draw_props(rng: Random, count: int) -> dict[str, PropType]:
    props = {}
    for name in rng.sample(NAMES, count):
        if rng.random() < 0.2:
            base = rng.choice(LISTED)
            props[name] = PropType(base, is_list=True, wide=rng.random() < 0.3)
            continue
        base = rng.choice(SCALARS)
        members = tuple(rng.sample(MEMBERS, rng.randint(1, 3))) if base == "enum" else ()
        nullable = rng.random() < 0.75
        props[name] = PropType(base, nullable, False, members, rng.random() < 0.3)
    return props


def schema_text(schema: Schema) -> str:
    """The schema as `.pg`."""
    lines = []
    for node in schema.nodes.values():
        props = (
            f"  {name}: {_type_text(type_)}{' @key' if name == node.key else ''}\n"
            for name, type_ in node.props.items()
        )
        lines.append(f"node {node.name} {{\n{''.join(props)}}}\n")
    for edge in schema.edges.values():
        listed = "".join(f"  {name}: {_type_text(type_)}\n" for name, type_ in edge.props.items())
        body = f" {{\n{listed}}}" if listed else ""
        lines.append(f"edge {edge.name}: {edge.source} -> {edge.target}{body}\n")
    return "".join(lines)


def _type_text(type_: PropType) -> str:
    base = f"enum({', '.join(type_.members)})" if type_.members else type_.base
    return (f"[{base}]" if type_.is_list else base) + ("?" if type_.nullable else "")


# -- rows ------------------------------------------------------------------------------------


def draw_data(rng: Random, schema: Schema) -> Data:
    """A graph with empty types, nulls, parallel edges, loops and cycles."""
    data = Data({name: {} for name in schema.nodes}, {name: {} for name in schema.edges})
    for node in schema.nodes.values():
        # The first type is never empty, so that there always is something to look at.
        for _ in range(rng.choice((1, 4, 6, 7) if not data.nodes["Thing"] else (0, 1, 4, 5, 6, 7))):
            add_node(rng, schema, data, node.name)
    for edge in schema.edges.values():
        for _ in range(rng.choice((0, 5, 8, 12))):
            add_edge(rng, schema, data, edge.name)
    return data


def add_node(rng: Random, schema: Schema, data: Data, type_name: str) -> str | None:
    """One more node, or another row for one that is there; says which."""
    node = schema.nodes[type_name]
    row = _draw_row(rng, node.props)
    if node.key == "name":
        row["name"] = rng.choice(
            ("Ann", "Ben", "a", "b", "é", "'", "10", "9", "\U0001d518", "\ufb00")
        )
    elif node.key == "code":
        row["code"] = rng.choice((-1, 0, 7, 8, 9, 10, 11, 2**53 + 1))
    id_ = str(row[node.key]) if node.key else rng.choice("PQRSTUVWpqr")
    data.nodes[type_name][id_] = row
    return id_


def add_edge(rng: Random, schema: Schema, data: Data, type_name: str) -> str | None:
    """One more edge, if there is anything to connect."""
    edge = schema.edges[type_name]
    sources, targets = list(data.nodes[edge.source]), list(data.nodes[edge.target])
    if not sources or not targets:
        return None
    rows = data.edges[type_name]
    id_ = next(
        name
        for name in iter(lambda: f"{rng.choice('abyz')}{rng.randint(0, 99)}", "")
        if name not in rows
    )
    row = _draw_row(rng, edge.props)
    # The first few nodes get most of the edges, so that there are parallel ones and cycles.
    rows[id_] = {"@src": rng.choice(sources[:3]), "@dst": rng.choice(targets[:4]), **row}
    if rng.random() < 0.3:
        rows[id_]["@src"] = rng.choice(sources)
    if rng.random() < 0.15 and edge.source == edge.target:
        rows[id_]["@dst"] = rows[id_]["@src"]
    return id_


def _draw_row(rng: Random, props: dict[str, PropType]) -> Row:
    return {name: draw_value(rng, type_) for name, type_ in props.items()}


def draw_value(rng: Random, type_: PropType) -> Any:
    """A value of a property, null at times."""
    if type_.nullable and rng.random() < 0.2:
        return None
    values = pool(type_)
    if type_.is_list:
        # A list is shown as it is stored, and so are its zeros.
        values = tuple(value for value in values if str(value) != "-0.0")
        return tuple(rng.choice(values) for _ in range(rng.randint(0, 3)))
    return rng.choice(values)


def envelopes(schema: Schema, data: Data) -> list[dict[str, Any]]:
    """A whole graph as lines of a load."""
    lines = [
        node_envelope(schema, name, id_, row)
        for name, rows in data.nodes.items()
        for id_, row in rows.items()
    ]
    return lines + [
        edge_envelope(name, id_, row)
        for name, rows in data.edges.items()
        for id_, row in rows.items()
    ]


def node_envelope(schema: Schema, type_name: str, id_: str, row: Row) -> dict[str, Any]:
    """A node as a line of a load."""
    given = {} if schema.nodes[type_name].key else {"id": id_}
    return {"type": type_name, "data": given | {name: _plain(value) for name, value in row.items()}}


def edge_envelope(type_name: str, id_: str, row: Row) -> dict[str, Any]:
    """An edge as a line of a load."""
    props = {name: _plain(value) for name, value in row.items() if not name.startswith("@")}
    ends = {"from": row["@src"], "to": row["@dst"]}
    return {"edge": type_name, **ends, "data": {"id": id_, **props}}


def _plain(value: Any) -> Any:
    match value:
        case tuple():
            return [_plain(item) for item in value]
        case datetime():
            return moment_text(value)
        case date():
            return value.isoformat()
        case _:
            return value


# -- changes ---------------------------------------------------------------------------------


def change(rng: Random, schema: Schema, data: Data, graph: og.Graph, branch: str) -> None:
    """Upserts, new rows, updates and deletes, so that rows move and row ids have holes."""
    _upsert(rng, schema, data, graph, branch)
    _delete(rng, schema, data, graph, branch)
    if rng.random() < 0.5:
        _upsert(rng, schema, data, graph, branch)


def _upsert(rng: Random, schema: Schema, data: Data, graph: og.Graph, branch: str) -> None:
    lines: dict[Any, dict[str, Any]] = {}
    for _ in range(rng.randint(1, 4)):
        name = rng.choice(list(schema.nodes))
        node = add_node(rng, schema, data, name)
        if node is not None:
            lines[name, node] = node_envelope(schema, name, node, data.nodes[name][node])
    for _ in range(rng.randint(0, 5)):
        name = rng.choice(list(schema.edges))
        edge = add_edge(rng, schema, data, name)
        if edge is not None:
            lines[name, edge] = edge_envelope(name, edge, data.edges[name][edge])
    for name, rows in data.edges.items():
        if rows and rng.random() < 0.4:
            edge = rng.choice(list(rows))
            ends = {end: rows[edge][end] for end in ("@src", "@dst")}
            rows[edge] = ends | _draw_row(rng, schema.edges[name].props)
            lines[name, edge] = edge_envelope(name, edge, rows[edge])
    graph.load(list(lines.values()), mode="merge", branch=branch)


def _delete(rng: Random, schema: Schema, data: Data, graph: og.Graph, branch: str) -> None:
    statements: list[str] = []
    params: dict[str, str] = {}
    for type_name, edges in data.edges.items():
        _drop(rng, type_name, edges, statements, params)
    for type_name, rows in data.nodes.items():
        for id_ in _drop(rng, type_name, rows, statements, params):
            for edge in schema.edges.values():
                _cascade(data.edges[edge.name], edge, type_name, id_)
    if statements:
        declared = ", ".join(f"${name}: String" for name in params)
        graph.mutate(
            f"query q({declared}) {{ {' '.join(statements)} }}", params=params, branch=branch
        )


def _drop(
    rng: Random, type_name: str, rows: dict[str, Row], statements: list[str], params: dict[str, str]
) -> Sequence[str]:
    dropped = [id_ for id_ in rows if rng.random() < 0.2]
    for id_ in dropped:
        param = f"p{len(params)}"
        params[param] = id_
        statements.append(f"delete {type_name} where @id = ${param}")
        del rows[id_]
    return dropped


def _cascade(rows: dict[str, Row], edge: EdgeType, type_name: str, id_: str) -> None:
    for name, row in list(rows.items()):
        touches = (edge.source == type_name and row["@src"] == id_) or (
            edge.target == type_name and row["@dst"] == id_
        )
        if touches:
            del rows[name]
