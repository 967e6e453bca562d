"""Files: everything that one pinned version of a table refers to.

Owns the names Lance gives its files. Must never delete: the collector above
decides which files nothing refers to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

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


@dataclass(slots=True)
class ReachedFiles:
    """What some versions of one table need: by name, by directory, or by transaction.

    A version names some of its files only by their directory.
    """

    files: set[str] = field(default_factory=set)
    directories: set[str] = field(default_factory=set)
    transactions: set[str] = field(default_factory=set)

    def __ior__(self, other: ReachedFiles) -> Self:
        self.files |= other.files
        self.directories |= other.directories
        self.transactions |= other.transactions
        return self

    def __contains__(self, name: str) -> bool:
        """Whether a file is needed, which is named relative to the table."""
        if name in self.files:
            return True
        if name.startswith("_transactions/"):
            return _transaction_uuid(name) in self.transactions
        return _directory(name) in self.directories


def reached_files(location: Location, pins: Iterable[TablePin]) -> ReachedFiles:
    """The files of all these versions.

    Raises when a version cannot be read, because nobody knows then what it needs.
    """
    reached = ReachedFiles()
    for pin in pins:
        reached.files.add(manifest_name(pin.version))
        with storage_errors(f"enumerating the files of {location}"):
            # Not from the shared handles: these many would push out those that are in use.
            files, indexes = _named_in(open_alone(location, pin.version))
        reached.files |= files
        reached.directories |= indexes | _blob_directories(files)
        if pin.transaction_uuid is None:
            reached.files |= _transaction(Table(location, pin))
        else:
            reached.transactions.add(pin.transaction_uuid)
    return reached


def first_pins(names: Iterable[str]) -> set[TablePin]:
    """Of a table's files, the versions in its line: those of the empty table that it began as."""
    versions = map(version_of, names)
    return {TablePin(one, None, 0) for one in versions if one is not None and one < DETACHED}


def version_of(name: str) -> int | None:
    """The version whose manifest a file of a table is; None for every other file."""
    directory, _, file = name.rpartition("/")
    stem = file.removesuffix(".manifest")
    if directory != "_versions" or stem == file:
        return None
    if stem.startswith("d") and stem[1:].isdecimal():
        return int(stem[1:])
    return _LAST - int(stem) if stem.isdecimal() else None


def version_made_by(name: str) -> int | None:
    """The version that a file is the transaction of, whether it came to be or lost its race."""
    directory, _, file = name.rpartition("/")
    read_version = file.partition("-")[0]
    is_one = directory == "_transactions" and file.endswith(".txn") and read_version.isdecimal()
    return int(read_version) + 1 if is_one else None


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
    return {name for name in names if _directory(name) in directories}


def _directory(name: str) -> str:
    """The first two parts of a name."""
    return "/".join(name.split("/", maxsplit=2)[:2])


def _has_blobs(schema: pa.Schema) -> bool:
    return any(
        getattr(field.type, "extension_name", None) == BLOB
        or (field.metadata or {}).get(b"ARROW:extension:name") == BLOB.encode()
        for field in schema
    )
