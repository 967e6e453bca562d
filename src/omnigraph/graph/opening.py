"""Making and opening graphs, and mending what others left beside the manifest.

Owns the steps of opening. A graph that is opened read-only is left exactly as it is.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.errors import BranchNotFound, NotFound, StorageError
from omnigraph.graph.guard import guarded
from omnigraph.graph.schema_sources import schema_source
from omnigraph.graph.session import Graph
from omnigraph.manifest.entries import MAIN, SchemaContract
from omnigraph.manifest.root_copies import lagging_copies, write_copies
from omnigraph.manifest.snapshot import MANIFEST_NAME, catalog_of
from omnigraph.manifest.store import GraphHandle, Manifest
from omnigraph.storage.logs.head_log import HeadLog
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.storage.objects.s3_client import require_reachable


@guarded
def init(
    location: str | Path, schema: str | Path, *, force: bool = False, actor: str | None = None
) -> Graph:
    """Make a graph and open it; ``schema`` is the path of a `.pg` file, or its text.

    >>> graph = og.init("club.omni", "node Member { name: String @key }")
    >>> graph.branches.list()
    ['main']
    """
    from omnigraph.evolve.genesis import create_graph

    root = Location.parse(str(location))
    require_reachable(root)
    create_graph(root, schema_source(schema), force=force, actor=actor)
    return open(location, actor=actor)


@guarded
def open(  # noqa: A001 - the word everybody expects: `omnigraph.open`
    location: str | Path, *, read_only: bool = False, actor: str | None = None
) -> Graph:
    """Open a graph; read-only writes nothing and repairs nothing."""
    root = Location.parse(str(location))
    require_reachable(root)
    manifest = Manifest(root)
    graph = Graph(GraphHandle(root, manifest, read_only), actor)
    try:
        contract = manifest.view().state.schema
    except StorageError as error:
        graph.notices.append(_without_main(root, manifest, error))
        return graph
    catalog_of(contract)
    if not read_only:
        graph.notices += [*_mend_files(root, contract), *_sweep(root, manifest)]
    return graph


def _without_main(root: Location, manifest: Manifest, error: StorageError) -> str:
    """What is told of a graph whose main is lost, and which has other branches; else an error."""
    if error.kind in ("transient", "configuration"):
        raise error
    branches = manifest.refs.read().of_kind("branch")
    versions = HeadLog.versions(root.join(MANIFEST_NAME, MAIN))
    if not branches and next(versions, None) is None:
        raise NotFound(f"there is no graph at {root}") from None
    what = f"branch main of {root} cannot be read: {error.message}"
    for branch in branches:
        with suppress(StorageError, BranchNotFound):
            catalog_of(manifest.view(branch).state.schema)
            return f"{what}; other branches can, and `omnigraph verify` tells what is lost"
    raise StorageError(
        f"{what}; `omnigraph repair` shows what is left and can be kept", kind=error.kind
    ) from error


def embedded_by(opened: Graph, embedding: EmbedderConfig | None) -> Graph:
    """The same graph, whose vectors are made by one of its own and not by the environment's."""
    handle = opened._access.handle  # noqa: SLF001 - of the same package
    return Graph(handle, opened.actor, embedding)


def _mend_files(root: Location, contract: SchemaContract) -> list[str]:
    """Remove the claim of a finished init, and rewrite copies of the schema that lag.

    Where nothing is to be mended, nothing is written.
    """
    from omnigraph.evolve.genesis import CLAIM_NAME, release_claim

    objects = ControlObjects(root)
    try:
        if objects.read(CLAIM_NAME) is not None:
            release_claim(objects)
        lagging = lagging_copies(objects, contract)
        if lagging:
            write_copies(objects, contract, lagging)
    except StorageError as error:
        # Nobody needs them: a disk that is full must not keep people from cleaning it.
        return [f"the files beside the manifest were not put right: {error}"]
    return [f"rewrote {', '.join(lagging)} from the manifest"] if lagging else []


def _sweep(root: Location, manifest: Manifest) -> list[str]:
    """Finish the story of writers that died; nobody needs it done to go on."""
    from omnigraph.write.recovery.sweep import sweep

    try:
        report = sweep(root, manifest)
    except StorageError as error:
        return [f"the sweep of unfinished writes stopped: {error}"]
    finished = [
        f"{found.recovery_kind}: operation {found.operation_id} ({found.writer_kind})"
        for found in report.recoveries
    ]
    return [*finished, *report.notices]
