"""A synthetic graph of people who know people: the same one for every system.

Owns its shape: out-degrees follow a power law, so a few people know thousands and some
know nobody; no pair occurs twice and nobody knows themselves, so that "reached within h
hops" means the same in every query language.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

SEED = 20_240_131
# So many people live in a city, on average.
IN_A_CITY = 1_000
# How fast popularity falls with rank: steep for knowing, flat for being known.
OUT_SKEW, IN_SKEW = 0.7, 0.3
PEOPLE_FILE, EDGES_FILE = "people.parquet", "edges.parquet"


@dataclass(frozen=True, slots=True)
class People:
    """So many people, and who knows whom, as numbers in an arbitrary order."""

    count: int
    sources: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]

    @property
    def names(self) -> pa.Array:
        """The key of each person."""
        return pa.array([f"person-{number}" for number in range(self.count)])

    @property
    def cities(self) -> list[str]:
        """Where they live."""
        return [f"city-{number:04}" for number in range(max(2, self.count // IN_A_CITY))]

    def node_table(self) -> pa.Table:
        """Persons as they are loaded."""
        random = np.random.default_rng(SEED + 1)
        cities = pa.array(self.cities)
        return pa.table(
            {
                "name": self.names,
                "age": pa.array(random.integers(0, 100, self.count), pa.int32()),
                "city": cities.take(pa.array(random.integers(0, len(cities), self.count))),
            }
        )

    def edge_table(self) -> pa.Table:
        """Edges by the keys of their ends."""
        names = self.names
        random = np.random.default_rng(SEED + 3)
        return pa.table(
            {
                "from": names.take(pa.array(self.sources)),
                "to": names.take(pa.array(self.targets)),
                "weight": pa.array(random.integers(1, 101, len(self.sources)).astype(np.float64)),
            }
        )

    def write(self, directory: Path) -> None:
        """Both tables as files that every system can read, and the edges by number."""
        numbered = self.node_table().append_column("number", pa.array(np.arange(self.count)))
        pq.write_table(numbered, directory / PEOPLE_FILE)
        edges = self.edge_table()
        edges = edges.append_column("src", pa.array(self.sources))
        pq.write_table(edges.append_column("dst", pa.array(self.targets)), directory / EDGES_FILE)

    def starts(self, count: int) -> list[str]:
        """People to ask about, all of whom know somebody."""
        return _named(np.unique(self.sources), count, SEED + 2)

    def ends(self, count: int) -> list[str]:
        """People to be led to, all of whom somebody knows."""
        return _named(np.unique(self.targets), count, SEED + 4)


def _named(numbers: npt.NDArray[np.int64], count: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    chosen = random.choice(numbers, min(count, len(numbers)), replace=False)
    return [f"person-{number}" for number in chosen.tolist()]


def people(count: int, edges: int) -> People:
    """The graph of a size; always the same one."""
    random = np.random.default_rng(SEED)
    ranks = random.permutation(count) + 1.0
    pairs: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
    while len(pairs) < edges:
        wanted = int(1.1 * (edges - len(pairs))) + 16
        sources = _drawn(random, ranks**-OUT_SKEW, wanted)
        targets = _drawn(random, ranks**-IN_SKEW, wanted)
        fresh = (sources * count + targets)[sources != targets]
        pairs = np.unique(np.concatenate([pairs, fresh]))
    pairs = random.permutation(pairs)[:edges]
    return People(count, pairs // count, pairs % count)


def _drawn(
    random: np.random.Generator, weights: npt.NDArray[Any], count: int
) -> npt.NDArray[np.int64]:
    bounds = np.cumsum(weights)
    found: npt.NDArray[np.int64] = np.searchsorted(bounds, random.random(count) * bounds[-1])
    return found.astype(np.int64)
