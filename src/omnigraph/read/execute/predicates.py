"""Predicates over bindings: which rows of a query pass.

Owns three-valued logic: only what is known to be true passes. Predicates on one
variable alone have mostly been decided by its scan already.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ParamError
from omnigraph.lang.query import plan
from omnigraph.read.access.entities import NO_NODE, FoundRows
from omnigraph.read.access.entity_sets import parts_of, translated
from omnigraph.read.execute.bindings import POSITION, Bindings, Mask
from omnigraph.read.execute.comparisons import Operand, compare
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.execute.expressions import compared_type, operand, repeated
from omnigraph.rows.filters import equal_values
from omnigraph.storage.budget import beside, look, need

# A text that is searched takes as long as so many rows, and so does a letter that is searched for.
TEXT = 3
LETTER = 10
# So many pairs of texts are compared between two looks.
PAIRS_AT_ONCE = 65_536


def passing(predicates: Sequence[plan.Predicate], bindings: Bindings, ctx: ReadContext) -> Mask:
    """The rows for which every predicate is true."""
    mask = np.ones(bindings.count, dtype=bool)
    for predicate in predicates:
        need(POSITION * bindings.count)
        left = np.flatnonzero(mask)
        if not len(left):
            break
        # What others have decided already is not read any more.
        rows = bindings if len(left) == bindings.count else bindings.take(left)
        mask[left] = _truth(predicate, rows, ctx)
    return mask


def _truth(predicate: plan.Predicate, rows: Bindings, ctx: ReadContext) -> Mask:
    match predicate:
        case plan.Either(groups):
            mask: Mask = np.logical_or.reduce([passing(group, rows, ctx) for group in groups])
            return mask
        case plan.IsNull(plan.NodeRef(variable), negated):
            nobody: Mask = rows.columns[variable] == NO_NODE
            return ~nobody if negated else nobody
        case plan.IsNull(value, negated) if not isinstance(value, plan.NodeRef):
            tested = pc.is_null(operand(value, rows, ctx))
            return mask_of(pc.invert(tested) if negated else tested, rows.count)
        case plan.Comparison(left, op, right):
            sides = operand(left, rows, ctx), operand(right, rows, ctx)
            # Numbers of two kinds are made alike for it.
            need((2 if sides[0].type == sides[1].type else 4 * POSITION) * rows.count)
            return mask_of(compare(sides[0], op, sides[1]), rows.count)
        case plan.InList(value, choices):
            return _in_list(value, choices, rows, ctx)
        case plan.Contains(left, right):
            return _contains(left, right, rows, ctx)
        case plan.StartsWith(left, right):
            return _texts(left, right, rows, ctx, starts=True)
        case plan.TextMatch():
            return _searched(predicate, rows, ctx)
    raise AssertionError(f"unknown predicate {predicate}")


def _searched(predicate: plan.TextMatch, rows: Bindings, ctx: ReadContext) -> Mask:
    """Which rows have a node whose text the search finds."""
    from omnigraph.read.search.candidates import among
    from omnigraph.read.search.words import Words

    variable = predicate.subject.variable
    query = ctx.value_of(predicate.query)
    edits = 0 if predicate.edits is None else ctx.value_of(predicate.edits)
    if not isinstance(query, str) or not isinstance(edits, int):
        return np.zeros(rows.count, dtype=bool)  # as with every comparison to null
    if edits < 0:
        name = predicate.edits.name if isinstance(predicate.edits, plan.ParamRef) else "?"
        raise ParamError(
            f"param '{name}': the number of edits is 0 or more, found {edits}",
            details={"param": name},
        )
    nodes = ctx.nodes(predicate.node_type)
    need(2 * POSITION * rows.count)
    positions = rows.columns[variable]
    bound = ctx.variables[variable]
    if not isinstance(bound, FoundRows):
        positions = translated(positions, bound, nodes)
    mask = np.zeros(rows.count, dtype=bool)
    for part in parts_of(nodes):
        words = Words(part, predicate.subject.name)
        weight = TEXT * part.count + LETTER * len(query)
        found = beside(weight, partial(words.matching, predicate.mode, query, edits))
        mask |= among(translated(positions, nodes, part), found)
    return mask


def mask_of(found: Operand, count: int) -> Mask:
    """A mask in which unknown is false."""
    if isinstance(found, pa.Scalar):
        return np.full(count, found.as_py() is True)
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    mask: Mask = found.fill_null(False).to_numpy(zero_copy_only=False)  # noqa: FBT003 - pyarrow's own signature
    return mask


def _in_list(
    value: plan.Scalarish, choices: plan.ParamRef | plan.Const, rows: Bindings, ctx: ReadContext
) -> Mask:
    listed = ctx.value_of(choices)
    left = operand(value, rows, ctx)
    if not isinstance(listed, tuple):
        return np.zeros(rows.count, dtype=bool)
    wanted = equal_values(listed, compared_type(value).scalar).cast(left.type)
    if isinstance(left, pa.Scalar):
        left = repeated(left, rows.count)
    return mask_of(pc.and_(pc.is_in(left, value_set=wanted), pc.is_valid(left)), rows.count)


def _contains(
    left: plan.Scalarish, right: plan.Scalarish, rows: Bindings, ctx: ReadContext
) -> Mask:
    if not left.type.is_list:
        return _texts(left, right, rows, ctx, starts=False)
    if isinstance(left, plan.ParamRef | plan.Const):
        return _in_list(right, left, rows, ctx)
    lists = operand(left, rows, ctx)
    wanted = operand(right, rows, ctx)
    parents = pc.list_parent_indices(lists)
    if isinstance(wanted, pa.Array):
        wanted = wanted.take(parents)
    hits = mask_of(compare(pc.list_flatten(lists), "=", wanted), len(parents))
    mask = np.zeros(rows.count, dtype=bool)
    mask[parents.to_numpy()[hits]] = True
    return mask


def _texts(
    left: plan.Scalarish, right: plan.Scalarish, rows: Bindings, ctx: ReadContext, *, starts: bool
) -> Mask:
    texts, wanted = operand(left, rows, ctx), operand(right, rows, ctx)
    if isinstance(wanted, pa.Scalar):
        if not wanted.is_valid:
            return np.zeros(rows.count, dtype=bool)
        test = pc.starts_with if starts else pc.match_substring
        return mask_of(test(texts, wanted.as_py()), rows.count)
    # A pattern for each row: Arrow has no such function, so each distinct pair is tried once.
    if isinstance(texts, pa.Scalar):
        texts = repeated(texts, rows.count)
    mask = np.zeros(rows.count, dtype=bool)
    test_one = str.startswith if starts else str.__contains__
    for start in range(0, rows.count, PAIRS_AT_ONCE):
        look()
        some = texts.slice(start, PAIRS_AT_ONCE), wanted.slice(start, PAIRS_AT_ONCE)
        known = pc.and_(*map(pc.is_valid, some))
        pairs = (each.filter(known).to_pylist() for each in some)
        hits = np.fromiter(map(test_one, *pairs), dtype=bool)
        mask[start + np.flatnonzero(known)[hits]] = True
    return mask
