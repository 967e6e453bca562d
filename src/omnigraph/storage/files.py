"""Files: everything that one pinned version of a table refers to.

Owns the names Lance gives its files. Must never delete: the collector above
decides which files nothing refers to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.storage.commits import transaction_of
from omnigraph.storage.failures import storage_errors
from omnigraph.storage.objects import ControlObjects
from omnigraph.storage.table import BLOB, Table

if TYPE_CHECKING:
    import pyarrow as pa

_LAST = 2**64 - 1
# Detached versions have the highest bit set; their manifests are named by the id itself.
_DETACHED = 2**63


def files_of(table: Table) -> set[str]:
    """The files of a version, relative to the table's directory.

    Data files with their blobs, deletion files, the files of the indexes, the
    manifest and the transaction. Lists two directories at most.
    """
    dataset = table.dataset()
    objects = ControlObjects(table.location)
    found = files_of_version(table)
    data: set[str] = set()
    with storage_errors(f"enumerating the files of {table.location}"):
        for fragment in dataset.get_fragments():
            metadata = fragment.metadata
            data |= {f"data/{file.path}" for file in metadata.files}
            if metadata.deletion_file is not None:
                found.add(metadata.deletion_file.path(fragment.fragment_id))
        indexes = {
            f"_indices/{segment.uuid}"
            for index in dataset.describe_indices()
            for segment in index.segments
        }
    found |= data
    if indexes:
        found |= _inside(objects.list("_indices"), indexes)
    if _has_blobs(dataset.schema):
        # Blobs too large for their data file lie in a directory named after it.
        found |= _inside(objects.list("data"), {name.removesuffix(".lance") for name in data})
    return found


def files_of_version(table: Table) -> set[str]:
    """The files that make a version out of data: its manifest and its transaction."""
    return {_manifest(table.pin.version)} | _transaction(table)


def all_files(table: Table) -> set[str]:
    """Every file in the table's directory, whether a version refers to it or not."""
    return set(ControlObjects(table.location).list())


def _manifest(version: int) -> str:
    name = f"d{version}" if version >= _DETACHED else f"{_LAST - version:020}"
    return f"_versions/{name}.manifest"


def _transaction(table: Table) -> set[str]:
    transaction = transaction_of(table)
    # Where it cannot be read, nothing needs the file.
    if transaction is None:
        return set()
    return {f"_transactions/{transaction.read_version}-{transaction.uuid}.txn"}


def _inside(names: list[str], directories: set[str]) -> set[str]:
    return {name for name in names if "/".join(name.split("/")[:2]) in directories}


def _has_blobs(schema: pa.Schema) -> bool:
    return any(
        getattr(field.type, "extension_name", None) == BLOB
        or (field.metadata or {}).get(b"ARROW:extension:name") == BLOB.encode()
        for field in schema
    )
