from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import omnigraph.graph as og
from omnigraph.generate.people_graph import GraphSize, generate
from tests.embed.test_backfill import SCHEMA, column, store, vector
from tests.sound import check_sound

pytestmark = pytest.mark.slow

QUERY = """query q() {
    match { $d: Document }
    return { $d.slug as slug, $d.embedding as embedding } order { slug asc }
}"""


@pytest.mark.parametrize("provider", ["mock", "local"])
def test_tasks_embed_what_this_process_would(
    provider: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", provider)
    made = generate(GraphSize.of(120), tmp_path / "data", embeddings=True)
    graphs = {}
    for engine in ("inline", "spark"):
        graph = og.init(tmp_path / f"{engine}.omni", made.schema_path.read_text())
        loaded = graph.load(
            tmp_path / "data" / "data",
            mode="append",
            engine=engine,
            spark=spark if engine == "spark" else None,
        )
        assert loaded.nodes == {"Person": 120, "Company": 1, "Document": 30}
        assert loaded.commit.metadata["embedding"]["provider"] == provider
        graphs[engine] = graph

    vectors = {engine: graph.query(QUERY).rows for engine, graph in graphs.items()}

    assert len(vectors["spark"]) == 30
    assert vectors["spark"] == vectors["inline"]
    assert all(len(row["embedding"]) == 64 for row in vectors["spark"])


def test_tasks_embed_what_is_stored(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    graph = og.init(tmp_path / "films.omni", SCHEMA)
    for letter in "ab":
        names = [f"film {letter}{number}" for number in range(300)]
        store(graph, "Film", title=names, blurb=names)
    done = graph.embed("Film", engine="spark", spark=spark)
    assert (done.rows, done.vectors) == (600, {"meaning": 600, "sound": 600})
    found = column(graph)
    assert all(found[name] == vector(name) for name in list(found)[::97])
    assert done.embedding == {"provider": "mock", "model": ""}
    check_sound(str(graph.location))
