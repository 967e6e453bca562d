"""What a graph should hold: a plain model of random writes, for the soak test.

Owns the writes that workers draw from, and what each of them does to the rows of the
worker. Every worker has keys and a type of its own, and all of them one counter.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Literal

import omnigraph as og

WORKERS = 3
Mode = Literal["append", "merge", "overwrite"]

SCHEMA = """\
node Person {
    name: String @key
    mark: I32
}

node Counter {
    name: String @key
    value: I32
}

edge Knows: Person -> Person {
    mark: I32
}
""" + "".join(
    f"node Board{number} {{\n    name: String @key\n    mark: I32\n}}\n"
    for number in range(WORKERS)
)


# -- writes ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mutate:
    """A query with parameters."""

    source: str
    params: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Load:
    """NDJSON; an announced load has an intent."""

    data: str
    mode: Mode
    is_announced: bool = False


@dataclass(frozen=True, slots=True)
class Increment:
    """One more on the counter that everybody counts with."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one worker, and how often it counted.

    People and boards by name, edges by their ends and mark: the values are what a row says.
    """

    people: dict[str, int] = field(default_factory=dict)
    edges: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    board: dict[str, int] = field(default_factory=dict)
    counted: int = 0

    def names(self) -> list[str]:
        """The people, in an order of their own."""
        return sorted(self.people)


@dataclass(frozen=True, slots=True)
class Operation:
    """One write, and the rows of its worker once it has happened."""

    write: Mutate | Load | Increment
    after: Rows


# -- drawing them ------------------------------------------------------------------------


@dataclass(slots=True)
class Draw:
    """Draws the next write of a worker; every write has a mark of its own in its rows."""

    random: Random
    worker: int
    _mark: int = 0

    def next(self, rows: Rows) -> Operation:
        """A write that is valid on these rows and changes them."""
        self._mark += 1
        if len(rows.people) < 3:
            return self._load_family(rows)
        draw = self.random.choice(
            [
                self._insert,
                self._insert_with_edge,
                self._update,
                self._update_all,
                self._delete,
                self._load_family,
                self._load_family,
                self._merge,
                self._overwrite,
                self._increment,
            ]
        )
        return draw(rows)

    def _new_name(self, suffix: str = "") -> str:
        return f"w{self.worker}-{self._mark:05}{suffix}"

    def _insert(self, rows: Rows) -> Operation:
        name = self._new_name()
        write = Mutate(
            "query q($n: String, $m: I32) { insert Person { name: $n, mark: $m } }",
            {"n": name, "m": self._mark},
        )
        return Operation(write, replace(rows, people={**rows.people, name: self._mark}))

    def _insert_with_edge(self, rows: Rows) -> Operation:
        name, other = self._new_name(), self.random.choice(rows.names())
        write = Mutate(
            "query q($n: String, $o: String, $m: I32) {"
            " insert Person { name: $n, mark: $m }"
            " insert Knows { from: $n, to: $o, mark: $m } }",
            {"n": name, "o": other, "m": self._mark},
        )
        return Operation(
            write,
            replace(
                rows,
                people={**rows.people, name: self._mark},
                edges=rows.edges + Counter([(name, other, self._mark)]),
            ),
        )

    def _update(self, rows: Rows) -> Operation:
        name = self.random.choice(rows.names())
        write = Mutate(
            "query q($n: String, $m: I32) { update Person set { mark: $m } where name = $n }",
            {"n": name, "m": self._mark},
        )
        return Operation(write, replace(rows, people={**rows.people, name: self._mark}))

    def _update_all(self, rows: Rows) -> Operation:
        write = Mutate(
            "query q($p: String, $m: I32) {"
            " update Person set { mark: $m } where name starts_with $p }",
            {"p": f"w{self.worker}-", "m": self._mark},
        )
        return Operation(write, replace(rows, people=dict.fromkeys(rows.people, self._mark)))

    def _delete(self, rows: Rows) -> Operation:
        """One person and its edges; of many people half, so that the graph stays small."""
        names = rows.names()
        if len(names) > 40:
            last = names[20]
            gone = set(names[:21])
            write = Mutate(
                "query q($p: String, $n: String) {"
                " delete Person where name starts_with $p and name <= $n }",
                {"p": f"w{self.worker}-", "n": last},
            )
        else:
            gone = {self.random.choice(names)}
            write = Mutate(
                "query q($n: String) { delete Person where name = $n }", {"n": min(gone)}
            )
        kept = {edge: n for edge, n in rows.edges.items() if gone.isdisjoint(edge[:2])}
        return Operation(
            write,
            replace(
                rows,
                people={name: mark for name, mark in rows.people.items() if name not in gone},
                edges=Counter(kept),
            ),
        )

    def _load_family(self, rows: Rows) -> Operation:
        """Some people and the edges between them."""
        names = [self._new_name(suffix) for suffix in "abcd"]
        edges = [(names[0], other, self._mark) for other in names[1:]]
        data = [*map(self._person, names), *map(_edge, edges)]
        return Operation(
            Load(_lines(data), "append", self._is_announced()),
            replace(
                rows,
                people={**rows.people, **dict.fromkeys(names, self._mark)},
                edges=rows.edges + Counter(edges),
            ),
        )

    def _merge(self, rows: Rows) -> Operation:
        """Known people and new ones."""
        names = [*self.random.sample(rows.names(), 2), self._new_name()]
        data = _lines(map(self._person, names))
        return Operation(
            Load(data, "merge", self._is_announced()),
            replace(rows, people={**rows.people, **dict.fromkeys(names, self._mark)}),
        )

    def _overwrite(self, rows: Rows) -> Operation:
        board = {f"{place}": self._mark for place in range(self.random.randint(1, 5))}
        type_ = f"Board{self.worker}"
        data = _lines(
            {"type": type_, "data": {"name": name, "mark": mark}} for name, mark in board.items()
        )
        return Operation(Load(data, "overwrite", self._is_announced()), replace(rows, board=board))

    def _increment(self, rows: Rows) -> Operation:
        return Operation(Increment(), replace(rows, counted=rows.counted + 1))

    def _person(self, name: str) -> dict[str, Any]:
        return {"type": "Person", "data": {"name": name, "mark": self._mark}}

    def _is_announced(self) -> bool:
        return self.random.random() < 0.3


def _edge(edge: tuple[str, str, int]) -> dict[str, Any]:
    source, target, mark = edge
    return {"edge": "Knows", "from": source, "to": target, "data": {"mark": mark}}


def _lines(envelopes: Iterable[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(envelope)}\n" for envelope in envelopes)


# -- comparing ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Everything:
    """All rows of a graph."""

    people: dict[str, int]
    edges: Counter[tuple[str, str, int]]
    boards: list[dict[str, int]]
    counter: int


def together(model: Sequence[Rows]) -> Everything:
    """What a graph holds if every worker has these rows."""
    return Everything(
        {name: mark for rows in model for name, mark in rows.people.items()},
        Counter(edge for rows in model for edge in rows.edges.elements()),
        [rows.board for rows in model],
        sum(rows.counted for rows in model),
    )


def read(graph: og.Graph) -> Everything:
    """What a graph holds; a repeated key is an error."""
    edges = graph.table("Knows").to_table(["src", "dst", "mark"])
    (counter,) = graph.table("Counter").to_table().to_pylist()
    return Everything(
        _by_name(graph, "Person"),
        Counter(zip(*(edges[name].to_pylist() for name in edges.column_names), strict=True)),
        [_by_name(graph, f"Board{number}") for number in range(WORKERS)],
        counter["value"],
    )


def _by_name(graph: og.Graph, type_name: str) -> dict[str, int]:
    table = graph.table(type_name).to_table(["id", "name", "mark"])
    found = dict(zip(table["name"].to_pylist(), table["mark"].to_pylist(), strict=True))
    assert table["id"].to_pylist() == table["name"].to_pylist()
    assert len(found) == table.num_rows, f"{type_name} repeats a key"
    return found
