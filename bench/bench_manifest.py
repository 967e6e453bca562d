"""What history costs: publishing, opening and travelling at depth 1,000 against depth 10.

Owns the ratios of the manifest. Prints the requests of each step too: those
must not differ at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.ratio import Ratio, interleaved
from omnigraph.manifest.changes import AdvanceTable, CommitIntent, PublishRequest
from omnigraph.manifest.entries import (
    MAIN,
    Commit,
    Head,
    Registration,
    SchemaContract,
    TableIdentity,
    TableVersion,
)
from omnigraph.manifest.rows import FORMAT_KEY, Entry, to_table
from omnigraph.manifest.store import MANIFEST_NAME, Manifest
from omnigraph.storage.headlog import HeadLog
from omnigraph.storage.location import Location
from omnigraph.storage.meter import measure
from omnigraph.storage.table import TablePin
from omnigraph.version import INTERNAL_SCHEMA

LIMIT = 3.0
SHALLOW, DEEP = 10, 1_000
TABLE = TableIdentity(1, 1)


@dataclass(frozen=True, slots=True)
class History:
    """A manifest with some commits behind it."""

    root: Location
    manifest: Manifest
    middle: Commit

    def publish(self) -> None:
        """One more commit, on a warm handle."""
        _publish(self.manifest)

    def open(self) -> None:
        """The newest state, with nothing known before."""
        Manifest(self.root).view()

    def travel(self) -> None:
        """The state of a commit half-way back."""
        Manifest(self.root).view_at(self.middle)


def run() -> list[Ratio]:
    """The ratios, on the local disk."""
    print(f"{'manifest':<28}  requests")
    with TemporaryDirectory() as directory:
        shallow = _history(Path(directory) / "shallow", SHALLOW)
        deep = _history(Path(directory) / "deep", DEEP)
        pairs: list[tuple[str, Callable[[], None], Callable[[], None]]] = [
            ("publish", deep.publish, shallow.publish),
            ("open", deep.open, shallow.open),
            ("time travel", deep.travel, shallow.travel),
        ]
        for name, top, bottom in pairs:
            _show(f"{name} at depth {DEEP:,}", top)
            _show(f"{name} at depth {SHALLOW:,}", bottom)
        # Few runs: each publish makes the shallow history deeper.
        return [
            Ratio(
                f"{name} at depth {DEEP:,} / {SHALLOW}", *interleaved(top, bottom, runs=21), LIMIT
            )
            for name, top, bottom in pairs
        ]


def _show(name: str, action: Callable[[], None]) -> None:
    with measure() as meter:
        action()
    print(f"{name:<28}  {meter}")


def _history(directory: Path, depth: int) -> History:
    root = Location.parse(str(directory))
    head = to_table(_genesis())
    stamp = {FORMAT_KEY: str(INTERNAL_SCHEMA).encode()}
    HeadLog.create(root.join(MANIFEST_NAME), head.replace_schema_metadata(stamp))
    manifest = Manifest(root)
    for _ in range(depth - 1):
        _publish(manifest)
    return History(root, manifest, manifest.commits()[depth // 2])


def _genesis() -> list[Entry]:
    return [
        SchemaContract("", "{}", "", "", ""),
        Registration(TABLE, "node:Item", "nodes/item"),
        TableVersion(TABLE, 1, TablePin(1, None, 0)),
        Commit("GENESIS", None, 1, None, None, None, 1),
        Head(MAIN, "GENESIS", None),
    ]


def _publish(manifest: Manifest) -> None:
    version = manifest.view().state.current_version(TABLE)
    change = AdvanceTable(TABLE, version, TablePin(version + 1, "uuid", version))
    manifest.publish(MAIN, PublishRequest(CommitIntent.mint(), (change,)))
