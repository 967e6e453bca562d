"""Examples of queries from fixture files: what one returns, or its error, however hops are made."""

from __future__ import annotations

import json

import pytest

import omnigraph as og
from omnigraph.errors import OmniGraphError
from omnigraph.read.plan.physical import Expansion
from tests.lang.fixture_file import Case
from tests.read.model import freeze


def check_example(graph: og.Graph, case: Case, expansion: Expansion) -> None:
    """Run a case: its `query` with `declared` and `params`; `rows`, `any order` or an `error`."""
    part = case.sections
    declared = part.get("declared", "").strip()
    source = f"query example({declared}) {{ {part['query']} }}"
    params = json.loads(part.get("params", "{}"))
    if "error" in part:
        with pytest.raises(OmniGraphError) as refused:
            graph.query(source, params=params, expansion=expansion)
        assert part["error"].strip() in str(refused.value)
        return
    found = graph.query(source, params=params, expansion=expansion)
    wanted = list(map(json.loads, part.get("rows", part.get("any order", "")).splitlines()))
    assert all(list(row) == found.columns for row in wanted)
    key = repr if "any order" in part else None
    rows, expected = list(map(freeze, found.rows)), list(map(freeze, wanted))
    if key is not None:
        rows, expected = sorted(rows, key=key), sorted(expected, key=key)
    assert rows == expected
