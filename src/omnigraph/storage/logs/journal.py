"""Journals: small append-only tables with a linear history, made when the first row comes.

Owns creating and appending so that no row is lost, whoever else does the same at
the same time. Must never know what it records, nor change or remove a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.errors import StorageError
from omnigraph.storage.objects import faults
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.handles import shared_session
from omnigraph.storage.tables.table import FORMAT, create_table

if TYPE_CHECKING:
    import lance


@dataclass(frozen=True, slots=True)
class Journal:
    """One journal; ``key`` is the column that tells its entries apart."""

    location: Location
    columns: pa.Schema
    key: str

    def read(self) -> pa.Table:
        """Every row in the order of appending; none when there is no journal yet."""
        dataset = self._open()
        if dataset is None:
            return self.columns.empty_table()
        with storage_errors(f"reading {self.location}"):
            return dataset.to_table(columns=self.columns.names)

    def append(self, rows: pa.Table) -> None:
        """Add rows, together; an error leaves open whether they were added.

        So a caller that repeats an append must tell repeated rows by their key.
        """
        from lance.dataset import LanceDataset
        from lance.fragment import write_fragments

        with storage_errors(f"appending to {self.location}"):
            rows = rows.cast(self.columns)
        dataset = self._open() or self._create()
        with storage_errors(f"appending to {self.location}"):
            staged = write_fragments(
                rows,
                dataset,
                mode="append",
                return_transaction=True,
                data_storage_version=FORMAT,
                storage_options=self.location.storage_options or None,
            )
            faults.reach("before_commit", self.location.uri)
            # Appends never contradict each other: Lance puts this one behind those that were first.
            LanceDataset.commit(dataset, staged)
        faults.reach("after_commit", self.location.uri)

    def _create(self) -> lance.LanceDataset:
        """Make the journal, empty, or find the one that somebody else has just made."""
        try:
            create_table(self.location, self.columns, key=self.key)
        except StorageError as error:
            made = self._open()
            if made is None:
                raise
            if error.kind not in {"precondition", "transient", "unknown"}:
                raise
            return made
        made = self._open()
        if made is None:
            raise StorageError(f"{self.location} was made and is gone again", kind="not_found")
        return made

    def _open(self) -> lance.LanceDataset | None:
        """The newest version, or None when there is none."""
        import lance

        try:
            with storage_errors(f"opening {self.location}"):
                return lance.dataset(
                    self.location.uri,
                    storage_options=self.location.storage_options or None,
                    session=shared_session(),
                )
        except StorageError as error:
            if error.kind != "not_found":
                raise
            return None
