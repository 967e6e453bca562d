"""A graph with every type of property, on nodes and on edges, in several fragments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import omnigraph as og

SCHEMA = """\
node Sample {
    key: String @key
    text: String?
    yes: Bool?
    i32: I32?
    i64: I64?
    u32: U32?
    u64: U64?
    f32: F32?
    f64: F64?
    day: Date?
    moment: DateTime?
    kind: enum(left, right) @default(left)
    texts: [String]?
    flags: [Bool]?
    i32s: [I32]?
    i64s: [I64]?
    f32s: [F32]?
    f64s: [F64]?
    days: [Date]?
    vector: Vector(3)?
    blob: Blob?
}

node Counter {
    key: String @key
    u32s: [U32]?
    u64s: [U64]?
    moments: [DateTime]?
}

node Nothing {
    key: String @key
}

edge Follows: Sample -> Counter {
    weight: F64
    since: DateTime?
    proof: Blob?
}
"""

EXTREMES: dict[str, Any] = {
    "key": 'żółw "1"\n\u2028',
    "text": "",
    "yes": False,
    "i32": -(2**31),
    "i64": 2**63 - 1,
    "u32": 2**32 - 1,
    "u64": 2**64 - 1,
    "f32": 3.4028234663852886e38,
    "f64": -1.5e-300,
    "day": "0001-01-01",
    "moment": "9999-12-31T23:59:59.999Z",
    "kind": "right",
    "texts": ["", "a,b", "\U0001f422"],
    "flags": [True, False],
    "i32s": [0, 2**31 - 1],
    "i64s": [-(2**63)],
    "f32s": [0.1, -0.0],
    "f64s": [0.1, 1e308],
    "days": ["9999-12-31", "1969-12-31"],
    "vector": [0.25, -1.0, 0.1],
    "blob": b"\x00\xffbytes",
}
PLAIN: dict[str, Any] = {
    "key": "plain",
    "text": "100% sure",
    "yes": True,
    "i32": 7,
    "i64": -7,
    "u32": 0,
    "u64": 1,
    "f32": 0.5,
    "f64": -0.0,
    "day": "2024-02-29",
    "moment": "1969-12-31T23:59:59.999Z",
    "texts": [],
    "blob": b"",
}


def make_graph(root: Path) -> og.Graph:
    """Three commits that add, and one that deletes."""
    graph = og.init(root, SCHEMA)
    samples = [EXTREMES, PLAIN, {"key": "nothing at all"}, {"key": "gone"}]
    for sample in samples:
        graph.load([{"type": "Sample", "data": sample}], mode="append")
    counters: list[dict[str, Any]] = [
        {"key": "a", "u32s": [2**32 - 1, 0], "u64s": [2**64 - 1], "moments": [0, -1]},
        {"key": "b", "u32s": [], "moments": []},
        {"key": "c"},
    ]
    edges = [
        (EXTREMES["key"], "a", {"id": "1", "weight": 1.5, "since": 0, "proof": b"seen"}),
        (EXTREMES["key"], "b", {"id": "0", "weight": 0.0}),
        ("plain", "a", {"id": "2", "weight": -1.0}),
    ]
    graph.load(
        [
            *({"type": "Counter", "data": counter} for counter in counters),
            *({"edge": "Follows", "from": a, "to": b, "data": data} for a, b, data in edges),
        ],
        mode="append",
    )
    graph.mutate('query q() { delete Sample where key = "gone" }')
    return graph
