"""Work on graphs: making one, giving one another schema, deleting one.

Owns the order in which a graph is deleted: it is hidden first, so that an apply that dies leaves
it whole or gone for everybody who opens it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from omnigraph import graph
from omnigraph.cluster.desired import Resource
from omnigraph.cluster.failpoints import reach
from omnigraph.cluster.layout import Root
from omnigraph.evolve.genesis import create_graph
from omnigraph.lang.source import Source
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.snapshot import MANIFEST_NAME
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.s3_client import require_reachable
from omnigraph.storage.tables.reachable_files import version_of

_VERSIONS = f"{MANIFEST_NAME}/{MAIN}/_versions"
_BATCH = 10_000


def schema_source(schema: Resource) -> Source:
    """The text of a schema that is wanted."""
    return Source(schema.content.decode("utf-8-sig"), schema.path or schema.address)


def create(root: Root, id_: str, schema: Resource, actor: str | None, *, force: bool) -> None:
    """Make a graph; with ``force`` over what an init that died has left, and nothing else."""
    location = root.graph(id_)
    require_reachable(location)
    create_graph(location, schema_source(schema), force=force, actor=actor)
    reach("cluster_graph_created", id_)


def change_schema(
    root: Root, id_: str, schema: Resource, actor: str | None, operation_id: str
) -> None:
    """Give main of a graph another schema; nothing is dropped for good."""
    opened = graph.open(str(root.graph(id_)), actor=actor)
    opened.apply_schema(schema_source(schema), run_id=operation_id)
    reach("cluster_schema_applied", id_)


def delete(root: Root, id_: str) -> None:
    """Delete a graph with everything in it; again, where that was begun before."""
    location = root.graph(id_)
    objects = ControlObjects(location)
    # The newest version goes last, and in one step: until then the graph is there as it was.
    for name in sorted(objects.list(_VERSIONS), key=_age):
        objects.delete(name)
    reach("cluster_graph_hidden", id_)
    batch: list[str] = []
    for entry in objects.walk():
        batch.append(entry.name)
        if len(batch) >= _BATCH:
            objects.delete_all(batch)
            batch = []
    objects.delete_all(batch)
    if location.is_local:
        _drop_directories(Path(location.path))
    reach("cluster_graph_deleted", id_)


def _age(name: str) -> int:
    """The version that a file is; what is none goes first."""
    return version_of(f"_versions/{name.rpartition('/')[2]}") or 0


def _drop_directories(path: Path) -> None:
    for directory, _, _ in os.walk(path, topdown=False):
        # Something may be in it that came meanwhile: then it stays.
        with suppress(OSError):
            Path(directory).rmdir()
