"""Graphs that may be too damaged to be opened: looking at them where they lie.

Owns the functions of the module that take a location instead of an opened graph. What can be
mended is the engine's to say.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.graph.guard import guarded
from omnigraph.storage.objects.location import Location
from omnigraph.storage.objects.s3_client import require_reachable

if TYPE_CHECKING:
    from omnigraph.maintain.repair_report import RepairReport
    from omnigraph.maintain.verify.report import VerifyReport


@guarded
def verify(location: str | Path, *, deep: bool = False, branch: str | None = None) -> VerifyReport:
    """Look at everything that a graph has published and keeps, and tell what is damaged.

    ``deep`` reads every data file against its checksum, and asks indexes for every value. Works
    on a graph that cannot be opened any more, and writes nothing.

    >>> og.verify("film.omni").is_sound
    True
    """
    from omnigraph.maintain.verify import operation

    root = Location.parse(str(location))
    require_reachable(root)
    return operation.verify(root, deep=deep, branch=branch)


@guarded
def repair(
    location: str | Path,
    *,
    confirm: bool = False,
    force: bool = False,
    keep_as: str | None = None,
) -> RepairReport:
    """Make again what is derived, and tell what is lost; without ``confirm`` only tell.

    As `Graph.repair`, for a graph that cannot be opened any more.

    >>> og.repair("film.omni").is_whole
    True
    """
    from omnigraph.maintain import repair as repairs

    root = Location.parse(str(location))
    require_reachable(root)
    return repairs.repair(root, confirm=confirm, force=force, keep_as=keep_as)
