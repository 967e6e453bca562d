"""How large a made-up graph is: one number for each type.

Owns what follows from the number of people, and which numbers can go together. Makes nothing.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields
from typing import Self

from omnigraph.errors import BadRequest

LARGEST = 2**32 - 1
"""Beyond it the product of two numbers of rows would leave 64 bits."""


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
