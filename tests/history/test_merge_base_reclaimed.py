"""A merge that sleeps while it is planned, until nobody needs the base that it has found."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BranchNotFound
from omnigraph.manifest import ancestry

INSERT = "query q($n: String) { insert Person { name: $n } }"


def test_a_base_that_is_reclaimed_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = og.init(tmp_path / "graph", "node Person { name: String @key }")
    graph.branches.create("dev")
    for branch in ("dev", "main"):
        graph.mutate(INSERT, params={"n": branch}, branch=branch)
    find: Callable[..., Any] = ancestry.divergence
    others = [og.open(tmp_path / "graph")]

    def divergence(*states: Any) -> Any:
        found = find(*states)
        for other in others:
            others.clear()
            other.branches.delete("dev")
            other.cleanup(keep=1, grace=timedelta(0))
        return found

    monkeypatch.setattr("omnigraph.history.merge.operation.divergence", divergence)
    with pytest.raises(BranchNotFound):
        graph.branches.merge("dev")
    assert not others
    assert graph.mutate(INSERT, params={"n": "next"}).commit is not None
