"""A process that runs queries of many shapes and tells what each counted and how the process grew.

Run as `python memory_shapes.py DIRECTORY`; prints one JSON object by shape: counted, grown.
"""

from __future__ import annotations

import ctypes
import gc
import json
import re
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import omnigraph as og
from omnigraph.read.queries import Query
from omnigraph.storage.budget import Budget

SCHEMA = """
node N { name: String @key  v: I64  w: F64  t: String }
node D { name: String @key  n: I64  text: String  words: String  at: Vector(32) }
edge E: N -> N
"""
NODES, EDGES, TEXTS = 40_000, 600_000, 120_000
SHAPES = {
    "scan and filter": "$d: D  $d.n > 10 } return { $d.name, $d.text }",
    "order": "$a: N  $a e $b } return { $a.t, $b.t } order { $b.w desc, $a.v asc }",
    "group": "$a: N  $a e $b } return { $a.t, $b.w, count($b) as n, max($b.v) as m }",
    "one hop": "$a: N  $a e $b } return { $a.t, $b.t, $b.w }",
    "two hops": "$a: N  $a.v < 12000  $a e $b  $b e $c } return { count($c) as n, sum($c.w) as s }",
    "variable hops": "$a: N  $a.v < 1000  $a e{1,2} $b } return { $a.v, $b.w }",
    "product with a limit": "$a: N  $b: D  $a.v < 40 } return { $a.v } order { $b.n asc } limit 9",
    "optional": "$a: N  optional { $a e $b  $b.v > 3000 } } return { $a.t, $b.t }",
    "not": "$a: N  $a e $b  not { $b e $a } } return { $a.t, $b.t }",
    "distinct": "$a: N  $a e $b } return distinct { $a.t, $b.t }",
    "wide": "$a: N  $a e $b } return { $a, $b }",
    "search": '$d: D  search($d.words, "w1 w2 w3 w4 w5 w6 w7 w8 w9") } return { $d.text }',
    "nearest": "$d: D } return { $d.text } order { nearest($d.at, $at) } limit 110000",
}


def make(directory: Path) -> og.Graph:
    graph = og.init(directory / "graph", SCHEMA)
    random = np.random.default_rng(7)

    def texts(count: int, most: int) -> pa.Array:
        return pa.array(random.integers(0, most, count)).cast(pa.string())

    def joined(*parts: pa.Array, by: str) -> pa.Array:
        return pc.binary_join_element_wise(*parts, pa.scalar(by))

    names, documents = (pa.array(np.arange(n)).cast(pa.string()) for n in (NODES, TEXTS))
    ends = [names.take(pa.array(random.integers(0, NODES, EDGES))) for _ in range(2)]
    vectors = pa.array(random.random(TEXTS * 32, dtype=np.float32))
    frames = {
        "N": pa.table(
            {
                "name": names,
                "v": np.arange(NODES),
                "w": random.random(NODES),
                "t": joined(texts(NODES, 9_000), pa.array(["a long text " * 3] * NODES), by=" "),
            }
        ),
        "D": pa.table(
            {
                "name": documents,
                "n": np.arange(TEXTS),
                "text": joined(documents, pa.array(["so many letters " * 50] * TEXTS), by=" "),
                "words": joined(
                    *(joined(pa.array(["w"] * TEXTS), texts(TEXTS, 40), by="") for _ in range(9)),
                    by=" ",
                ),
                "at": pa.FixedSizeListArray.from_arrays(vectors, 32),
            }
        ),
        "E": pa.table({"from": ends[0], "to": ends[1]}),
    }
    graph.load(frames, mode="append", engine="inline")
    return graph


def status(name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    if found is None:
        raise AssertionError(f"the system tells no {name}")
    return int(found[1]) * 1024


def measured(graph: og.Graph, text: str) -> tuple[int, int]:
    """What a query counted at its peak, and by how much the process grew meanwhile."""
    budget = Budget()
    params = {"at": [0.1] * 32} if "$at" in text else None
    given = "($at: Vector(32))" if params else "()"
    query = Query(f"query q{given} {{ match {{ {text} }}", params=params, budget=budget)
    snapshot, catalog = graph.snapshot(), graph.catalog
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = status("VmRSS")
    result = query.run(snapshot, catalog)
    grown = status("VmHWM") - before
    del result
    return budget.peak, grown


if __name__ == "__main__":
    made = make(Path(sys.argv[1]))
    json.dump({shape: measured(made, text) for shape, text in SHAPES.items()}, sys.stdout)
