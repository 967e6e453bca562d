"""Entities: the rows of every type, made from their numbers alone.

Owns how many there are, the properties and how they are spread. Any rows can be made, in any
order: row 7 is the same whatever is made with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, fields
from datetime import date
from typing import Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequest
from omnigraph.generate import prose as words
from omnigraph.generate.draws import Draws, EdgeSampler, Integers, distinct_ranks
from omnigraph.generate.prose import Prose, joined, picked

LARGEST = 2**32 - 1
"""Beyond it the product of two numbers of rows would leave 64 bits."""

_SECONDS_OF_DAY = 86_400
_MOST_TAGS = 4


@dataclass(frozen=True, slots=True)
class GraphSize:
    """How many there are of each type."""

    people: int
    companies: int
    documents: int
    knows: int
    works_at: int
    wrote: int
    mentions: int

    @classmethod
    def of(cls, people: int, *, edges: int | None = None) -> Self:
        """The usual size of everything else for so many people.

        ``edges`` is the number of edges of all types together: it changes how many `Knows`
        there are, and nothing else.
        """
        companies = max(people // 100, min(people, 1))
        documents = people // 4
        works_at = people * 19 // 20
        wrote = documents * 3 // 2
        mentions = min(documents * 2, documents * companies)
        knows = min(people * 10, people * (people - 1) // 2)
        if edges is not None:
            others = works_at + wrote + mentions
            knows = edges - others
            if knows < 0:
                raise BadRequest(
                    f"{people} people have {others} edges to companies and documents: ask for"
                    f" at least so many, not {edges}"
                )
        return cls(people, companies, documents, knows, works_at, wrote, mentions)

    def __post_init__(self) -> None:
        for field, count in zip(fields(self), astuple(self), strict=True):
            if not 0 <= count <= LARGEST:
                raise BadRequest(f"{field.name} must be from 0 to {LARGEST}, not {count}")
        self._limit("knows", self.knows, self.people * (self.people - 1))
        self._limit("works_at", self.works_at, self.people if self.companies else 0)
        self._limit("wrote", self.wrote, self.documents * self.people)
        self._limit("mentions", self.mentions, self.documents * self.companies)

    def _limit(self, name: str, count: int, most: int) -> None:
        if count > most:
            raise BadRequest(
                f"there is room for {most} edges of {name}, not for {count}: ask for fewer, or for"
                " more nodes"
            )

    @property
    def nodes(self) -> int:
        """The nodes of all types."""
        return self.people + self.companies + self.documents

    @property
    def edges(self) -> int:
        """The edges of all types."""
        return self.knows + self.works_at + self.wrote + self.mentions


@dataclass(frozen=True, slots=True)
class EntityRows:
    """The rows of one type; a frame of them has the columns that a load takes."""

    name: str
    kind: Literal["node", "edge"]
    count: int
    make: Callable[[Integers], pa.Table]


def entity_rows(size: GraphSize, seed: int) -> tuple[EntityRows, ...]:
    """All types, nodes before the edges between them."""
    people_graph = _PeopleGraph(size, Draws(seed))
    return (
        EntityRows("Person", "node", size.people, people_graph.people),
        EntityRows("Company", "node", size.companies, people_graph.companies),
        EntityRows("Document", "node", size.documents, people_graph.documents),
        EntityRows("Knows", "edge", size.knows, people_graph.knows),
        EntityRows("WorksAt", "edge", size.works_at, people_graph.works_at),
        EntityRows("Wrote", "edge", size.wrote, people_graph.wrote),
        EntityRows("Mentions", "edge", size.mentions, people_graph.mentions),
    )


class _PeopleGraph:
    def __init__(self, size: GraphSize, draws: Draws) -> None:
        self._draws = draws
        self._prose = Prose(draws)
        people, companies, documents = size.people, size.companies, size.documents
        self._knows = EdgeSampler(
            draws, "Knows", people, people, size.knows, 0.0, 3, within_one_type=True
        )
        self._works_at = EdgeSampler(draws, "WorksAt", people, companies, size.works_at, 1.0, 3)
        # Every document has its authors, so it is the one that fans out.
        self._wrote = EdgeSampler(draws, "Wrote", documents, people, size.wrote, 1.0, 2)
        self._mentions = EdgeSampler(draws, "Mentions", documents, companies, size.mentions, 0.9, 3)

    # -- nodes -----------------------------------------------------------------------

    def people(self, rows: Integers) -> pa.Table:
        first, last = self._person_names(rows)
        return pa.table(
            {
                "handle": self._handles(rows),
                "name": joined(
                    picked(words.shown(words.FIRST_NAMES), first),
                    picked(words.shown(words.LAST_NAMES), last),
                    between=" ",
                ),
                "born": self._dates("Person.born", rows, date(1940, 1, 1), date(2006, 1, 1)),
                "city": picked(
                    words.CITIES, self._draws.skewed("Person.city", rows, len(words.CITIES))
                ),
                "score": self._scores(rows),
                "tags": self._tags(rows),
                "active": pa.array(self._draws.unit("Person.active", rows) < 0.8),
                "joined": self._moments(rows),
            }
        )

    def companies(self, rows: Integers) -> pa.Table:
        word, kind = self._company_names(rows)
        founded = 2020 - self._draws.skewed("Company.founded", rows, 200)
        industry = self._draws.skewed("Company.industry", rows, len(words.INDUSTRIES))
        return pa.table(
            {
                "slug": self._company_slugs(rows),
                "name": joined(
                    picked(words.COMPANY_WORDS, word),
                    picked(words.COMPANY_KINDS, kind),
                    between=" ",
                ),
                "founded": pa.array(founded, pa.int32()),
                "industry": picked(words.INDUSTRIES, industry),
            }
        )

    def documents(self, rows: Integers) -> pa.Table:
        bodies = self._prose.bodies(rows)
        counts = pc.add(pc.count_substring(bodies, " "), 1)
        return pa.table(
            {
                "slug": self._document_slugs(rows),
                "title": self._prose.titles(rows),
                "body": bodies,
                "words": counts.cast(pa.int32()),
                "published": self._dates(
                    "Document.published", rows, date(2005, 1, 1), date(2025, 1, 1)
                ),
            }
        )

    # -- edges -----------------------------------------------------------------------

    def knows(self, rows: Integers) -> pa.Table:
        sources, targets = self._knows.ends(rows)
        return pa.table(
            {
                "src": self._handles(sources),
                "dst": self._handles(targets),
                "since": self._dates("Knows.since", rows, date(2006, 1, 1), date(2025, 1, 1)),
                "weight": pa.array(self._draws.below("Knows.weight", rows, 1001) / 1000),
            }
        )

    def works_at(self, rows: Integers) -> pa.Table:
        sources, targets = self._works_at.ends(rows)
        role = self._draws.skewed("WorksAt.role", rows, len(words.ROLES))
        return pa.table(
            {
                "src": self._handles(sources),
                "dst": self._company_slugs(targets),
                "since": self._dates("WorksAt.since", rows, date(2010, 1, 1), date(2025, 1, 1)),
                "role": picked(words.ROLES, role),
            }
        )

    def wrote(self, rows: Integers) -> pa.Table:
        documents, authors = self._wrote.ends(rows)
        return pa.table({"src": self._handles(authors), "dst": self._document_slugs(documents)})

    def mentions(self, rows: Integers) -> pa.Table:
        sources, targets = self._mentions.ends(rows)
        times = 1 + self._draws.skewed("Mentions.times", rows, 20, 3)
        return pa.table(
            {
                "src": self._document_slugs(sources),
                "dst": self._company_slugs(targets),
                "times": pa.array(times, pa.int32()),
            }
        )

    # -- keys ------------------------------------------------------------------------

    def _handles(self, rows: Integers) -> pa.Array:
        first, last = self._person_names(rows)
        return _numbered(
            picked(words.spelled(words.FIRST_NAMES), first),
            picked(words.spelled(words.LAST_NAMES), last),
            rows,
        )

    def _person_names(self, rows: Integers) -> tuple[Integers, Integers]:
        return (
            self._draws.skewed("Person.first", rows, len(words.FIRST_NAMES)),
            self._draws.below("Person.last", rows, len(words.LAST_NAMES)),
        )

    def _company_slugs(self, rows: Integers) -> pa.Array:
        word, kind = self._company_names(rows)
        return _numbered(
            picked(words.spelled(words.COMPANY_WORDS), word),
            picked(words.spelled(words.COMPANY_KINDS), kind),
            rows,
        )

    def _company_names(self, rows: Integers) -> tuple[Integers, Integers]:
        return (
            self._draws.below("Company.word", rows, len(words.COMPANY_WORDS)),
            self._draws.below("Company.kind", rows, len(words.COMPANY_KINDS)),
        )

    def _document_slugs(self, rows: Integers) -> pa.Array:
        return _numbered(*self._prose.topics(rows), rows)

    # -- values ----------------------------------------------------------------------

    def _dates(self, name: str, rows: Integers, first: date, end: date) -> pa.Array:
        days = self._draws.below(name, rows, (end - first).days) + _epoch_days(first)
        return pa.array(days, pa.int32()).cast(pa.date32())

    def _moments(self, rows: Integers) -> pa.Array:
        """To the second; a fifth of them is missing."""
        days = _epoch_days(date(2025, 1, 1)) - _epoch_days(date(2015, 1, 1))
        seconds = self._draws.below("Person.joined", rows, days * _SECONDS_OF_DAY)
        seconds += _epoch_days(date(2015, 1, 1)) * _SECONDS_OF_DAY
        absent = self._draws.unit("Person.joined?", rows) < 0.2
        return pa.array(seconds * 1000, pa.timestamp("ms", "UTC"), mask=absent)

    def _scores(self, rows: Integers) -> pa.Array:
        """Mostly in the middle; three of ten are missing."""
        tenths = sum(self._draws.below(f"Person.score{nth}", rows, 251) for nth in range(4))
        absent = self._draws.unit("Person.score?", rows) < 0.3
        return pa.array(tenths / 10, mask=absent)

    def _tags(self, rows: Integers) -> pa.Array:
        """Some different ones, or none, or no list at all."""
        counts = self._draws.below("Person.tags", rows, _MOST_TAGS + 1)
        absent = self._draws.unit("Person.tags?", rows) < 0.1
        counts[absent] = 0
        ends = np.cumsum(counts)
        nth = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
        fractions = self._draws.unit("Person.tag", np.repeat(rows, counts) * _MOST_TAGS + nth)
        ranks = distinct_ranks(nth, np.repeat(counts, counts), fractions, len(words.TAGS), 2)
        offsets = np.concatenate([[0], ends]).astype(np.int32)
        return pa.ListArray.from_arrays(
            pa.array(offsets), picked(words.TAGS, ranks), mask=pa.array(absent)
        )


def _numbered(first: pa.Array, second: pa.Array, rows: Integers) -> pa.Array:
    return joined(first, second, pa.array(rows).cast(pa.string()), between="-")


def _epoch_days(day: date) -> int:
    return (day - date(1970, 1, 1)).days
