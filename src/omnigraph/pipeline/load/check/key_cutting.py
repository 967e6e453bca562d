"""What is cut in one round of checks, and what is decided about it.

Owns which keys are needed for which rule, in which order they can be cut, and when stored keys
are only looked at for those that the input asks about. Knows nothing of what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.structural import ID, SRC
from omnigraph.pipeline.load.check.cuts import ASKED, HELD, OWNED, CutJob, KeySlices
from omnigraph.pipeline.load.check.key_source import KeySource, RowList
from omnigraph.pipeline.load.check.key_spaces import KeySpaces, RunTasks
from omnigraph.pipeline.load.check.left_out import RejectedRows
from omnigraph.pipeline.load.check.ranges import (
    REPLACED,
    AskedEnds,
    Decision,
    Degrees,
    EndDecision,
    Found,
    IdDecision,
    TupleDecision,
)
from omnigraph.pipeline.load.check.round_rows import RoundRows, is_few
from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.write.change.change_set import EntityType, find_type
from omnigraph.write.rules.edges import ends_of
from omnigraph.write.rules.uniqueness import Constraint, constraints_of

Jobs = list[tuple[str, CutJob]]


@dataclass(slots=True)
class RoundKeys:
    """The keys of the rows that are left, and of the stored rows they meet."""

    run: RunTasks
    area: StagingArea
    rows: RoundRows
    left_out: RejectedRows
    _spaces: KeySpaces = field(init=False)
    _replaced: dict[str, list[Found]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._spaces = KeySpaces(self.run, self.area)

    @property
    def made(self) -> Mapping[str, KeySlices]:
        """What was cut, by name."""
        return self._spaces.made

    # -- cutting -----------------------------------------------------------------------

    def _staged_cuts(
        self,
        name: str,
        key: str,
        members: tuple[str, ...],
        columns: tuple[str, ...],
        ranges: int,
        *,
        with_superseded: bool = True,
    ) -> Jobs:
        """Cuts of the rows that are left; those of superseded rows only where they matter."""
        return [
            (
                name,
                CutJob(
                    self.area,
                    "cut",
                    source.without(
                        self.left_out.lists(self.area, key, at, with_superseded=not with_superseded)
                    ),
                    self.rows.staged[key].type,
                    members,
                    columns,
                    ranges,
                ),
            )
            for at, source in enumerate(self.rows.staged[key].groups)
        ]

    def _stored_cuts(
        self,
        name: str,
        key: str,
        members: tuple[str, ...],
        columns: tuple[str, ...],
        *,
        ranges: int,
        only: tuple[KeySlices, ...] = (),
    ) -> Jobs:
        type_ = find_type(self.rows.base.catalog, key)
        return [
            (name, CutJob(self.area, "cut", source, type_, members, columns, ranges, only))
            for source in self.rows.stored(key)
        ]

    def _end_cuts(self, key: str, edge: EdgeType) -> Jobs:
        jobs: Jobs = []
        for column, _ in ends_of(edge):
            ranges = self.rows.ranges_of_end(edge, column)
            name = f"{column}:{key}"
            jobs += self._staged_cuts(name, key, (column,), ASKED, ranges, with_superseded=False)
        return jobs

    def cut_first(self) -> None:
        """Cut what can be cut before it is known which rows are superseded or replaced."""
        jobs: Jobs = []
        ends = self.rows.ends()
        for key, staged in self.rows.staged.items():
            type_ = staged.type
            is_end = isinstance(type_, NodeType) and (type_.name in ends or self.rows.replaces)
            if staged.has_given_ids or is_end:
                columns = OWNED if staged.has_given_ids else ASKED
                # Superseded rows count here, as they do among the rows of one batch.
                jobs += self._staged_cuts(
                    f"ids:{key}", key, (ID,), columns, self.rows.ranges_of(key)
                )
            for rule in _tuples(type_):
                ranges = self.rows.ranges_of(_space(key, rule))
                jobs += self._staged_cuts(tuples_name(key, rule), key, rule.members, HELD, ranges)
            if isinstance(type_, EdgeType) and not self.rows.supersedes(key):
                jobs += self._end_cuts(key, type_)
        for key in self.rows.stored_ids():
            if not is_few(self.rows.asking_rows(key), self.rows.stored_rows(key)):
                jobs += self._stored_cuts(
                    f"stored:{key}", key, (ID,), OWNED, ranges=self.rows.ranges_of(key)
                )
        jobs += self._orphan_cuts()
        self._spaces.cut(jobs)
        self._cut_asked()

    def _cut_asked(self) -> None:
        """Of stored ids, where few are asked about, those."""
        jobs: Jobs = []
        for key in self.rows.stored_ids():
            if f"stored:{key}" in self.made:
                continue
            only = self._spaces.some(f"ids:{key}", *self._end_names(key))
            if only:
                jobs += self._stored_cuts(
                    f"stored:{key}", key, (ID,), OWNED, ranges=self.rows.ranges_of(key), only=only
                )
        self._spaces.cut(jobs)

    def _end_names(self, key: str, *, late: bool = False) -> list[str]:
        """The cuts of ends that name nodes of a type."""
        if not key.startswith("node:"):
            return []
        ends = self.rows.ends().get(key.partition(":")[2], ())
        return [
            f"{column}:{edge}" for edge, column in ends if not late or self.rows.supersedes(edge)
        ]

    def _orphan_cuts(self) -> Jobs:
        """Stored edges that may lose an end, for types that are replaced as a whole."""
        jobs: Jobs = []
        for _, edge in sorted(self.rows.base.catalog.edges.items()):
            key = f"edge:{edge.name}"
            if not self.rows.replaces or key in self.rows.touched or not self.rows.stored_rows(key):
                continue
            for column, _ in ends_of(edge):
                nodes = self.rows.base.catalog.nodes_at(edge, column)
                if any(f"node:{node.name}" in self.rows.touched for node in nodes):
                    ranges = self.rows.ranges_of_end(edge, column)
                    jobs += self._stored_cuts(
                        f"{column}:stored:{key}", key, (column,), ASKED, ranges=ranges
                    )
        return jobs

    # -- what depends on ids -------------------------------------------------------------

    def has_late(self) -> bool:
        """Whether anything can be cut only when it is known which rows are replaced."""
        return any(
            (isinstance(staged.type, EdgeType) and self.rows.supersedes(key))
            or (self.rows.has_stored(key) and any(_tuples(staged.type)))
            or self.rows.counts_stored(key)
            for key, staged in self.rows.staged.items()
        )

    def cut_late(self, found: Mapping[str, list[Found]]) -> None:
        """Cut the rest, given what was found about ids."""
        self._replaced = {key: found.get(f"replaced:ids:{key}", []) for key in self.rows.staged}
        jobs: Jobs = []
        for key, staged in self.rows.staged.items():
            type_ = staged.type
            if isinstance(type_, EdgeType) and self.rows.supersedes(key):
                jobs += self._end_cuts(key, type_)
        self._spaces.cut(jobs)
        jobs = []
        for key, staged in self.rows.staged.items():
            if self.rows.has_stored(key):
                for rule in _tuples(staged.type):
                    jobs += self._held_cuts(key, rule)
            if self.rows.counts_stored(key):
                jobs += self._degree_cuts(key)
        for key in self.rows.stored_ids():
            only = self._spaces.some(*self._end_names(key))
            if self.rows.is_filtered(key) and self._end_names(key, late=True) and only:
                ranges = self.rows.ranges_of(key)
                jobs += self._stored_cuts(
                    f"nodes:{key}", key, (ID,), ASKED, ranges=ranges, only=only
                )
        self._spaces.cut(jobs)

    def _stays(self, key: str) -> list[KeySource]:
        """The groups of stored rows of a type, without those that are replaced."""
        replaced = self._replaced[key]
        sources = self.rows.stored(key)
        if not replaced:
            return list(sources)
        files = self.area.keep("replaced", tuple(one.file for one in replaced))
        hit = frozenset[int]().union(*(one.cuts for one in replaced))
        return [
            source.without([RowList(self.area, files, REPLACED, at, of_many=True)])
            if at in hit
            else source
            for at, source in enumerate(sources)
        ]

    def _held_cuts(self, key: str, rule: Constraint) -> Jobs:
        """Stored rows that stay, by the tuples they hold."""
        name = tuples_name(key, rule)
        own = self.made.get(name)
        if own is None:
            return []
        few = is_few(own.count, self.rows.stored_rows(key))
        only = (own,) if few else ()
        return [
            (
                f"held:{name}",
                CutJob(self.area, "cut", source, rule.type, rule.members, HELD, own.ranges, only),
            )
            for source in self._stays(key)
        ]

    def _degree_cuts(self, key: str) -> Jobs:
        """Stored edges by source; those that go are of no weight."""
        own = self.made[f"{SRC}:{key}"]
        type_ = self.rows.staged[key].type
        weight = int(self.rows.has_stored(key))
        few = is_few(own.count, self.rows.stored_rows(key)) and weight
        only = (own,) if few else ()
        keeps = isinstance(type_, EdgeType) and bool(type_.min_out)
        return [
            (
                f"degrees:{key}",
                CutJob(
                    self.area,
                    "cut",
                    source,
                    type_,
                    (SRC,),
                    ASKED,
                    own.ranges,
                    only,
                    weight,
                    keeps_left_out=keeps,
                ),
            )
            for source in self._stays(key)
        ]

    # -- deciding ------------------------------------------------------------------------

    def decide(self, decisions: Sequence[tuple[Decision, int]]) -> dict[str, list[Found]]:
        """What is found about all ranges."""
        return self._spaces.decide(decisions)

    def id_decisions(self) -> list[tuple[Decision, int]]:
        """What ids are there twice, and which are stored."""
        decisions: list[tuple[Decision, int]] = []
        for key, staged in self.rows.staged.items():
            own = self.made.get(f"ids:{key}")
            if own is None or not staged.has_given_ids:
                continue
            stored = self.made.get(f"stored:{key}") if self.rows.meets(key) else None
            one = IdDecision(f"ids:{key}", not staged.type.key, own, stored)
            decisions.append((one, own.ranges))
        return decisions

    def other_decisions(self) -> list[tuple[Decision, int]]:
        """Tuples, ends and numbers of edges."""
        decisions: list[tuple[Decision, int]] = []
        for key, staged in self.rows.staged.items():
            for rule in _tuples(staged.type):
                name = tuples_name(key, rule)
                own = self.made[name]
                held = self.made.get(f"held:{name}")
                decisions.append((TupleDecision(name, own, held), own.ranges))
        for end in self.rows.base.catalog.nodes:
            one = self._end_decision(end)
            if one is not None:
                decisions.append((one, self.rows.ranges_of(f"node:{end}")))
        for key, edge, column in self.rows.shared_ends():
            one = self._shared_decision(key, edge, column)
            decisions.append((one, self.rows.ranges_of_end(edge, column)))
        return decisions

    def _shared_decision(self, key: str, edge: EdgeType, column: str) -> EndDecision:
        """The same of an end where nodes may be of several types."""
        names = (f"{column}:{key}", f"{column}:stored:{key}")
        asked = tuple(AskedEnds(name, self.made[name]) for name in names if name in self.made)
        nodes = self._cut_references(edge, column, tuple(one.keys for one in asked))
        is_counted = column == SRC and edge.is_bounded and key in self.rows.staged
        degrees = (self._degrees(key, edge),) if is_counted else ()
        return EndDecision(nodes, asked, degrees)

    def _cut_references(
        self, edge: EdgeType, column: str, asked: tuple[KeySlices, ...]
    ) -> tuple[KeySlices, ...]:
        """The nodes that may be at an end, as edges call them."""
        name, jobs = f"references:{edge.name}:{column}", Jobs()
        ranges = self.rows.ranges_of_end(edge, column)
        for node in self.rows.base.catalog.nodes_at(edge, column):
            key = f"node:{node.name}"
            if key in self.rows.staged:
                jobs += self._staged_cuts(name, key, (ID,), ASKED, ranges)
            if self.rows.has_stored(key):
                count = sum(one.count for one in asked)
                only = asked if is_few(count, self.rows.stored_rows(key)) else ()
                jobs += self._stored_cuts(name, key, (ID,), ASKED, ranges=ranges, only=only)
        self._spaces.cut([(name, replace(job, as_references=True)) for name, job in jobs])
        return self._spaces.some(name)

    def _end_decision(self, end: str) -> EndDecision | None:
        key = f"node:{end}"
        asked = [
            AskedEnds(name, self.made[name])
            for name in (*self._end_names(key), *self._orphan_names(end))
            if name in self.made
        ]
        degrees = tuple(
            self._degrees(edge_key, edge)
            for edge_key, edge, _ in self.rows.edges()
            if edge.source == end and edge.is_bounded and SRC not in edge.shared
        )
        if not asked and not degrees:
            return None
        nodes = f"nodes:{key}" if f"nodes:{key}" in self.made else f"stored:{key}"
        return EndDecision(self._spaces.some(f"ids:{key}", nodes), tuple(asked), degrees)

    def _orphan_names(self, end: str) -> list[str]:
        return [
            f"{column}:stored:edge:{name}"
            for name, edge in sorted(self.rows.base.catalog.edges.items())
            for column, one in ends_of(edge)
            if one == end and column not in edge.shared
        ]

    def _degrees(self, key: str, edge: EdgeType) -> Degrees:
        nodes = self.rows.base.catalog.nodes_at(edge, SRC)
        of_nodes = self.rows.replaces and any(
            f"node:{node.name}" in self.rows.touched for node in nodes
        )
        stored = self.made.get(f"degrees:{key}")
        return Degrees(edge, self.made[f"{SRC}:{key}"], stored, of_nodes)

    # -- what is replaced ------------------------------------------------------------------

    def replaced(self, key: str, found: Mapping[str, list[Found]]) -> Sequence[RowList]:
        """The stored rows of a type whose ids are staged."""
        return [
            RowList(self.area, one.file, REPLACED, group)
            for one in found.get(f"replaced:ids:{key}", ())
            for group in sorted(one.cuts)
        ]


def _tuples(type_: EntityType) -> tuple[Constraint, ...]:
    """The rules of uniqueness but for the key, which ids are made of."""
    return tuple(rule for rule in constraints_of(type_) if not rule.is_key)


def _space(key: str, rule: Constraint) -> str:
    return f"{key}|{'-'.join(rule.members)}"


def tuples_name(key: str, rule: Constraint) -> str:
    """The name of the tuples that a type's rows hold."""
    return f"tuples:{key}:{'-'.join(rule.members)}"
