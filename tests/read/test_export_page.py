"""The lines that the page about exports shows are the lines an export writes."""

from __future__ import annotations

import json
from datetime import date, datetime
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.lang.literals import epoch_millis
from tests.docs.examples import blocks_of
from tests.read.graphs import add_rows, export_of

PAGE = Path(__file__).parents[2] / "docs" / "user" / "export.md"
BLOCKS = {block.info: block.text for block in blocks_of(PAGE.read_text("utf-8"), PAGE.name)}


def test_lines_as_shown(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", BLOCKS["pg"])
    shown = BLOCKS["json"].splitlines()
    for line in reversed(shown):
        key, row = row_of(json.loads(line))
        add_rows(graph, key, [row])
    assert list(export_of(graph)) == shown


def row_of(envelope: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    row = envelope["data"]
    if "type" in envelope:
        joined = row["joined"]
        row["joined"] = None if joined is None else date.fromisoformat(joined)
        return f"node:{envelope['type']}", row
    row["since"] = epoch_millis(datetime.fromisoformat(row["since"]))
    return f"edge:{envelope['edge']}", {**row, "src": envelope["from"], "dst": envelope["to"]}
