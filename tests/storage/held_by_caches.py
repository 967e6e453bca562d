"""A process that fills its caches and empties them: prints, twice, what it held and what they say.

A script, so that nothing but what it does is in its memory.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import pyarrow as pa

import omnigraph as og
from omnigraph.storage.cache_budget import budget
from omnigraph.storage.memory import give_memory_back, keep_little_memory
from tests.read.memory_shapes import status

SCHEMA = "node Person { name: String @key\n age: I32? }\nedge Knows: Person -> Person"
PEOPLE, EDGES = 100_000, 400_000
AGES = """query ages() {
    match { $p: Person $p knows $q } return { $p.age as age, count($q) as n } limit 3
}"""
CIRCLE = """query circle($n: String) {
    match { $p: Person { name: $n } $p knows{1,2} $q } return { count($q) as n }
}"""


def ask(graph: og.Graph) -> None:
    """Whatever fills a cache: rows of a whole type, lookups, ways."""
    graph.query(AGES)
    for number in range(20):
        graph.query(CIRCLE, params={"n": f"person-{number * 997:07}"})


def held() -> int:
    """Bytes of this process once everything free is given back."""
    give_memory_back()
    return status("VmRSS")


def main(place: str) -> None:
    """Fill and empty them; the first time is for what is made once."""
    keep_little_memory()
    graph = og.init(place, SCHEMA)
    random = np.random.default_rng(1)
    names = pa.array([f"person-{number:07}" for number in range(PEOPLE)])
    ages = pa.array(np.arange(PEOPLE) % 90, pa.int32())
    ends = [names.take(pa.array(random.integers(0, PEOPLE, EDGES))) for _ in range(2)]
    people, knows = pa.table({"name": names, "age": ages}), {"from": ends[0], "to": ends[1]}
    graph.load({"Person": people, "Knows": pa.table(knows)}, mode="append")
    del names, ages, ends, people, knows
    found = []
    for _ in range(3):
        ask(graph)
        full, told = held(), sum(use.bytes for use in graph.caches.values())
        budget.clear()
        found.append((full - held(), told))
    print(json.dumps(found[1:]))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1])
