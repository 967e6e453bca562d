"""Genesis: making a graph where there is none.

Owns the claim, the order of the steps, and what an `init` that died has left, told from
everything else that lies where tables do. Never removes what it has not made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from omnigraph.errors import AlreadyInitialized, Conflict, StorageError
from omnigraph.evolve.contract import first_schema
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.lang.schema.columns import columns_of_new
from omnigraph.lang.schema.ir.identity import table_path
from omnigraph.lang.source import Source
from omnigraph.lang.structural import EDGE_COLUMNS, NODE_COLUMNS
from omnigraph.manifest.entries import (
    MAIN,
    Commit,
    Head,
    Registration,
    TableIdentity,
    TableVersion,
)
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.manifest.root_copies import COPY_NAMES, copies_of
from omnigraph.manifest.rows import Entry
from omnigraph.manifest.schema_contract import contract_of
from omnigraph.manifest.snapshot import MANIFEST_NAME, stored_columns_of
from omnigraph.manifest.state import fold
from omnigraph.manifest.store import Manifest
from omnigraph.rows.stored_columns import AS_NAMED, StoredColumns
from omnigraph.storage.objects.clock import new_id
from omnigraph.storage.objects.control_objects import ControlObjects, keep_reserve
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.columns import table_columns
from omnigraph.storage.tables.handles import shared_session
from omnigraph.storage.tables.reachable_files import version_of
from omnigraph.storage.tables.table import TablePin, create_table

CLAIM_NAME = "__init_claim.json"
TABLES = ("nodes", "edges")
DIRECTORIES = (*TABLES, MANIFEST_NAME)
CONCURRENCY = 8

_SHOWN = 3
_IN_TABLE = re.compile(r"((?:nodes|edges)/[0-9a-f]{16}-[0-9a-f]{16})/(.+)")
# Beside its first version, a table that nobody has written to consists of the transaction
# that made it, a hint of the newest version, and what a put that was cut short has left.
_BESIDE_FIRST = re.compile(
    r"_transactions/0-[0-9a-f-]{36}\.txn|_versions/latest_version_hint\.json"
    r"|(?:_transactions|_versions)/\.tmp\w+"
)
_CUT_SHORT = re.compile(r"#\d+$")


def create_graph(
    root: Location, source: Source, *, force: bool = False, actor: str | None = None
) -> None:
    """Make a graph with this schema; refuses a root that holds one, or the remains of one.

    With ``force`` the remains of an init that died are removed first, and nothing else.
    """
    objects = ControlObjects(root)
    # Before anything is written: what is wrong with the settings of this process is told here.
    shared_session()
    _preflight(objects, force=force)
    schema = first_schema(source)
    objects.probe_create_only()
    claim = _claim(objects, force=force)
    if _has_manifest(objects):
        # Another init has finished meanwhile.
        release_claim(objects, claim)
        raise _already_there(objects)
    if force:
        _clear_remains(objects, claim)
    contract = contract_of(schema, columns_of_new(schema.ir))
    for name, data in copies_of(contract).items():
        objects.replace(name, data)
    tables = registrations([*schema.catalog.nodes.values(), *schema.catalog.edges.values()])
    pins = create_tables(root, schema.catalog, tables, stored_columns_of(contract))
    commit = PendingCommit.mint(actor)
    entries: list[Entry] = [
        contract,
        *tables,
        *(TableVersion(table.identity, 1, pins[table.identity]) for table in tables),
        Commit(commit.id, None, 1, None, None, commit.actor, commit.created_at),
        Head(MAIN, commit.id, None),
    ]
    if objects.read(CLAIM_NAME) != claim:
        raise Conflict(f"another init with --force has taken over {root}: nothing was made here")
    Manifest(root).create(fold(entries))
    keep_reserve(objects)
    try:
        release_claim(objects, claim)
    except StorageError:
        return  # the graph is complete, and opening it removes the claim


def _has_manifest(objects: ControlObjects) -> bool:
    """Whether there is a version of a manifest, not only files that were to become one.

    Of one that an older release wrote, too: that is a graph, and its data is somebody's.
    """
    places = (f"{MANIFEST_NAME}/{MAIN}/_versions", f"{MANIFEST_NAME}/_versions")
    return any(name.endswith(".manifest") for place in places for name in objects.list(place))


def _already_there(objects: ControlObjects) -> AlreadyInitialized:
    return AlreadyInitialized(f"{objects.location} holds a graph already")


def _preflight(objects: ControlObjects, *, force: bool) -> None:
    """Refuse a root that is in use, saying exactly what is there."""
    if _has_manifest(objects):
        raise _already_there(objects)
    found = find_remains(objects)
    if found.others:
        raise _not_ours(objects, found)
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


def _not_ours(objects: ControlObjects, found: Remains) -> AlreadyInitialized:
    return AlreadyInitialized(
        f"{objects.location} holds no graph but what no unfinished init has left "
        f"({found.describe_others()}): if it belongs to a graph, restore {MANIFEST_NAME}; "
        "if not, move it away, or choose another place; nothing was changed",
        details={"found": list(found.others)},
    )


def _clear_remains(objects: ControlObjects, claim: bytes) -> None:
    """Remove the empty tables and the copies that an init that died has left.

    What it began of the manifest stays: nothing refers to it, and it is in nobody's way.
    """
    found = find_remains(objects)
    if found.others:
        release_claim(objects, claim)
        raise _not_ours(objects, found)
    objects.delete_all(found.files)
    for name in COPY_NAMES:
        objects.delete(name)


def _claim(objects: ControlObjects, *, force: bool) -> bytes:
    claim = msgspec.json.encode(
        {"claim_id": new_id(), "created_at": datetime.now(UTC).isoformat(timespec="seconds")}
    )
    if force:
        # Whoever has claimed it looks again before the manifest is made, and gives way.
        objects.replace(CLAIM_NAME, claim)
    elif not objects.claim(CLAIM_NAME, claim):
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


def registrations(types: Iterable[NodeType | EdgeType]) -> list[Registration]:
    """How tables of types are registered."""
    return [
        Registration(
            TableIdentity(found.type_id, found.incarnation),
            f"{found.kind}:{found.name}",
            table_path(found.kind, found.type_id, found.incarnation),
        )
        for found in types
    ]


def create_tables(
    root: Location,
    catalog: Catalog,
    tables: Sequence[Registration],
    names: Mapping[TableIdentity, StoredColumns],
) -> dict[TableIdentity, TablePin]:
    """Create empty tables for types of a catalog; ``names`` are those of the columns."""

    def create(table: Registration) -> TablePin:
        types = catalog.nodes if table.entity_kind == "node" else catalog.edges
        structural = NODE_COLUMNS if table.entity_kind == "node" else EDGE_COLUMNS
        properties = types[table.type_name].properties
        stored = names.get(table.identity, AS_NAMED)
        columns = {stored.of(name): found.type for name, found in properties.items()}
        return create_table(root.join(table.path), table_columns(structural, columns))

    with ThreadPoolExecutor(CONCURRENCY) as pool:
        pins = list(pool.map(create, tables))
    return {table.identity: pin for table, pin in zip(tables, pins, strict=True)}


@dataclass(frozen=True, slots=True)
class Remains:
    """What lies in the directories of tables: files of tables as an init makes them, and others.

    ``others`` are tables that hold more than an init puts there, and files of no table.
    """

    files: tuple[str, ...]
    others: tuple[str, ...]

    def describe_others(self) -> str:
        """Some of the others by name, and how many more there are."""
        shown = ", ".join(self.others[:_SHOWN])
        more = len(self.others) - _SHOWN
        return f"{shown} and {more} more" if more > 0 else shown


def find_remains(objects: ControlObjects) -> Remains:
    """Judge every file in the directories of tables."""
    files: list[str] = []
    # A dict keeps the order, and names each table once.
    others: dict[str, None] = {}
    for directory in TABLES:
        for entry in objects.entries(directory):
            placed = _IN_TABLE.fullmatch(entry.name)
            if placed is None:
                others[entry.name] = None
            elif _is_of_empty_table(placed[2]):
                files.append(entry.name)
            else:
                others[f"{placed[1]} (a table that was written to)"] = None
    return Remains(tuple(files), tuple(others))


def _is_of_empty_table(name: str) -> bool:
    """Whether a file of a table can be there before anything was ever written to it.

    Rows are data files, and every write makes a version of its own beside the first.
    """
    first = version_of(_CUT_SHORT.sub("", name)) == 1
    return first or _BESIDE_FIRST.fullmatch(name) is not None
