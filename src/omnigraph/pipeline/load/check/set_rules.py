"""Rules of sets: uniqueness, endpoints, cardinality and key conflicts of staged rows.

Owns the order in which they are told, which is that of the evaluator in `write.rules.check`,
and which rows each of them is about. Says what is wrong and what is replaced; changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.lang.structural import DST, ENDPOINTS, ID, SRC, spelling
from omnigraph.pipeline.load.check.cuts import KEY, KeySlices
from omnigraph.pipeline.load.check.key_cutting import RoundKeys, tuples_name
from omnigraph.pipeline.load.check.key_source import KeySource, RowList
from omnigraph.pipeline.load.check.left_out import RejectedRows, RunTasks
from omnigraph.pipeline.load.check.ranges import (
    CLASHING,
    EXISTING,
    LOST,
    MISCOUNTED,
    REPEATED,
    Found,
)
from omnigraph.pipeline.load.check.round_rows import RoundRows
from omnigraph.pipeline.load.check.wrong_rows import (
    WRONG,
    HeldTuple,
    KnownId,
    LostEnd,
    RowSearch,
    SetRule,
    Which,
    Wording,
    WrongDegree,
    WrongRows,
    search,
)
from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.pipeline.load.stage.staged_types import StagedType
from omnigraph.write.change.change_set import find_type
from omnigraph.write.load.changes import LoadMode
from omnigraph.write.publish.base import Base
from omnigraph.write.rules.edges import ends_of
from omnigraph.write.rules.uniqueness import EXISTS, TWICE, constraints_of
from omnigraph.write.rules.violations import SHOWN

# The rules of all types come before this one.
_KEYS = 1 << 20


@dataclass(frozen=True, slots=True)
class CheckRound:
    """What one look at the rows that are left has found.

    ``replaced`` lists, by type key, the stored rows that staged ones replace, ``existing`` counts
    them; ``keys`` are what was cut on the way, by name.
    """

    wrong: Sequence[WrongRows]
    replaced: Mapping[str, Sequence[RowList]]
    keys: Mapping[str, KeySlices]
    existing: Mapping[str, int]

    @property
    def is_right(self) -> bool:
        """Whether nothing is wrong with them."""
        return not self.wrong


@dataclass(frozen=True, slots=True)
class SetRules:
    """The rules of one load against one base.

    Of every rule so many rows of a group are ``shown``; with ``lists_all`` all are listed.
    """

    run: RunTasks
    area: StagingArea
    base: Base
    staged: Mapping[str, StagedType]
    mode: LoadMode
    touched: frozenset[str]
    shown: int
    lists_all: bool
    share: int = 1

    def look(self, left_out: RejectedRows) -> CheckRound:
        """Ask every rule about the rows that are left."""
        left_out.superseded.clear()
        touched = self.touched - self._emptied(left_out)
        rows = RoundRows(self.base, self.staged, self.mode, touched, self.share)
        keys = RoundKeys(self.run, self.area, rows, left_out)
        keys.cut_first()
        late = keys.has_late()
        found = keys.decide(keys.id_decisions() + ([] if late else keys.other_decisions()))
        self._supersede(found, left_out)
        if late:
            keys.cut_late(found)
            found |= keys.decide(keys.other_decisions())
        searches = [
            *self._unique(found, left_out),
            *self._ends(found, left_out),
            *self._orphans(found, rows),
        ]
        wrong = [*self._search(searches), *self._cardinality(found, left_out)]
        if not wrong:
            wrong = self._search(self._key_conflicts(found, left_out))
        replaced = {key: keys.replaced(key, found) for key in self.staged}
        existing = {
            key: sum(one.count for one in found.get(f"replaced:ids:{key}", ()))
            for key in self.staged
        }
        return CheckRound(wrong, replaced, keys.made, existing)

    def _emptied(self, left_out: RejectedRows) -> set[str]:
        """The types whose every row has been rejected: they are left alone."""
        return {key for key, one in self.staged.items() if left_out.count(key) == one.count}

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

    # -- which rows ------------------------------------------------------------------

    def _search(self, jobs: Iterable[RowSearch]) -> list[WrongRows]:
        made: list[WrongRows] = self.run("find rows", search, list(jobs))
        return [one for one in made if one.count]

    def _searches(
        self,
        found: Sequence[Found],
        sources: Sequence[KeySource],
        schema: pa.Schema,
        template: RowSearch,
    ) -> Iterator[RowSearch]:
        """A search in every group of fragments that something was found about."""
        groups = sorted({group for one in found for group in one.cuts})
        if not groups:
            return
        files = self.area.keep("found", tuple(one.file for one in found))
        for group in groups:
            listed = RowList(self.area, files, schema, group, of_many=True)
            yield replace(template, source=sources[group], found=listed, group=group)

    def _template(
        self,
        key: str,
        members: tuple[str, ...],
        which: Which = "all",
        rule: SetRule | None = None,
        wording: Wording | None = None,
    ) -> RowSearch:
        nowhere = RowList(self.area, "", WRONG)
        type_ = find_type(self.base.catalog, key)
        source = KeySource(self.base.table(key).table, ())
        return RowSearch(
            self.area,
            source,
            type_,
            members,
            nowhere,
            which,
            0,
            rule,
            wording,
            self.shown,
            self.lists_all,
        )

    def _sources(
        self, key: str, left_out: RejectedRows, *, with_superseded: bool = True
    ) -> list[KeySource]:
        """The groups of staged rows of a type that are left."""
        return [
            source.without(left_out.lists(self.area, key, at, with_superseded=with_superseded))
            for at, source in enumerate(self.staged[key].groups)
        ]

    def _supersede(self, found: Mapping[str, list[Found]], left_out: RejectedRows) -> None:
        """Of rows with one id the last is looked at; the others count when it is rejected."""
        jobs: list[tuple[str, RowSearch]] = []
        for key, staged in self.staged.items():
            if not staged.type.key:
                template = self._template(key, (ID,), "earlier")
                template = replace(template, lists_all=True)
                sources = self._sources(key, left_out)
                again = found.get(f"repeats:ids:{key}", ())
                jobs += [(key, job) for job in self._searches(again, sources, REPEATED, template)]
        made: list[WrongRows] = self.run("find rows", search, [job for _, job in jobs])
        for (key, _), one in zip(jobs, made, strict=True):
            left_out.superseded.setdefault(key, {})[one.group] = one

    # -- rules -----------------------------------------------------------------------

    def _unique(
        self, found: Mapping[str, list[Found]], left_out: RejectedRows
    ) -> Iterator[RowSearch]:
        """Tuples that the input has more than once; then those that stored rows have."""
        order = self._order()
        for key, staged in self.staged.items():
            every = self._sources(key, left_out, with_superseded=False)
            for rule in constraints_of(staged.type):
                name = f"ids:{key}" if rule.is_key else tuples_name(key, rule)
                members = (ID,) if rule.is_key else rule.members
                place = SetRule(order[key, str(rule.members)], "unique", key, rule.labels[0])
                template = self._template(key, members, "others", place, HeldTuple(rule))
                if again := found.get(f"repeats:{name}"):
                    yield from self._searches(again, every, REPEATED, template)
                elif clashes := found.get(f"clashes:{name}"):
                    template = replace(template, which="all")
                    left = self._sources(key, left_out)
                    yield from self._searches(clashes, left, CLASHING, template)

    def _ends(
        self, found: Mapping[str, list[Found]], left_out: RejectedRows
    ) -> Iterator[RowSearch]:
        order = self._order()
        for key, staged in self.staged.items():
            if not isinstance(staged.type, EdgeType):
                continue
            for column, end in ends_of(staged.type):
                rule = SetRule(order[key, column], "endpoint", key, ENDPOINTS[column])
                wording = LostEnd(staged.type, column, end)
                template = self._template(key, (column,), "all", rule, wording)
                lost = found.get(f"ends:{column}:{key}", ())
                yield from self._searches(lost, self._sources(key, left_out), LOST, template)

    def _orphans(self, found: Mapping[str, list[Found]], rows: RoundRows) -> Iterator[RowSearch]:
        """Stored edges that would lose an end, for types that are replaced as a whole."""
        order = self._order()
        for name, edge in sorted(self.base.catalog.edges.items()):
            key = f"edge:{name}"
            for column, end in ends_of(edge):
                lost = found.get(f"ends:{column}:stored:{key}", ())
                if not lost:
                    continue
                rule = SetRule(order[key, column], "endpoint", key, ENDPOINTS[column])
                wording = LostEnd(edge, column, end)
                template = self._template(key, (column,), "all", rule, wording)
                template = replace(template, shown=SHOWN, lists_all=False, strays=True)
                yield from self._searches(lost, rows.stored(key), LOST, template)

    def _cardinality(
        self, found: Mapping[str, list[Found]], left_out: RejectedRows
    ) -> list[WrongRows]:
        order, wrong = self._order(), []
        jobs: list[RowSearch] = []
        for key, staged in self.staged.items():
            if not isinstance(staged.type, EdgeType):
                continue
            rule = SetRule(order.get((key, "@card"), 0), "cardinality", key, "from")
            if strays := found.get(f"card-strays:{staged.type.name}"):
                wrong.append(self._strays(rule, staged.type, strays))
            elif many := found.get(f"card:{staged.type.name}"):
                # No edge of a source is more to blame than another, superseded ones included.
                every = self._sources(key, left_out, with_superseded=False)
                template = self._template(key, (SRC,), "all", rule, WrongDegree(staged.type))
                jobs += self._searches(many, every, MISCOUNTED, template)
        return [*wrong, *self._search(jobs)]

    def _strays(self, rule: SetRule, edge: EdgeType, found: Sequence[Found]) -> WrongRows:
        """Sources that no staged edge names: there is no row of the input to show."""
        shown: list[pa.Table] = []
        for one in found:
            if sum(table.num_rows for table in shown) < SHOWN:
                shown.append(RowList(self.area, one.file, MISCOUNTED).read())
        rows = pa.concat_tables(shown).slice(0, SHOWN)
        messages = WrongDegree(edge).say(rows, rows)
        names = rows.column(KEY).combine_chunks()
        addresses = pa.array([0] * rows.num_rows, pa.uint64())
        batch = pa.record_batch([addresses, pa.array(messages, pa.string()), names], schema=WRONG)
        file = self.area.write_slices("strays", [batch])
        return WrongRows(0, sum(one.count for one in found), file, rule, strays=True)

    def _key_conflicts(
        self, found: Mapping[str, list[Found]], left_out: RejectedRows
    ) -> Iterator[RowSearch]:
        if self.mode == "merge":
            return
        for at, (key, staged) in enumerate(sorted(self.staged.items(), key=_by_name)):
            type_ = staged.type
            rule = SetRule(_KEYS + 2 * at, "key_conflict", key, spelling(ID, type_.properties))
            every = self._sources(key, left_out, with_superseded=False)
            twice = self._template(key, (ID,), "others", rule, KnownId(type_, TWICE))
            if not type_.key:
                again = found.get(f"repeats:ids:{key}", ())
                yield from self._searches(again, every, REPEATED, twice)
            if self.mode == "append":
                later = replace(rule, order=rule.order + 1)
                stored = self._template(key, (ID,), "named", later, KnownId(type_, EXISTS))
                known = found.get(f"exists:ids:{key}", ())
                yield from self._searches(known, every, EXISTING, stored)


def _by_name(item: tuple[str, StagedType]) -> str:
    return item[1].type.name
