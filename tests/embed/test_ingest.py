"""`@embed` at ingest: loads and mutations fill the vectors that are left empty."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.embed.local import MODEL, LocalEmbedder, MockEmbedder
from omnigraph.embed.protocol import Role, Texts, Vectors, text_array
from omnigraph.errors import EmbeddingError, KeyConflict, ValidationError
from omnigraph.lang.structural import ID
from omnigraph.manifest.publish_request import AdvanceTable, PendingCommit, PublishRequest
from omnigraph.storage.tables.table import Table
from tests.table_writes import insert
from tests.write.writing import overtaken

SCHEMA = """
node Film {
    title: String @key
    blurb: String?
    year: I32?
    meaning: Vector(4)? @embed(blurb)
}
node Essay {
    slug: String @key
    body: String?
    words: I32?
    meaning: Vector(3) @embed(body)
}
node Note {
    text: String
    meaning: Vector(2) @embed(text)
}
"""
LOCAL_SCHEMA = """
node Film {
    title: String @key
    blurb: String?
    meaning: Vector(64)? @embed(blurb)
    sound: Vector(128) @embed(title)
}
node Odd {
    title: String @key
    meaning: Vector(100)? @embed(title)
}
node Strict {
    title: String @key
    meaning: Vector(64)? @embed(title, model="other")
}
"""
GIVEN = [0.5, 0.25, -0.5, 1.0]


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> og.Graph:
    """A graph whose vectors may have any dimension."""
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    return og.init(tmp_path / "films.omni", SCHEMA)


def vector(text: str, dimension: int = 4) -> list[float]:
    made: list[float] = MockEmbedder().embed([text], dimension)[0].tolist()
    return made


def stored(graph: og.Graph, type_: str = "Film", name: str = "meaning") -> dict[str, Any]:
    rows = graph.table(type_).to_table().to_pylist()
    return {row[ID]: row[name] for row in rows}


def store_unembedded(graph: og.Graph, title: str, blurb: str) -> None:
    """A film with a text and no vector, as from the time before its `@embed`."""
    shown = graph.snapshot().tables["node:Film"]
    table = Table(graph.location.join(shown.table.path), shown.pin)
    row = pa.table({ID: [title], "title": [title], "blurb": [blurb]})
    change = AdvanceTable(shown.identity, shown.version, insert(table, row))
    graph.manifest.publish("main", PublishRequest(PendingCommit.mint(), (change,)))


def film(title: str, **data: Any) -> dict[str, Any]:
    return {"type": "Film", "data": {"title": title, **data}}


def essay(slug: str, **data: Any) -> dict[str, Any]:
    return {"type": "Essay", "data": {"slug": slug, **data}}


# -- loads -------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_a_load_fills_what_is_empty(graph: og.Graph, mode: str) -> None:
    lines = [
        film("Rain", blurb="it rains"),
        film("Snow", blurb="it snows", meaning=None),
        film("Fog", blurb="it is grey", meaning=GIVEN),
        film("Hail"),
    ]
    graph.load(lines, mode=mode)
    assert stored(graph) == {
        "Rain": vector("it rains"),
        "Snow": vector("it snows"),
        "Fog": GIVEN,
        "Hail": None,
    }


def test_frames_are_filled_too(graph: og.Graph) -> None:
    frame = pa.table({"slug": ["a", "b"], "body": ["first", "second"]})
    graph.load({"Essay": frame}, mode="append")
    assert stored(graph, "Essay") == {"a": vector("first", 3), "b": vector("second", 3)}


def test_every_type_of_a_load_is_filled(graph: og.Graph) -> None:
    note = {"type": "Note", "data": {"id": "n", "text": "x"}}
    graph.load([note, essay("a", body="first", meaning=None)], mode="append")
    assert stored(graph, "Essay") == {"a": vector("first", 3)}
    assert stored(graph, "Note") == {"n": vector("x", 2)}


def test_a_merge_replaces_the_vector_with_the_text(graph: og.Graph) -> None:
    graph.load([film("Rain", blurb="old", meaning=GIVEN), film("Snow", blurb="x")], mode="append")
    graph.load([film("Rain", blurb="new"), film("Snow")], mode="merge")
    assert stored(graph) == {"Rain": vector("new"), "Snow": None}


@pytest.mark.parametrize("body", [None, "", " \n\t"])
def test_a_required_vector_without_a_text(graph: og.Graph, body: str | None) -> None:
    with pytest.raises(ValidationError, match="'meaning'") as caught:
        graph.load([essay("a", body="first"), essay("b", body=body)], mode="append")
    assert caught.value.rule == "required"
    (found,) = caught.value.details["violations"]
    assert (found["entity_id"], found["line"]) == ("b", 2)
    assert stored(graph, "Essay") == {}


def test_a_blank_text_leaves_the_vector_empty(graph: og.Graph) -> None:
    done = graph.load([film("Rain", blurb=""), film("Snow", blurb="  ")], mode="append")
    assert stored(graph) == {"Rain": None, "Snow": None}
    assert "embedding" not in done.commit.metadata


# -- mutations ---------------------------------------------------------------------


def test_an_insert_fills_what_is_empty(graph: og.Graph) -> None:
    graph.mutate(
        """
        query add($given: Vector(4), $none: Vector(4)?) {
            insert Film { title: "Rain", blurb: "it rains" }
            insert Film { title: "Snow", blurb: "it snows", meaning: $none }
            insert Film { title: "Fog", blurb: "it is grey", meaning: $given }
            insert Film { title: "Hail" }
            insert Essay { slug: "a", body: "first" }
            insert Note { text: "x" }
        }
        """,
        params={"given": GIVEN, "none": None},
    )
    assert stored(graph) == {
        "Rain": vector("it rains"),
        "Snow": vector("it snows"),
        "Fog": GIVEN,
        "Hail": None,
    }
    assert stored(graph, "Essay") == {"a": vector("first", 3)}
    assert list(stored(graph, "Note").values()) == [vector("x", 2)]


def test_a_new_text_has_a_new_vector(graph: og.Graph) -> None:
    graph.load([film("Rain", blurb="old"), film("Snow", blurb="old", meaning=GIVEN)], mode="append")
    graph.mutate('query u() { update Film set { blurb: "new" } where year is null }')
    assert stored(graph) == {"Rain": vector("new"), "Snow": vector("new")}


def test_a_vector_that_is_given_with_a_new_text_is_kept(graph: og.Graph) -> None:
    graph.load([film("Rain", blurb="old")], mode="append")
    graph.mutate(
        'query u($v: Vector(4)) { update Film set { blurb: "new", meaning: $v } '
        'where title = "Rain" }',
        params={"v": GIVEN},
    )
    assert stored(graph) == {"Rain": GIVEN}


def test_the_same_text_keeps_its_vector(graph: og.Graph) -> None:
    graph.load([film("Rain", blurb="old", meaning=GIVEN), film("Snow", blurb="x")], mode="append")
    done = graph.mutate('query u() { update Film set { blurb: "old" } where title = "Rain" }')
    assert stored(graph)["Rain"] == GIVEN
    assert done.commit is not None
    assert "embedding" not in done.commit.metadata


def test_a_vector_that_is_removed_is_computed(graph: og.Graph) -> None:
    graph.load([film("Rain", blurb="old", meaning=GIVEN)], mode="append")
    graph.mutate(
        'query u($v: Vector(4)?) { update Film set { meaning: $v } where title = "Rain" }',
        params={"v": None},
    )
    assert stored(graph) == {"Rain": vector("old")}


def test_a_text_that_is_removed_takes_its_vector_along(graph: og.Graph) -> None:
    graph.load([film("Rain", blurb="old"), essay("a", body="first")], mode="append")
    remove = "query u($no: String?) { update %s set { %s: $no } where %s = %s }"
    graph.mutate(remove % ("Film", "blurb", "title", '"Rain"'), params={"no": None})
    assert stored(graph) == {"Rain": None}
    with pytest.raises(ValidationError, match="'meaning'") as caught:
        graph.mutate(remove % ("Essay", "body", "slug", '"a"'), params={"no": None})
    assert caught.value.rule == "required"
    assert stored(graph, "Essay") == {"a": vector("first", 3)}


def test_other_updates_leave_vectors_alone(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.load([film("Rain", blurb="it rains", meaning=GIVEN)], mode="append")
    store_unembedded(graph, "Snow", "it snows")
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "0")
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "nobody")
    done = graph.mutate("query u() { update Film set { year: 1999 } where year is null }")
    assert done.affected_nodes == 2
    assert stored(graph) == {"Rain": GIVEN, "Snow": None}


def test_a_text_that_is_written_again_is_embedded_if_it_was_not(graph: og.Graph) -> None:
    store_unembedded(graph, "Snow", "it snows")
    graph.mutate('query u() { update Film set { blurb: "it snows" } where title = "Snow" }')
    assert stored(graph) == {"Snow": vector("it snows")}


def test_the_last_statement_counts(graph: og.Graph) -> None:
    graph.mutate(
        """
        query u($given: Vector(4)) {
            insert Film { title: "Rain", blurb: "one", meaning: $given }
            update Film set { blurb: "two" } where title = "Rain"
            update Film set { year: 1999 } where title = "Rain"
            insert Film { title: "Snow", blurb: "one" }
            update Film set { meaning: $given } where title = "Snow"
            insert Film { title: "Fog", blurb: "one" }
            insert Film { title: "Fog", blurb: "two" }
        }
        """,
        params={"given": GIVEN},
    )
    assert stored(graph) == {"Rain": vector("two"), "Snow": GIVEN, "Fog": vector("two")}


def test_a_required_vector_whose_text_is_null(graph: og.Graph) -> None:
    with pytest.raises(ValidationError, match="'meaning'") as caught:
        graph.mutate(
            'query q($b: String?) { insert Essay { slug: "a", body: $b } }', params={"b": None}
        )
    assert caught.value.rule == "required"


# -- the embedder ------------------------------------------------------------------


def test_the_commit_says_who_made_the_vectors(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "large")
    loaded = graph.load([film("Rain", blurb="it rains")], mode="append").commit
    changed = graph.mutate('query q() { insert Note { text: "x" } }').commit
    plain = graph.load([film("Fog", blurb="grey", meaning=GIVEN)], mode="append").commit
    assert changed is not None
    found = {commit.id: commit.metadata for commit in og.open(graph.location.uri).commits.list()}
    made = {"embedding": {"provider": "mock", "model": "large"}}
    assert found[loaded.id] == {"operation": "load", "mode": "append", **made}
    assert found[changed.id] == {"operation": "mutation", **made}
    assert found[plain.id] == {"operation": "load", "mode": "append"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that the provider was asked for."""
    asked: list[str] = []
    embed = MockEmbedder.embed

    def counted(
        embedder: MockEmbedder, texts: Texts, dimension: int, role: Role = "document"
    ) -> Vectors:
        asked.extend(text_array(texts).to_pylist())
        return embed(embedder, texts, dimension, role)

    monkeypatch.setattr(MockEmbedder, "embed", counted)
    return asked


def test_a_load_that_is_overtaken_embeds_once(graph: og.Graph, asked: list[str]) -> None:
    expected = vector("ours")
    asked.clear()
    other = [film("Rain", blurb="theirs", meaning=GIVEN)]
    with overtaken(graph, "changes_checked", lambda them: them.load(other, mode="append")) as race:
        done = graph.load([film("Rain", blurb="ours")], mode="merge")
    assert race.fired == 1
    assert asked == ["ours"]
    assert stored(graph) == {"Rain": expected}
    assert done.commit.metadata["embedding"]["provider"] == "mock"


def test_a_load_that_is_refused_embeds_nothing(graph: og.Graph, asked: list[str]) -> None:
    graph.load([film("Rain", blurb="old", meaning=GIVEN)], mode="append")
    with pytest.raises(KeyConflict, match="Rain"):
        graph.load([film("Snow", blurb="white"), film("Rain", blurb="wet")], mode="append")
    essays = [{"type": "Essay", "data": {"slug": slug, "body": "x"}} for slug in ("a", "a")]
    with pytest.raises(ValidationError, match="'a'"):
        graph.load(essays, mode="append")
    assert asked == []
    assert set(stored(graph)) == {"Rain"}


def test_a_mutation_that_is_overtaken_embeds_once(graph: og.Graph, asked: list[str]) -> None:
    expected = vector("ours")
    asked.clear()
    other = [film("Rain", blurb="theirs", meaning=GIVEN)]
    insert = 'query q() { insert Film { title: "Rain", blurb: "ours" } }'
    with overtaken(graph, "changes_checked", lambda them: them.load(other, mode="append")) as race:
        done = graph.mutate(insert)
    assert race.fired == 1
    assert asked == ["ours"]
    assert stored(graph) == {"Rain": expected}
    assert done.commit is not None
    assert done.commit.metadata["embedding"]["provider"] == "mock"


@pytest.fixture
def local_graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "local.omni", LOCAL_SCHEMA)


def test_nothing_needs_to_be_configured(local_graph: og.Graph) -> None:
    done = local_graph.load([film("Rain", blurb="it rains"), film("Snow")], mode="append")
    (meaning,) = LocalEmbedder().embed(["it rains"], 64)
    rain, snow = LocalEmbedder().embed(["Rain", "Snow"], 128)
    found = stored(local_graph)
    assert np.array_equal(np.array(found["Rain"], np.float32), meaning)
    assert found["Snow"] is None
    sounds = stored(local_graph, name="sound")
    assert np.array_equal(np.array(sounds["Rain"], np.float32), rain)
    assert np.array_equal(np.array(sounds["Snow"], np.float32), snow)
    assert done.commit.metadata["embedding"] == {"provider": "local", "model": MODEL}


def test_a_dimension_that_local_does_not_have(local_graph: og.Graph) -> None:
    with pytest.raises(EmbeddingError, match="64, 128 or 256 numbers, not of 100"):
        local_graph.load([{"type": "Odd", "data": {"title": "x"}}], mode="append")
    assert stored(local_graph, "Odd") == {}


def test_the_model_must_be_the_recorded_one(
    local_graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert = 'query q() { insert Strict { title: "x" } }'
    with pytest.raises(EmbeddingError, match=f"Strict.meaning .* 'other'.*'{MODEL}'") as caught:
        local_graph.mutate(insert)
    assert caught.value.details["expected"] == "other"
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "other")
    local_graph.mutate(insert)
    assert np.allclose(stored(local_graph, "Strict")["x"], vector("x", 64))


def test_a_wrong_setting_troubles_only_those_who_embed(
    local_graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "gemini")
    given = {"sound": [1.0] + [0.0] * 127}
    local_graph.load([film("Rain", **given)], mode="append")
    with pytest.raises(EmbeddingError, match="'gemini' needs an API key: set GEMINI_API_KEY"):
        local_graph.load([film("Snow", blurb="x", **given)], mode="append")


def test_vectors_are_kept_for_the_next_run(
    graph: og.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "vectors"
    monkeypatch.setenv("OMNIGRAPH_EMBED_CACHE", str(cache))
    for _ in range(2):
        graph.load([film("Rain", blurb="a"), film("Snow", blurb="b")], mode="merge")
        assert stored(graph) == {"Rain": vector("a"), "Snow": vector("b")}
        assert len(list(cache.rglob("*.arrow"))) == 1
