"""A case of the scale benchmark at a tiny size, and the page that shows its model."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.bench_scale import CSV_BYTES, READ_OF_STAGED, SMALL_BYTES, WORKER_BYTES, _asked, case
from bench.scale.model import Cluster, Load, Model, table

PAGE = Path(__file__).parents[2] / "docs" / "developer" / "how-a-bulk-load-works.md"


@pytest.mark.slow
def test_a_case_is_measured() -> None:
    found = case("rejected", 600, ranges=3)
    assert (found["rows"], found["rejected"]) == (100, 600)
    assert {"stage", "cut keys", "check", "find rows", "leave out", "resolve"} <= found[
        "cpu"
    ].keys()
    assert 0 < found["checks"] < sum(found["cpu"].values())
    assert found["worker"] < WORKER_BYTES
    assert 0 < found["temporary"] < SMALL_BYTES


@pytest.mark.slow
def test_loads_of_one_process_are_measured() -> None:
    few, much = _asked("at once", 500), _asked("large csv", 2_000)
    assert (few["spark"], much["spark"]) == (False, False)
    assert few["csv"] > 0
    assert (much["rows"], much["bytes"]) > (1_999, 200_000)
    assert 0 < much["peak"] < CSV_BYTES


@pytest.mark.slow
def test_what_a_load_reads_of_a_store_is_measured() -> None:
    found = _asked("store", 6_000, ranges=3)
    assert found["rows"] == 6_000
    assert 6_000 < found["read"] <= READ_OF_STAGED * found["staged"]


def test_the_page_shows_what_the_model_says() -> None:
    assert table(Model(Load(), Cluster())) in PAGE.read_text()
