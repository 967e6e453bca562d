"""The operations of the soak: what workers are told to do, drawn at random.

Owns the mix, and what each operation does to the rows if it happens. What is drawn depends
on the random numbers alone, never on what has happened: a seed gives the same commands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests import profile
from tests.soak.rows import (
    COUNTER,
    Effect,
    append,
    bulk_text,
    count,
    delete,
    digest,
    edge_key,
    nothing,
    put,
    replace,
    update,
)

MAIN = "main"
NAMES = ("b0", "b1", "side/b2", "side/b3")
KEYS = tuple(f"p{number}" for number in range(8))
LARGE = profile.CHOSEN.request * 17 // 32
"""Two such rows are more than one request may carry, so that the load is announced."""
GRACES = (0.0, 0.0, 0.001, 0.1, 2.0, None)
WRITES = {"init", "mutate", "load", "count", "merge", "index", "optimize", "maintain", "evolve"}
KEPT = 60
"""Of the people that are made once, about so many stay."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One command; ``branch`` is what it writes to, makes or deletes."""

    id: str
    do: str
    branch: str | None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    effect: Effect = nothing
    shape: str = ""
    """What kind of write it is, for the report."""

    @property
    def command(self) -> dict[str, Any]:
        """What is told to the worker."""
        return {"id": self.id, "do": self.do, "branch": self.branch, **self.arguments}

    @property
    def source(self) -> str | None:
        """The branch it forks from, or merges."""
        found = self.arguments.get("from")
        return found if isinstance(found, str) else None

    @property
    def creates(self) -> bool:
        """Whether a branch may come into being by it."""
        return self.do == "create" or (self.do == "load" and self.source is not None)

    @property
    def deletes(self) -> str | None:
        """The branch that may be gone by it."""
        if self.do == "delete":
            return self.branch
        return self.source if self.arguments.get("delete_source") else None

    @property
    def is_write(self) -> bool:
        """Whether it makes a commit."""
        return self.do in WRITES

    @property
    def makes_several(self) -> bool:
        """Whether it may make more commits than one."""
        return self.do == "maintain"


class Draw:
    """Draws operations; each has a number, and its rows say it."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._number = 0
        self._kinds: list[tuple[Callable[[], Operation], int]] = [
            (self._insert, 5),
            (self._insert_pair, 4),
            (self._update, 4),
            (self._update_all, 3),
            (self._delete, 4),
            (self._delete_old, 4),
            (self._load_family, 6),
            (self._load_known, 3),
            (self._load_merge, 5),
            (self._load_board, 5),
            (self._load_bulk, 1),
            (self._load_fork, 5),
            (self._count, 5),
            (self._create, 10),
            (self._delete_branch, 8),
            (self._merge, 10),
            (self._cleanup, 9),
            (self._index, 3),
            (self._optimize, 4),
            (self._maintain, 5),
            (self._evolve, 5),
            (self._verify, 1),
            (self._open, 3),
            (self._read, 3),
        ]

    def next(self) -> Operation:
        """Any operation."""
        kinds, weights = zip(*self._kinds, strict=True)
        draw: Callable[[], Operation] = self._random.choices(kinds, weights)[0]
        return draw()

    # -- parts -----------------------------------------------------------------------------

    def _id(self) -> str:
        self._number += 1
        return f"op{self._number:06}"

    @property
    def _mark(self) -> int:
        return self._number

    def _branch(self) -> str:
        return self._random.choice((MAIN, MAIN, MAIN, *NAMES))

    def _fresh(self, suffix: str = "") -> str:
        return f"f{self._number:06}{suffix}"

    def _mutate(self, shape: str, source: str, effect: Effect, **params: Any) -> Operation:
        arguments = {"source": source, "params": params}
        return Operation(f"op{self._number:06}", "mutate", self._branch(), arguments, effect, shape)

    def _load(self, shape: str, mode: str, effect: Effect, **data: Any) -> Operation:
        arguments = {"mode": mode, "data": [], **data}
        return Operation(f"op{self._number:06}", "load", self._branch(), arguments, effect, shape)

    # -- mutations -------------------------------------------------------------------------

    def _insert(self) -> Operation:
        self._id()
        key = self._random.choice(KEYS)
        return self._mutate(
            "insert",
            "query q($n: String, $m: I32) { insert Person { name: $n, mark: $m } }",
            put("Person", {key: str(self._mark)}),
            n=key,
            m=self._mark,
        )

    def _insert_pair(self) -> Operation:
        """Two people and the edge between them: two tables, one commit."""
        self._id()
        one, other, mark = self._fresh("x"), self._fresh("y"), self._mark
        rows = {
            "Person": dict.fromkeys((one, other), str(mark)),
            "Knows": {edge_key(one, other, mark): str(mark)},
        }
        return self._mutate(
            "insert pair",
            "query q($n: String, $o: String, $m: I32) {"
            " insert Person { name: $n, mark: $m } insert Person { name: $o, mark: $m }"
            " insert Knows { from: $n, to: $o, mark: $m } }",
            append(rows),
            n=one,
            o=other,
            m=mark,
        )

    def _update(self) -> Operation:
        self._id()
        key = self._random.choice(KEYS)
        return self._mutate(
            "update",
            "query q($n: String, $m: I32) { update Person set { mark: $m } where name = $n }",
            update("Person", lambda name: name == key, str(self._mark)),
            n=key,
            m=self._mark,
        )

    def _update_all(self) -> Operation:
        self._id()
        return self._mutate(
            "update all",
            "query q($p: String, $m: I32) {"
            " update Person set { mark: $m } where name starts_with $p }",
            update("Person", lambda name: name.startswith("p"), str(self._mark)),
            p="p",
            m=self._mark,
        )

    def _delete(self) -> Operation:
        self._id()
        key = self._random.choice(KEYS)
        return self._mutate(
            "delete",
            "query q($n: String) { delete Person where name = $n }",
            delete(lambda name: name == key),
            n=key,
        )

    def _delete_old(self) -> Operation:
        """People that were made long ago, and their edges, so that the graph stays small."""
        self._id()
        last = f"f{max(self._number - KEPT, 0):06}"
        return self._mutate(
            "delete old",
            "query q($p: String, $n: String) {"
            " delete Person where name starts_with $p and name <= $n }",
            delete(lambda name: name.startswith("f") and name <= last),
            p="f",
            n=last,
        )

    def _count(self) -> Operation:
        return Operation(self._id(), "count", MAIN, {}, count, "count")

    # -- loads -----------------------------------------------------------------------------

    def _family(self) -> tuple[list[dict[str, Any]], dict[str, dict[str, str]]]:
        """Some people and the edges between them, as lines and as rows."""
        mark = self._mark
        names = [self._fresh(suffix) for suffix in "abcd"[: self._random.randint(2, 4)]]
        lines = [_person(name, mark) for name in names]
        lines += [
            {"edge": "Knows", "from": names[0], "to": other, "data": {"mark": mark}}
            for other in names[1:]
        ]
        edges = {edge_key(names[0], other, mark): str(mark) for other in names[1:]}
        return lines, {"Person": dict.fromkeys(names, str(mark)), "Knows": edges}

    def _load_family(self) -> Operation:
        self._id()
        lines, rows = self._family()
        return self._load("append", "append", append(rows), data=lines)

    def _load_known(self) -> Operation:
        """Refused where the key is there."""
        self._id()
        key = self._random.choice(KEYS)
        rows = {"Person": {key: str(self._mark)}}
        return self._load("append known", "append", append(rows), data=[_person(key, self._mark)])

    def _load_merge(self) -> Operation:
        self._id()
        names = [*self._random.sample(KEYS, 2), self._fresh()]
        return self._load(
            "load merge",
            "merge",
            put("Person", dict.fromkeys(names, str(self._mark))),
            data=[_person(name, self._mark) for name in names],
        )

    def _load_board(self) -> Operation:
        self._id()
        names = [f"place{number}" for number in range(self._random.randint(1, 5))]
        return self._load(
            "overwrite",
            "overwrite",
            replace("Board", dict.fromkeys(names, str(self._mark))),
            data=[_person(name, self._mark) | {"type": "Board"} for name in names],
        )

    def _load_bulk(self) -> Operation:
        """More than a request may carry: such a load is announced before it stages anything."""
        self._id()
        rows = [(name, self._mark, LARGE) for name in ("left", "right")]
        value = digest(self._mark, bulk_text(self._mark, LARGE))
        effect = replace("Bulk", {name: value for name, _, _ in rows})
        return self._load("announced", "overwrite", effect, bulk=rows)

    def _load_fork(self) -> Operation:
        """A load that makes its own branch if it is missing."""
        self._id()
        lines, rows = self._family()
        name, source = self._random.choice(NAMES), self._branch()
        if name == source:
            source = MAIN
        arguments = {"mode": "append", "data": lines, "from": source}
        id_ = f"op{self._number:06}"
        return Operation(id_, "load", name, arguments, append(rows), "load fork")

    # -- branches and the rest -------------------------------------------------------------

    def _create(self) -> Operation:
        name, source = self._random.choice(NAMES), self._branch()
        source = MAIN if name == source else source
        return Operation(self._id(), "create", name, {"from": source}, shape="create")

    def _delete_branch(self) -> Operation:
        return Operation(self._id(), "delete", self._random.choice(NAMES), shape="delete branch")

    def _merge(self) -> Operation:
        source = self._random.choice((MAIN, *NAMES, *NAMES))
        into = self._random.choice([name for name in (MAIN, MAIN, MAIN, *NAMES) if name != source])
        is_last = source != MAIN and self._random.random() < 0.2
        return Operation(
            self._id(), "merge", into, {"from": source, "delete_source": is_last}, shape="merge"
        )

    def _cleanup(self) -> Operation:
        arguments = {
            "keep": self._random.randint(1, 6),
            "grace": self._random.choice(GRACES),
            "older_than": self._random.choice((None, None, 0.0, 0.5)),
        }
        return Operation(self._id(), "cleanup", None, arguments, shape="cleanup")

    def _index(self) -> Operation:
        """Always announced, and changes no row."""
        return Operation(self._id(), "index", self._branch(), shape="index")

    def _optimize(self) -> Operation:
        arguments = {"cluster": self._random.random() < 0.3}
        return Operation(self._id(), "optimize", self._branch(), arguments, shape="optimize")

    def _maintain(self) -> Operation:
        """One branch, or all of them and a cleanup at the end."""
        arguments: dict[str, Any] = {"keep": None}
        branch = self._random.choice((None, None, MAIN, *NAMES))
        if branch is None and self._random.random() < 0.5:
            arguments = {"keep": self._random.randint(1, 6)}
        return Operation(self._id(), "maintain", branch, arguments, shape="maintain")

    def _evolve(self) -> Operation:
        """A property comes or goes, which no row says anything of."""
        arguments = {"type": self._random.choice(("Person", "Board", "Knows"))}
        return Operation(self._id(), "evolve", self._branch(), arguments, shape="schema")

    def _verify(self) -> Operation:
        return Operation(self._id(), "verify", None, {"deep": False}, shape="verify")

    def _open(self) -> Operation:
        return Operation(self._id(), "open", None, shape="open")

    def _read(self) -> Operation:
        back = self._random.choice((None, 0, 1, 3, 10))
        return Operation(self._id(), "read", self._branch(), {"back": back}, shape="read")

    # -- what an inspector does ------------------------------------------------------------

    def init(self) -> Operation:
        """The first operation of all: it makes the graph, with a counter in it."""
        effect = append({"Counter": {COUNTER: "0"}})
        return Operation(self._id(), "init", MAIN, {}, effect, "init")

    def special(self, do: str, branch: str | None = None, **arguments: Any) -> Operation:
        """An operation that is not drawn."""
        return Operation(self._id(), do, branch, arguments, shape=f"{do} (inspector)")

    def probe(self, branch: str) -> Operation:
        """A write that nothing can stand in the way of."""
        self._id()
        name = self._fresh("probe")
        arguments = {
            "source": "query q($n: String, $m: I32) { insert Person { name: $n, mark: $m } }",
            "params": {"n": name, "m": self._mark},
        }
        effect = append({"Person": {name: str(self._mark)}})
        return Operation(
            f"op{self._number:06}", "mutate", branch, arguments, effect, "write (inspector)"
        )


def _person(name: str, mark: int) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, "mark": mark}}
