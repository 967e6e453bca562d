"""A table with one head fragment that every commit replaces, and sealed log fragments behind it.

Owns the compare-and-swap: two commits from one version remove the same fragment, so storage
lets exactly one of them through, and a commit counts only when the newest version is proven
to be built on it. Knows nothing of what the rows mean. Reading the head costs the same
however long the log is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import lance
import pyarrow as pa
import pyarrow.compute as pc
from lance.commit import CommitConflictError
from lance.dataset import LanceDataset, LanceOperation, Transaction
from lance.fragment import LanceFragment, write_fragments

from omnigraph.errors import StorageError
from omnigraph.storage.failures import classify, storage_errors
from omnigraph.storage.faults import reach
from omnigraph.storage.files import DETACHED, manifest_name, version_of
from omnigraph.storage.location import Location
from omnigraph.storage.objects import ControlObjects
from omnigraph.storage.session import shared_session

QUEUE = "_turns"
"""Where writers that wait for their turn leave a word.

By its name it is listed right before the versions, and behind the transactions, which are many.
"""
GENERATION = "_generation"
"""One more than that of the head it replaces; 0 in sealed rows."""
AIM = "_aim"
"""The version that a head was written to become; 0 in sealed rows."""


class HeadMoved(Exception):
    """The head is not proven to be what was committed: read again what it is.

    Somebody else was first, or it cannot be told apart from that without reading.
    """


@dataclass(frozen=True, slots=True)
class _Parts:
    """The fragments of a version by what they are, oldest first."""

    head: LanceFragment
    generation: int
    log: tuple[LanceFragment, ...]
    strays: tuple[LanceFragment, ...] = ()
    """Heads of commits that were prepared on a version long gone and found no opposition."""


@dataclass(slots=True)
class HeadLog:
    """One version of such a table."""

    location: Location
    _dataset: LanceDataset
    is_awaited: bool = False
    """Whether, when this version was committed, others waited for their turn."""
    is_alone: bool = False
    """Whether the version it was committed on was gone by then, and all others with it perhaps."""
    _objects: ControlObjects | None = field(default=None, repr=False, compare=False)
    _parts: _Parts | None = field(default=None, repr=False, compare=False)

    # -- making and opening ----------------------------------------------------------

    @classmethod
    def create(cls, location: Location, head: pa.Table) -> HeadLog:
        """Make the table with its first head; fails when there is one already."""
        with storage_errors(f"cannot create {location}"):
            rows = _marked(head, 1, 1)
            # Not by `write_fragments`, which looks first whether there is a dataset.
            fragment = LanceFragment.create(
                location.uri,
                rows,
                mode="create",
                data_storage_version="2.2",
                storage_options=location.storage_options,
            )
            reach("before_commit", location.uri)
            try:
                dataset = LanceDataset.commit(
                    location.uri,
                    LanceOperation.Overwrite(rows.schema, [fragment]),
                    max_retries=0,
                    enable_stable_row_ids=True,
                    storage_options=location.storage_options,
                )
            except (OSError, ValueError) as error:
                if classify(error) != "not_found":
                    raise
                # Lance takes it for a change of the version before the first, and finds none.
                raise StorageError(f"{location} exists already", kind="precondition") from error
            reach("after_commit", location.uri)
        return cls(location, dataset)

    @classmethod
    def open(cls, location: Location, version: int | None = None) -> HeadLog:
        """The newest version, or a given one."""
        with storage_errors(f"cannot open {location}"):
            dataset = lance.dataset(
                location.uri,
                version=version,
                session=shared_session(),
                storage_options=location.storage_options,
            )
        return cls(location, dataset)

    @staticmethod
    def newest_version(location: Location) -> int | None:
        """The newest version that is there; None when there is no table."""
        versions = map(version_of, ControlObjects(location).names_in("_versions"))
        return next((one for one in versions if one is not None and one < DETACHED), None)

    @property
    def version(self) -> int:
        """The version this handle shows."""
        return int(self._dataset.version)

    @property
    def metadata(self) -> Mapping[bytes, bytes]:
        """The metadata of the table's schema."""
        return self._dataset.schema.metadata or {}

    def latest_version(self) -> int:
        """The newest version: one request."""
        with storage_errors(f"cannot probe {self.location}"):
            return int(self._dataset.latest_version)

    # -- reading ---------------------------------------------------------------------

    def head(self) -> pa.Table:
        """The rows of the head fragment."""
        *others, newest = self._fragments()
        rows = self._read(newest)
        if rows is not None:
            generation, aim = _marks(rows)
            if aim == self.version:
                # Nothing came between it and the version it was built on.
                self._parts = _Parts(newest, generation, tuple(others))
                return rows.drop_columns([GENERATION, AIM])
        with storage_errors(f"cannot read {self.location}"):
            return self._part().head.to_table().drop_columns([GENERATION, AIM])

    def _read(self, fragment: LanceFragment, *columns: str) -> pa.Table | None:
        """The rows of a fragment, or of some columns the first; None when its file is gone."""
        try:
            with storage_errors(f"cannot read {self.location}"):
                if columns:
                    return fragment.to_table(columns=list(columns), limit=1)
                return fragment.to_table()
        except StorageError as error:
            if error.kind != "not_found":
                raise
            return None

    def log(self, where: pc.Expression | None = None) -> pa.Table:
        """The rows of every sealed fragment that pass the filter, oldest first."""
        return self._rows(self._part().log, where)

    def log_sizes(self) -> list[int]:
        """How many rows each sealed fragment holds, oldest first."""
        return [int(fragment.physical_rows) for fragment in self._part().log]

    def log_rows(self, positions: Sequence[int]) -> pa.Table:
        """The rows of some sealed fragments, by their position in the log."""
        log = self._part().log
        return self._rows([log[position] for position in positions])

    def _rows(
        self, fragments: Iterable[LanceFragment], where: pc.Expression | None = None
    ) -> pa.Table:
        with storage_errors(f"cannot read {self.location}"):
            found = [fragment.to_table(filter=where) for fragment in fragments]
        table = pa.concat_tables(found) if found else self._dataset.schema.empty_table()
        return table.drop_columns([GENERATION, AIM])

    def _fragments(self) -> list[LanceFragment]:
        fragments = self._dataset.get_fragments()
        if not fragments:
            raise StorageError(f"{self.location} has no rows: it was emptied", kind="permanent")
        return sorted(fragments, key=lambda fragment: fragment.fragment_id)

    def _part(self) -> _Parts:
        """Which fragment is what; the newest is the head unless a stray lies behind it.

        A commit on a version whose successors have been collected meets no opposition: storage
        compares it with every version since, and those are gone. It puts a second head behind
        the true one, which descends from the head that both knew: so its generation is at
        most that one's, and of two of one generation the true one came first. Its file may even
        be gone: a collector that ended the epoch it was written in took it for garbage.
        """
        if self._parts is None:
            fragments = self._fragments()
            ages: dict[int, int] = {}
            gone: list[LanceFragment] = []
            for one in fragments:
                rows = self._read(one, GENERATION, AIM)
                if rows is None:
                    gone.append(one)
                else:
                    ages[one.fragment_id] = _marks(rows)[0]
            heads = [one for one in fragments if ages.get(one.fragment_id, 0) > 0]
            if not heads:
                raise StorageError(f"{self.location} has no head", kind="not_found")
            head = max(heads, key=lambda one: (ages[one.fragment_id], -one.fragment_id))
            self._parts = _Parts(
                head,
                ages[head.fragment_id],
                tuple(one for one in fragments if ages.get(one.fragment_id) == 0),
                (*(one for one in heads if one is not head), *gone),
            )
        return self._parts

    # -- writing ---------------------------------------------------------------------

    def replace_head(
        self,
        head: pa.Table,
        *,
        sealed: pa.Table | None = None,
        absorbed: Sequence[int] = (),
        properties: Mapping[str, str] | None = None,
    ) -> HeadLog:
        """Commit a new head, and with it a sealed log fragment in place of the absorbed ones.

        Returns only what is proven to be the newest version; raises HeadMoved otherwise.
        """
        parts = self._part()
        aim = self.version + 1
        gone = [parts.head, *parts.strays, *(parts.log[position] for position in absorbed)]
        tables = [_marked(head, parts.generation + 1, aim)]
        if sealed is not None:
            tables.insert(0, _marked(sealed, 0, 0))
        try:
            dataset = self._commit(tables, gone, properties or {})
        except StorageError as error:
            if error.kind != "not_found":
                raise
            # A collection took what was just being written for garbage, or a version away that
            # Lance was reading: so this version has been superseded.
            raise HeadMoved from error
        versions, is_awaited = self._look()
        if int(dataset.version) != aim or versions[0] != aim:
            raise HeadMoved
        is_alone = versions[-1] != self.version
        committed = HeadLog(self.location, dataset, is_awaited, is_alone, self._objects)
        ordered = committed._fragments()
        committed._parts = _Parts(ordered[-1], parts.generation + 1, tuple(ordered[:-1]))
        return committed

    def _commit(
        self,
        tables: Sequence[pa.Table],
        gone: Sequence[LanceFragment],
        properties: Mapping[str, str],
    ) -> LanceDataset:
        """Write tables as fragments that take the place of others, on this version."""
        with storage_errors(f"cannot publish {self.location}"):
            fragments = [
                fragment
                for table in tables
                for fragment in write_fragments(
                    table,
                    self._dataset,
                    mode="append",
                    storage_options=self.location.storage_options,
                )
            ]
            transaction = Transaction(
                self.version,
                LanceOperation.Update(
                    removed_fragment_ids=[fragment.fragment_id for fragment in gone],
                    new_fragments=fragments,
                    update_mode="rewrite_rows",
                    # Without all of them an index would claim the new fragment and answer stale.
                    fields_for_preserving_frag_bitmap=[
                        found.id() for found in self._dataset.lance_schema.fields()
                    ],
                ),
                transaction_properties=dict(properties),
            )
            reach("before_commit", self.location.uri)
            try:
                dataset = LanceDataset.commit(self._dataset, transaction, max_retries=0)
            except CommitConflictError as conflict:
                raise HeadMoved from conflict
            reach("after_commit", self.location.uri)
        return dataset

    def _look(self) -> tuple[list[int], bool]:
        """The two newest versions, and whether somebody waits for a turn: one request for both."""
        if self._objects is None:
            self._objects = ControlObjects(self.location)
        is_awaited = False
        found: list[int] = []
        for name in self._objects.names_in(QUEUE, "_versions"):
            if name.startswith(f"{QUEUE}/"):
                is_awaited = True
                continue
            version = version_of(name)
            if version is not None and version < DETACHED:
                found.append(version)
            if len(found) == 2:
                break
        if not found:
            raise StorageError(f"{self.location} has no version", kind="not_found")
        return found, is_awaited

    # -- files -----------------------------------------------------------------------

    def files(self) -> frozenset[str]:
        """What this version is made of, its own file included: names relative to the table."""
        with storage_errors(f"enumerating the files of {self.location}"):
            names = {manifest_name(self.version)}
            for fragment in self._dataset.get_fragments():
                metadata = fragment.metadata
                names |= {f"data/{file.path}" for file in metadata.files}
                if metadata.deletion_file is not None:
                    names.add(metadata.deletion_file.path(fragment.fragment_id))
        made_by = self._transaction()
        if made_by is not None:
            names.add(f"_transactions/{made_by.read_version}-{made_by.uuid}.txn")
        return frozenset(names)

    def _transaction(self) -> Transaction | None:
        """What made this version, where that can be told: Lance cannot read back all its own.

        A version that was superseded may be gone since it was opened.
        """
        try:
            with storage_errors(f"enumerating the files of {self.location}"):
                return self._dataset.read_transaction(self.version)
        except TypeError:
            return None
        except StorageError as error:
            if error.kind != "not_found":
                raise
            return None


def _marked(rows: pa.Table, generation: int, aim: int) -> pa.Table:
    for name, number in ((GENERATION, generation), (AIM, aim)):
        column = pa.repeat(pa.scalar(number, pa.uint64()), rows.num_rows)
        rows = rows.append_column(pa.field(name, pa.uint64(), nullable=False), column)
    return rows


def _marks(rows: pa.Table) -> tuple[int, int]:
    """The generation and the aim of a fragment."""
    if not rows.num_rows:
        return 0, 0
    return int(rows.column(GENERATION)[0].as_py()), int(rows.column(AIM)[0].as_py())
