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
from omnigraph.read.execute.expressions import ids_of, output
from omnigraph.read.execute.operators import run_steps, select
from omnigraph.read.execute.ordering import ordered_rows, ranks
from omnigraph.read.execute.sorting import distinct
from omnigraph.read.plan.physical import PhysicalPlan, ScanNodes
from omnigraph.read.plan.text import tail_text
from omnigraph.read.search.candidates import CandidateSet, Numbers, Scores, among, condition_of
from omnigraph.read.search.rankers import Rankers

# So many nodes are tried for each row that is wanted, at first and at least.
TRIED = 4
FEWEST = 64
WIDER = 8

Arm = plan.Nearest | plan.Bm25


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
                rows = self._arm(ranking, wanted)
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

    def _arm(self, arm: Arm, wanted: int | None, nodes: str | None = None) -> Bindings:
        """The rows that an arm ranks; ``nodes`` is a variable that has to be somebody as well."""
        ranker = self.rankers.of(arm)
        first, *others = self.planned.steps
        starts_here = isinstance(first, ScanNodes) and first.step.variable == arm.variable
        if wanted is None or not starts_here or not isinstance(first, ScanNodes):
            every = _somebody(run_steps(self.planned.steps, Bindings.start(), self.ctx), nodes)
            return self._ordered(self._promising(every, arm, wanted), arm, wanted)
        pool = self._pool(first)
        # Where no step follows, every node that is tried is a row.
        tried = max(TRIED * wanted, FEWEST) if others else max(wanted, 1)
        while True:
            best, complete = ranker.best(pool, tried)
            rows = run_steps(others, Bindings.start().cross(arm.variable, np.sort(best)), self.ctx)
            rows = _somebody(rows, nodes)
            if rows.count >= wanted or complete:
                self.ctx.trace.note(tried=len(best))
                return self._ordered(rows, arm, wanted)
            tried *= WIDER

    def _promising(self, rows: Bindings, arm: Arm, wanted: int | None) -> Bindings:
        """The rows of the best nodes, as many as it takes for what is wanted."""
        if not wanted or rows.count <= FEWEST:
            return rows
        pool = distinct(rows.columns[arm.variable])
        pool = pool[pool != NO_NODE]
        tried = wanted
        while True:
            best, complete = self.rankers.of(arm).best(CandidateSet(pool), tried)
            kept = rows.keep(among(rows.columns[arm.variable], np.sort(best)))
            if kept.count >= wanted or complete:
                return kept
            tried *= WIDER

    def _pool(self, scan: ScanNodes) -> CandidateSet | None:
        """The nodes a ranking may choose from; None for all of a type."""
        entities, where = self.ctx.nodes(scan.step.node_type), scan.step.where
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
        ties = [ids_of(name, rows, self.ctx) for name in variables if name in rows.columns]
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
        nodes = fusion.variable
        arms = self._arms(fusion, wanted)
        scores = self.fuse(fusion, arms)
        primary, secondary = arms
        only = ~np.isin(secondary.columns[nodes], primary.columns[nodes])
        rows = primary.stacked(secondary.keep(only))
        order = np.arange(rows.count)
        fused = scores.at(rows.columns[nodes])
        # Where nothing else tells them apart, the rows of one node stay together, and as their
        # ranking has them.
        first = _first_places(rows.columns[nodes])
        chosen = np.lexsort([order, first, *reversed(self._further(rows)), -fused])
        return rows.take(chosen if wanted is None else chosen[:wanted])

    def _arms(self, fusion: plan.Fusion, wanted: int | None) -> list[Bindings]:
        """The rows of both rankings; found side by side where both wait for storage."""
        each = (fusion.primary, fusion.secondary)
        waits = all(self.rankers.of(arm).asks_storage for arm in each)
        # A trace has one operator at work at a time.
        if self.ctx.trace.is_on or not waits:
            return [self._arm(arm, wanted, fusion.variable) for arm in each]
        with ThreadPoolExecutor(1) as other:
            run = copy_context().run
            second = other.submit(run, self._arm, fusion.secondary, wanted, fusion.variable)
            return [self._arm(fusion.primary, wanted, fusion.variable), second.result()]

    def fuse(self, fusion: plan.Fusion, arms: Sequence[Bindings]) -> Scores:
        """The fused score of every node that either ranking knows."""
        smoothing = self._smoothing(fusion)
        nodes: list[Positions] = []
        shares: list[Numbers] = []
        for arm in arms:
            seen = arm.columns[fusion.variable]
            each, at = np.unique(seen, return_index=True)
            rank = np.empty(len(each), dtype=np.int64)
            rank[np.argsort(at)] = np.arange(len(each))
            nodes.append(each)
            shares.append(1.0 / (smoothing + rank + 1))
        every, place = np.unique(np.concatenate(nodes), return_inverse=True)
        fused: Numbers = np.bincount(place, np.concatenate(shares), len(every)).astype(np.float64)
        found = Scores(every, fused)
        self.rankers.fused[fusion] = found
        return found

    def fuse_all(self, rows: Bindings) -> None:
        """Fuse over all rows for a score that is returned and orders nothing."""
        for ranking in self.planned.scores:
            if isinstance(ranking, plan.Fusion):
                known = _somebody(rows, ranking.variable)
                arms = (ranking.primary, ranking.secondary)
                self.fuse(ranking, [self._ordered(known, arm, None) for arm in arms])

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
    ranked = RankedRead(planned, ctx, Rankers(ctx))
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


def _numbered(keys: Numbers) -> Positions:
    """A number for each key, ascending with it; equal keys have equal numbers."""
    numbers: Positions = np.unique(keys, return_inverse=True)[1].astype(np.int64)
    return numbers


def _first_places(nodes: Positions) -> Positions:
    """Where each row's node stands first."""
    _, first, place = np.unique(nodes, return_index=True, return_inverse=True)
    places: Positions = first[place]
    return places
