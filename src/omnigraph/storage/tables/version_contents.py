"""Contents: what one version of a table says that it is made of, each file with its size.

Owns reading that from the version alone, and the record that tells a version from an altered
one. Opens every version anew, and must never write.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.columns import is_blob
from omnigraph.storage.tables.handles import open_alone
from omnigraph.storage.tables.sealed_files import checksum_of_version


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that a version needs, below the table's directory; None is a size nobody noted."""

    name: str
    size: int | None = None


@dataclass(frozen=True, slots=True)
class FragmentContents:
    """One fragment: its data files, what is deleted of it, and how many rows are left."""

    number: int
    files: tuple[NamedFile, ...]
    deletions: NamedFile | None
    rows: int


@dataclass(frozen=True, slots=True)
class SegmentContents:
    """One segment of an index: its directory, and the bytes of all files there."""

    index: str
    kind: str
    column: str
    directory: str
    size: int | None


@dataclass(frozen=True, slots=True)
class VersionContents:
    """All of a version."""

    fragments: tuple[FragmentContents, ...]
    segments: tuple[SegmentContents, ...]
    has_blobs: bool
    checksum: str

    @property
    def rows(self) -> int:
        """How many rows there are by what the fragments say."""
        return sum(fragment.rows for fragment in self.fragments)

    def files(self) -> Iterator[tuple[FragmentContents, NamedFile]]:
        """Every data and deletion file, with the fragment that needs it."""
        for fragment in self.fragments:
            for file in fragment.files:
                yield fragment, file
            if fragment.deletions is not None:
                yield fragment, fragment.deletions


def contents_of(location: Location, version: int) -> VersionContents:
    """What a version is made of; a StorageError when it is not there or cannot be read."""
    with storage_errors(f"reading version {version} of {location}"):
        dataset = open_alone(location, version)
        fragments = []
        for fragment in dataset.get_fragments():
            known = fragment.metadata
            deleted = known.deletion_file
            fragments.append(
                FragmentContents(
                    fragment.fragment_id,
                    tuple(
                        NamedFile(f"data/{file.path}", file.file_size_bytes) for file in known.files
                    ),
                    None if deleted is None else NamedFile(deleted.path(fragment.fragment_id)),
                    known.num_rows,
                )
            )
        segments = [
            SegmentContents(
                index.name,
                index.index_type.upper(),
                ".".join(index.field_names),
                f"_indices/{segment.uuid}",
                segment.size_bytes,
            )
            for index in dataset.describe_indices()
            for segment in index.segments
        ]
        has_blobs = any(map(is_blob, dataset.schema))
        checksum = checksum_of_version(dataset)
    return VersionContents(tuple(fragments), tuple(segments), has_blobs, checksum)
