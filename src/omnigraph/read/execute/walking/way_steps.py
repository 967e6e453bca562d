"""The steps of ways: rows with the two nodes of each.

Owns laying ways out again as pairs of nodes, each once.
"""

from __future__ import annotations

import numpy as np

from omnigraph.lang.query import plan
from omnigraph.read.access.csr import adjacency
from omnigraph.read.access.way_tree import NOTHING
from omnigraph.read.access.ways import Ways
from omnigraph.read.execute.bindings import Bindings, Positions
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.execute.walking.search_units import first_of_each


def _steps(
    step: plan.WalkWay, rows: Bindings, ctx: ReadContext
) -> tuple[Positions, Positions, Positions]:
    """The distinct steps of each row's way: of which row, from which node, to which."""
    ways = ctx.variables[step.way]
    if not isinstance(ways, Ways):
        raise AssertionError(f"${step.way} is no way")
    ctx.variables.setdefault(step.left, ways.nodes)
    ctx.variables.setdefault(step.right, ways.nodes)
    positions = rows.columns[step.way]
    each, of = np.unique(positions, return_inverse=True)
    found = ways.laid_out(each)
    if not len(found.nodes):
        return NOTHING, NOTHING, NOTHING
    owners = np.repeat(np.arange(len(each)), np.diff(found.starts))
    inside = np.flatnonzero(owners[1:] == owners[:-1])
    way_of, before, after = owners[inside], found.nodes[inside], found.nodes[inside + 1]
    if step.undirected:
        way_of, before, after = (
            np.concatenate(both) for both in ((way_of, way_of), (before, after), (after, before))
        )
    first, _ = first_of_each([way_of, before, after], len(way_of))
    way_of, before, after = way_of[first], before[first], after[first]
    origins, place, _ = adjacency(way_of, np.arange(len(way_of)), None).expand(
        of.reshape(-1).astype(np.int64)
    )
    return origins, before[place], after[place]


def walk_ways(step: plan.WalkWay, rows: Bindings, ctx: ReadContext) -> Bindings:
    """Rows with the two nodes of every step of a way."""
    origins, before, after = _steps(step, rows, ctx)
    found = rows.take(origins)
    if step.left in found.columns:
        met = np.flatnonzero(found.columns[step.left] == before)
        found, after = found.take(met), after[met]
    else:
        found = found.bind(step.left, before)
    if step.right in found.columns:
        return found.take(np.flatnonzero(found.columns[step.right] == after))
    return found.bind(step.right, after)
