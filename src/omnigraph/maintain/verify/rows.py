"""Rows: whether the newest rows of every branch can be read and obey the rules of its schema.

Owns which rules are asked of stored rows, through the functions that writes are checked by, and
naming the entities that break them. Tables that branches share are read once. Holds hashes of
ids, eight bytes for each, never the rows of a table.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import OmniGraphError, StorageError
from omnigraph.lang.schema.catalog import Catalog, EdgeType
from omnigraph.lang.structural import ENDPOINTS, ID, SRC, spelling
from omnigraph.maintain.verify.lineage import Lineage
from omnigraph.maintain.verify.report import SHOWN, Finding, FindingKind
from omnigraph.manifest.snapshot import Snapshot, catalog_of
from omnigraph.rows.hashing import hash_texts
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.fragments import layout_of, stream_parts
from omnigraph.storage.tables.reachable_files import manifest_name
from omnigraph.storage.tables.table import ROW_ID, Table
from omnigraph.storage.tables.version_contents import FragmentContents, contents_of
from omnigraph.write.change.change_set import EntityType, find_type, key_texts, shown_ends
from omnigraph.write.reshape.checks import sharing_rows
from omnigraph.write.rules.edges import ReferredNodes, cardinality_text, ends_of, missing_ends
from omnigraph.write.rules.key_finder import KeySet, Mask
from omnigraph.write.rules.row_rules import check_contents, check_required
from omnigraph.write.rules.uniqueness import constraints_of
from omnigraph.write.rules.violations import NoSource, Violation, Violations

Hashes = npt.NDArray[np.uint64]
_NONE: Hashes = np.empty(0, dtype=np.uint64)
UNREADABLE = (StorageError, LookupError, pa.ArrowException)
"""What reading raises where a version says other things than it did."""
Where = tuple[str, int, str]
"""A table, its version, and the schema that its rows are held against."""


@dataclass(slots=True)
class Affected:
    """Entities that something is wrong with: how many, and the first by id."""

    count: int = 0
    ids: list[str] = field(default_factory=list)
    text: str = ""

    def add(self, ids: Iterable[str], count: int, text: str = "") -> None:
        """Count some, and keep the first."""
        self.count += count
        self.ids = heapq.nsmallest(SHOWN, {*self.ids, *ids})
        self.text = self.text or text


class _ByRule(Violations):
    """Violations counted rule by rule, a few of each kept."""

    def __init__(self) -> None:
        super().__init__(SHOWN)
        self.rules: defaultdict[tuple[str, str | None], Affected] = defaultdict(Affected)

    @property
    def room(self) -> int:
        """How many of each are kept."""
        return SHOWN

    def add_all(self, count: int, found: Iterable[Violation]) -> None:
        """Count those of one rule."""
        some = list(islice(found, SHOWN))
        if some:
            first = some[0]
            ids = [one.entity_id for one in some if one.entity_id is not None]
            self.rules[first.rule, first.property].add(ids, count, first.text)


@dataclass(frozen=True, slots=True)
class HashedKeys:
    """Keys of which only sorted hashes are known: a key that it has not is not there."""

    hashes: Hashes

    def has(self, keys: pa.Array) -> Mask:
        """Compare hashes."""
        if not len(self.hashes):
            return np.zeros(len(keys), dtype=bool)
        wanted = hash_texts(keys, whole=True)
        places = np.searchsorted(self.hashes, wanted)
        found: Mask = self.hashes[np.minimum(places, len(self.hashes) - 1)] == wanted
        return found


@dataclass(slots=True)
class RowCheck:
    """The rows of all newest states."""

    root: Location
    lineage: Lineage
    rows: int = 0
    readable: set[tuple[str, int]] = field(default_factory=set)
    """The tables, by path and version, all rows of which were read."""
    _ids: dict[tuple[str, int], Hashes] = field(default_factory=dict)
    _told: set[str] = field(default_factory=set)
    _broken: dict[str, tuple[Finding, list[str]]] = field(default_factory=dict)

    def run(self) -> None:
        """Look at the nodes of every branch, then at its edges."""
        self._told = {one.path for one in self.lineage.findings if one.path is not None}
        heads: defaultdict[tuple[Where, ...], list[str]] = defaultdict(list)
        tables: dict[tuple[Where, ...], tuple[Snapshot, Catalog, str]] = {}
        for branch in self.lineage.branches:
            if branch.view is None:
                continue
            snapshot = branch.view.snapshot
            try:
                catalog = catalog_of(snapshot.schema)
            except OmniGraphError:
                continue  # told already
            for key in snapshot.tables:
                at = tuple(_depends_on(snapshot, catalog, key))
                heads[at].append(snapshot.commit_id)
                tables[at] = snapshot, catalog, key
        # Nodes first: `edge:` comes before `node:` by name.
        for at in sorted(tables, key=lambda one: (len(one), one)):
            snapshot, catalog, key = tables[at]
            self._table(snapshot, find_type(catalog, key), heads[at])
        for finding, commits in self._broken.values():
            self.lineage.report(finding, commits)

    def _table(self, snapshot: Snapshot, type_: EntityType, commits: Sequence[str]) -> None:
        key = f"{type_.kind}:{type_.name}"
        shown = snapshot.tables[key]
        where = shown.table.path, shown.pin.version
        if f"{shown.table.path}/{manifest_name(shown.pin.version)}" in self._told:
            return  # who is told other columns or files than there are, reads anything
        look = _TableLook(type_, shown.pinned)
        try:
            look.read()
            found = list(look.problems())
            if isinstance(type_, EdgeType):
                found += self._edge_problems(type_, shown.pinned, snapshot)
        except UNREADABLE as error:
            self._unreadable(key, shown.table.path, shown.pinned, str(error), commits)
            return
        self.rows += look.count
        self.readable.add(where)
        if type_.kind == "node":
            self._ids[where] = look.ids
        if look.count != shown.pin.row_count:
            text = f"{key}: {look.count} rows are read of {shown.pin.row_count} that were published"
            self.lineage.report(Finding("row_count", text, shown.table.path, key), commits)
        for problem in found:
            self.lineage.report(
                Finding(
                    problem.kind,
                    f"{key}: {problem.affected.text}",
                    shown.table.path,
                    key,
                    problem.member,
                    problem.rule,
                    entities=tuple(problem.affected.ids),
                    entity_count=problem.affected.count,
                ),
                commits,
            )

    # -- edges -----------------------------------------------------------------------

    def _edge_problems(self, edge: EdgeType, table: Table, snapshot: Snapshot) -> list[_Problem]:
        found: list[_Problem] = []
        catalog = catalog_of(snapshot.schema)
        for column, end in ends_of(edge):
            known = list[KeySet]()
            at_end = catalog.nodes_at(edge, column)
            for node in at_end:
                nodes = snapshot.tables[f"node:{node.name}"]
                ids = self._ids.get((nodes.table.path, nodes.pin.version))
                if ids is not None:
                    held = HashedKeys(ids)
                    shared = column in edge.shared
                    known.append(ReferredNodes(node.type_id, held) if shared else held)
            if len(known) < len(at_end):
                continue  # where nodes cannot be read, nobody knows which are missing
            lost = Affected()
            for batch in table.batches([ID, column]):
                mask = missing_ends(batch.column(column), known)
                if mask.any():
                    chosen = batch.filter(pa.array(mask))
                    first = f"'{shown_ends(edge, column, chosen.column(column))[0]}' is no {end}"
                    lost.add(chosen.column(ID).to_pylist(), chosen.num_rows, first)
            if lost.count:
                found.append(_Problem("end_missing", lost, ENDPOINTS[column], "endpoint"))
        if edge.is_bounded:
            found += _miscounted(edge, table)
        return found

    # -- what cannot be read ---------------------------------------------------------

    def _unreadable(
        self, key: str, path: str, table: Table, reason: str, commits: Sequence[str]
    ) -> None:
        """Name the files that cannot be read, if they have not been told of before."""
        if any(one.startswith(f"{path}/_versions/") for one in self._told):
            return
        is_named = False
        for fragment, file, cause in _broken_files(table):
            is_named = True
            others = {f"{path}/{one.name}" for one in fragment.files}
            if fragment.deletions is not None:
                others.add(f"{path}/{fragment.deletions.name}")
            if not others & self._told:
                text = f"{key}: {fragment.rows} rows cannot be read: {cause}"
                self._break(f"{path}/{file}", key, text, fragment.rows, commits)
        if not is_named:
            text = f"{key}: its rows cannot be read: {reason}"
            self._break(path, key, text, 0, commits)

    def _break(self, path: str, key: str, text: str, rows: int, commits: Sequence[str]) -> None:
        finding = Finding("file_unreadable", text, path, key, entity_count=rows)
        self._broken.setdefault(path, (finding, []))[1].extend(commits)


def _depends_on(snapshot: Snapshot, catalog: Catalog, key: str) -> Iterator[Where]:
    """What the verdict on a table depends on: itself, and for edges the nodes at their ends."""
    type_ = find_type(catalog, key)
    keys = list[str]()
    if isinstance(type_, EdgeType):
        at_ends = (catalog.nodes_at(type_, column) for column, _ in ends_of(type_))
        keys = [f"node:{node.name}" for nodes in at_ends for node in nodes]
    for one in (key, *keys):
        found = snapshot.tables[one]
        yield found.table.path, found.pin.version, snapshot.schema.ir_hash


# -- one table ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Problem:
    kind: FindingKind
    affected: Affected
    member: str | None = None
    rule: str | None = None


@dataclass(slots=True)
class _TableLook:
    """All rows of a table, read once, and what is wrong with them."""

    type: EntityType
    table: Table
    count: int = 0
    ids: Hashes = field(default_factory=lambda: _NONE)
    _row_ids: Hashes = field(default_factory=lambda: _NONE)
    _rules: _ByRule = field(default_factory=_ByRule)
    _misnamed: Affected = field(default_factory=Affected)

    def read(self) -> None:
        """Read every column of every row."""
        ids: list[Hashes] = [_NONE]
        row_ids: list[Hashes] = [_NONE]
        for batch in self.table.batches(None, with_row_id=True):
            rows = pa.Table.from_batches([batch])
            self.count += rows.num_rows
            ids.append(hash_texts(rows.column(ID), whole=True))
            row_ids.append(batch.column(ROW_ID).to_numpy())
            self._check(rows)
        self.ids = np.sort(np.concatenate(ids))
        self._row_ids = np.sort(np.concatenate(row_ids))

    def _check(self, rows: pa.Table) -> None:
        type_, nowhere = self.type, NoSource()
        if type_.key:
            wrong = pc.fill_null(
                pc.not_equal(key_texts(type_, type_.key, rows), rows.column(ID)), fill_value=True
            )
            ids = rows.column(ID).filter(wrong)
            if len(ids):
                self._misnamed.add(
                    ids.to_pylist(), len(ids), f"'{ids[0]}' is not what its key says"
                )
        # A vector that is yet to be computed may be missing.
        check_required(type_, rows, self._rules, nowhere, before_embedding=True)
        check_contents(type_, rows, self._rules, nowhere)

    def problems(self) -> Iterator[_Problem]:
        """What is wrong, once all is read."""
        if self._misnamed.count:
            yield _Problem("id_not_derived", self._misnamed, spelling(ID, self.type.properties))
        for (rule, name), affected in sorted(self._rules.rules.items(), key=str):
            yield _Problem("rule_broken", affected, name, rule)
        if _has_twins(self._row_ids):
            yield _Problem("duplicate_row_id", self._row_id_twins())
        if _has_twins(self.ids):
            yield from self._shared([ID], "duplicate_id", "an id is there twice", "unique")
        for constraint in constraints_of(self.type):
            if not constraint.is_key:
                text = f"@unique({', '.join(constraint.labels)}) is broken"
                yield from self._shared(list(constraint.members), "rule_broken", text, "unique")

    def _shared(
        self, members: list[str], kind: FindingKind, text: str, rule: str
    ) -> Iterator[_Problem]:
        affected = Affected()
        for ids in sharing_rows(self.type, self._source, members):
            affected.add(pc.unique(ids)[: SHOWN * SHOWN].to_pylist(), len(ids), text)
        if affected.count:
            yield _Problem(kind, affected, spelling(members[0], self.type.properties), rule)

    def _source(self, names: Sequence[str]) -> Iterator[pa.Table]:
        for batch in self.table.batches(list(dict.fromkeys([ID, *names]))):
            yield pa.Table.from_batches([batch])

    def _row_id_twins(self) -> Affected:
        twins = np.unique(self._row_ids[1:][self._row_ids[1:] == self._row_ids[:-1]])
        affected = Affected()
        for batch in self.table.batches([ID], with_row_id=True):
            chosen = batch.filter(pa.array(np.isin(batch.column(ROW_ID).to_numpy(), twins)))
            if chosen.num_rows:
                ids = chosen.column(ID).to_pylist()
                affected.add(ids, len(ids), "two rows have one row id")
        return affected


def _has_twins(ordered: Hashes) -> bool:
    return bool((ordered[1:] == ordered[:-1]).any())


def _miscounted(edge: EdgeType, table: Table) -> Iterator[_Problem]:
    """The sources whose edges break the bounds of a type."""
    hashes = [_NONE, *(hash_texts(b.column(SRC), whole=True) for b in table.batches([SRC]))]
    values, counts = np.unique(np.concatenate(hashes), return_counts=True)
    wrong = counts < edge.min_out
    if edge.max_out is not None:
        wrong |= counts > edge.max_out
    if not wrong.any():
        return
    chosen, many = (
        values[wrong],
        dict(zip(values[wrong].tolist(), counts[wrong].tolist(), strict=True)),
    )
    affected = Affected(count=len(chosen))
    for batch in table.batches([SRC]):
        found = hash_texts(batch.column(SRC), whole=True)
        mask = np.isin(found, chosen)
        if mask.any():
            sources = batch.column(SRC).filter(pa.array(mask))
            text = cardinality_text(edge, sources[0].as_py(), many[int(found[mask][0])])
            affected.add(shown_ends(edge, SRC, sources).to_pylist(), 0, text)
    yield _Problem("rule_broken", affected, ENDPOINTS[SRC], "cardinality")


def _broken_files(table: Table) -> Iterator[tuple[FragmentContents, str, str]]:
    """The fragments that cannot be read: each with the file to blame, and why."""
    try:
        parts = {part.number: part for part in layout_of(table).parts}
        contents = contents_of(table.location, table.pin.version)
        names = table.schema.names
    except UNREADABLE:
        return
    for fragment in contents.fragments:
        try:
            for _ in stream_parts(table, names, [parts[fragment.number]]):
                pass
        except UNREADABLE as error:
            files = [one.name for one in fragment.files]
            if fragment.deletions is not None:
                files.append(fragment.deletions.name)
            text = f"{error} {error.__cause__}"
            blamed = next((one for one in files if one.rpartition("/")[2] in text), files[0])
            yield fragment, blamed, str(error)
