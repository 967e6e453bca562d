"""Ends of edges that are interfaces: written by every way there is, kept whole by every rule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import MergeConflicts, OmniGraphError, TypeCheckError, ValidationError
from omnigraph.graph.session import Session
from omnigraph.history.changes import Endpoints
from omnigraph.policy import parse_policy
from tests.write.writing import mutate, unchanged

SCHEMA = """\
interface Message { number: I64 @key  text: String? }
interface Thing { label: String? }
node Person implements Thing { name: String @key }
node City implements Thing {}
node Post implements Message, Thing { title: String? }
node Comment implements Message {}
edge HasCreator: Message -> Person { weight: I32? }
edge ReplyOf: Comment -> Message
edge Likes: Thing -> Thing @card(0..2) {
    on: I32?
    @unique(src, dst)
}
"""


def to(type_: str, key: object) -> dict[str, object]:
    return {"@type": type_, "key": key}


def edge(type_: str, source: object, target: object, **data: Any) -> dict[str, Any]:
    return {"edge": type_, "from": source, "to": target, "data": data}


NODES = [
    *({"type": "Person", "data": {"name": name}} for name in ("ann", "ben")),
    {"type": "City", "data": {"id": "ann", "label": "a city"}},
    *({"type": "Post", "data": {"number": number}} for number in (1, 2)),
    *({"type": "Comment", "data": {"number": number}} for number in (11, 12)),
]
EDGES = [
    edge("HasCreator", to("Post", 1), "ann", id="h1"),
    edge("HasCreator", to("Comment", 11), "ann", id="h2"),
    edge("ReplyOf", "11", to("Post", "1"), id="r1"),
    edge("ReplyOf", 12, to("Comment", 11), id="r2"),
    edge("Likes", to("Person", "ann"), to("City", "ann"), id="l1"),
    edge("Likes", to("City", "ann"), to("Person", "ann"), id="l2"),
    edge("Likes", to("Person", "ben"), to("Post", 1), id="l3"),
]
LIKES = "match { $a $l:likes $b } return { $l.@id, type($a) as a, $l.@src, type($b) as b, $l.@dst }"
CREATORS = "match { $m $h:hasCreator $p } return { $h.@id, type($m) as m, $h.@src }"


def asked(graph: Session, body: str, branch: str = "main") -> list[list[Any]]:
    found = graph.query(f"query q() {{ {body} }}", branch=branch)
    return sorted(list(row.values()) for row in found.rows)


def lines(rows: list[dict[str, Any]]) -> str:
    return "\n".join(map(json.dumps, rows)) + "\n"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    made = og.init(tmp_path_factory.mktemp("forum") / "graph", SCHEMA)
    made.load([*NODES, *EDGES], mode="append")
    return made


@pytest.fixture
def branch(graph: og.Graph, request: pytest.FixtureRequest) -> str:
    name = f"b{abs(hash(request.node.name))}"
    graph.branches.create(name)
    return name


LIKED = [
    ["l1", "Person", "ann", "City", "ann"],
    ["l2", "City", "ann", "Person", "ann"],
    ["l3", "Person", "ben", "Post", "1"],
]


def test_edges_lead_to_the_node_of_the_right_type(graph: og.Graph) -> None:
    assert asked(graph, LIKES) == LIKED
    assert asked(graph, CREATORS) == [["h1", "Post", "1"], ["h2", "Comment", "11"]]
    assert not graph.verify().findings


@pytest.mark.slow
def test_an_export_is_loaded_into_a_graph_with_other_identities(
    graph: og.Graph, tmp_path: Path
) -> None:
    text = list(graph.export())
    other = og.init(tmp_path / "other", f"node First {{}}\n{SCHEMA}")
    other.load("\n".join(text), mode="overwrite")
    assert sorted(other.export()) == sorted(text)
    # Its files are read in pieces, and checked against what is stored, by other code.
    (tmp_path / "whole.jsonl").write_text("\n".join(text) + "\n")
    pieces = og.init(tmp_path / "pieces", f"node First {{}}\n{SCHEMA}")
    pieces.load(tmp_path / "whole.jsonl", mode="append", engine="inline")
    assert sorted(pieces.export()) == sorted(text)
    assert not pieces.verify().findings


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (edge("HasCreator", to("Post", 9), "ann"), "src '9' not found in Message"),
        (edge("HasCreator", 9, "ann"), "src '9' not found in Message"),
        (edge("HasCreator", to("Comment", 1), "ann"), "src '1' not found in Message"),
        (
            edge("HasCreator", to("City", "ann"), "ann"),
            "leads to a Message, which is Comment, Post",
        ),
        (edge("HasCreator", to("Post", "x"), "ann"), "src 'x' not found in Message"),
        (edge("HasCreator", to("Post", True), "ann"), "Post.number"),
        (edge("HasCreator", {"@type": "Post"}, "ann"), 'has "@type" and "key"'),
        (edge("Likes", "ann", to("City", "ann")), "may be of several types (City, Person, Post)"),
        (edge("Likes", to("Person", "ann"), to("City", "ann")), "held by 'l1'"),
    ],
)
def test_what_leads_nowhere_is_refused(
    graph: og.Graph, made: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with unchanged(graph), pytest.raises(OmniGraphError) as refused:
        graph.load([made], mode="append")
    assert said in str(refused.value)
    (tmp_path / "edge.jsonl").write_text(lines([made]))
    with unchanged(graph), pytest.raises(OmniGraphError):
        graph.load(tmp_path / "edge.jsonl", mode="append", engine="inline")
    found = graph.load([made], mode="append", on_error="skip", dry_run=True)
    assert sum(found.rejects.values()) == 1


def test_frames_and_tables_have_a_column_for_the_type(graph: og.Graph, branch: str) -> None:
    table = pa.table(
        {
            "id": ["t1", "t2"],
            "from": ["1", "12"],
            "from_type": ["Post", "Comment"],
            "to": ["ben"] * 2,
        }
    )
    graph.load({"HasCreator": table}, mode="append", branch=branch)
    frame = pa.table({"id": ["t3"], "src": [2], "to": ["ben"]}).to_pandas()
    graph.load({"HasCreator": frame}, mode="append", branch=branch)
    found = [row for row in asked(graph, CREATORS, branch) if row[0].startswith("t")]
    assert found == [["t1", "Post", "1"], ["t2", "Comment", "12"], ["t3", "Post", "2"]]


def test_a_csv_file_has_one_too(graph: og.Graph, branch: str, tmp_path: Path) -> None:
    file = tmp_path / "HasCreator.csv"
    file.write_text("id,from,from_type,to\nc1,12,Comment,ben\nc2,2,Post,ann\n")
    graph.load({"HasCreator": file}, mode="append", branch=branch)
    found = [row for row in asked(graph, CREATORS, branch) if row[0].startswith("c")]
    assert found == [["c1", "Comment", "12"], ["c2", "Post", "2"]]


def test_statements_name_nodes_by_key_and_by_type(graph: og.Graph, branch: str) -> None:
    body = """
        insert Post { number: 50 }
        insert HasCreator { from: 50, to: "ben", weight: 1 }
        insert HasCreator { from: Comment(12), to: Person("ben"), weight: 2 }
        insert Likes { from: City("ann"), to: Post(50) }
    """
    result = mutate(graph, body, branch=branch)
    assert (result.affected_nodes, result.affected_edges) == (1, 3)
    rows = [row[1:] for row in asked(graph, CREATORS, branch)]
    assert ["Post", "50"] in rows
    assert ["Comment", "12"] in rows
    updated = mutate(graph, "update HasCreator set { weight: 5 } where from = 50", branch=branch)
    assert updated.affected_edges == 1
    deleted = mutate(
        graph, 'delete Likes where from = City("ann") and to = Post(50)', branch=branch
    )
    assert deleted.affected_edges == 1
    assert asked(graph, LIKES, branch) == LIKED
    with pytest.raises(ValidationError, match="src '77' not found in Message"):
        mutate(graph, 'insert HasCreator { from: 77, to: "ann" }', branch=branch)
    some = " ".join(f'insert Likes {{ from: Person("ann"), to: Post({n}) }}' for n in (1, 2))
    with pytest.raises(ValidationError, match="source 'ann' has 3 edges"):
        mutate(graph, some, branch=branch)
    with pytest.raises(TypeCheckError, match="T28"):
        mutate(graph, 'insert Likes { from: "ann", to: Post(1) }', branch=branch)


def test_deleting_a_node_takes_its_own_edges_and_no_others(graph: og.Graph, branch: str) -> None:
    deleted = mutate(graph, 'delete City where @id = "ann"', branch=branch)
    assert (deleted.affected_nodes, deleted.affected_edges) == (1, 2)
    assert asked(graph, LIKES, branch) == [LIKED[2]]
    deleted = mutate(graph, "delete Post where number = 1", branch=branch)
    assert (deleted.affected_nodes, deleted.affected_edges) == (1, 3)
    assert asked(graph, CREATORS, branch) == [["h2", "Comment", "11"]]


def test_an_overwrite_may_not_drop_what_edges_need(
    graph: og.Graph, branch: str, tmp_path: Path
) -> None:
    posts = [{"type": "Post", "data": {"number": number}} for number in (2, 3)]
    (tmp_path / "posts.jsonl").write_text(lines(posts))
    for data in (posts, tmp_path / "posts.jsonl"):
        with pytest.raises(ValidationError) as refused:
            graph.load(data, mode="overwrite", branch=branch)
        assert refused.value.message.count("'1' not found in") == 3
    comments = [{"type": "Comment", "data": {"number": number}} for number in (1, 11, 12)]
    graph.load(comments, mode="overwrite", branch=branch)
    assert asked(graph, CREATORS, branch) == [["h1", "Post", "1"], ["h2", "Comment", "11"]]


def test_changes_tell_the_types_of_ends(graph: og.Graph, branch: str) -> None:
    mutate(graph, 'insert Likes { from: Post(2), to: City("ann") }', branch=branch)
    (change,) = graph.diff("main", branch)
    assert change.endpoints == Endpoints("2", "ann", "Post", "City")
    mutate(graph, 'insert HasCreator { from: Post(2), to: "ann" }', branch=branch)
    made = [one for one in graph.diff("main", branch) if one.type.name == "HasCreator"]
    assert [one.endpoints for one in made] == [Endpoints("2", "ann", "Post", None)]


@pytest.mark.slow
def test_a_merge_sees_which_node_an_edge_has_lost(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "merged", SCHEMA)
    graph.load([*NODES, *EDGES], mode="append")
    graph.branches.create("dev")
    mutate(graph, 'insert Likes { from: Post(2), to: City("ann") }', branch="dev")
    # Another node of the same id is not the one.
    mutate(graph, 'delete Likes where from = Person("ann") delete Likes where to = Person("ann")')
    mutate(graph, 'delete Person where name = "ann"')
    assert graph.branches.merge("dev").outcome == "merged"
    assert asked(graph, "match { $a likes $b } return { type($a) as a, type($b) as b }") == [
        ["Person", "Post"],
        ["Post", "City"],
    ]
    graph.branches.create("late")
    mutate(graph, 'insert Likes { from: Person("ben"), to: City("ann") }', branch="late")
    mutate(graph, 'delete City where @id = "ann"')
    with pytest.raises(MergeConflicts) as refused:
        graph.branches.merge("late")
    (conflict,) = refused.value.conflicts
    assert (conflict.kind, conflict.type_name) == ("orphan_edge", "Likes")
    assert "dst 'ann' not found in City" in conflict.message
    assert graph.branches.merge("late", resolve="source").outcome == "merged"
    assert not graph.verify().findings


@pytest.mark.slow
def test_a_merge_counts_the_edges_of_the_right_node(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "counted", SCHEMA)
    graph.load([*NODES, *EDGES], mode="append")
    graph.branches.create("dev")
    mutate(graph, 'insert Likes { from: City("ann"), to: Post(2) }', branch="dev")
    mutate(graph, 'insert Likes { from: Person("ann"), to: Post(1) }')
    assert graph.branches.merge("dev").outcome == "merged"
    graph.branches.create("more")
    mutate(graph, 'delete Likes where from = City("ann") and to = Post(2)', branch="more")
    mutate(graph, 'insert Likes { from: City("ann"), to: Post(1) }', branch="more")
    mutate(graph, 'delete Likes where from = City("ann") and to = Person("ann")')
    mutate(graph, 'insert Likes { from: City("ann"), to: City("ann") }')
    assert graph.branches.merge("more").outcome == "merged"


POLICY = """
version: 1
groups: {readers: [ann]}
rules:
  - id: some
    allow: {actors: {group: readers}, actions: [read], types: [%s], rows: {Post: 'number = 1'}}
"""


def test_an_actor_sees_edges_between_what_it_sees(graph: og.Graph) -> None:
    policy = parse_policy(POLICY % "Person, Post, Comment, HasCreator, ReplyOf")
    session = graph.as_actor("ann", policy)
    assert asked(session, CREATORS) == [["h1", "Post", "1"], ["h2", "Comment", "11"]]
    # Who does not see all types of an interface does not see the edges that lead to it.
    session = graph.as_actor("ann", parse_policy(POLICY % "Person, Post, HasCreator, ReplyOf"))
    with pytest.raises(TypeCheckError, match="unknown edge"):
        asked(session, CREATORS)


@pytest.mark.slow
def test_a_type_keeps_the_interface_that_edges_need(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "kept", SCHEMA)
    graph.load([*NODES, *EDGES], mode="append")
    less = SCHEMA.replace(
        "node Post implements Message, Thing {",
        "node Post implements Thing { number: I64 @key  text: String? ",
    )
    plan = graph.plan_schema(less)
    assert not plan.supported
    assert any("may lead to a Post because it implements Message" in str(one) for one in plan.steps)
    # Another type may take on the interface at any time.
    more = SCHEMA + "node Photo implements Message { size: I32? }\n"
    graph.apply_schema(more)
    mutate(graph, 'insert Photo { number: 70 } insert HasCreator { from: 70, to: "ann" }')
    found = asked(graph, "match { $m hasCreator $p } return { type($m) as m, $m.number }")
    assert found == [["Comment", 11], ["Photo", 70], ["Post", 1]]
    renamed = more.replace("node Post implements", 'node Article @rename_from("Post") implements')
    graph.apply_schema(renamed)
    assert ["h1", "Article", "1"] in asked(graph, CREATORS)
