"""Lowering reads: from checked reads to plans.

Owns what is done after the rows are bound, and which conditions are plain predicates. Never reports
errors: what reaches it has been checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from omnigraph.lang.query import plan, resolved
from omnigraph.lang.query.check.columns import is_of_group
from omnigraph.lang.query.check.reads import CheckedRead
from omnigraph.lang.query.lowering.blocks import BlockLowering
from omnigraph.lang.schema.catalog import Catalog


def lower_read(catalog: Catalog, read: CheckedRead) -> plan.ReadPlan:
    """The plan of a checked read."""
    columns = read.columns.columns
    if read.branches:
        parts = tuple(lower_read(catalog, part) for part in read.branches)
        return plan.ReadPlan(
            (),
            columns,
            distinct=read.distinct,
            order=read.order,
            limit=read.limit,
            offset=read.offset,
            per=read.per,
            branches=parts,
        )
    block = _fold_filters(read.block)
    group_by = None
    if read.columns.aggregated:
        group_by = tuple(column.name for column in columns if not is_of_group(column.value))
    has_rows_of_variables = group_by is None and not read.distinct
    lowering = BlockLowering(catalog, block, frozenset())
    steps = lowering.run()
    # What only columns show is computed for the rows that are left, where these are rows.
    last = lowering.remaining(read.needed)
    late = lowering.remaining(None)
    if not has_rows_of_variables or read.ranking is not None:
        last, late = (*last, *late), ()
    return plan.ReadPlan(
        (*steps, *last),
        columns,
        group_by,
        read.distinct,
        _rank(block, read.ranking),
        read.order,
        read.limit,
        read.offset,
        _tie_breakers(read.variables, read.ways) if has_rows_of_variables else (),
        read.per,
        late,
    )


def _tie_breakers(variables: Iterable[str], ways: frozenset[str]) -> tuple[str, ...]:
    """Ids decide between rows, and between ways the order in which they were found."""
    named = (name for name in variables if not name.startswith("#"))
    return tuple(sorted(named, key=lambda name: (name in ways, f"{name}.id")))


def _rank(block: resolved.ResolvedBlock, ranking: plan.Ranking | None) -> plan.Rank | None:
    if ranking is None:
        return None
    arms = (ranking.primary, ranking.secondary) if isinstance(ranking, plan.Fusion) else (ranking,)
    candidates = tuple(
        plan.Candidates(
            arm.variable,
            arm.node_type,
            tuple(_predicates_on(block, arm.variable)),
        )
        for arm in arms
    )
    return plan.Rank(ranking, candidates)


def _predicates_on(block: resolved.ResolvedBlock, variable: str) -> Iterator[plan.Predicate]:
    """The predicates on one variable alone, those of the optional block it stems from included."""
    for part in block.parts:
        if isinstance(part, resolved.OptionalBlock) and variable in part.introduces:
            yield from _predicates_on(part.block, variable)
    for predicate in block.predicates:
        if plan.variables_of(predicate) == {variable}:
            yield predicate


def _fold_filters(block: resolved.ResolvedBlock) -> resolved.ResolvedBlock:
    """Turn `any` and `exists` blocks that hold only filters into plain predicates."""
    predicates = list(block.predicates)
    tests: list[resolved.Test] = []
    for test in block.tests:
        folded = replace(test, groups=tuple(_fold_filters(group) for group in test.groups))
        if test.kind in ("any", "exists") and all(map(_only_filters, folded.groups)):
            groups = tuple(group.predicates for group in folded.groups)
            predicates.extend(groups[0] if test.kind == "exists" else (plan.Either(groups),))
        else:
            tests.append(folded)
    parts = tuple(
        replace(part, block=_fold_filters(part.block))
        if isinstance(part, resolved.OptionalBlock)
        else part
        for part in block.parts
    )
    values = tuple(
        replace(value, block=_fold_filters(value.block))
        if isinstance(value, resolved.Fold)
        else value
        for value in block.values
    )
    return resolved.ResolvedBlock(parts, tuple(predicates), tuple(tests), values)


def _only_filters(block: resolved.ResolvedBlock) -> bool:
    return not (block.tests or block.values) and all(
        isinstance(part, resolved.Segment)
        and not part.nodes
        and not part.traversals
        and not part.way_steps
        for part in block.parts
    )
