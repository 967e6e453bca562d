"""Whole graphs for other libraries: the same nodes, edges and values, found by the column."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.read.networks.as_igraph import attributes_of, pairs_of
from omnigraph.read.networks.as_pyg import edge_values, node_values, values_of
from omnigraph.read.networks.choice import Wanted
from omnigraph.read.networks.network import Network, read_network

SCHEMA = """\
interface Liked {
    title: String
}

node Person {
    name: String @key
    age: I32?
    face: Vector(2)?
    photo: Blob?
    tags: [String]?
    seen: DateTime?
}

node Film implements Liked {
    title: String @key
    year: I32
    good: Bool
}

node Book implements Liked {
    title: String @key
}

edge Knows: Person -> Person {
    since: I32?
}

edge Likes: Person -> Liked {
    stars: F64?
}
"""
LINES = [
    {"type": "Person", "data": {"name": "Ben", "age": 40, "face": [1.0, 2.0], "tags": ["x"]}},
    {"type": "Person", "data": {"name": "Ann", "seen": "2020-05-01T12:00:00Z"}},
    {"type": "Film", "data": {"title": "Up", "year": 2009, "good": True}},
    {"type": "Book", "data": {"title": "Up"}},
    {"type": "Book", "data": {"title": "Down"}},
    {"edge": "Knows", "from": "Ann", "to": "Ben", "data": {"id": "k1", "since": 1}},
    {"edge": "Knows", "from": "Ann", "to": "Ben", "data": {"id": "k2"}},
    {"edge": "Knows", "from": "Ben", "to": "Ben", "data": {"id": "k3"}},
    {
        "edge": "Likes",
        "from": "Ann",
        "to": {"@type": "Film", "key": "Up"},
        "data": {"id": "l1", "stars": 4.5},
    },
    {"edge": "Likes", "from": "Ben", "to": {"@type": "Book", "key": "Up"}, "data": {"id": "l2"}},
]


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "likes.omni", SCHEMA)
    graph.load(LINES, mode="append")
    return graph


def network(graph: og.Graph, *types: str, **wanted: Any) -> Network:
    choice = Wanted(types or None, **wanted).among(graph.catalog)
    return read_network(graph.snapshot(), graph.catalog, choice)


# -- networkx ----------------------------------------------------------------------


def test_networkx_has_every_node_and_edge(graph: og.Graph) -> None:
    found = graph.to_networkx()
    assert set(found.nodes) == {
        *(("Person", "Ann"), ("Person", "Ben"), ("Film", "Up")),
        *(("Book", "Up"), ("Book", "Down")),
    }
    ann, ben = ("Person", "Ann"), ("Person", "Ben")
    assert set(found.edges(keys=True)) == {
        (ann, ben, "k1"),
        (ann, ben, "k2"),
        (ben, ben, "k3"),
        (ann, ("Film", "Up"), "l1"),
        (ben, ("Book", "Up"), "l2"),
    }
    assert found.edges[ann, ben, "k1"] == {"@type": "Knows", "@id": "k1", "since": 1}
    assert found.nodes[ben] == {
        "@type": "Person",
        "@id": "Ben",
        "name": "Ben",
        "age": 40,
        "face": [1.0, 2.0],
        "tags": ["x"],
        "seen": None,
    }
    assert found.nodes[ann]["seen"] == datetime(2020, 5, 1, 12, tzinfo=UTC)
    assert found.graph == {"commit": graph.snapshot().commit_id}
    assert found.is_directed()


def test_of_one_type_the_ids_are_the_keys(graph: og.Graph) -> None:
    found = graph.to_networkx(types=["Knows"], properties=["since"])
    assert dict(found.nodes(data=True)) == {
        name: {"@type": "Person", "@id": name} for name in ("Ann", "Ben")
    }
    assert [end for *_, end in found.edges(data="since")] == [1, None, None]


def test_nodes_bring_the_edges_between_them(graph: og.Graph) -> None:
    found = graph.to_networkx(types=["Person", "Film"], properties=[])
    assert {key for *_, key in found.edges(keys=True)} == {"k1", "k2", "k3", "l1"}
    alone = graph.to_networkx(types=["Person", "Likes"], properties=[])
    assert {key for *_, key in alone.edges(keys=True)} == {"l1", "l2"}
    assert len(graph.to_networkx(types=["Film", "Book"]).edges) == 0


def test_a_branch_and_a_commit(graph: og.Graph) -> None:
    before = graph.snapshot().commit_id
    graph.branches.create("dev")
    graph.load([{"type": "Book", "data": {"title": "New"}}], mode="append", branch="dev")
    counts = [
        len(graph.to_networkx(types=["Book"], **at))
        for at in ({}, {"branch": "dev"}, {"snapshot": before})
    ]
    assert counts == [2, 3, 2]


def test_wrong_names_are_told(graph: og.Graph) -> None:
    with pytest.raises(errors.NotFound, match="did you mean `Person`"):
        graph.to_networkx(types=["Persn"])
    with pytest.raises(errors.NotFound, match="no type here has a property agee: did you mean"):
        graph.to_networkx(properties=["agee"])
    with pytest.raises(errors.NotFound, match="no type here has a property age"):
        graph.to_networkx(types=["Book"], properties=["age"])


def test_an_empty_graph(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "empty.omni", SCHEMA)
    assert (len(graph.to_networkx()), pairs_of(network(graph)).shape) == (0, (0, 2))
    knows = edge_values(network(graph, "Knows"))["Person", "Knows", "Person"]
    assert np.shape(knows["edge_index"]) == (2, 0)


def test_a_property_that_was_added_later_is_null(graph: og.Graph) -> None:
    graph.apply_schema(SCHEMA.replace("    year: I32", "    year: I32\n    length: I32?"))
    assert graph.to_networkx(types=["Film"]).nodes["Up"]["length"] is None


# -- igraph ------------------------------------------------------------------------


def test_vertices_are_numbered_through(graph: og.Graph) -> None:
    found = network(graph)
    assert found.offsets == {"Book": 0, "Film": 2, "Person": 3}
    ids = attributes_of(found.nodes)
    assert ids["@id"] == ["Down", "Up", "Up", "Ann", "Ben"]
    assert ids["@type"] == ["Book", "Book", "Film", "Person", "Person"]
    assert ids["age"] == [None, None, None, None, 40]
    assert pairs_of(found).tolist() == [[3, 4], [3, 4], [4, 4], [4, 1], [3, 2]]
    assert attributes_of(found.edges)["@id"] == ["k1", "k2", "k3", "l2", "l1"]


def test_igraph_where_it_is_there(graph: og.Graph) -> None:
    igraph = pytest.importorskip("igraph")
    found = graph.to_igraph()
    assert isinstance(found, igraph.Graph)
    assert (found.vcount(), found.ecount(), found.is_directed()) == (5, 5, True)
    assert found.vs.find(**{"@type": "Person", "@id": "Ben"}).degree() == 5
    assert graph.to_igraph(types=["Book"]).ecount() == 0


@pytest.mark.parametrize(
    ("method", "module", "package"),
    [
        ("to_networkx", "networkx", "networkx"),
        ("to_igraph", "igraph", "igraph"),
        ("to_pyg", "torch", "torch"),
    ],
)
def test_a_library_that_is_not_there_is_named(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch, method: str, module: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(errors.BadRequest, match=rf"{package} is not installed: .*pip install"):
        getattr(graph, method)()


# -- PyTorch Geometric -------------------------------------------------------------


def test_what_tensors_are_made_of(graph: og.Graph) -> None:
    found = network(graph, numbers_alone=True)
    nodes = node_values(found)
    assert nodes["Person"].keys() == {"@id", "age", "face"}
    assert nodes["Person"]["@id"] == ["Ann", "Ben"]
    assert np.array_equal(nodes["Person"]["age"], [np.nan, 40.0], equal_nan=True)
    faces = nodes["Person"]["face"]
    assert isinstance(faces, np.ndarray)
    assert faces.dtype == np.float32
    assert np.array_equal(faces, [[np.nan, np.nan], [1.0, 2.0]], equal_nan=True)
    assert nodes["Film"].keys() == {"@id", "year", "good"}
    edges = edge_values(found)
    assert edges.keys() == {
        ("Person", "Knows", "Person"),
        ("Person", "Likes", "Book"),
        ("Person", "Likes", "Film"),
    }
    knows = edges["Person", "Knows", "Person"]
    assert np.array_equal(knows["edge_index"], [[0, 0, 1], [1, 1, 1]])
    assert np.array_equal(edges["Person", "Likes", "Book"]["edge_index"], [[1], [1]])
    assert np.array_equal(edges["Person", "Likes", "Film"]["stars"], [4.5])


def test_named_properties_come_as_they_are(graph: og.Graph) -> None:
    found = node_values(network(graph, "Film", properties=["title", "good"]))
    assert found["Film"]["title"] == ["Up"]
    good = found["Film"]["good"]
    assert isinstance(good, np.ndarray)
    assert good.dtype == np.bool_


@pytest.mark.parametrize(
    ("column", "wanted", "dtype"),
    [
        (pa.array([1, 2], pa.int64()), [1, 2], np.int64),
        (pa.array([2**63, None], pa.uint64()), [2.0**63, np.nan], np.float64),
        (pa.array([1, 2**32 - 1], pa.uint32()), [1, 2**32 - 1], np.int64),
        (pa.array([True, None]), [1.0, np.nan], np.float64),
        (pa.array([0.5, None], pa.float32()), [0.5, np.nan], np.float32),
        (pa.array([], pa.list_(pa.float32(), 3)), np.empty((0, 3)), np.float32),
    ],
    ids=["whole", "missing", "unsigned", "bool", "float", "no vectors"],
)
def test_numbers_become_arrays(column: pa.Array, wanted: Any, dtype: Any) -> None:
    found = values_of(pa.chunked_array([column]))
    assert isinstance(found, np.ndarray)
    assert found.dtype == dtype
    assert np.array_equal(found, wanted, equal_nan=True)
    # A tensor of them may be written to.
    assert found.flags.writeable


# -- against the queries -----------------------------------------------------------


def test_it_is_what_queries_say(graph: og.Graph) -> None:
    people = [{"type": "Person", "data": {"name": f"p{n:03}"}} for n in range(300)]
    knows = [{"edge": "Knows", "from": f"p{n:03}", "to": f"p{n * n % 300:03}"} for n in range(300)]
    graph.load([*people, *knows], mode="append")
    rows = graph.query("match { $a: Person  $a knows $b } return { $a.name as a, $b.name as b }")
    found = graph.to_networkx(types=["Person"], properties=[])
    # A query says once that two nodes hang together.
    assert {*found.edges()} == {(row["a"], row["b"]) for row in rows}
