"""A project of the older dialect, used as its README would have it: nothing in it is rewritten."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og

Run = Callable[..., Any]
FILE = """\
project:
  name: Signals of an industry

auth:
  env_file: ./.env.omni

targets:
  local:
    uri: ./repo.omni
    # bearer_token_env: OMNIGRAPH_BEARER_TOKEN
  server:
    uri: http://127.0.0.1:1
    bearer_token_env: OMNIGRAPH_BEARER_TOKEN

server:
  target: local
  bind: 127.0.0.1:8080

cli:
  target: local
  branch: main
  output_format: table
  table_max_column_width: 80
  table_cell_layout: truncate

query:
  roots:
    - queries
    - .

aliases:
  # Signals
  signal:
    command: read
    query: signals.gq
    name: get_signal
    args: [slug]
    format: kv
  signals: { command: read, query: signals.gq, name: signals_of, args: [kind] }
  add-signal:
    command: change
    query: mutations.gq
    name: add_signal
    args: [slug, name, kind]
    target: local
    branch: main

policy: {}
"""
SCHEMA = "node Signal { slug: String @key  name: String  kind: String }\n"
QUERIES = """\
query get_signal($slug: String) {
    match { $s: Signal { slug: $slug } }
    return { $s.slug, $s.name, $s.kind }
}

query signals_of($kind: String) {
    match { $s: Signal { kind: $kind } }
    return { $s.slug as slug, $s.name as name }
    order { slug asc }
}
"""
MUTATIONS = """\
query add_signal($slug: String, $name: String, $kind: String) {
    insert Signal { slug: $slug, name: $name, kind: $kind }
}
"""
SEED = '{"type": "Signal", "data": {"slug": "s1", "name": "A start", "kind": "news"}}\n'


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    for name in ("PROFILE", "GRAPH", "BRANCH", "CONFIG", "BEARER_TOKEN", "S_KEY"):
        monkeypatch.delenv(f"OMNIGRAPH_{name}", raising=False)
    found = tmp_path / "project"
    (found / "queries").mkdir(parents=True)
    (found / "omnigraph.yaml").write_text(FILE)
    (found / ".env.omni").write_text("OMNIGRAPH_S_KEY=from-the-file\nPATH=/nowhere\n")
    (found / "schema.pg").write_text(SCHEMA)
    (found / "queries" / "signals.gq").write_text(QUERIES)
    (found / "queries" / "mutations.gq").write_text(MUTATIONS)
    (found / "seed.jsonl").write_text(SEED)
    monkeypatch.chdir(found)
    return found


def test_the_walk_through(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_S_KEY", "")
    ignored = "sets PATH, which a project may not"
    ran = run("init", "--schema", "schema.pg", "repo.omni")
    assert (ran.code, ignored in ran.err) == (0, True)
    assert os.environ["OMNIGRAPH_S_KEY"] == "from-the-file"
    assert run("load", "--data", "seed.jsonl", "--mode", "overwrite").code == 0
    ran = run("lint", "--schema", "schema.pg", "--query", "queries/signals.gq")
    assert ran.code == 0
    shown = run("read", "--alias", "signal", "s1").out.splitlines()
    assert shown[1:] == ["row 1", "s.slug: s1", "s.name: A start", "s.kind: news"]
    ran = run("change", "--alias", "add-signal", "s2", "An end", "news")
    assert ran.out.startswith("changed main via add_signal: 1 nodes, 0 edges\n")
    assert "→ local (repo.omni) from omnigraph.yaml" in ran.err
    ran = run("read", "--alias", "signals", "news", "--format", "csv")
    assert ran.out == "slug,name\ns1,A start\ns2,An end\n"
    ran = run("read", "--query", "signals.gq", "signals_of", "--params", '{"kind": "news"}')
    assert ran.out.startswith("2 rows from branch main via signals_of\n")
    assert run("read", "local", "--query", "queries/signals.gq", "signals_of", "x").code == 0
    assert run("query", "--graph", "local", "signals", "news", "--json").code == 0
    assert run("branch", "create", "--from", "main", "review").code == 0
    assert run("branch", "merge", "review").code == 0
    assert run("snapshot", "repo.omni", "--json").code == 0
    assert run("config", "validate").code == 0
    with pytest.warns(UserWarning, match=ignored):
        graph = og.project()["local"]
    assert isinstance(graph, og.Graph)
    assert len(graph.query("query q() { match { $s: Signal } return { $s.slug } }")) == 2


def test_rewritten_it_says_the_same(run: Run, project: Path) -> None:
    def values() -> dict[str, object]:
        found = json.loads(run("config", "show", "--json").out)["values"]
        return {one["key"]: one["value"] for one in found}

    before = values()
    ran = run("config", "migrate", "--write")
    assert ran.code == 0
    text = (project / "omnigraph.yaml").read_text()
    assert text.startswith("version: 1\n")
    assert text.count("#") == FILE.count("#")
    assert "targets" not in text
    assert "command" not in text
    assert values() == before
    assert json.loads(run("config", "show", "--json").out)["older"] is False
