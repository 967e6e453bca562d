"""Rules of sets: uniqueness, endpoints, cardinality and key conflicts of staged rows.

Owns the order in which they are asked, which is that of the evaluator in `write.check`, and
which directories and probes it takes. Says what is wrong and what is replaced; changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.structural import DST, ENDPOINTS, ID, SRC, spelling
from omnigraph.pipeline.load.check.key_index import (
    DirectoryJob,
    DirectoryPart,
    KeyIndex,
    KeySource,
    make_part,
    parts_for,
)
from omnigraph.pipeline.load.check.tasks import (
    CheckResult,
    CheckTask,
    DuplicateKeys,
    EdgesOf,
    IdClashes,
    MissingEnds,
    StoredClashes,
    StoredDegrees,
    StoredMatches,
    ask,
    wrong_degrees,
)
from omnigraph.pipeline.load.check.violations import RejectedRows, RuleViolations, SetRule, verdict
from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.pipeline.load.stage.staged_types import StagedType
from omnigraph.storage.tables.fragments import layout_of
from omnigraph.storage.tables.table import ROW_ADDRESS
from omnigraph.write.change.change_set import EntityType, find_type
from omnigraph.write.load.changes import LoadMode
from omnigraph.write.publish.base import Base
from omnigraph.write.rules.edges import ends_of
from omnigraph.write.rules.uniqueness import EXISTS, TWICE, Constraint, constraints_of

RunTasks = Callable[[str, Callable[..., object], Sequence[object]], list[object]]
# The rules of all types come before this one.
_KEYS = 1 << 20


@dataclass(frozen=True, slots=True)
class CheckRound:
    """What one look at the rows that are left has found.

    ``matches`` names, by type, the tables of stored rows that staged ones replace.
    ``directories`` are what was made on the way, by name.
    """

    verdicts: list[RuleViolations]
    matches: Mapping[str, list[str]]
    directories: Mapping[str, KeyIndex]

    @property
    def is_right(self) -> bool:
        """Whether nothing is wrong with them."""
        return not self.verdicts


@dataclass(slots=True)
class SetRules:
    """The rules of one load against one base."""

    run: RunTasks
    area: StagingArea
    base: Base
    staged: Mapping[str, StagedType]
    mode: LoadMode
    touched: frozenset[str]
    shown: int
    directories: dict[str, KeyIndex] = field(default_factory=dict)
    _touched: frozenset[str] = frozenset()

    def look(self, left_out: RejectedRows) -> CheckRound:
        """Ask every rule about the rows that are left."""
        self.directories = {}
        self._touched = self.touched - self._emptied(left_out)
        self._make(self._first_directories(left_out))
        self._supersede(left_out)
        repeats = self._repeats(left_out)
        verdicts = self._verdicts(repeats)
        probes = self._probes(left_out, {probe.rule.order for probe in repeats})
        verdicts += self._verdicts(probes)
        verdicts += self._cardinality(left_out)
        matches = self._matches()
        if not verdicts:
            verdicts = self._verdicts(self._key_clashes(left_out, matches))
        return CheckRound(verdicts, matches, self.directories)

    # -- what there is ---------------------------------------------------------------

    @property
    def _replaces(self) -> bool:
        return self.mode == "overwrite"

    def _emptied(self, left_out: RejectedRows) -> set[str]:
        """The types whose every row has been rejected: they are left alone."""
        return {
            key
            for key, staged in self.staged.items()
            if len(left_out.addresses(key, with_superseded=False)) == staged.count
        }

    def _edges(self) -> list[EdgeType]:
        return [
            edge
            for _, edge in sorted(self.base.catalog.edges.items())
            if f"edge:{edge.name}" in self.staged
        ]

    def _stored(self, key: str) -> KeySource:
        table = self.base.table(key).table
        return KeySource(table, layout_of(table).parts)

    def _has_stored(self, key: str) -> bool:
        """Whether stored rows of a type stay, or are looked at one by one."""
        replaced = self._replaces and key in self._touched
        return not replaced and self.base.table(key).table.pin.row_count > 0

    def _source(self, key: str, left_out: RejectedRows) -> KeySource:
        return self.staged[key].source(left_out.addresses(key))

    # -- directories -----------------------------------------------------------------

    def _first_directories(self, left_out: RejectedRows) -> list[tuple[str, DirectoryJob]]:
        ends = {end for edge in self._edges() for end in (edge.source, edge.target)}
        jobs: list[tuple[str, DirectoryJob]] = []
        for key, staged in self.staged.items():
            # Superseded rows count here, as they do among the rows of one batch.
            source = staged.source(left_out.addresses(key, with_superseded=False))
            is_end = isinstance(staged.type, NodeType) and (
                staged.type.name in ends or self._replaces
            )
            if staged.has_given_ids or is_end:
                last = not staged.type.key
                jobs += self._jobs(f"ids:{key}", staged.type, (ID,), [source], keeps_last=last)
            for rule in constraints_of(staged.type):
                if not rule.is_key:
                    name = tuples_name(key, rule)
                    jobs += self._jobs(name, staged.type, rule.members, [source])
        for end in sorted(ends):
            key = f"node:{end}"
            if self._has_stored(key):
                type_ = find_type(self.base.catalog, key)
                jobs += self._jobs(f"stored:{key}", type_, (ID,), [self._stored(key)])
        return jobs

    def _jobs(
        self,
        name: str,
        type_: EntityType,
        members: tuple[str, ...],
        sources: Sequence[KeySource],
        *,
        keeps_last: bool = False,
    ) -> list[tuple[str, DirectoryJob]]:
        parts = parts_for(sum(source.rows for source in sources))
        stem = name.replace(":", "-")
        return [
            (
                name,
                DirectoryJob(
                    stem, self.area, type_, members, tuple(sources), part, parts, keeps_last
                ),
            )
            for part in range(parts)
        ]

    def _make(self, jobs: Sequence[tuple[str, DirectoryJob]]) -> None:
        made = self.run("index keys", make_part, [job for _, job in jobs])
        parts: dict[str, list[DirectoryPart]] = {}
        for (name, _), part in zip(jobs, made, strict=True):
            if not isinstance(part, DirectoryPart):
                raise AssertionError("a directory is made of its parts")
            parts.setdefault(name, []).append(part)
        for name, found in parts.items():
            self.directories[name] = KeyIndex(self.area, tuple(found))

    def _ids(self, key: str) -> KeyIndex | None:
        return self.directories.get(f"ids:{key}")

    # -- rules -----------------------------------------------------------------------

    def _order(self) -> Mapping[tuple[str, str], int]:
        """The place of every rule, as the evaluator goes through them."""
        nodes = sorted(key for key in self.staged if key.startswith("node:"))
        places: dict[tuple[str, str], int] = {}
        for key in nodes:
            for rule in constraints_of(self.staged[key].type):
                places[key, str(rule.members)] = len(places)
        for _, edge in sorted(self.base.catalog.edges.items()):
            key = f"edge:{edge.name}"
            for members in (*(str(rule.members) for rule in constraints_of(edge)), SRC, DST):
                places[key, members] = len(places)
            places[key, "@card"] = len(places)
        return places

    def _supersede(self, left_out: RejectedRows) -> None:
        """Of rows with one id the last is looked at; the others count when it is rejected."""
        left_out.superseded.clear()
        for key, staged in self.staged.items():
            ids = self._ids(key)
            if ids is None or staged.type.key or not ids.repeated:
                continue
            addresses = ids.repeats().column("address").to_numpy().astype(np.uint64)
            left_out.superseded[key] = addresses

    def _repeats(self, left_out: RejectedRows) -> list[DuplicateKeys]:
        """The constraints whose tuples are there more than once in the input."""
        order = self._order()
        found = []
        for key, staged in self.staged.items():
            source = staged.source(left_out.addresses(key, with_superseded=False))
            for rule in constraints_of(staged.type):
                tuples = self._ids(key) if rule.is_key else self._tuples(key, rule)
                if tuples is not None and tuples.repeated:
                    place = order[key, str(rule.members)]
                    named = SetRule(place, "unique", key, rule.labels[0])
                    found.append(DuplicateKeys(named, rule, tuples, source, self.shown))
        return found

    def _tuples(self, key: str, rule: Constraint) -> KeyIndex | None:
        return self.directories.get(tuples_name(key, rule))

    def _probes(self, left_out: RejectedRows, repeated: set[int]) -> list[CheckTask]:
        probes: list[CheckTask] = []
        order = self._order()
        for key, staged in self.staged.items():
            if not self._has_stored(key):
                continue
            source = self._source(key, left_out)
            for rule in constraints_of(staged.type):
                place = order[key, str(rule.members)]
                tuples = self._tuples(key, rule)
                if tuples is None or place in repeated:
                    continue
                named = SetRule(place, "unique", key, rule.labels[0])
                probes += (
                    StoredClashes(named, rule, part, tuples, self._ids(key), source, self.shown)
                    for part in self._stored(key).each()
                )
        for edge in self._edges():
            probes += self._ends(edge, left_out, order)
        if self._replaces:
            probes += self._orphans(order)
        return probes

    def _ends(
        self, edge: EdgeType, left_out: RejectedRows, order: Mapping[tuple[str, str], int]
    ) -> Iterable[CheckTask]:
        key = f"edge:{edge.name}"
        for column, end in ends_of(edge):
            rule = SetRule(order[key, column], "endpoint", key, ENDPOINTS[column])
            for part in self._source(key, left_out).each():
                yield MissingEnds(rule, edge, part, column, end, self._nodes(end), self.shown)

    def _nodes(self, name: str) -> tuple[KeyIndex, ...]:
        """Where the nodes of a type are found that will be there."""
        names = (f"ids:node:{name}", f"stored:node:{name}")
        found = tuple(self.directories[one] for one in names if one in self.directories)
        return found or (KeyIndex(self.area, ()),)

    def _orphans(self, order: Mapping[tuple[str, str], int]) -> Iterable[CheckTask]:
        """Stored edges that would lose an end, for types that are replaced as a whole."""
        for _, edge in sorted(self.base.catalog.edges.items()):
            key = f"edge:{edge.name}"
            if key in self._touched or not self.base.table(key).table.pin.row_count:
                continue
            for column, end in ends_of(edge):
                if f"node:{end}" not in self._touched:
                    continue
                rule = SetRule(order[key, column], "endpoint", key, ENDPOINTS[column])
                for part in self._stored(key).each():
                    yield MissingEnds(
                        rule, edge, part, column, end, self._nodes(end), self.shown, strays=True
                    )

    # -- cardinality -----------------------------------------------------------------

    def _cardinality(self, left_out: RejectedRows) -> list[RuleViolations]:
        bounded = [edge for edge in self._edges() if edge.is_bounded]
        jobs: list[tuple[str, DirectoryJob]] = []
        for edge in bounded:
            key = f"edge:{edge.name}"
            sources = [self._source(key, left_out)]
            if edge.min_out and self.base.table(key).table.pin.row_count:
                # Sources that lose edges matter too, though no staged row names them.
                sources.append(replace(self._stored(key), weight=0))
            jobs += [
                (name, replace(job, with_repeats=False))
                for name, job in self._jobs(f"sources:{key}", edge, (SRC,), sources)
            ]
        self._make(jobs)
        return [found for edge in bounded for found in self._miscounted(edge, left_out)]

    def _miscounted(self, edge: EdgeType, left_out: RejectedRows) -> list[RuleViolations]:
        key = f"edge:{edge.name}"
        sources = self.directories[f"sources:{key}"]
        stored: list[str] = []
        if self._has_stored(key):
            degrees = [
                StoredDegrees(part, sources, self._ids(key)) for part in self._stored(key).each()
            ]
            stored = [one.table for one in self._ask(degrees) if one.table is not None]
        staged = {part.number for part in self.staged[key].parts}
        wrong = wrong_degrees(edge, sources, stored, self._nodes_that_stay(edge), staged)
        if not wrong.num_rows:
            return []
        rule = SetRule(self._order()[key, "@card"], "cardinality", key, "from")
        strays = wrong.filter(wrong.column("is_stray"))
        if found := verdict(self.area, rule, strays, self.shown, strays=True):
            return [found]
        listed = self.area.write_table("miscounted", wrong)
        # No edge of a source is more to blame than another, superseded ones included.
        edges = self.staged[key].source(left_out.addresses(key, with_superseded=False))
        probes = [EdgesOf(rule, part, sources, listed, self.shown) for part in edges.each()]
        return self._verdicts(probes)

    def _nodes_that_stay(self, edge: EdgeType) -> tuple[KeyIndex, ...] | None:
        """Where a replaced type's new nodes are found; None if its nodes stay."""
        if self._replaces and f"node:{edge.source}" in self._touched:
            return self._nodes(edge.source)
        return None

    # -- keys ------------------------------------------------------------------------

    def _matches(self) -> dict[str, list[str]]:
        """The stored rows whose ids are staged."""
        probes: list[CheckTask] = []
        keys: list[str] = []
        for key, staged in self.staged.items():
            ids = self._ids(key)
            if ids is None or not staged.has_given_ids or not self._has_stored(key):
                continue
            for part in self._stored(key).each():
                probes.append(StoredMatches(part, ids))
                keys.append(key)
        matches: dict[str, list[str]] = {}
        for key, found in zip(keys, self._ask(probes), strict=True):
            if found.table is not None:
                matches.setdefault(key, []).append(found.table)
        return matches

    def _key_clashes(
        self, left_out: RejectedRows, matches: Mapping[str, list[str]]
    ) -> list[IdClashes]:
        found: list[IdClashes] = []
        for at, (key, staged) in enumerate(sorted(self.staged.items(), key=_by_name)):
            ids = self._ids(key)
            if ids is None or self.mode == "merge":
                continue
            source, type_ = self._source(key, left_out), staged.type
            rule = SetRule(_KEYS + 2 * at, "key_conflict", key, spelling(ID, type_.properties))
            if ids.repeated and not type_.key:
                name = self.area.write_table("twice", ids.later())
                found.append(IdClashes(rule, type_, TWICE, ids, source, name, self.shown))
            if self.mode == "append" and key in matches:
                later = replace(rule, order=rule.order + 1)
                name = self.area.write_table("existing", _staged_rows(self.area, matches[key]))
                found.append(IdClashes(later, type_, EXISTS, ids, source, name, self.shown))
        return found

    # -- asking ----------------------------------------------------------------------

    def _ask(self, probes: Sequence[CheckTask]) -> list[CheckResult]:
        answers = self.run("check", ask, probes)
        return [answer for answer in answers if isinstance(answer, CheckResult)]

    def _verdicts(self, probes: Sequence[CheckTask]) -> list[RuleViolations]:
        return [one.verdict for one in self._ask(probes) if one.verdict is not None]


def _staged_rows(area: StagingArea, names: Iterable[str]) -> pa.Table:
    matches = pa.concat_tables(area.read_table(name) for name in names)
    return pa.table({ROW_ADDRESS: matches.column("staged")})


def _by_name(item: tuple[str, StagedType]) -> str:
    return item[1].type.name


def tuples_name(key: str, rule: Constraint) -> str:
    """The directory of the tuples that a type's rows hold."""
    return f"tuples:{key}:{'-'.join(rule.members)}"
