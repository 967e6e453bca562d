"""Errors that people make are told once: what the product met on the way is not shown."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import errors

SCHEMA = "node Person { name: String @key }"
NAMES = "match { $p: Person } return { $p.name }"

CALLS: dict[str, Callable[[og.Graph, Path], object]] = {
    "no graph": lambda _, here: og.open(here / "none.omni"),
    "no query file": lambda graph, here: graph.query(here / "none.gq"),
    "no schema file": lambda _, here: og.init(here / "b.omni", here / "none.pg"),
    "no text": lambda graph, here: graph.query(_bytes(here)),
    "no branch": lambda graph, _: graph.query(NAMES, branch="none"),
    "no commit": lambda graph, _: graph.diff("main", "none"),
    "no type": lambda graph, _: graph.branches.merge("dev", resolve={"Nobody:1": "source"}),
    "no place": lambda graph, here: graph.export(here / "none" / "x.jsonl"),
    "no cursor": lambda graph, _: graph.changes.poll(cursor="x"),
    "no file": lambda _, here: og.infer(here / "none.csv"),
    "no library": lambda graph, _: graph.query(NAMES).to_polars(),
    "no duckdb": lambda graph, _: graph.sql("select 1"),
    "no such option": lambda graph, _: graph.query(NAMES, brnch="x"),  # type: ignore[call-arg]
    "no query": lambda graph, _: graph.query("match { $p: Persn } return { $p }"),
}


def _bytes(here: Path) -> Path:
    path = here / "bytes.gq"
    path.write_bytes(b"\xff\xfe\xff")
    return path


@pytest.mark.parametrize("called", CALLS)
def test_no_other_exception_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, called: str
) -> None:
    graph = og.init(tmp_path / "a.omni", SCHEMA)
    graph.branches.create("dev")
    graph.mutate('insert Person { name: "Ann" }', branch="dev")
    for library in ("polars", "duckdb"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(errors.OmniGraphError) as caught:
        CALLS[called](graph, tmp_path)
    error = caught.value
    assert not isinstance(error, errors.InternalError)
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
