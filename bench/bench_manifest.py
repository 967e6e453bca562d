"""What history and the number of types cost: requests and time, on local disk and on S3.

Owns the steps that are measured and the limits: on the local disk a step at
depth 1,000 may take three times as long as at depth 10. S3 is only shown.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import omnigraph.graph as og
from bench.cost import Cost, costs, line
from bench.ratio import Ratio
from omnigraph.manifest.entries import MAIN, Commit, TableIdentity
from omnigraph.manifest.publish_request import AdvanceTable
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables import handles
from tests.manifest.graphs import advance, copy_manifest, make_manifest, pin, request
from tests.s3_server import running

LIMIT = 3.0
DEPTHS = (10, 100, 1_000)
# Few: each publish makes the shallow history deeper.
RUNS = 15
NODE_TYPES, EDGE_TYPES = 150, 67

Costs = dict[str, list[Cost]]
"""By step, one for each depth."""


@dataclass(frozen=True, slots=True)
class History:
    """A manifest with some commits behind it."""

    root: Location
    manifest: Manifest
    middle: Commit

    def publish(self) -> None:
        """One more commit, on a warm handle."""
        advance(self.manifest)

    def open(self) -> None:
        """The newest state, with nothing known before."""
        Manifest(self.root).view()

    def probe(self) -> None:
        """Whether the state in memory is still the newest."""
        self.manifest.view()

    def travel(self) -> None:
        """The state of a commit half-way back, with nothing known before."""
        Manifest(self.root).view_at(self.middle)


def run() -> list[Ratio]:
    """Print the table; the ratios are of the local disk."""
    with TemporaryDirectory() as name:
        directory = Path(name)
        grown = _grow(directory)
        print(line("manifest", [f"depth {depth:,}" for depth in DEPTHS]))
        local = _measure(_copy(grown, str(directory / "copies")))
        _show("local", local)
        (directory / "s3").mkdir()
        with _s3(directory / "s3") as bucket:
            _show("S3", _measure(_copy(grown, bucket)))
        types = NODE_TYPES + EDGE_TYPES
        print(line("manifest", ["init", "open", "publish 1 table", f"publish {types}"]))
        print(line(f"local  {types} types", _many_types(directory / "types")))
    return [
        Ratio(
            f"{step} at depth {DEPTHS[-1]:,} / {DEPTHS[0]}",
            local[step][-1].seconds,
            local[step][0].seconds,
            LIMIT,
        )
        for step in ("publish", "open", "time travel")
    ]


def _show(storage: str, measured: Costs) -> None:
    for step, cells in measured.items():
        print(line(f"{storage:<5}  {step}", cells))


def _measure(histories: Sequence[History]) -> Costs:
    """Publishing comes last, because it changes the depth, and is shown first."""
    reads = {
        "open": costs([each.open for each in histories], runs=RUNS, before=_forget),
        "probe": costs([each.probe for each in histories], runs=RUNS),
        "time travel": costs([each.travel for each in histories], runs=RUNS, before=_forget),
    }
    return {"publish": costs([each.publish for each in histories], runs=RUNS), **reads}


def _forget() -> None:
    """Empty the caches of this process, as if it had just started."""
    handles._session = None  # noqa: SLF001 - the product never has a reason to


# -- histories -------------------------------------------------------------------------


def _grow(directory: Path) -> list[Location]:
    """A history of each depth; on the local disk, where a thousand commits take seconds."""
    growing = Location.parse(str(directory / "growing"))
    manifest = make_manifest(growing)
    grown: list[Location] = []
    for depth in DEPTHS:
        while manifest.view().state.version < depth:
            advance(manifest)
        grown.append(Location.parse(str(directory / f"depth{depth}")))
        copy_manifest(growing, grown[-1])
    return grown


def _copy(grown: Sequence[Location], target: str) -> list[History]:
    histories: list[History] = []
    for depth, source in zip(DEPTHS, grown, strict=True):
        root = Location.parse(target).join(f"depth{depth}")
        copy_manifest(source, root)
        manifest = Manifest(root)
        histories.append(History(root, manifest, manifest.commits()[depth // 2]))
    return histories


@contextmanager
def _s3(directory: Path) -> Iterator[str]:
    """The address of an empty bucket on a server of its own, and the environment for it."""
    with running(directory) as server:
        before = dict(os.environ)
        os.environ.update(server.environment)
        try:
            yield f"s3://{server.bucket}/bench"
        finally:
            os.environ.clear()
            os.environ.update(before)


# -- many types ------------------------------------------------------------------------


def _many_types(directory: Path) -> list[Cost]:
    """What a graph of many types costs: init, open, a commit of one table, and of all."""
    numbers = count()
    made: list[Path] = []

    def init() -> None:
        made.append(directory / str(next(numbers)))
        og.init(made[-1], _schema())

    initialised = costs([init], runs=3)
    opened = costs([lambda: og.open(made[0])], runs=RUNS, before=_forget)
    manifest = og.open(made[0]).manifest
    tables = [table.table.identity for table in og.open(made[0]).snapshot().tables.values()]
    return [
        *initialised,
        *opened,
        *costs([lambda: _publish(manifest, tables[:1])], runs=RUNS),
        *costs([lambda: _publish(manifest, tables)], runs=RUNS),
    ]


def _schema() -> str:
    nodes = [f"node N{number} {{\n    slug: String @key\n}}" for number in range(NODE_TYPES)]
    edges = [f"edge E{number}: N{number} -> N{number + 1}" for number in range(EDGE_TYPES)]
    return "\n\n".join([*nodes, *edges]) + "\n"


def _publish(manifest: Manifest, tables: Sequence[TableIdentity]) -> None:
    state = manifest.view().state
    versions = {table: state.current_version(table) for table in tables}
    changes = [AdvanceTable(table, old, pin(old + 1)) for table, old in versions.items()]
    manifest.publish(MAIN, request(*changes))
