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


def test_a_graph_of_a_project_on_its_branch(
    graph: og.Graph,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """What other commands read and write where nothing is said is what is embedded, too."""
    graph.branches.create("draft")
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "omnigraph.yaml").write_text(
        "version: 1\ngraphs: { films: { uri: films.omni, branch: draft } }\n"
    )
    first = "embedded Film on branch {}: 1 meaning, 1 sound"
    said = ["embed", "--type", "Film", "--quiet", "--where"]
    assert main([*said, 'title = "Rain"']) == 0
    assert capsys.readouterr().out.startswith(first.format("draft"))
    assert main([*said, 'title = "Rain"', "--branch", "main", "--graph", "films"]) == 0
    assert capsys.readouterr().out.startswith(first.format("main"))
    monkeypatch.setenv("OMNIGRAPH_BRANCH", "draft")
    assert main([*said, 'title = "Snow"', "--all", "--store", graph.location.path]) == 0
    assert capsys.readouterr().out.startswith(first.format("draft"))
    assert column(graph) == {"Rain": vector("it rains"), "Snow": None}


def test_nothing_to_embed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert main(["embed", "--type", "Film"]) == 2
    assert "what is to be embedded?" in capsys.readouterr().err
