"""Random histories of rows and schemas on two branches: every diff says what two exports say."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

import omnigraph as og
from tests.history.changing import change_schema
from tests.history.comparing import agree
from tests.write.writing import compact_all

WIDER = {"I32": ("I64", "F64"), "U32": ("U64", "I64", "F64"), "F32": ("F64",)}
NUMBERS = ("I32", "U32", "F32", "I64", "U64", "F64")


@dataclass(frozen=True)
class Declared:
    """A property as a branch declares it now."""

    name: str
    type: str
    default: int | None = None
    is_required: bool = False

    def text(self, former: str | None) -> str:
        default = "" if self.default is None else f" @default({self._literal(self.default)})"
        hint = "" if former is None else f' @rename_from("{former}")'
        return f"{self.name}: {self.type}{'' if self.is_required else '?'}{default}{hint}"

    def _literal(self, number: int) -> str:
        return f'"{number}"' if self.type == "String" else str(number)

    def value(self, random: Random) -> Any:
        if not self.is_required and random.random() < 0.4:
            return None
        number = random.randrange(4)
        return str(number) if self.type == "String" else number


@dataclass
class Branch:
    """What a branch declares and which rows it has."""

    name: str
    properties: list[Declared] = field(default_factory=list)
    rows: set[str] = field(default_factory=set)


class History:
    """A graph that is changed at random."""

    def __init__(self, root: Path, random: Random) -> None:
        self.random = random
        self.names = (f"p{number}" for number in count())
        self.main = Branch("main", [Declared(next(self.names), "I32"), self._new()])
        self.graph = og.init(root, self._schema(self.main, {}))
        self.commits: list[str] = []

    def _schema(self, branch: Branch, former: dict[str, str]) -> str:
        lines = [one.text(former.get(one.name)) for one in branch.properties]
        return "\n    ".join(["node Thing {", "key: String @key", *lines]) + "\n}\n"

    def _new(self) -> Declared:
        type_ = self.random.choice((*NUMBERS, "String"))
        default = self.random.choice((None, self.random.randrange(4)))
        required = default is not None and self.random.random() < 0.5
        return Declared(next(self.names), type_, default, required)

    def fork(self) -> Branch:
        self.graph.branches.create("dev")
        return Branch("dev", list(self.main.properties), set(self.main.rows))

    def write(self, branch: Branch) -> None:
        """Insert some rows, change some, and delete some."""
        keys = [f"k{number:02}" for number in self.random.sample(range(30), 8)]
        lines = [
            {
                "type": "Thing",
                "data": {
                    "key": key,
                    **{one.name: one.value(self.random) for one in branch.properties},
                },
            }
            for key in keys
        ]
        self.graph.load(lines, mode="merge", branch=branch.name)
        branch.rows |= set(keys)
        for key in self.random.sample(sorted(branch.rows), 2):
            self.graph.mutate(
                f'query q() {{ delete Thing where key = "{key}" }}', branch=branch.name
            )
            branch.rows.discard(key)
        if self.random.random() < 0.3:
            compact_all(self.graph, branch.name)
        self._note(branch)

    def evolve(self, branch: Branch) -> None:
        """Change the schema in one or two ways."""
        former: dict[str, str] = {}
        for _ in range(self.random.randint(1, 2)):
            self._step(branch, former)
        change_schema(self.graph, self._schema(branch, former), branch.name)
        self._note(branch)

    def _step(self, branch: Branch, former: dict[str, str]) -> None:
        known = branch.properties
        ways = ["add"]
        if len(known) > 1:
            ways += ["drop", "rename", "widen", "require"]
        way = self.random.choice(ways)
        place = self.random.randrange(len(known))
        chosen = known[place]
        if way == "drop" and chosen.name not in former:
            del known[place]
        elif way == "rename" and chosen.name not in former:
            known[place] = replace(chosen, name=next(self.names))
            former[known[place].name] = chosen.name
        elif way == "widen" and chosen.type in WIDER:
            known[place] = replace(chosen, type=self.random.choice(WIDER[chosen.type]))
        elif way == "require" and chosen.default is not None and not chosen.is_required:
            known[place] = replace(chosen, is_required=True)
        else:
            known.append(self._new())

    def _note(self, branch: Branch) -> None:
        self.commits.append(self.graph.snapshot(branch.name).commit_id)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_any_two_states_are_told_apart(tmp_path: Path, seed: int) -> None:
    random = Random(seed)  # noqa: S311 - a test
    history = History(tmp_path / "things.omni", random)
    history.write(history.main)
    history.evolve(history.main)
    dev = history.fork()
    for _ in range(5):
        branch = random.choice((history.main, dev))
        random.choice((history.write, history.evolve))(branch)
    history.evolve(dev)
    history.write(history.main)
    for _ in range(10):
        agree(history.graph, *random.sample(history.commits, 2))
    agree(history.graph, "main", "dev")
    agree(history.graph, "dev", "main")
