"""Files: whether every version of a table that is kept has all that it is made of.

Owns comparing what versions name with what is stored, sizes and numbers of rows included, and
reading files against the checksums in their names. Never judges by a row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from omnigraph.errors import OmniGraphError, StorageError
from omnigraph.maintain.verify.lineage import Lineage, in_parallel, is_missing
from omnigraph.maintain.verify.report import Finding, FindingKind
from omnigraph.manifest.snapshot import MANIFEST_NAME
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.reachable_files import DETACHED, manifest_name, version_of
from omnigraph.storage.tables.sealed_files import has_checksum, is_as_written
from omnigraph.storage.tables.table import TablePin
from omnigraph.storage.tables.version_contents import (
    FragmentContents,
    NamedFile,
    SegmentContents,
    VersionContents,
    contents_of,
)

Stored = Mapping[str, int]
"""The sizes of the files that are there, by name below the table's directory."""
FIRST = 1
"""The version that a table is made with: its own line of versions ends there."""


@dataclass(frozen=True, slots=True)
class _Suspect:
    """A file that is not what a version needs."""

    kind: FindingKind
    name: str
    text: str
    rows: int = 0
    column: str | None = None


@dataclass(slots=True)
class FileCheck:
    """The files of all kept versions."""

    root: Location
    lineage: Lineage
    deep: bool
    versions: int = 0
    files: int = 0
    checksums: int = 0
    unverified: int = 0
    _seen: set[str] = field(default_factory=set)
    _altered: dict[str, bool] = field(default_factory=dict)

    def run(self) -> None:
        """Look at every table, then at the manifests."""
        by_path: defaultdict[str, list[TablePin]] = defaultdict(list)
        for path, pin in self.lineage.pins:
            by_path[path].append(pin)
        for path in sorted(by_path):
            self._table(path, by_path[path])
        for branch_id in sorted({branch_id for branch_id, _ in self.lineage.stored}):
            self._manifest(branch_id)

    def _stored(self, path: str) -> Stored:
        entries = ControlObjects(self.root.join(path)).entries()
        return {entry.name: entry.size for entry in entries}

    # -- tables ----------------------------------------------------------------------

    def _table(self, path: str, pins: Sequence[TablePin]) -> None:
        location, type_key = self.root.join(path), self.lineage.type_keys[path]
        # After the pins were read: what a kept version needs is there by now.
        stored = self._stored(path)
        suspects: defaultdict[_Suspect, dict[str, None]] = defaultdict(dict)
        self._seen, self._altered = set(), {}
        looks = in_parallel(lambda pin: _contents(location, pin), pins)
        for pin, found in zip(pins, looks, strict=True):
            self.versions += 1
            commits = self.lineage.pins[path, pin]
            for suspect in self._suspects(location, pin, found, stored):
                suspects[suspect] |= commits
        for suspect, commits in suspects.items():
            self.lineage.report(
                Finding(
                    suspect.kind,
                    f"{type_key}: {suspect.text}",
                    f"{path}/{suspect.name}",
                    type_key,
                    property_name=suspect.column,
                    entity_count=suspect.rows,
                ),
                commits,
            )
        self._drift(path, type_key, stored)

    def _suspects(
        self,
        location: Location,
        pin: TablePin,
        found: VersionContents | OmniGraphError,
        stored: Stored,
    ) -> Iterator[_Suspect]:
        version = manifest_name(pin.version)
        if isinstance(found, OmniGraphError):
            if is_missing(found) and version not in stored:
                yield _Suspect("version_missing", version, "a version is not there", pin.row_count)
            else:
                text = f"a version cannot be read: {found.message}"
                yield _Suspect("version_unreadable", version, text, pin.row_count)
            return
        if found.rows != pin.row_count:
            text = f"a version has {found.rows} rows and was published with {pin.row_count}"
            yield _Suspect("row_count", version, text)
        if pin.checksum not in {None, found.checksum}:
            text = "a version is not what was published"
            yield _Suspect("version_altered", version, text, pin.row_count)
        for fragment, file in found.files():
            yield from self._file(location, fragment, file, stored, summed=self.deep)
        for segment in found.segments:
            yield from self._segment(segment, stored)

    def _file(
        self,
        location: Location,
        fragment: FragmentContents,
        file: NamedFile,
        stored: Stored,
        *,
        summed: bool,
    ) -> Iterator[_Suspect]:
        if file.name not in self._seen:
            self._seen.add(file.name)
            self.files += 1
        size = stored.get(file.name)
        if size is None:
            yield _Suspect("file_missing", file.name, "a file is not there", fragment.rows)
        elif file.size is not None and file.size != size:
            text = f"a file has {size} bytes and was written with {file.size}"
            yield _Suspect("file_size", file.name, text, fragment.rows)
        elif summed and self._is_altered(location, file.name, stored):
            text = "a file is not what was written"
            yield _Suspect("checksum", file.name, text, fragment.rows)

    def _is_altered(self, location: Location, name: str, stored: Stored) -> bool:
        """Whether a file is not what its checksum says; each is read once."""
        known = self._altered.get(name)
        if known is not None:
            return known
        if not has_checksum(name):
            self.unverified += 1
            self._altered[name] = False
            return False
        self.checksums += 1
        blobs = f"{name.removesuffix('.lance')}/"
        beside = [one for one in stored if one.startswith(blobs)]
        try:
            is_altered = not is_as_written(ControlObjects(location), name, beside)
        except StorageError as error:
            if is_missing(error):
                return False  # collected since it was listed
            is_altered = True
        self._altered[name] = is_altered
        return is_altered

    def _segment(self, segment: SegmentContents, stored: Stored) -> Iterator[_Suspect]:
        sizes = [size for name, size in stored.items() if name.startswith(f"{segment.directory}/")]
        self.files += 0 if segment.directory in self._seen else len(sizes)
        self._seen.add(segment.directory)
        what = f"index {segment.index} of {segment.column}"
        if not sizes:
            text = f"{what} is not there"
            yield _Suspect("index_file_missing", segment.directory, text, column=segment.column)
        elif segment.size is not None and segment.size != sum(sizes):
            text = f"{what} has {sum(sizes)} bytes and was written with {segment.size}"
            yield _Suspect("index_size", segment.directory, text, column=segment.column)

    def _drift(self, path: str, type_key: str, stored: Stored) -> None:
        """Somebody has made versions that no commit of this graph knows."""
        others = foreign_versions(stored)
        if others:
            text = (
                f"{type_key}: {len(others)} versions were made by other programs, which no "
                "commit shows: leave them, or remove them with the tool that made them"
            )
            self.lineage.report(Finding("foreign_drift", text, path, type_key))

    # -- manifests -------------------------------------------------------------------

    def _manifest(self, branch_id: str) -> None:
        path = f"{MANIFEST_NAME}/{branch_id}"
        location, stored = self.root.join(path), self._stored(path)
        suspects: defaultdict[_Suspect, dict[str, None]] = defaultdict(dict)
        self._seen, self._altered = set(), {}
        for (id_, version), commits in self.lineage.stored.items():
            if id_ != branch_id:
                continue
            found = _contents(location, TablePin(version, None, 0))
            if isinstance(found, OmniGraphError):
                name = manifest_name(version)
                text = f"a version cannot be read: {found.message}"
                suspects[_Suspect("version_unreadable", name, text)] |= commits
                continue
            for fragment, file in found.files():
                # Small, and all else is found by them.
                for suspect in self._file(location, fragment, file, stored, summed=True):
                    suspects[suspect] |= commits
        for suspect, commits in suspects.items():
            text = f"the manifest of a branch: {suspect.text}"
            self.lineage.report(Finding(suspect.kind, text, f"{path}/{suspect.name}"), commits)


def _contents(location: Location, pin: TablePin) -> VersionContents | OmniGraphError:
    try:
        return contents_of(location, pin.version)
    except StorageError as error:
        return error
    except LookupError as error:
        return StorageError(f"it does not fit together: {error}", kind="permanent")


def foreign_versions(stored: Stored) -> list[int]:
    """The versions of a table's own line beyond the one it was made with."""
    found = (version_of(name) for name in stored)
    return sorted(one for one in found if one is not None and FIRST < one < DETACHED)
