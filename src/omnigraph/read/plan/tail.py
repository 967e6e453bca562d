"""The tail of a read: what happens after its rows are bound, as names of operators.

Owns their order and their spelling, for the engine and for whoever explains it. Runs
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.lang.query import plan
from omnigraph.lang.query.plan_text import spell, spell_ranking

OperatorText = tuple[str, str]
"""The name of an operator, and what it works on."""

DISTINCT: OperatorText = ("distinct", "")


def tail_of(read: plan.ReadPlan) -> Iterator[OperatorText]:
    """Every operator of the tail, in the order they run."""
    if read.rank is not None:
        yield rank_text(read, read.rank.ranking)
        yield project_text(read)
        if read.distinct:
            yield DISTINCT
        return
    ordered = order_text(read)
    if read.group_by is None and not read.distinct:
        if ordered is not None:
            yield ordered
        yield project_text(read)
        return
    yield project_text(read) if read.group_by is None else aggregate_text(read)
    if read.distinct:
        yield DISTINCT
    if ordered is not None:
        yield ordered


def project_text(read: plan.ReadPlan) -> OperatorText:
    """Showing columns."""
    return "project", _columns(read)


def aggregate_text(read: plan.ReadPlan) -> OperatorText:
    """One row for each group."""
    keys = ", ".join(read.group_by or ())
    return "aggregate", f"by ({keys}): {_columns(read)}"


def order_text(read: plan.ReadPlan) -> OperatorText | None:
    """Ordering and cutting, which are one step; None when there is neither."""
    cut = _cut(read)
    if read.order:
        return "order", " ".join([", ".join(map(_key, read.order)), *cut])
    if cut:
        name, _, detail = " ".join(cut).partition(" ")
        return name, detail
    return None


def rank_text(read: plan.ReadPlan, ranking: plan.Ranking) -> OperatorText:
    """Ranking rows and cutting them, which are one step."""
    keys = [spell_ranking(ranking), *map(_key, read.order)]
    return "rank", " ".join([", ".join(keys), *_cut(read)])


def _cut(read: plan.ReadPlan) -> list[str]:
    return [
        f"{word} {spell(count) if isinstance(count, plan.ParamRef) else count}"
        for word, count in (("limit", read.limit), ("offset", read.offset))
        if count is not None
    ]


def _columns(read: plan.ReadPlan) -> str:
    return ", ".join(f"{column.name} := {spell(column.value)}" for column in read.columns)


def _key(key: plan.OrderKey) -> str:
    by = key.by if isinstance(key.by, str) else spell(key.by)
    return f"{by} desc" if key.descending else f"{by} asc"
