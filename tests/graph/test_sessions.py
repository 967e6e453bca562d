"""Sessions without a policy: the surface of the graph, in the name of one actor."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import errors
from tests.film_graph import SCHEMA

ADD = "query add($name: String) { insert Person { name: $name } }"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "film.omni", SCHEMA, actor="owner")


def test_a_session_acts_in_the_name_of_its_actor(graph: og.Graph) -> None:
    ann = graph.as_actor("ann")
    ann.mutate(ADD, params={"name": "a"})
    ann.load('{"type": "Person", "data": {"name": "b"}}', mode="append")
    ann.branches.create("dev")
    ann.mutate(ADD, params={"name": "c"}, branch="dev")
    ann.branches.merge("dev")
    graph.mutate(ADD, params={"name": "d"})
    actors = [commit.actor for commit in graph.commits.list()]
    assert actors == ["owner", "ann", "ann", "ann", "owner"]
    assert graph.manifest.refs.read().names["dev"].actor == "ann"
    assert repr(ann) == f"<Session of ann at {graph.location}>"


def test_without_a_policy_a_call_may_name_another(graph: og.Graph) -> None:
    ann = graph.as_actor("ann")
    ann.mutate(ADD, params={"name": "a"}, actor="ben")
    assert graph.commits.list()[0].actor == "ben"


def test_sessions_share_what_the_graph_has_opened(graph: og.Graph) -> None:
    with graph.as_actor("ann") as ann:
        ann.mutate(ADD, params={"name": "a"})
        assert graph.table("Person").count_rows() == ann.table("Person").count_rows() == 1
        assert ann.snapshot() == graph.snapshot()
    assert not hasattr(ann, "manifest")
    assert not hasattr(ann, "as_actor")


@pytest.mark.parametrize("name", ["", "  "])
def test_an_actor_has_a_name(graph: og.Graph, name: str) -> None:
    with pytest.raises(errors.BadRequest, match="an actor has a name"):
        graph.as_actor(name)


@pytest.mark.slow
def test_opening_a_graph_imports_no_pipeline(graph: og.Graph) -> None:
    script = f"""
import json, sys
import omnigraph as og
import omnigraph.aio
early = sorted(sys.modules)
graph = og.open({str(graph.location)!r})
graph.query("query all() {{ match {{ $p: Person }} return {{ $p.name as name }} }}")
print(json.dumps([early, sorted(sys.modules)]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    early, late = json.loads(done.stdout)
    assert set(early).isdisjoint({"lance", "pyarrow", "numpy", "pyspark", "omnigraph.graph"})
    assert not [name for name in late if name.split(".")[:2] == ["omnigraph", "pipeline"]]
    assert "pyspark" not in late
