"""Every point that the sources pass is on a list, and so it is tested."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.cluster.failpoints import FAILPOINTS as CLUSTER_POINTS
from omnigraph.write.publish.failpoints import FAILPOINTS
from tests.faults import STORAGE_POINTS

SOURCES = Path(omnigraph.__file__).parent
# They hand the point on that they were given.
FORWARDING = {
    "storage/objects/faults.py",
    "write/publish/failpoints.py",
    "cluster/failpoints.py",
}


def passed_points() -> Iterator[tuple[str, ast.expr]]:
    """What every call of `reach` names, with the file it is in."""
    for file in sorted(SOURCES.rglob("*.py")):
        name = file.relative_to(SOURCES).as_posix()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _called(node.func) == "reach":
                yield name, node.args[0]


def _called(function: ast.expr) -> str | None:
    match function:
        case ast.Name(name) | ast.Attribute(attr=name):
            return name
    return None


@pytest.mark.slow
def test_every_point_that_is_passed_is_listed() -> None:
    found = [(file, point) for file, point in passed_points() if file not in FORWARDING]
    named = {(file, ast.literal_eval(point)) for file, point in found}
    stored = {point for file, point in named if file.startswith("storage/")}
    assert stored == set(STORAGE_POINTS)
    clusters = {point for file, point in named if file.startswith("cluster/")}
    assert clusters == set(CLUSTER_POINTS)
    assert {point for _, point in named} - stored - clusters == set(FAILPOINTS)


def test_no_point_is_on_both_lists() -> None:
    assert not set(FAILPOINTS) & set(STORAGE_POINTS)
    assert not set(CLUSTER_POINTS) & {*FAILPOINTS, *STORAGE_POINTS}
    assert len(FAILPOINTS) == len(set(FAILPOINTS))
