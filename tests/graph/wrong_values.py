"""Values that fit nowhere, and the public surface found by looking at it.

A method or an option that is added is called with them without being named here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.graph.access import Surface
from tests.film_graph import SCHEMA

WRONG: dict[str, object] = {
    "None": None,
    "a number": 5,
    "a negative number": -1,
    "a huge number": 10**30,
    "a number with a fraction": 1.5,
    "NaN": float("nan"),
    "True": True,
    "bytes": b"main",
    "empty": "",
    "NUL": "a\0b",
    "a surrogate": "a\udc80b",
    "long": "x" * 5_000,
    "a list": [5],
    "a mapping": {5: None},
    "a surrogate in a list": ["\udc80"],
    "an endless span": timedelta.max,
    "an object": object(),
}

ALL = "query all() { match { $p: Person } return { $p.name as name } }"
ADD = 'query add() { insert Person { name: "Ann" } }'
LINE = '{"type": "Person", "data": {"name": "Ann"}}'

# What makes a call a good one, by the name of a parameter that has no default.
GOOD: dict[str, object] = {
    "source": ALL,
    "type_name": "Person",
    "a": "main",
    "b": "main",
    "ref": "main",
    "data": LINE,
    "mode": "merge",
    "type": "Person",
    "keep": 1,
}
GOOD_FOR: dict[str, dict[str, object]] = {
    "mutate": {"source": ADD},
    "branches.merge": {"source": "dev"},
    "changes.poll": {"start": "beginning"},
    "cleanup": {"keep": 1, "dry_run": True},
    "init": {"schema": "node A { name: String @key }"},
    "plan_schema": {"source": SCHEMA},
    "apply_schema": {"source": SCHEMA},
}


@dataclass(frozen=True)
class Call:
    """A public function and the arguments of a call that would be good."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, object]

    def wrong(self, kinds: Iterable[str] = WRONG) -> Iterator[tuple[str, dict[str, object]]]:
        """Every call in which one argument is wrong, with its description."""
        for parameter in inspect.signature(self.function).parameters:
            for what in kinds:
                wrong = {**self.arguments, parameter: WRONG[what]}
                yield f"{self.name}({parameter}={what})", wrong


def calls(graph: og.Session, directory: Path) -> Iterator[Call]:
    """Every public function of the module, of a graph and of its namespaces."""
    for name in og.__all__:
        found = getattr(og, name)
        if inspect.isfunction(found):
            place = directory / "another.omni" if name == "init" else str(graph.location)
            has_place = "location" in inspect.signature(found).parameters
            yield _call(name, found, {"location": place} if has_place else {})
    for prefix, space in _spaces(graph):
        for name in dir(type(space)):
            found = getattr(type(space), name)
            if not name.startswith("_") and callable(found):
                yield _call(f"{prefix}{name}", getattr(space, name), {})


def _spaces(graph: og.Session) -> Iterator[tuple[str, Surface]]:
    yield "", graph
    for name, value in vars(graph).items():
        if isinstance(value, Surface):
            yield f"{name}.", value


def _call(name: str, function: Callable[..., Any], given: dict[str, object]) -> Call:
    needed = {
        parameter.name: GOOD.get(parameter.name, "dev")
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
    }
    return Call(name, function, {**needed, **given, **GOOD_FOR.get(name, {})})
