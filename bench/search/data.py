"""A synthetic library: documents with vectors and words, and the authors who wrote them.

Owns its shape, which is the same for every system. Vectors stand in clusters, as those of
texts do; words follow Zipf's law; a year is that of one document in a hundred.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SEED = 20_250_619
DIMENSION = 256
DOCUMENTS_FILE, AUTHORS_FILE, WROTE_FILE = "documents.parquet", "authors.parquet", "wrote.parquet"
YEARS = range(1920, 2020)
VOCABULARY = 20_000
WORDS = 20
QUERY_WORDS = 3

# So many documents stand in a cluster, and so far from its middle.
_IN_A_CLUSTER = 100
_SPREAD = 0.9
# So far from a document a query is: near enough to be about the same.
_ASIDE = 0.5
_DOCUMENTS_OF_AN_AUTHOR = 10
_SECOND_AUTHORS = 0.3
_MOST_CITIES = 50
_ROWS_AT_ONCE = 50_000

Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Asked:
    """What one search is about, in every way it can be put."""

    vector: list[float]
    words: str
    year: int
    city: str


@dataclass(frozen=True)
class Library:
    """So many documents, by number, and who wrote which."""

    count: int

    @property
    def author_count(self) -> int:
        """How many people have written something."""
        return max(20, self.count // _DOCUMENTS_OF_AN_AUTHOR)

    @property
    def cities(self) -> list[str]:
        """Where they live."""
        return [f"city-{number:02}" for number in range(min(_MOST_CITIES, self.author_count // 10))]

    @cached_property
    def vectors(self) -> Floats:
        """Where each document stands; not of length 1."""
        random = np.random.default_rng(SEED)
        clusters = max(4, self.count // _IN_A_CLUSTER)
        middles = random.standard_normal((clusters, DIMENSION), dtype=np.float32)
        found = middles[random.integers(0, clusters, self.count)]
        for start in range(0, self.count, _ROWS_AT_ONCE):
            part = found[start : start + _ROWS_AT_ONCE]
            part += _SPREAD * random.standard_normal(part.shape, dtype=np.float32)
        return found

    @cached_property
    def words(self) -> pa.Array:
        """The words of each document."""
        random = np.random.default_rng(SEED + 1)
        counts = np.maximum(random.poisson(WORDS, self.count), 3)
        shares = np.cumsum(1.0 / np.arange(1, VOCABULARY + 1))
        drawn = np.searchsorted(shares, random.random(int(counts.sum())) * shares[-1])
        words = pa.array([_word(number) for number in range(VOCABULARY)]).take(pa.array(drawn))
        ends = np.concatenate([[0], np.cumsum(counts)])
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), words)

    @cached_property
    def years(self) -> Numbers:
        """When each document was written."""
        random = np.random.default_rng(SEED + 2)
        return random.integers(YEARS.start, YEARS.stop, self.count)

    @cached_property
    def homes(self) -> Numbers:
        """The city of each author, by number."""
        random = np.random.default_rng(SEED + 3)
        return random.integers(0, len(self.cities), self.author_count)

    @cached_property
    def wrote(self) -> tuple[Numbers, Numbers]:
        """Authors and documents, by number; some documents have two authors."""
        random = np.random.default_rng(SEED + 4)
        first = random.integers(0, self.author_count, self.count)
        also = np.flatnonzero(random.random(self.count) < _SECOND_AUTHORS)
        second = (first[also] + random.integers(1, self.author_count, len(also))) % (
            self.author_count
        )
        return np.concatenate([first, second]), np.concatenate([np.arange(self.count), also])

    def written_in(self, city: str) -> Numbers:
        """How many authors of a city each document has."""
        authors, documents = self.wrote
        living = self.homes[authors] == self.cities.index(city)
        return np.bincount(documents[living], minlength=self.count)

    def asked(self, count: int) -> list[Asked]:
        """Searches for something that is there, or nearly."""
        random = np.random.default_rng(SEED + 5)
        cities = self.cities
        found = []
        for number in random.integers(0, self.count, count).tolist():
            aside = _ASIDE * random.standard_normal(DIMENSION, dtype=np.float32)
            words = self.words[number].as_py()
            chosen = random.choice(len(words), min(QUERY_WORDS, len(words)), replace=False)
            found.append(
                Asked(
                    (self.vectors[number] + aside).tolist(),
                    " ".join(words[place] for place in chosen.tolist()),
                    int(random.integers(YEARS.start, YEARS.stop)),
                    cities[int(random.integers(0, len(cities)))],
                )
            )
        return found

    def write(self, directory: Path) -> None:
        """The tables as files that every system can read."""
        slugs, names = _named("doc", self.count), _named("author", self.author_count)
        texts = pc.binary_join(self.words, " ")
        flat = pa.array(self.vectors.reshape(-1))
        documents = pa.table(
            {
                "slug": slugs,
                "text": texts,
                "year": pa.array(self.years, pa.int32()),
                "meaning": pa.FixedSizeListArray.from_arrays(flat, DIMENSION),
            }
        )
        pq.write_table(documents, directory / DOCUMENTS_FILE, row_group_size=_ROWS_AT_ONCE)
        homes = pa.array(self.cities).take(pa.array(self.homes))
        pq.write_table(pa.table({"name": names, "city": homes}), directory / AUTHORS_FILE)
        authors, written = self.wrote
        edges = {"from": names.take(pa.array(authors)), "to": slugs.take(pa.array(written))}
        pq.write_table(pa.table(edges), directory / WROTE_FILE)


def exact(vectors: Floats, query: list[float], among: npt.NDArray[np.bool_], count: int) -> Numbers:
    """The numbers of the nearest documents by cosine distance, found by looking at all."""
    numbers = np.flatnonzero(among)
    asked = np.array(query, dtype=np.float32)
    rows = vectors if len(numbers) == len(vectors) else vectors[numbers]
    near = (rows @ asked) / np.linalg.norm(rows, axis=1)
    return numbers[np.argsort(-near, kind="stable")[:count]]


def _named(what: str, count: int) -> pa.Array:
    return pa.array([f"{what}-{number}" for number in range(count)])


def _word(number: int) -> str:
    """A made-up word that no rule of English grammar shortens, and no list leaves out."""
    letters = "bcdfghjklmnpqrtvwxz"
    word = ""
    while True:
        number, letter = divmod(number, len(letters))
        word = letters[letter] + "o" + word
        if not number:
            return f"{word}k"
