"""A table with one head fragment that every commit replaces, and sealed log fragments behind it.

Owns the compare-and-swap: two commits from one version remove the same
fragment, so storage lets exactly one of them through. Knows nothing of what the
rows mean. Reading the head costs the same however long the log is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from time import time_ns
from typing import Any
from urllib.parse import quote

import lance
import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from lance.commit import CommitConflictError
from lance.dataset import LanceDataset, LanceOperation, Transaction
from lance.fragment import LanceFragment, write_fragments

from omnigraph.errors import StorageError
from omnigraph.storage.failures import storage_errors
from omnigraph.storage.faults import reach
from omnigraph.storage.location import Location
from omnigraph.storage.objects import ControlObjects
from omnigraph.storage.session import shared_session

RECENT = timedelta(minutes=5)
"""For so long a handle needs no proof that what came after it is still there."""


class HeadMoved(Exception):
    """Somebody else replaced the head first; nothing was written that anyone can see."""


@dataclass(frozen=True, slots=True)
class BranchRef:
    """A native branch; the identifier tells it from a later branch of the same name."""

    name: str
    identifier: str
    parent: str | None
    parent_version: int


@dataclass(frozen=True, slots=True)
class HeadLog:
    """One version of such a table on one of its branches (None is the main line)."""

    location: Location
    branch: str | None
    _dataset: LanceDataset
    _opened_at: int = field(default_factory=time_ns, compare=False)

    # -- making and opening ----------------------------------------------------------

    @classmethod
    def create(cls, location: Location, head: pa.Table) -> HeadLog:
        """Make the table with its first head; fails when there is one already."""
        with storage_errors(f"cannot create {location}"):
            transaction = write_fragments(
                head,
                location.uri,
                mode="create",
                return_transaction=True,
                enable_stable_row_ids=True,
                data_storage_version="2.2",
                storage_options=location.storage_options,
            )
            dataset = LanceDataset.commit(
                location.uri,
                transaction,
                max_retries=0,
                enable_stable_row_ids=True,
                storage_options=location.storage_options,
            )
        return cls(location, None, dataset)

    @classmethod
    def open(
        cls, location: Location, branch: str | None = None, version: int | None = None
    ) -> HeadLog:
        """The newest version of a branch, or a given one."""
        where = location.join(branch_directory(branch))
        with storage_errors(f"cannot open {where}"):
            dataset = lance.dataset(
                where.uri,
                version=version,
                session=shared_session(),
                storage_options=location.storage_options,
            )
        return cls(location, branch, dataset)

    @property
    def version(self) -> int:
        """The version this handle shows."""
        return int(self._dataset.version)

    @property
    def metadata(self) -> Mapping[bytes, bytes]:
        """The metadata of the table's schema."""
        return self._dataset.schema.metadata or {}

    def latest_version(self) -> int:
        """The newest version of the branch: one request."""
        with storage_errors(f"cannot probe {self.location}"):
            return int(self._dataset.latest_version)

    # -- reading ---------------------------------------------------------------------

    def head(self) -> pa.Table:
        """The rows of the head fragment."""
        with storage_errors(f"cannot read {self.location}"):
            return self._fragments()[-1].to_table()

    def log(self, where: pc.Expression | None = None) -> pa.Table:
        """The rows of every sealed fragment that pass the filter, oldest first."""
        with storage_errors(f"cannot read {self.location}"):
            sealed = [fragment.to_table(filter=where) for fragment in self._fragments()[:-1]]
        return pa.concat_tables(sealed) if sealed else self._dataset.schema.empty_table()

    def log_sizes(self) -> list[int]:
        """How many rows each sealed fragment holds, oldest first."""
        return [int(fragment.physical_rows) for fragment in self._fragments()[:-1]]

    def log_rows(self, positions: Sequence[int]) -> pa.Table:
        """The rows of some sealed fragments, by their position in the log."""
        fragments = self._fragments()
        with storage_errors(f"cannot read {self.location}"):
            return pa.concat_tables([fragments[position].to_table() for position in positions])

    def _fragments(self) -> list[LanceFragment]:
        """Oldest first: the head is written last and so has the largest id."""
        fragments = self._dataset.get_fragments()
        if not fragments:
            raise StorageError(f"{self.location} has no rows: it was emptied", kind="permanent")
        return sorted(fragments, key=lambda fragment: fragment.fragment_id)

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

        Raises HeadMoved when the head is no longer the one this handle shows.
        """
        self._prove_unbroken()
        ids = [fragment.fragment_id for fragment in self._fragments()]
        removed = [ids[-1], *(ids[position] for position in absorbed)]
        tables = [head] if sealed is None else [sealed, head]
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
                    removed_fragment_ids=removed,
                    new_fragments=fragments,
                    update_mode="rewrite_rows",
                    # Without all of them an index would claim the new fragment and answer stale.
                    fields_for_preserving_frag_bitmap=[
                        found.id() for found in self._dataset.lance_schema.fields()
                    ],
                ),
                transaction_properties=dict(properties or {}),
            )
            reach("before_commit", self.location.uri)
            try:
                dataset = LanceDataset.commit(self._dataset, transaction, max_retries=0)
            except CommitConflictError as conflict:
                raise HeadMoved from conflict
            reach("after_commit", self.location.uri)
        return HeadLog(self.location, self.branch, dataset)

    def _prove_unbroken(self) -> None:
        """Refuse a commit on an old version, whose successors may have been collected.

        Storage finds a conflict by comparing a commit with every version since: where the
        next one is gone, it would let a second head through. Nothing that is younger than
        a collector's grace age is ever collected, so only an old handle has to ask.
        """
        age = time_ns() - self._opened_at
        recent = RECENT // timedelta(microseconds=1) * 1_000
        if not 0 <= age <= recent and self.latest_version() != self.version:
            raise HeadMoved

    # -- files -----------------------------------------------------------------------

    def files(self) -> frozenset[str]:
        """What this version is made of besides its own file: names without their directory.

        The names are random, so that one name is one file, whichever branch holds it.
        """
        with storage_errors(f"enumerating the files of {self.location}"):
            names: set[str] = set()
            for fragment in self._dataset.get_fragments():
                metadata = fragment.metadata
                names |= {file.path.rpartition("/")[2] for file in metadata.files}
                if metadata.deletion_file is not None:
                    path = metadata.deletion_file.path(fragment.fragment_id)
                    names.add(path.rpartition("/")[2])
            try:
                made_by = self._dataset.read_transaction(self.version)
            except TypeError:
                made_by = None
        # Lance cannot read back some of its own; then nothing needs the file.
        if made_by is not None:
            names.add(f"{made_by.read_version}-{made_by.uuid}.txn")
        return frozenset(names)

    # -- branches --------------------------------------------------------------------

    def branches(self) -> dict[str, BranchRef]:
        """The native branches by name."""
        with storage_errors(f"cannot list branches of {self.location}"):
            listed = self._dataset.branches.list()
        return {
            name: BranchRef(
                name,
                _identifier(found["branch_identifier"]),
                found["parent_branch"],
                int(found["parent_version"]),
            )
            for name, found in listed.items()
        }

    def tagged(self) -> set[tuple[str | None, int]]:
        """The versions that somebody gave a name to, with the branch each is on."""
        with storage_errors(f"cannot list tags of {self.location}"):
            return {
                (tag.get("branch"), int(tag["version"]))
                for tag in self._dataset.tags.list().values()
            }

    @staticmethod
    def find_branch(objects: ControlObjects, name: str) -> BranchRef | None:
        """One native branch: one request, however many branches there are.

        Reads Lance's own file of it; ``objects`` are those of the table. None means
        that this file says nothing: `branches` is the authority on what exists.
        """
        stored = objects.read(f"_refs/branches/{quote(name, safe='')}.json")
        try:
            found = msgspec.json.decode(stored or b"", type=dict[str, Any])
            return BranchRef(
                name,
                _identifier(found["identifier"]["version_mapping"]),
                found["parentBranch"],
                int(found["parentVersion"]),
            )
        except (KeyError, TypeError, ValueError):
            return None

    def create_branch(self, name: str) -> HeadLog:
        """Fork a branch from the version this handle shows."""
        with storage_errors(f"cannot create a branch of {self.location}"):
            dataset = self._dataset.create_branch(name)
        return HeadLog(self.location, name, dataset)

    def delete_branch(self, name: str) -> None:
        """Remove a branch and what only it refers to."""
        with storage_errors(f"cannot delete a branch of {self.location}"):
            self._dataset.branches.delete(name)


def branch_directory(branch: str | None) -> str:
    """Where the versions of a branch lie, below the table; nothing for the main line."""
    return "" if branch is None else f"tree/{branch}"


def _identifier(mapping: Sequence[tuple[int, str]]) -> str:
    return "/".join(f"{version}-{uuid}" for version, uuid in mapping)
