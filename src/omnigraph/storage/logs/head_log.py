"""Tables with a linear history and a head that every commit replaces.

Owns the compare-and-swap: a commit becomes the version after the one it was built on, or
nothing, and it counts only when that version is proven to be the newest. Behind the head are
sealed log fragments: reading it costs the same however long the log is. Knows nothing of what
the rows mean.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import lance
import pyarrow as pa
import pyarrow.compute as pc
from lance.commit import CommitConflictError
from lance.dataset import LanceDataset, LanceOperation, Transaction
from lance.fragment import FragmentMetadata, LanceFragment

from omnigraph.errors import StorageError
from omnigraph.storage.logs.newest_version import LocalVersions
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.errors import classify, storage_errors
from omnigraph.storage.objects.faults import reach
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.handles import shared_session
from omnigraph.storage.tables.reachable_files import DETACHED, manifest_name, version_of
from omnigraph.storage.tables.sealed_files import write_sealed

DATA_FORMAT: Final = "2.2"
QUEUE = "_turns"
"""Where writers that wait for their turn leave a word.

By its name it is listed right before the versions, and behind the transactions, which are many.
"""


class CompareAndSwapLost(Exception):
    """The head is not proven to be what was committed: read again what it is.

    Somebody else was first, or it cannot be told apart from that without reading.
    """


@dataclass(frozen=True, slots=True)
class _Found:
    """What a look at a table finds: the two newest versions, and what is known of the newest."""

    versions: list[int]
    is_awaited: bool = False
    tag: str | None = None
    mark: bytes | None = None


@dataclass(slots=True)
class HeadLog:
    """One version of such a table."""

    location: Location
    _dataset: LanceDataset
    is_awaited: bool = True
    """Whether others waited for their turn when this version was committed: so it is if unknown."""
    is_alone: bool = False
    """Whether the version it was committed on was gone by then, and all others with it perhaps."""
    _objects: ControlObjects | None = field(default=None, repr=False, compare=False)
    _tag: str | None = field(default=None, repr=False, compare=False)
    """What tells the file of this version from one of another table at the same place."""
    _fragments: tuple[LanceFragment, ...] | None = field(default=None, repr=False, compare=False)
    _made_by: str | None = field(default=None, repr=False, compare=False)
    """The file of the transaction that made this version, if it was made here."""
    _named: frozenset[str] | None = field(default=None, repr=False, compare=False)
    _mark: bytes | None = field(default=None, repr=False, compare=False)
    """On a local disk, under which this version was proven to be the newest."""
    version: int = field(init=False)
    """The version this handle shows."""
    _file: str | None = field(init=False, repr=False, compare=False)
    """The file of this version, if it is on a local disk."""

    def __post_init__(self) -> None:
        # Both are needed for every read, and take Lance and the file system their time.
        self.version = int(self._dataset.version)
        local = self.location.is_local
        self._file = f"{self.location.path}/{manifest_name(self.version)}" if local else None
        self._tag = self._tag or self._file_tag()

    # -- making and opening ----------------------------------------------------------

    @classmethod
    def create(cls, location: Location, head: pa.Table) -> HeadLog:
        """Make the table with its first head; fails when there is one already."""
        with storage_errors(f"cannot create {location}"):
            # Not by `write_fragments`, which looks first whether there is a dataset.
            fragment = LanceFragment.create(
                location.uri,
                head,
                mode="create",
                data_storage_version=DATA_FORMAT,
                storage_options=location.storage_options,
            )
            reach("before_commit", location.uri)
            try:
                dataset = LanceDataset.commit(
                    location.uri,
                    LanceOperation.Overwrite(head.schema, [fragment]),
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
    def create_alone(cls, location: Location, head: pa.Table) -> HeadLog:
        """Make the table where nobody else would: in one call, which two could not race in."""
        with storage_errors(f"cannot create {location}"):
            reach("before_commit", location.uri)
            dataset = lance.write_dataset(
                head,
                location.uri,
                mode="create",
                data_storage_version=DATA_FORMAT,
                enable_stable_row_ids=True,
                storage_options=location.storage_options,
            )
            reach("after_commit", location.uri)
        return cls(location, dataset)

    @classmethod
    def open(cls, location: Location, version: int | None = None) -> HeadLog:
        """The newest version, or a given one."""
        mark: bytes | None = None
        with storage_errors(f"cannot open {location}"):
            if version is None and location.is_local:
                versions = LocalVersions(location.path)
                version, mark = versions.find() or (None, versions.mark())
            dataset = lance.dataset(
                location.uri,
                version=version,
                session=shared_session(),
                storage_options=location.storage_options,
            )
        return cls(location, dataset, _mark=mark)

    @staticmethod
    def versions(location: Location) -> Iterator[int]:
        """The versions that are there, newest first; none when there is no table."""
        # From before them: servers differ in what comes after a directory.
        versions = map(version_of, ControlObjects(location).names_in(QUEUE, "_versions"))
        return (one for one in versions if one is not None and one < DETACHED)

    @property
    def metadata(self) -> Mapping[bytes, bytes]:
        """The metadata of the table's schema."""
        with storage_errors(f"cannot open {self.location}"):
            return self._dataset.schema.metadata or {}

    def latest_version(self) -> int:
        """The newest version: one request."""
        return self._newest()[0]

    def is_newest(self) -> bool:
        """Whether this is what a reader would find: one request."""
        version, tag = self._newest()
        if version != self.version:
            return False
        if self._tag is None:
            # Storage does not say it of a version that is opened: what comes first counts.
            self._tag = tag
        return tag == self._tag

    def _newest(self) -> tuple[int, str | None]:
        """The newest version, and the tag of its file."""
        if self._file is not None:
            with storage_errors(f"cannot probe {self.location}"):
                version = self._newest_on_disk()
            return version, self._file_tag() if version == self.version else None
        found = self._look()
        return found.versions[0], found.tag

    def _newest_on_disk(self) -> int:
        versions = LocalVersions(self.location.path)
        newest = None if self._mark is None else versions.after(self.version, self._mark)
        if newest is None:
            mark = versions.mark()
            newest = int(self._dataset.latest_version)
            if newest == self.version:
                self._mark = mark
        return newest

    def _file_tag(self) -> str | None:
        """On a local disk, when the file of this version was written, and how large it is."""
        if self._file is None:
            return None
        try:
            status = os.stat(self._file)  # noqa: PTH116 - on every read
        except OSError:
            return None
        return f"{status.st_mtime_ns}-{status.st_size}"

    @property
    def _control(self) -> ControlObjects:
        if self._objects is None:
            self._objects = ControlObjects(self.location)
        return self._objects

    # -- reading ---------------------------------------------------------------------

    def head(self, where: pc.Expression | None = None) -> pa.Table:
        """The rows of the head fragment, or those that pass a filter."""
        return self._rows(self._parts[-1:], where)

    def log(self, where: pc.Expression | None = None) -> pa.Table:
        """The rows of every sealed fragment that pass the filter, oldest first."""
        return self._rows(self._parts[:-1], where)

    def log_sizes(self) -> list[int]:
        """How many rows each sealed fragment holds, oldest first."""
        return [int(fragment.physical_rows) for fragment in self._parts[:-1]]

    def log_rows(self, positions: Sequence[int], where: pc.Expression | None = None) -> pa.Table:
        """The rows of some sealed fragments, by their position in the log."""
        return self._rows([self._parts[position] for position in positions], where)

    def log_names(self) -> list[str]:
        """The files of the sealed fragments, oldest first: the same file has the same rows."""
        return [fragment.metadata.files[0].path for fragment in self._parts[:-1]]

    def _rows(
        self, fragments: Sequence[LanceFragment], where: pc.Expression | None = None
    ) -> pa.Table:
        with storage_errors(f"cannot read {self.location}"):
            found = [fragment.to_table(filter=where) for fragment in fragments]
        return pa.concat_tables(found) if found else self._dataset.schema.empty_table()

    @property
    def _parts(self) -> tuple[LanceFragment, ...]:
        """The sealed fragments, oldest first, and the head at the end."""
        if self._fragments is None:
            with storage_errors(f"cannot read {self.location}"):
                found = self._dataset.get_fragments()
            if not found:
                raise StorageError(f"{self.location} has no rows: it was emptied", kind="permanent")
            self._fragments = tuple(sorted(found, key=lambda fragment: fragment.fragment_id))
        return self._fragments

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

        Returns only what is proven to be the newest version; raises CompareAndSwapLost otherwise.
        """
        tables = [head] if sealed is None else [sealed, head]
        *log, _ = self._parts
        stay = [one.metadata for place, one in enumerate(log) if place not in absorbed]
        try:
            dataset, made_by = self._commit(stay, tables, properties or {})
            found = self._look()
        except StorageError as error:
            if error.kind != "not_found":
                raise
            # A collection took what was just being written for garbage, or a version away that
            # Lance was reading: so this version has been superseded, or all of the table is gone.
            raise CompareAndSwapLost from error
        if found.versions[0] != dataset.version:
            # Versions after the one it was built on had been removed, so that there was room
            # for it below the newest: nobody will ever read it.
            raise CompareAndSwapLost
        return HeadLog(
            self.location,
            dataset,
            found.is_awaited,
            found.versions[-1] != self.version,
            self._objects,
            found.tag,
            _made_by=made_by,
            _mark=found.mark,
        )

    def _commit(
        self,
        stay: Sequence[FragmentMetadata],
        tables: Sequence[pa.Table],
        properties: Mapping[str, str],
    ) -> tuple[LanceDataset, str]:
        """Write tables as fragments behind those that stay, as the version after this one.

        An overwrite that is not retried is the one operation that Lance never moves behind
        other commits.
        """
        with storage_errors(f"cannot publish {self.location}"):
            written = [
                fragment
                for table in tables
                for fragment in write_sealed(table, self._dataset, self.location)
            ]
            transaction = Transaction(
                self.version,
                LanceOperation.Overwrite(self._dataset.lance_schema, [*stay, *written]),
                transaction_properties=dict(properties),
            )
            reach("before_commit", self.location.uri)
            try:
                dataset = LanceDataset.commit(self._dataset, transaction, max_retries=0)
            except CommitConflictError as conflict:
                raise CompareAndSwapLost from conflict
            reach("after_commit", self.location.uri)
        return dataset, _transaction_name(transaction)

    def _look(self) -> _Found:
        """The two newest versions, whether somebody waits for a turn, and the tag of the newest.

        One request for all of it.
        """
        mark: bytes | None = None
        if self._file is not None:
            versions = LocalVersions(self.location.path)
            mark = versions.mark()
            newest = None if self._mark is None else versions.after(self.version, self._mark)
            if newest is not None:
                is_left = newest != self.version and versions.has(self.version)
                # Writers on a local disk wait for a lock: nobody has a ticket.
                return _Found([newest, *([self.version] if is_left else [])], mark=mark)
        is_awaited = False
        found: list[int] = []
        newest_tag: str | None = None
        for name, tag in self._control.tagged_names_in(QUEUE, "_versions"):
            if name.startswith(f"{QUEUE}/"):
                is_awaited = True
                continue
            version = version_of(name)
            if version is not None and version < DETACHED:
                newest_tag = newest_tag if found else tag
                found.append(version)
            if len(found) == 2:
                break
        if not found:
            raise StorageError(f"{self.location} has no version", kind="not_found")
        return _Found(found, is_awaited, newest_tag, mark)

    # -- files -----------------------------------------------------------------------

    def files(self) -> frozenset[str]:
        """What this version is made of, its own file included: names relative to the table."""
        if self._named is None:
            with storage_errors(f"enumerating the files of {self.location}"):
                names = {manifest_name(self.version)}
                for metadata in (part.metadata for part in self._parts):
                    names |= {f"data/{file.path}" for file in metadata.files}
                    if metadata.deletion_file is not None:
                        names.add(metadata.deletion_file.path(metadata.id))
            self._named = frozenset(names)
        return self._named

    def transaction_file(self) -> str | None:
        """What made this version, as a file: one request, unless it was made through this handle.

        No file bears the number of another version, so that whoever has a listing seldom asks.
        """
        if self._made_by is None:
            made_by = self._transaction()
            self._made_by = None if made_by is None else _transaction_name(made_by)
        return self._made_by

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


def _transaction_name(transaction: Transaction) -> str:
    return f"_transactions/{transaction.read_version}-{transaction.uuid}.txn"
