"""`omnigraph verify` and `omnigraph repair`: what they show, and how they exit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og

Run = Callable[..., Any]


@pytest.mark.slow
def test_a_graph_is_verified_damaged_and_kept(run: Run, tmp_path: Path) -> None:
    uri = str(tmp_path / "harbour.omni")
    graph = og.init(uri, "node Ship { name: String @key }")
    for name in ("Fram", "Maud"):
        graph.mutate(f'query add() {{ insert Ship {{ name: "{name}" }} }}')
    ran = run("verify", uri, "--deep")
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == "sound"
    files = Path(uri, "nodes").glob("*/data/*")
    max(files, key=lambda path: path.stat().st_mtime_ns).unlink()
    ran = run("verify", uri, "--json")
    assert ran.code == 1
    (found,) = json.loads(ran.out)["findings"]
    assert (found["kind"], found["severity"]) == ("file_missing", "damage")
    assert "damaged: 1 problem" in run("verify", uri).out
    whole = graph.commits.list()[1].id
    ran = run("repair", uri)
    assert ran.code == 1
    assert f"commit {whole} is whole" in ran.out
    assert run("repair", uri, "--force").code == 2
    ran = run("repair", uri, "--confirm", "--keep-as", "saved", "--json", "--quiet")
    assert json.loads(ran.out)["rescues"] == [
        {"branch": "main", "commit_id": whole, "kept_as": "saved"}
    ]
    assert run("verify", uri, "--branch", "saved").code == 0
