"""Files: everything that one pinned version of a table refers to.

Owns the names Lance gives its files. Must never delete: the collector above
decides which files nothing refers to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.handles import open_alone
from omnigraph.storage.tables.table import BLOB, Table, TablePin, transaction_of

if TYPE_CHECKING:
    import lance
    import pyarrow as pa

_LAST = 2**64 - 1
# Detached versions have the highest bit set; their manifests are named by the id itself.
DETACHED = 2**63


def files_of(table: Table) -> set[str]:
    """The files of a version, relative to the table's directory.

    Data files with their blobs, deletion files, the files of the indexes, the
    manifest and the transaction. Lists two directories at most.
    """
    dataset = table.dataset()
    objects = ControlObjects(table.location)
    found = files_of_version(table)
    with storage_errors(f"enumerating the files of {table.location}"):
        files, indexes = _named_in(dataset)
    found |= files
    if indexes:
        found |= _inside(objects.list("_indices"), indexes)
    if _has_blobs(dataset.schema):
        found |= _inside(objects.list("data"), _blob_directories(files))
    return found


def reached_files(
    location: Location, pins: Iterable[TablePin], stored: Collection[str]
) -> set[str]:
    """The files of all these versions, and of the empty table that the directory began as.

    ``stored`` are the files that are there: a version names some of its files only by
    their directory. Raises when a version cannot be read, because nobody knows then
    what it needs.
    """
    wanted = {pin.version: pin for pin in pins}
    for name in stored:
        version = version_of(name)
        if version is not None and version < DETACHED:
            wanted.setdefault(version, TablePin(version, None, 0))
    reached: set[str] = set()
    directories: set[str] = set()
    transactions: set[str] = set()
    for pin in wanted.values():
        reached.add(manifest_name(pin.version))
        with storage_errors(f"enumerating the files of {location}"):
            # Not from the shared handles: these many would push out those that are in use.
            files, indexes = _named_in(open_alone(location, pin.version))
        reached |= files
        directories |= indexes
        if pin.transaction_uuid is None:
            reached |= _transaction(Table(location, pin))
        else:
            transactions.add(pin.transaction_uuid)
    reached |= _inside(stored, directories | _blob_directories(reached))
    reached |= {
        name
        for name in stored
        if name.startswith("_transactions/") and _transaction_uuid(name) in transactions
    }
    return reached


def version_of(name: str) -> int | None:
    """The version whose manifest a file of a table is; None for every other file."""
    directory, _, file = name.rpartition("/")
    stem = file.removesuffix(".manifest")
    if directory != "_versions" or stem == file:
        return None
    if stem.startswith("d") and stem[1:].isdecimal():
        return int(stem[1:])
    return _LAST - int(stem) if stem.isdecimal() else None


def files_of_version(table: Table) -> set[str]:
    """The files that make a version out of data: its manifest and its transaction."""
    return {manifest_name(table.pin.version)} | _transaction(table)


def manifest_name(version: int) -> str:
    """The file that a version is, relative to the table's directory."""
    name = f"d{version}" if version >= DETACHED else f"{_LAST - version:020}"
    return f"_versions/{name}.manifest"


def _transaction(table: Table) -> set[str]:
    transaction = transaction_of(table)
    # Where it cannot be read, nothing needs the file.
    if transaction is None:
        return set()
    return {f"_transactions/{transaction.read_version}-{transaction.uuid}.txn"}


def _transaction_uuid(name: str) -> str:
    return name.rpartition("/")[2].removesuffix(".txn").partition("-")[2]


def _named_in(dataset: lance.LanceDataset) -> tuple[set[str], set[str]]:
    """The data and deletion files that a manifest names, and the directories of its indexes."""
    files: set[str] = set()
    for fragment in dataset.get_fragments():
        metadata = fragment.metadata
        files |= {f"data/{file.path}" for file in metadata.files}
        if metadata.deletion_file is not None:
            files.add(metadata.deletion_file.path(fragment.fragment_id))
    described = dataset.describe_indices()
    return files, {f"_indices/{part.uuid}" for index in described for part in index.segments}


def _blob_directories(files: set[str]) -> set[str]:
    """Where the blobs lie that are too large for their data file."""
    return {name.removesuffix(".lance") for name in files if name.startswith("data/")}


def _inside(names: Collection[str], directories: set[str]) -> set[str]:
    return {name for name in names if "/".join(name.split("/")[:2]) in directories}


def _has_blobs(schema: pa.Schema) -> bool:
    return any(
        getattr(field.type, "extension_name", None) == BLOB
        or (field.metadata or {}).get(b"ARROW:extension:name") == BLOB.encode()
        for field in schema
    )
