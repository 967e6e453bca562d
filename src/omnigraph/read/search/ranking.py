"""Ranked reads: the rows of a query in the order of a ranking, cut to what is wanted.

Owns that the cut never costs a row: where only the best nodes are looked at first, more
of them are taken until enough rows are left or there are no more. So the result is that
of ranking all rows, at the price of ranking few.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial

import numpy as np

from omnigraph.errors import ParamError
from omnigraph.lang.query import plan
from omnigraph.lang.query.plan_text import step_text
from omnigraph.read.access.entities import NO_NODE
from omnigraph.read.execute.bindings import Bindings, Positions
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.execute.expressions import output, ties_of
from omnigraph.read.execute.operators import run_steps, select
from omnigraph.read.execute.ordering import ordered_rows, ranks
from omnigraph.read.execute.sorting import distinct
from omnigraph.read.plan.physical import PhysicalPlan, ScanNodes
from omnigraph.read.plan.text import tail_text
from omnigraph.read.search.candidates import CandidateSet, Numbers, among, condition_of
from omnigraph.read.search.fusion import (
    GROWTH,
    WINDOW,
    FusedNodes,
    fused,
    most_beyond,
    ranked_nodes,
)
from omnigraph.read.search.rankers import Rankers

# So many nodes are tried for each row that is wanted, at first and at least.
TRIED = 4
FEWEST = 64
WIDER = 8

Arm = plan.Nearest | plan.Bm25


@dataclass(frozen=True, slots=True)
class _Goal:
    """How many rows are wanted, or rows of how many nodes."""

    count: int
    nodes: str | None = None

    def is_reached(self, rows: Bindings) -> bool:
        """Whether there are enough."""
        if self.nodes is None:
            return rows.count >= self.count
        return len(_known(rows.columns[self.nodes])) >= self.count


@dataclass(frozen=True, slots=True)
class RankedRead:
    """The rows of one read, ranked."""

    planned: PhysicalPlan
    ctx: ReadContext
    rankers: Rankers

    @property
    def read(self) -> plan.ReadPlan:
        """What is asked."""
        return self.planned.read

    def rows(self, ranking: plan.Ranking, wanted: int | None) -> Bindings:
        """The first rows in the order of the ranking; all of them when no number is given."""
        with self.ctx.trace.operator(*tail_text(self.read, "rank")) as done:
            if isinstance(ranking, plan.Fusion):
                rows = self._fused(ranking, wanted)
            else:
                goal = None if wanted is None else _Goal(wanted)
                rows = self._ordered(self._candidates(ranking, goal)[0], ranking, wanted)
            done.rows = rows.count
            if self.ctx.trace.is_on:
                self._explain(ranking)
        return rows

    def _explain(self, ranking: plan.Ranking) -> None:
        """Say how each arm was answered."""
        arms: tuple[Arm, ...]
        if isinstance(ranking, plan.Fusion):
            arms = (ranking.primary, ranking.secondary)
        else:
            arms = (ranking,)
        self.ctx.trace.note(ranked_by=[self.rankers.of(arm).way for arm in arms])

    # -- one ranking -----------------------------------------------------------------

    def _candidates(self, arm: Arm, goal: _Goal | None) -> tuple[Bindings, bool]:
        """The rows of the best nodes that it takes to reach a goal; whether they are all."""
        ranker = self.rankers.of(arm)
        first, *others = self.planned.steps
        starts_here = isinstance(first, ScanNodes) and first.step.variable == arm.variable
        if goal is None or not starts_here or not isinstance(first, ScanNodes):
            every = run_steps(self.planned.steps, Bindings.start(), self.ctx)
            return self._promising(every, arm, goal)
        pool = self._pool(first)
        # Where no step follows, every node that is tried is a row.
        tried = max(TRIED * goal.count, FEWEST) if others else max(goal.count, 1)
        while True:
            best, complete = ranker.best(pool, tried)
            rows = run_steps(others, Bindings.start().cross(arm.variable, np.sort(best)), self.ctx)
            if complete or goal.is_reached(rows):
                self.ctx.trace.note(tried=len(best))
                return rows, complete
            tried *= WIDER

    def _promising(self, rows: Bindings, arm: Arm, goal: _Goal | None) -> tuple[Bindings, bool]:
        """The rows of the best nodes, as many as it takes; whether they are all."""
        if goal is None or not goal.count or rows.count <= FEWEST:
            return rows, True
        pool = CandidateSet(_known(rows.columns[arm.variable]))
        tried = goal.count
        while True:
            best, complete = self.rankers.of(arm).best(pool, tried)
            kept = rows.keep(among(rows.columns[arm.variable], np.sort(best)))
            if complete or goal.is_reached(kept):
                return kept, complete
            tried *= WIDER

    def _pool(self, scan: ScanNodes) -> CandidateSet | None:
        """The nodes a ranking may choose from; None for all of a type."""
        entities, where = self.ctx.nodes_of(scan.step.node_type), scan.step.where
        if not where:
            self.ctx.variables[scan.step.variable] = entities
            return None
        with self.ctx.trace.operator(*step_text(scan.step)) as done:
            found = select(scan, self.ctx)
            done.rows = len(found)
        return CandidateSet(found, condition_of(entities, where, self.ctx))

    def _ordered(self, rows: Bindings, arm: Arm, wanted: int | None) -> Bindings:
        """By the arm's keys, then by what the query orders by, then by ids."""
        keys = self.rankers.of(arm).keys(rows.columns[arm.variable])
        matched = np.flatnonzero(~np.isnan(keys))
        rows = rows.take(matched)
        variables = self.read.tie_breakers or tuple(sorted(rows.columns))
        ties = ties_of(variables, rows, self.ctx)
        sorted_by = [_numbered(keys[matched]), *self._further(rows)]
        return rows.take(ordered_rows(sorted_by, ties, rows.count, wanted))

    def _further(self, rows: Bindings) -> list[Positions]:
        """What the query orders by after the ranking; fused scores come of this and not into it."""
        named = {column.name: column.value for column in self.read.columns}
        values = [
            (named[key.by] if isinstance(key.by, str) else key.by, key) for key in self.read.order
        ]
        return [
            ranks(output(value, rows, self.ctx), descending=key.descending)
            for value, key in values
            if not (isinstance(value, plan.Score) and isinstance(value.ranking, plan.Fusion))
        ]

    # -- two rankings ----------------------------------------------------------------

    def _fused(self, fusion: plan.Fusion, wanted: int | None) -> Bindings:
        """The rows of the best nodes of both, each as the first ranking that knows it has it."""
        window, smoothing = WINDOW, self._smoothing(fusion)
        while True:
            arms = self._arms(fusion, None if wanted is None else window)
            rows, sums, order = self._joined(fusion, [found for found, _ in arms])
            open_arms = sum(not complete for _, complete in arms)
            sure = np.count_nonzero(sums > most_beyond(window, smoothing, open_arms))
            if not open_arms or (wanted is not None and sure >= wanted):
                # Where nothing else tells them apart, the rows of one node stay together, and
                # as their ranking has them.
                keys = [np.arange(rows.count), order, *reversed(self._further(rows)), -sums]
                chosen = np.lexsort(keys)
                return rows.take(chosen if wanted is None else chosen[:wanted])
            window *= GROWTH

    def _arms(self, fusion: plan.Fusion, window: int | None) -> list[tuple[Bindings, bool]]:
        """The rows of both rankings; found side by side where both wait for storage."""
        primary, secondary = fusion.primary, fusion.secondary
        waits = all(self.rankers.of(arm).asks_storage for arm in (primary, secondary))
        # A trace has one operator at work at a time.
        if self.ctx.trace.is_on or not waits:
            return [self._first_nodes(arm, fusion, window) for arm in (primary, secondary)]
        with ThreadPoolExecutor(1) as other:
            run = copy_context().run
            second = other.submit(run, self._first_nodes, secondary, fusion, window)
            return [self._first_nodes(primary, fusion, window), second.result()]

    def _first_nodes(
        self, arm: Arm, fusion: plan.Fusion, window: int | None
    ) -> tuple[Bindings, bool]:
        """All rows of the first nodes by a ranking, in its order; whether there are no others.

        A ranking of other nodes says something about each row of a node: all are looked at.
        """
        nodes = fusion.variable
        goal = None if window is None or arm.variable != nodes else _Goal(window, nodes)
        rows, complete = self._candidates(arm, goal)
        rows = self._ordered(_somebody(rows, nodes), arm, None)
        ranked = ranked_nodes(rows.columns[nodes])
        if window is None or len(ranked) <= window:
            return rows, complete
        return rows.keep(np.isin(rows.columns[nodes], ranked[:window])), False

    def _joined(
        self, fusion: plan.Fusion, arms: Sequence[Bindings]
    ) -> tuple[Bindings, Numbers, Positions]:
        """The rows of two rankings: the sums of their nodes, and what decides between equal ones.

        The rows of a node are those of the first ranking that has a place for it.
        """
        nodes = fusion.variable
        known = self._fuse(fusion, arms)
        primary, secondary = arms
        rows = primary.keep(known.are_in_first(primary.columns[nodes])).stacked(
            secondary.keep(~known.are_in_first(secondary.columns[nodes]))
        )
        found = rows.columns[nodes]
        return rows, known.scores.at(found), known.order_of(found)

    def _fuse(self, fusion: plan.Fusion, arms: Sequence[Bindings]) -> FusedNodes:
        """The fused score of every node that either ranking knows."""
        ranked = [ranked_nodes(arm.columns[fusion.variable]) for arm in arms]
        known = fused(ranked, self._smoothing(fusion))
        self.rankers.fused[fusion] = known.scores
        return known

    def fuse_all(self, rows: Bindings) -> None:
        """Fuse over all rows for a score that is returned and orders nothing."""
        for ranking in self.planned.scores:
            if isinstance(ranking, plan.Fusion):
                known = _somebody(rows, ranking.variable)
                arms = (ranking.primary, ranking.secondary)
                self._fuse(ranking, [self._ordered(known, arm, None) for arm in arms])

    def _smoothing(self, fusion: plan.Fusion) -> int:
        value = self.ctx.value_of(fusion.k)
        if isinstance(value, int) and value > 0:
            return value
        name = fusion.k.name if isinstance(fusion.k, plan.ParamRef) else "k"
        raise ParamError(
            f"param '{name}': the k of rrf is a positive integer, found {value}",
            details={"param": name},
        )


def ranked_read(planned: PhysicalPlan, ctx: ReadContext) -> RankedRead:
    """What ranks the rows of a read, and tells the scores that it returns."""
    rank = planned.read.rank
    is_fused = rank is not None and isinstance(rank.ranking, plan.Fusion)
    ranked = RankedRead(planned, ctx, Rankers(ctx, WINDOW if is_fused else 1))
    for ranking in planned.scores:
        ctx.scores[ranking] = partial(shown_scores, ranking, rankers=ranked.rankers)
    return ranked


def shown_scores(ranking: plan.Ranking, rows: Bindings, rankers: Rankers) -> Numbers:
    """What a ranking says about each row; NaN for nothing."""
    if isinstance(ranking, plan.Fusion):
        return rankers.fused[ranking].at(rows.columns[ranking.variable])
    return rankers.of(ranking).shown(rows.columns[ranking.variable])


def _somebody(rows: Bindings, variable: str | None) -> Bindings:
    """The rows in which a variable is somebody."""
    return rows if variable is None else rows.keep(rows.columns[variable] != NO_NODE)


def _known(nodes: Positions) -> Positions:
    """The nodes that are somebody, ascending, each once."""
    each = distinct(nodes)
    known: Positions = each[each != NO_NODE]
    return known


def _numbered(keys: Numbers) -> Positions:
    """A number for each key, ascending with it; equal keys have equal numbers."""
    numbers: Positions = np.unique(keys, return_inverse=True)[1].astype(np.int64)
    return numbers
