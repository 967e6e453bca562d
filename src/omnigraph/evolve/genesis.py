"""Genesis: making a graph where there is none.

Owns the order of the steps, so that a crash at any of them leaves either
nothing usable or a complete graph: the manifest comes last and at once. The
claim keeps two creators apart and tells the next one what it found.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import msgspec
from ulid import ULID

from omnigraph.errors import AlreadyInitialized, Conflict, OmniGraphError, StorageError
from omnigraph.evolve.contract import COPY_NAMES, contract_of, copies_of, first_schema
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.lang.schema.identity import table_path
from omnigraph.lang.source import Source
from omnigraph.manifest.changes import CommitIntent
from omnigraph.manifest.entries import (
    MAIN,
    Commit,
    Head,
    Registration,
    TableIdentity,
    TableVersion,
)
from omnigraph.manifest.rows import FORMAT_KEY, Entry, to_table
from omnigraph.manifest.store import MANIFEST_NAME, Manifest
from omnigraph.storage.columns import table_columns
from omnigraph.storage.headlog import HeadLog
from omnigraph.storage.location import Location
from omnigraph.storage.objects import ControlObjects
from omnigraph.storage.table import TablePin, create_table
from omnigraph.version import INTERNAL_SCHEMA

CLAIM_NAME = "__init_claim.json"
DIRECTORIES = ("nodes", "edges", MANIFEST_NAME)
CONCURRENCY = 8


def create_graph(
    root: Location, source: Source, *, force: bool = False, actor: str | None = None
) -> None:
    """Make a graph with this schema; refuses a root that holds one, or the remains of one."""
    objects = ControlObjects(root)
    _preflight(objects, force=force)
    schema = first_schema(source)
    objects.probe_create_only()
    if force:
        objects.delete(CLAIM_NAME)
    claim = _claim(objects)
    if _has_manifest(objects):
        # Another init has finished meanwhile.
        release_claim(objects, claim)
        raise _already_there(objects)
    if force:
        _clear_remains(objects)
    contract = contract_of(schema)
    for name, data in copies_of(contract).items():
        objects.replace(name, data)
    tables = _tables(schema.catalog)
    pins = _create_tables(root, schema.catalog, tables)
    commit = CommitIntent.mint(actor)
    entries: list[Entry] = [
        contract,
        *tables,
        *(TableVersion(table.identity, 1, pins[table.identity]) for table in tables),
        Commit(commit.id, None, 1, None, None, commit.actor, commit.created_at),
        Head(MAIN, commit.id, None),
    ]
    if objects.read(CLAIM_NAME) != claim:
        raise Conflict(f"another init with --force has taken over {root}: nothing was made here")
    _create_manifest(root, entries, commit)
    try:
        release_claim(objects, claim)
    except StorageError:
        return  # the graph is complete, and opening it removes the claim


def _create_manifest(root: Location, entries: list[Entry], commit: CommitIntent) -> None:
    """The one step that makes the graph; an error is read back, for it may have happened."""
    stamp = {FORMAT_KEY: str(INTERNAL_SCHEMA).encode()}
    rows = to_table(entries).replace_schema_metadata(stamp)
    try:
        HeadLog.create(root.join(MANIFEST_NAME), rows)
    except StorageError as failure:
        try:
            made = Manifest(root).view().state.head_commit_id == commit.id
        except OmniGraphError:
            made = False
        if not made:
            raise failure from failure.__cause__


def _has_manifest(objects: ControlObjects) -> bool:
    """Whether there is a version of the manifest, not only files that were to become one."""
    return any(name.endswith(".manifest") for name in objects.list(f"{MANIFEST_NAME}/_versions"))


def _already_there(objects: ControlObjects) -> AlreadyInitialized:
    return AlreadyInitialized(f"{objects.location} holds a graph already")


def _preflight(objects: ControlObjects, *, force: bool) -> None:
    """Refuse a root that is in use, saying exactly what is there."""
    if _has_manifest(objects):
        raise _already_there(objects)
    if force:
        return
    claim = objects.read(CLAIM_NAME)
    if claim is not None:
        raise Conflict(
            f"{objects.location} is claimed by another init ({_describe(claim)}): wait for it, "
            "or if it died, run again with --force",
            details={"claim": claim.decode(errors="replace")},
        )
    remains = [name for name in COPY_NAMES if objects.read(name) is not None]
    remains += [name for name in DIRECTORIES if objects.list(name)]
    if remains:
        raise AlreadyInitialized(
            f"{objects.location} holds no graph but the remains of one ({', '.join(remains)}): "
            "choose another place, or overwrite them with --force",
            details={"found": remains},
        )


def _clear_remains(objects: ControlObjects) -> None:
    """Remove what an init that died has left; there is no manifest, so nobody can read it."""
    for directory in DIRECTORIES:
        for name in objects.list(directory):
            objects.delete(name)
    for name in COPY_NAMES:
        objects.delete(name)


def _claim(objects: ControlObjects) -> bytes:
    claim = msgspec.json.encode(
        {"claim_id": str(ULID()), "created_at": datetime.now(UTC).isoformat(timespec="seconds")}
    )
    if not objects.claim(CLAIM_NAME, claim):
        raise Conflict(f"{objects.location} has just been claimed by another init")
    return claim


def release_claim(objects: ControlObjects, claim: bytes | None = None) -> None:
    """Remove the claim of a finished init; only one's own, if one is given."""
    if claim is None or objects.read(CLAIM_NAME) == claim:
        objects.delete(CLAIM_NAME)


def _describe(claim: bytes) -> str:
    try:
        return f"since {msgspec.json.decode(claim, type=dict[str, str])['created_at']}"
    except (msgspec.MsgspecError, KeyError):
        return "an unreadable claim"


def _tables(catalog: Catalog) -> list[Registration]:
    types: list[NodeType | EdgeType] = [*catalog.nodes.values(), *catalog.edges.values()]
    return [
        Registration(
            TableIdentity(found.type_id, found.incarnation),
            f"{found.kind}:{found.name}",
            table_path(found.kind, found.type_id, found.incarnation),
        )
        for found in types
    ]


def _create_tables(
    root: Location, catalog: Catalog, tables: list[Registration]
) -> dict[TableIdentity, TablePin]:
    def create(table: Registration) -> TablePin:
        types = catalog.nodes if table.entity_kind == "node" else catalog.edges
        structural = ("id",) if table.entity_kind == "node" else ("id", "src", "dst")
        properties = types[table.type_name].properties
        columns = table_columns(structural, {name: p.type for name, p in properties.items()})
        return create_table(root.join(table.path), columns)

    with ThreadPoolExecutor(CONCURRENCY) as pool:
        pins = list(pool.map(create, tables))
    return {table.identity: pin for table, pin in zip(tables, pins, strict=True)}
