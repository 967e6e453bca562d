"""The newest version of a manifest on a local disk, proven without a listing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.manifest.store import Manifest

INSERT = "query q($n: String) { insert Note { text: $n } }"


def test_open_read_and_write_list_no_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = og.init(tmp_path / "g.omni", "node Note { text: String @key }")
    graph.mutate(INSERT, params={"n": "a"})
    listed: list[str] = []
    scan = os.scandir

    def scandir(path: str) -> object:
        listed.append(str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    graph.mutate(INSERT, params={"n": "b"})
    again = og.open(tmp_path / "g.omni")
    again.mutate(INSERT, params={"n": "c"})
    assert graph.query("query q() { match { $n: Note } return { count($n) as n } }").rows == [
        {"n": 3}
    ]
    assert not [path for path in listed if path.endswith("_versions")]


@pytest.mark.parametrize("hint", [None, b"", b'{"version": 99}', b'{"version": 1}'])
def test_whatever_the_hint_says(tmp_path: Path, hint: bytes | None) -> None:
    graph = og.init(tmp_path / "g.omni", "node Note { text: String @key }")
    for number in range(3):
        graph.mutate(INSERT, params={"n": f"n{number}"})
    newest = graph.manifest.view()
    place = tmp_path / "g.omni" / "__manifest" / "main" / "_versions" / "latest_version_hint.json"
    if hint is None:
        place.unlink()
    else:
        place.write_bytes(hint)
    assert Manifest(graph.location).view().stored == newest.stored
