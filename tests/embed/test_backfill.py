"""`graph.embed`: vectors for what is stored, as one commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.embed.local import MockEmbedder
from omnigraph.embed.protocol import text_array
from omnigraph.errors import BadRequest, EmbeddingError, TypeCheckError
from omnigraph.lang.structural import ID
from omnigraph.manifest.publish_request import AdvanceTable, PendingCommit, PublishRequest
from tests.table_writes import insert
from tests.write.writing import compact_all, mutate, overtaken, rows, table_of, unchanged

SCHEMA = """
node Film {
    title: String @key
    blurb: String?
    year: I32?
    seen: DateTime?
    tags: [String]?
    meaning: Vector(4)? @embed(blurb)
    sound: Vector(2)? @embed(title)
}
node Clip {
    name: String @key
    text: String?
    bytes: Blob?
    meaning: Vector(4)? @embed(text)
}
node Strict {
    name: String @key
    meaning: Vector(4)? @embed(name, model="large")
}
node Plain { name: String @key }
edge Follows: Film -> Film
"""


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> og.Graph:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    return og.init(tmp_path / "films.omni", SCHEMA)


def vector(text: str, dimension: int = 4) -> list[float]:
    made: list[float] = MockEmbedder().embed([text], dimension)[0].tolist()
    return made


def store(graph: og.Graph, type_: str, branch: str = "main", **columns: Any) -> None:
    """Nodes as they are, without vectors: as from the time before their `@embed`."""
    key = next(iter(columns))
    shown = graph.snapshot(branch).tables[f"node:{type_}"]
    data = pa.table({ID: columns[key], **columns})
    pin = insert(table_of(graph, f"node:{type_}", branch), data)
    change = AdvanceTable(shown.identity, shown.version, pin)
    graph.manifest.publish(
        graph.manifest.branch_id(branch), PublishRequest(PendingCommit.mint(), (change,))
    )


def films(graph: og.Graph, **blurbs: str | None) -> None:
    store(graph, "Film", title=list(blurbs), blurb=list(blurbs.values()))


def column(graph: og.Graph, name: str = "meaning", type_: str = "Film", **at: str) -> Any:
    return {id_: row[name] for id_, row in rows(graph, type_, **at).items()}


def test_missing_vectors_are_made(graph: og.Graph) -> None:
    given = [1.0, 0.0, 0.0, 0.0]
    graph.load(
        [{"type": "Film", "data": {"title": "Sun", "blurb": "bright", "meaning": given}}],
        mode="append",
    )
    films(graph, Rain="it rains", Snow="it snows", Fog=None, Hail=" ")
    before = rows(graph, "Film")
    done = graph.embed("Film", "meaning", actor="ann")
    assert column(graph) == {
        "Sun": given,
        "Rain": vector("it rains"),
        "Snow": vector("it snows"),
        "Fog": None,
        "Hail": None,
    }
    assert (done.rows, done.vectors) == (2, {"meaning": 2})
    assert (done.branch, done.type_name, done.actor) == ("main", "Film", "ann")
    assert done.commit is not None
    assert done.commit.actor == "ann"
    assert done.commit.metadata == {
        "operation": "embed",
        "embedding": {"provider": "mock", "model": ""},
    }
    assert done.embedding == {"provider": "mock", "model": ""}
    after = rows(graph, "Film")
    for row in (*before.values(), *after.values()):
        row.pop("meaning")
    assert after == before


def test_it_is_one_commit_of_updates(graph: og.Graph) -> None:
    films(graph, Rain="it rains", Snow="it snows")
    head = graph.snapshot().commit_id
    done = graph.embed("Film")
    assert done.vectors == {"meaning": 2, "sound": 2}
    assert done.rows == 2
    assert done.commit is not None
    assert done.commit.parent_id == head
    changes = graph.commits.changes(done.commit.id).changes
    assert sorted((change.op, change.id) for change in changes) == [
        ("update", "Rain"),
        ("update", "Snow"),
    ]


def test_a_second_time_there_is_nothing_to_do(graph: og.Graph) -> None:
    films(graph, Rain="it rains")
    graph.embed("Film")
    with unchanged(graph):
        done = graph.embed("Film")
    assert (done.rows, done.vectors, done.commit) == (0, {"meaning": 0, "sound": 0}, None)
    assert done.embedding is None


def test_vectors_may_be_made_anew(graph: og.Graph) -> None:
    given = [1.0, 0.0, 0.0, 0.0]
    graph.load(
        [
            {"type": "Film", "data": {"title": "Sun", "blurb": "bright", "meaning": given}},
            {"type": "Film", "data": {"title": "Moon", "blurb": "pale"}},
            {"type": "Film", "data": {"title": "Night", "meaning": given}},
        ],
        mode="append",
    )
    done = graph.embed("Film", only_missing=False)
    # Those that come out as they were are not written.
    assert (done.rows, done.vectors) == (1, {"meaning": 1, "sound": 0})
    assert column(graph) == {"Sun": vector("bright"), "Moon": vector("pale"), "Night": given}
    with unchanged(graph):
        assert graph.embed("Film", only_missing=False).commit is None


def test_one_property_of_several(graph: og.Graph) -> None:
    films(graph, Rain="it rains")
    assert graph.embed("Film", "sound").vectors == {"sound": 1}
    assert column(graph) == {"Rain": None}
    assert column(graph, "sound") == {"Rain": vector("Rain", 2)}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ('title = "Rain"', {"Rain"}),
        ("year > 1990 and year < 2000", {"Snow"}),
        ("year is null", {"Fog"}),
        ('tags contains "wet"', {"Rain"}),
        ('seen > datetime("2020-01-01T00:00:00Z")', {"Snow"}),
        ('title = "nobody"', set()),
    ],
)
def test_some_nodes(graph: og.Graph, where: str, expected: set[str]) -> None:
    seen = pa.array([0, 1_700_000_000_000, None], pa.int64()).cast(pa.timestamp("ms", "UTC"))
    store(
        graph,
        "Film",
        title=["Rain", "Snow", "Fog"],
        blurb=["a", "b", "c"],
        year=pa.array([1980, 1995, None], pa.int32()),
        seen=seen,
        tags=[["wet"], ["cold"], None],
    )
    graph.embed("Film", "meaning", where=where)
    assert {id_ for id_, made in column(graph).items() if made} == expected


@pytest.mark.parametrize(
    "where", ["year > 1 } query other() { delete Film", "year > 1\ndelete Film where year > 2"]
)
def test_a_condition_is_nothing_else(graph: og.Graph, where: str) -> None:
    films(graph, Rain="it rains")
    with unchanged(graph), pytest.raises(og.OmniGraphError):
        graph.embed("Film", where=where)


def test_a_condition_that_does_not_fit_the_schema(graph: og.Graph) -> None:
    with pytest.raises(TypeCheckError, match="did you mean `year`"):
        graph.embed("Film", where="yeer > 3")


def test_a_branch(graph: og.Graph) -> None:
    films(graph, Rain="it rains")
    graph.branches.create("draft")
    done = graph.embed("Film", branch="draft")
    assert done.branch == "draft"
    assert column(graph) == {"Rain": None}
    assert column(graph, branch="draft") == {"Rain": vector("it rains")}


def test_blobs_stay_as_they_are(graph: og.Graph) -> None:
    lines = [
        {"type": "Clip", "data": {"name": name, "bytes": "base64:AAEC"}} for name in ("a", "b")
    ]
    graph.load(lines, mode="append")
    graph.load([{"type": "Clip", "data": {"name": "c", "bytes": "base64:"}}], mode="append")
    before = list(graph.export(types=["Clip"]))
    graph.mutate('query q() { update Clip set { text: "x" } where name = "a" }')
    store(graph, "Clip", name=["d"], text=["y"])
    graph.embed("Clip", only_missing=False, where='name != "b"')
    graph.embed("Clip")
    found = column(graph, type_="Clip")
    assert found == {"a": vector("x"), "b": None, "c": None, "d": vector("y")}
    graph.mutate(
        'query q($no: String?) { update Clip set { text: $no } where name = "a" }',
        params={"no": None},
    )
    assert [line for line in graph.export(types=["Clip"]) if '"d"' not in line] == before


def test_many_nodes(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.write.recovery.intent_scope.REQUEST_BYTES", 1000)
    names = [f"film {number}" for number in range(20_000)]
    store(graph, "Film", title=names, blurb=names)
    assert graph.embed("Film").rows == 20_000
    found = column(graph)
    assert len(found) == 20_000
    assert all(found[name] == vector(name) for name in names[::997])
    # Its intent is settled, so nothing is left to be recovered.
    assert og.open(str(graph.location)).notices == []
    assert graph.recoveries() == []


def test_the_recorded_model_is_needed(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    store(graph, "Strict", name=["a"])
    with unchanged(graph), pytest.raises(EmbeddingError, match="'large'") as caught:
        graph.embed("Strict")
    assert caught.value.kind == "model"
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "large")
    assert graph.embed("Strict").embedding == {"provider": "mock", "model": "large"}


@pytest.mark.parametrize(
    ("type_", "property_", "message"),
    [
        ("Flim", None, "no node type 'Flim'.*`Film`"),
        ("Follows", None, "no node type 'Follows'"),
        ("Plain", None, "Plain has no property with @embed"),
        ("Film", "blurb", "no property 'blurb' with @embed.*`meaning`"),
        ("Film", "meening", "did you mean `meaning`"),
    ],
)
def test_what_there_is_not(
    graph: og.Graph, type_: str, property_: str | None, message: str
) -> None:
    with pytest.raises(BadRequest, match=message):
        graph.embed(type_, property_)


def test_a_graph_that_is_only_looked_at(graph: og.Graph) -> None:
    films(graph, Rain="it rains")
    with pytest.raises(BadRequest):
        og.open(str(graph.location), read_only=True).embed("Film")


# -- others at work ----------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that a vector was made for."""
    found: list[str] = []
    embed = MockEmbedder.embed

    def counted(self: MockEmbedder, texts: Any, dimension: int, role: Any = "document") -> Any:
        found.extend(text_array(texts).to_pylist())
        return embed(self, texts, dimension, role)

    monkeypatch.setattr(MockEmbedder, "embed", counted)
    return found


@pytest.mark.parametrize(
    "action",
    [
        lambda them: mutate(them, 'insert Film { title: "New" }'),
        lambda them: mutate(them, 'update Film set { year: 3 } where title = "Fog"'),
        lambda them: mutate(them, 'delete Film where title = "Fog"'),
        lambda them: mutate(them, 'insert Plain { name: "x" }'),
        compact_all,
    ],
    ids=["insert", "update", "delete", "elsewhere", "compaction"],
)
def test_others_change_other_rows(graph: og.Graph, asked: list[str], action: Any) -> None:
    films(graph, Rain="it rains", Fog=None)
    films(graph, Snow="it snows")
    with overtaken(graph, "changes_checked", action) as race:
        graph.embed("Film", "meaning")
    assert race.fired == 1
    assert asked == ["it rains", "it snows", *asked[2:]]
    assert set(asked[2:]) <= {"New"}
    found = column(graph)
    assert (found["Rain"], found["Snow"]) == (vector("it rains"), vector("it snows"))


def test_others_change_the_same_row(graph: og.Graph) -> None:
    films(graph, Rain="it rains", Snow="it snows", Fog="it is grey")

    def action(them: og.Graph) -> None:
        mutate(them, 'update Film set { blurb: "it pours" } where title = "Rain"')
        mutate(them, 'delete Film where title = "Fog"')

    with overtaken(graph, "changes_checked", action):
        done = graph.embed("Film", "meaning", only_missing=False)
    assert column(graph) == {"Rain": vector("it pours"), "Snow": vector("it snows")}
    assert done.vectors == {"meaning": 1}
