"""Running the examples of docstrings, each on a graph of its own."""

from __future__ import annotations

import doctest
import inspect
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.docs.reference.film import film_graph
from tests.docs.reference.members import Function, documented
from tests.docs.reference.page import example_of

EXAMPLES: dict[str, Function] = dict(documented())
PIPELINE = """\
graph: film.omni
mode: merge
sources:
  films: { format: json, path: incoming/ }
nodes:
  Film: { from: films, set: { title: title, year: cast(year as int) } }
"""


def on_spark() -> list[str]:
    """Those that need a session of Spark."""
    return [
        name
        for name, function in EXAMPLES.items()
        if "pipeline(" in example_of(function) or "spark" in example_of(function)
    ]


def on_server() -> list[str]:
    """Those that ask a server."""
    return [name for name, function in EXAMPLES.items() if "og.open(url" in example_of(function)]


def without_library() -> list[str]:
    """Those for a library that is not installed."""
    libraries = {"graph.to_igraph": "igraph", "graph.to_pyg": "torch_geometric"}
    return [name for name, library in libraries.items() if find_spec(library) is None]


def made(place: Path) -> Path:
    """The graph that each example has a copy of."""
    place.mkdir()
    film_graph(place).close()
    return place


def copied(origin: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A directory with the graph, which becomes the current one; and the names of an example."""
    shutil.copytree(origin, place, dirs_exist_ok=True)
    monkeypatch.chdir(place)
    (place / "incoming").mkdir()
    (place / "incoming" / "films.json").write_text('{"title": "Speed", "year": 1994}\n')
    (place / "films.yaml").write_text(PIPELINE)
    return {"og": og, "graph": og.open("film.omni"), "Path": Path}


def run_example(name: str, names: dict[str, Any]) -> None:
    """Do what a docstring says, and compare what comes out."""
    text = example_of(EXAMPLES[name])
    assert text, f"{name} has no example"
    path = inspect.getsourcefile(EXAMPLES[name])
    test = doctest.DocTestParser().get_doctest(f"{text}\n", names, name, path, None)
    told: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    assert runner.run(test, out=told.append).failed == 0, "".join(told)
