"""The history of one entity, and who set each of its properties."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import NotFound
from omnigraph.history.entity_history import EntityHistory

SCHEMA = """
node Person { name: String @key  age: I32?  city: String? }
edge Knows: Person -> Person { since: I32? }
"""


def run(graph: og.Graph, text: str, message: str, branch: str = "main") -> None:
    graph.mutate(f"query q() {{ {text} }}", branch=branch, message=message)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """Ann is born on main, moves on a branch, ages on main, and is merged and renamed."""
    graph = og.init(tmp_path_factory.mktemp("entity") / "g.omni", SCHEMA)
    run(graph, 'insert Person { name: "ann", age: 1 } insert Person { name: "ben" }', "born")
    run(graph, 'insert Knows { from: "ann", to: "ben" }', "met")
    graph.branches.create("dev")
    run(graph, 'update Person set { city: "Rome" } where name = "ann"', "moved", "dev")
    run(graph, 'update Person set { age: 2 } where name = "ben"', "somebody else", "dev")
    run(graph, 'update Person set { age: 2 } where name = "ann"', "aged")
    graph.branches.merge("dev", message="merged")
    graph.apply_schema(SCHEMA.replace("city: String?", 'town: String? @rename_from("city")'))
    run(graph, 'update Person set { age: 3 } where name = "ann"', "aged again")
    run(graph, 'delete Person where name = "ben"', "gone")
    return graph


def told(found: EntityHistory) -> list[tuple[str | None, str, tuple[str, ...]]]:
    return [(one.commit.message, one.change.op, one.change.changed) for one in found.changes]


def test_history(graph: og.Graph) -> None:
    found = graph.history("Person", "ann")
    assert found.is_complete
    # The merge brought together what two commits did: it is as neither of them shows it.
    assert told(found) == [
        ("aged again", "update", ("age",)),
        ("merged", "update", ("city",)),
        ("aged", "update", ("age",)),
        ("moved", "update", ("city",)),
        ("born", "insert", ()),
    ]
    assert told(graph.history("Person", "ann", limit=2)) == told(found)[:2]


def test_history_of_what_is_gone(graph: og.Graph) -> None:
    found = graph.history("Person", "ben")
    assert [op for _, op, _ in told(found)] == ["delete", "update", "insert"]
    # The merge took this from the branch as it was.
    assert [message for message, _, _ in told(found)] == ["gone", "somebody else", "born"]


def test_blame(graph: og.Graph) -> None:
    assert {
        one.property: (one.value, one.commit and one.commit.message)
        for one in graph.blame("Person", "ann")
    } == {
        "name": ("ann", "born"),
        "age": (3, "aged again"),
        "town": ("Rome", "moved"),
    }


def test_who_never_was(graph: og.Graph) -> None:
    with pytest.raises(NotFound, match="there never was a Person 'zoe'"):
        graph.history("Person", "zoe")
    with pytest.raises(NotFound, match="there is no Person 'ben'"):
        graph.blame("Person", "ben")
    with pytest.raises(NotFound, match="there is no type Persn"):
        graph.blame("Persn", "ann")


def test_what_cleanup_has_reclaimed(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g.omni", SCHEMA)
    run(graph, 'insert Person { name: "ann", age: 1, city: "Rome" }', "born")
    run(graph, 'update Person set { age: 2 } where name = "ann"', "aged")
    run(graph, 'update Person set { age: 3 } where name = "ann"', "aged again")
    graph.cleanup(keep=2, grace=timedelta(0))
    found = graph.history("Person", "ann")
    assert not found.is_complete
    assert [message for message, _, _ in told(found)] == ["aged again"]
    assert {
        one.property: one.commit and one.commit.message for one in graph.blame("Person", "ann")
    } == {
        "name": None,
        "age": "aged again",
        "city": None,
    }
