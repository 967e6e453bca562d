"""Who makes the vectors of a graph of a project, and where keys go."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.config.embedding import embedding_of
from omnigraph.config.project_reader import parse_project
from omnigraph.embed.configuration import EmbedderConfig

SCHEMA = "node Note { slug: String @key  text: String  v: Vector(64) @embed(text) }"
KEYS = {"OPENAI_API_KEY": "of-openai", "OMNIGRAPH_MY_KEY": "own", "OMNIGRAPH_EMBED_BASE_URL": "x"}


def chosen(provider: str, name: str = "p", **environment: str) -> EmbedderConfig | None:
    text = f"graphs: {{g: {{uri: g.omni, embedding_provider: {name}}}}}\n"
    text += f"providers: {{embedding: {{p: {{{provider}}}}}}}\n"
    project = parse_project(text, Path("/p/omnigraph.yaml"))
    return embedding_of(project, project.graphs["g"], {**KEYS, **environment})


def test_a_provider_of_the_file() -> None:
    found = chosen("kind: openai, model: small, api_key: '${OPENAI_API_KEY}'")
    assert found is not None
    assert (found.provider, found.model, found.api_key) == ("openai", "small", "of-openai")
    assert (found.base_url, found.problem) == (None, None)
    assert "of-openai" not in repr(found)
    with_prefix = chosen("kind: openai, model: small", "provider.embedding.p")
    assert with_prefix is not None
    assert with_prefix.api_key == "of-openai"


def test_no_key_goes_to_an_address_of_the_file_unless_it_is_named() -> None:
    found = chosen("kind: openai, base_url: 'https://evil.example'")
    assert found is not None
    assert (found.base_url, found.api_key) == ("https://evil.example", None)
    found = chosen("base_url: 'https://own.example', api_key: '${OMNIGRAPH_MY_KEY}'")
    assert found is not None
    assert (found.provider, found.api_key) == ("openai-compatible", "own")


def test_a_key_that_is_missing_troubles_those_who_embed() -> None:
    found = chosen("kind: gemini, api_key: '${GEMINI_API_KEY}'")
    assert found is not None
    assert found.problem == "the embedding provider 'p' needs GEMINI_API_KEY, which is not set"


def test_the_built_in_ones_need_no_entry_and_the_switch_is_stronger() -> None:
    for name in ("local", "mock"):
        found = chosen("kind: openai", name)
        assert found is not None
        assert found.provider == name
    assert chosen("kind: openai", OMNIGRAPH_EMBEDDINGS_MOCK="1") is None


@pytest.mark.parametrize("engine", ["auto", "inline"])
def test_vectors_are_made_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "nobody")
    monkeypatch.delenv("OMNIGRAPH_EMBEDDINGS_MOCK", raising=False)
    og.init(tmp_path / "g.omni", SCHEMA).close()
    (tmp_path / "omnigraph.yaml").write_text(
        "graphs: {g: {uri: g.omni, embedding_provider: mock}}\n"
    )
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"type": "Note", "data": {"slug": "a", "text": "a b"}}\n')
    graph = og.project(tmp_path)["g"]
    assert isinstance(graph, og.Graph)
    data: object = rows if engine == "inline" else rows.read_text()
    graph.load(data, mode="append", engine=engine)
    graph.mutate('query q() { insert Note { slug: "b", text: "c d" } }')
    nearest = "match { $n: Note } return { $n.slug as slug } order { nearest($n.v, $q) } limit 1"
    found = graph.query(f"query q($q: String) {{ {nearest} }}", params={"q": "c d"})
    assert [row["slug"] for row in found] == ["b"]
