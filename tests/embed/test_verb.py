"""`omnigraph embed` on a graph."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.cli.main import main
from tests.embed.test_backfill import SCHEMA, column, films, vector
from tests.embed.vector_server import KEY, VectorServer, error


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> og.Graph:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    made = og.init(tmp_path / "films.omni", SCHEMA)
    films(made, Rain="it rains", Snow="it snows")
    return made


def test_as_json(graph: og.Graph, capsys: pytest.CaptureFixture[str]) -> None:
    store = ["--store", graph.location.path, "--as", "ann", "--json"]
    assert main(["embed", "--type", "Film", "--property", "meaning", *store]) == 0
    shown = capsys.readouterr()
    assert shown.err == f"omnigraph embed → {graph.location.path} (direct, local)\n"
    said = json.loads(shown.out)
    commit = said.pop("commit")
    assert said == {
        "branch": "main",
        "type": "Film",
        "entities": 2,
        "vectors": {"meaning": 2},
        "actor_id": "ann",
    }
    assert commit["embedding"] == {"provider": "mock", "model": ""}
    assert commit["actor_id"] == "ann"
    assert column(graph) == {"Rain": vector("it rains"), "Snow": vector("it snows")}


def test_for_people(
    graph: og.Graph, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "large")
    graph.branches.create("draft")
    options = ["--store", graph.location.path, "--type", "Film", "--branch", "draft", "--quiet"]
    assert main(["embed", *options, "--where", 'title = "Rain"']) == 0
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "embedded Film on branch draft: 1 meaning, 1 sound"
    assert second == "model: large (mock)"
    assert third.startswith("commit: ")
    assert main(["embed", *options, "--all"]) == 0
    assert "1 meaning, 1 sound" in capsys.readouterr().out
    assert main(["embed", *options, "--all"]) == 0
    assert capsys.readouterr().out == "embedded Film on branch draft: 0 meaning, 0 sound\n"
    assert column(graph) == {"Rain": None, "Snow": None}


def test_a_failure(
    graph: og.Graph,
    server: VectorServer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OMNIGRAPH_EMBEDDINGS_MOCK")
    server.respond = lambda _: error(401, f"not this one: {KEY}")
    assert main(["embed", "--store", graph.location.path, "--type", "Film", "--quiet"]) == 1
    shown = capsys.readouterr()
    assert shown.err.startswith("error: Film.meaning: the embedding provider 'openai-compatible'")
    assert KEY not in shown.out + shown.err
