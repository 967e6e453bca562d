"""Writes whose vectors come from a provider over HTTP, and what is left when it fails."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import omnigraph as og
from omnigraph.errors import EmbeddingError
from omnigraph.lang.structural import ID
from tests import faults
from tests.embed.vector_server import KEY, Answer, Asked, VectorServer, error, vectors_of
from tests.pipeline.scripts import output_of
from tests.write.writing import unchanged

SCHEMA = """
node Film {
    title: String @key
    blurb: String?
    meaning: Vector(4)? @embed(blurb)
}
node Pinned {
    title: String @key
    meaning: Vector(4) @embed(title, model="small")
}
"""


@pytest.fixture
def graph(tmp_path: Path, server: VectorServer) -> og.Graph:
    assert server.url
    return og.init(tmp_path / "films.omni", SCHEMA)


def film(title: str, **data: Any) -> dict[str, Any]:
    return {"type": "Film", "data": {"title": title, **data}}


def stored(graph: og.Graph, type_: str = "Film") -> dict[str, Any]:
    return {row[ID]: row["meaning"] for row in graph.table(type_).to_table().to_pylist()}


def is_vector_of(found: list[float], text: str) -> bool:
    return bool(np.allclose(np.array(found) * 3, vectors_of([text], 4)[0]))


def written(graph: og.Graph) -> bytes:
    """Everything below the root of a graph."""
    files = [path for path in Path(graph.location.path).rglob("*") if path.is_file()]
    assert files
    return b"".join(path.read_bytes() for path in files)


def test_a_load(graph: og.Graph, server: VectorServer) -> None:
    lines = [film(f"film {number}", blurb=f"text {number % 150}") for number in range(300)]
    done = graph.load([*lines, film("Hail")], mode="append")
    assert sorted(server.texts) == sorted({f"text {number}" for number in range(150)})
    found = stored(graph)
    assert is_vector_of(found["film 7"], "text 7")
    assert found["film 7"] == found["film 157"]
    assert found["Hail"] is None
    assert done.commit.metadata["embedding"] == {"provider": "openai-compatible", "model": "small"}


def test_a_mutation(graph: og.Graph, server: VectorServer) -> None:
    done = graph.mutate(
        'query q() { insert Film { title: "Rain", blurb: "it rains" } '
        'insert Pinned { title: "Snow" } }'
    )
    assert is_vector_of(stored(graph)["Rain"], "it rains")
    assert is_vector_of(stored(graph, "Pinned")["Snow"], "Snow")
    assert sorted(server.texts) == ["Snow", "it rains"]
    assert done.commit is not None
    assert done.commit.metadata["embedding"]["model"] == "small"


def test_the_documents_of_gemini(
    graph: og.Graph, server: VectorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "gemini")
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    graph.load([film("Rain", blurb="it rains"), film("Snow", blurb="it snows")], mode="append")
    assert {asked.body["taskType"] for asked in server.asked} == {"RETRIEVAL_DOCUMENT"}
    assert sorted(server.texts) == ["it rains", "it snows"]


def test_vectors_that_are_paid_for_are_kept(
    graph: og.Graph, server: VectorServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_CACHE", str(tmp_path / "vectors"))
    graph.load([film("Rain", blurb="it rains")], mode="append")
    graph.load([film("Rain", blurb="it rains"), film("Snow", blurb="it snows")], mode="merge")
    assert server.texts == ["it rains", "it snows"]


WRITES: dict[str, Any] = {
    "load": lambda graph: graph.load(
        [film("Rain", blurb="it rains"), film("Long", blurb="a text of many words")], mode="merge"
    ),
    "skipping load": lambda graph: graph.load(
        [film("Rain", blurb="it rains"), film("Long", blurb="a text of many words")],
        mode="merge",
        on_error="skip",
    ),
    "mutation": lambda graph: graph.mutate(
        'query q() { insert Film { title: "Rain", blurb: "it rains" } '
        'insert Film { title: "Long", blurb: "a text of many words" } }'
    ),
    "backfill": lambda graph: graph.embed("Film", only_missing=False),
}


@pytest.fixture
def filled(graph: og.Graph) -> og.Graph:
    given = [1.0, 0.0, 0.0, 0.0]
    graph.load(
        [
            film("Rain", blurb="it rains", meaning=given),
            film("Long", blurb="a text of many words", meaning=given),
        ],
        mode="append",
    )
    return graph


@pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))
@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (error(401, f"bad key {KEY}"), "refused"),
        (error(500, f"oops {KEY}"), "unavailable"),
        (Answer(body=f"<html>{KEY}</html>"), "bad_answer"),
        (error(404, f"no model for {KEY}"), "model"),
    ],
    ids=["refused", "unavailable", "bad answer", "model"],
)
def test_a_failure_writes_nothing(
    filled: og.Graph, server: VectorServer, write: Any, answer: Answer, kind: str
) -> None:
    server.respond = lambda _: answer
    with unchanged(filled), pytest.raises(EmbeddingError) as caught:
        write(filled)
    assert caught.value.kind == kind
    assert caught.value.details["property"] == "Film.meaning"
    assert KEY not in f"{caught.value} {caught.value.details}"


@pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))
def test_the_node_whose_text_is_too_long_is_named(
    filled: og.Graph, server: VectorServer, write: Any
) -> None:
    def respond(asked: Asked) -> Answer | None:
        too_long = any(len(text) > 10 for text in asked.texts)
        return error(400, "maximum context length is 10 tokens") if too_long else None

    server.respond = respond
    with (
        unchanged(filled),
        pytest.raises(EmbeddingError, match=r"Film\.meaning of 'Long'") as caught,
    ):
        write(filled)
    assert caught.value.kind == "text_too_long"
    assert caught.value.details["id"] == "Long"


def test_the_key_is_written_nowhere(
    filled: og.Graph,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("OMNIGRAPH_EMBED_CACHE", str(tmp_path / "vectors"))
    # Every write leaves an intent while it is at work.
    intents: list[bytes] = []
    monkeypatch.setattr("omnigraph.write.recovery.intent_scope.REQUEST_BYTES", -1)
    root = Path(filled.location.path)
    with faults.observed(
        "publish_ready",
        lambda: intents.extend(path.read_bytes() for path in root.glob("__recovery/*.json")),
        times=None,
    ):
        for write in WRITES.values():
            write(filled)
    assert len(intents) >= 3
    said = "".join(capfd.readouterr()) + caplog.text
    commits = "".join(repr(asdict(commit)) for commit in filled.commits.list())
    assert "small" in commits
    assert KEY not in said + commits
    everything = written(filled) + b"".join(intents)
    everything += b"".join(path.read_bytes() for path in tmp_path.rglob("*.arrow"))
    assert b"openai-compatible" in everything
    assert KEY.encode() not in everything


SCRIPT = """
import sys
import omnigraph as og
from omnigraph.errors import EmbeddingError
from omnigraph.pipeline.spark.settings import SparkSettings

log, events, rejects = sys.argv[1:4]
conf = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{events}"}
conf |= {"spark.eventLog.compress": "false", "spark.ui.enabled": "true"}


def load(graph, data, spark):
    try:
        done = graph.load(
            data, mode="append", engine="spark", spark=spark, on_error="skip", rejects=rejects
        )
    except EmbeddingError as error:
        return f"{error.kind} {error.details.get('property')} {error.details.get('id')} {error}"
    with open(log, "w") as file:
        file.write(str(done.work.log_file))
    model = done.commit.metadata["embedding"]["model"]
    return f"{done.engine} {done.total} {done.rejected} {model}"


if __name__ == "__main__":
    spark = SparkSettings(master="local[2]", conf=conf)
    for root, data in zip(sys.argv[4::2], sys.argv[5::2], strict=True):
        print(load(og.open(root), data, spark))
"""


# One driver for all loads: it takes seconds to start.
@pytest.mark.slow
def test_loads_on_spark_that_fail_and_that_do_not(
    graph: og.Graph, server: VectorServer, tmp_path: Path
) -> None:
    refused = og.init(tmp_path / "refused.omni", SCHEMA)
    wrong, data, events = (tmp_path / name for name in ("wrong.jsonl", "films.jsonl", "events"))
    log, rejects = tmp_path / "log", tmp_path / "rejects.jsonl"
    events.mkdir()
    films = [film(f"film {number}", blurb=f"word {number}") for number in range(50)]
    films[33]["data"]["blurb"] = "a text of many words"
    wrong.write_text("\n".join(map(json.dumps, films)))
    lines = [json.dumps(film(f"film {number}", blurb=f"text {number}")) for number in range(500)]
    lines[100:100] = ["{}", json.dumps(film("wrong", blurb=3))]
    data.write_text("\n".join(lines))

    def respond(asked: Asked) -> Answer | None:
        too_long = any(len(text) > 10 for text in asked.texts)
        return error(400, f"maximum context length of {KEY} is 10") if too_long else None

    server.respond = respond
    caches = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}
    places = [str(refused.location), str(wrong), str(graph.location), str(data)]
    with unchanged(refused):
        said = output_of(SCRIPT, str(log), str(events), str(rejects), *places, environment=caches)
    assert said[0].startswith("text_too_long Film.meaning film 33 Film.meaning of 'film 33': ")
    assert said[1:] == ["spark 500 2 small"]
    # Once each, although the rejects are read again to tell what is wrong with them.
    texts = [text for text in server.texts if text.startswith("text ")]
    assert sorted(texts) == sorted(f"text {number}" for number in range(500))
    found = stored(graph)
    assert len(found) == 500
    assert is_vector_of(found["film 77"], "text 77")
    # What Spark shows of a job is what stands in its event log; the rest is what it says.
    shown = b"".join(path.read_bytes() for path in events.rglob("*") if path.is_file())
    assert b"SparkListenerTaskEnd" in shown
    logged = Path(log.read_text()).read_bytes()
    assert KEY.encode() not in shown + logged + written(graph) + "".join(said).encode()
