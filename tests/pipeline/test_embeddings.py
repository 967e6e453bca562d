from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import omnigraph.graph as og
from omnigraph.generate.people_graph import GraphSize, generate

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
