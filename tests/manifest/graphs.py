"""A manifest with two tables, and requests to publish to it; for tests, workers and the bench."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from omnigraph.manifest import rows
from omnigraph.manifest.branches import BranchRefs
from omnigraph.manifest.entries import (
    MAIN,
    Commit,
    Head,
    Registration,
    SchemaContract,
    TableIdentity,
    TableVersion,
)
from omnigraph.manifest.publish_request import (
    AdvanceTable,
    ExactHead,
    PendingCommit,
    PublishRequest,
    TableChange,
)
from omnigraph.manifest.rows import Entry
from omnigraph.manifest.snapshot import BranchState
from omnigraph.manifest.state import ManifestState, fold
from omnigraph.manifest.store import Manifest
from omnigraph.storage.logs.head_log import HeadLog
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.table import TablePin
from omnigraph.version import INTERNAL_SCHEMA

ROOT = Location.parse("/graph")
PERSON = TableIdentity(1, 1)
KNOWS = TableIdentity(2, 1)
SCHEMA = SchemaContract("node Person { }", "{}", "shape", "ir", "domain")
DETACHED = 1 << 63


def genesis() -> list[Entry]:
    """What the first version of a manifest holds."""
    return [
        SCHEMA,
        Registration(PERSON, "node:Person", "nodes/0000000000000001-0000000000000001"),
        TableVersion(PERSON, 1, TablePin(1, None, 0)),
        Registration(KNOWS, "edge:Knows", "edges/0000000000000002-0000000000000001"),
        TableVersion(KNOWS, 1, TablePin(1, None, 0)),
        Commit("GENESIS", None, 1, None, None, None, 1),
        Head(MAIN, "GENESIS", None),
    ]


def first_state() -> ManifestState:
    """The state of the first version."""
    return fold(genesis())


def make_manifest(root: Location, stamp: str | None = str(INTERNAL_SCHEMA)) -> Manifest:
    """A manifest in its first version, written with a format stamp."""
    metadata = {} if stamp is None else {rows.FORMAT_KEY: stamp.encode()}
    head = rows.to_table(genesis()).replace_schema_metadata(metadata)
    HeadLog.create(root.join("__manifest", MAIN), head)
    return Manifest(root)


def fork(manifest: Manifest, name: str, source: str = MAIN) -> str:
    """Make a branch; returns its id."""
    BranchRefs(manifest).create(name, source)
    return manifest.branch_id(name)


def request(
    *changes: TableChange, actor: str | None = None, head: ExactHead | None = None
) -> PublishRequest:
    """A request with a commit of its own."""
    return PublishRequest(PendingCommit.mint(actor), changes, precondition=head)


def pin(number: int) -> TablePin:
    """A pin as a detached commit makes it."""
    return TablePin(DETACHED + number, f"uuid-{number}", number)


def advance(manifest: Manifest, branch: str = MAIN, *, number: int | None = None) -> BranchState:
    """Publish the next version of one table on top of what the manifest has seen last."""
    known = manifest.known(branch) or manifest.view(branch)
    expected = known.state.current_version(PERSON)
    return manifest.publish(
        known.branch_id,
        request(AdvanceTable(PERSON, expected, pin(expected + 1 if number is None else number))),
    )


def copy_manifest(source: Location, target: Location) -> None:
    """Copy a manifest, all versions of it, as a person would copy its directory."""
    directory = Path(source.join("__manifest").path)
    objects = ControlObjects(target.join("__manifest"))

    def put(file: Path) -> None:
        objects.replace(str(file.relative_to(directory)), file.read_bytes())

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, (file for file in directory.rglob("*") if file.is_file())))
