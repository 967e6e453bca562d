"""The graph that the examples of docstrings are about, and a copy of it for each of them."""

from __future__ import annotations

from pathlib import Path

import omnigraph as og

SCHEMA = """\
node Person {
    name: String @key
    born: I32?
}

node Film {
    title: String @key
    year: I32
}

edge ActedIn: Person -> Film {
    role: String?
}
"""
ROWS = """\
{"type": "Person", "data": {"name": "Keanu Reeves", "born": 1964}}
{"type": "Person", "data": {"name": "Carrie-Anne Moss", "born": 1967}}
{"type": "Film", "data": {"title": "The Matrix", "year": 1999}}
{"type": "Film", "data": {"title": "John Wick", "year": 2014}}
{"edge": "ActedIn", "from": "Keanu Reeves", "to": "The Matrix", "data": {"role": "Neo"}}
{"edge": "ActedIn", "from": "Carrie-Anne Moss", "to": "The Matrix", "data": {"role": "Trinity"}}
{"edge": "ActedIn", "from": "Keanu Reeves", "to": "John Wick"}
"""
CHANGE = 'update Film set { year: 2015 } where title = "John Wick"'


def film_graph(place: Path) -> og.Graph:
    """Make `film.pg` and `film.omni` in an empty directory, with a branch `draft`."""
    (place / "film.pg").write_text(SCHEMA, encoding="utf-8")
    graph = og.init(place / "film.omni", place / "film.pg")
    graph.load(ROWS, mode="append", message="Two films")
    graph.branches.create("draft")
    graph.mutate(CHANGE, branch="draft", actor="ann")
    return graph
