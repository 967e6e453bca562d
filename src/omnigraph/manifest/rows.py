"""Manifest rows: how entries are written to and read from a manifest, and in which format.

Owns the columns, the format stamp and both refusals of another format. There is no migration
in place: an older graph is rebuilt by export and import.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec
import pyarrow as pa

from omnigraph.errors import StorageError, UnsupportedFormat
from omnigraph.manifest.entries import (
    MAIN,
    Commit,
    Head,
    Origin,
    Registration,
    SchemaContract,
    StoredVersion,
    TableIdentity,
    TableVersion,
    Tombstone,
)
from omnigraph.storage.tables.table import TablePin
from omnigraph.version import INTERNAL_SCHEMA

Entry = Registration | TableVersion | Tombstone | Commit | Head | SchemaContract

FORMAT_KEY = b"omnigraph:internal_schema_version"
SCHEMA_OBJECT_ID = "schema:accepted"

COLUMNS = pa.schema(
    [
        pa.field(
            "object_id",
            pa.string(),
            nullable=False,
            metadata={b"lance-schema:unenforced-primary-key": b"true"},
        ),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("base_objects", pa.list_(pa.string())),
        pa.field("table_key", pa.string(), nullable=False),
        pa.field("stable_table_id", pa.uint64()),
        pa.field("table_incarnation_id", pa.uint64()),
        pa.field("table_version", pa.uint64()),
        pa.field("table_branch", pa.string()),
        pa.field("row_count", pa.uint64()),
    ]
)

_Row = dict[str, Any]

TABLES_KEPT, SCHEMAS_KEPT = 4_096, 8
"""So many rows of tables and of schemas are at hand as they were last written."""

_RELEASES = {
    1: "0.3.1 or older",
    2: "0.4.1 to 0.6.1",
    3: "0.6.2 to 0.7.2",
    4: "0.8",
    5: "unreleased",
    6: "0.1.0 before branches were datasets of their own",
    7: "0.1.0 while heads carried their generation",
    8: "0.1.0 while columns were named by their properties",
}


def object_id(entry: Entry) -> str:
    """The primary key of an entry's row."""
    match entry:
        case Registration(identity):
            return f"table:{identity}"
        case TableVersion(identity, version):
            return f"table_version:{identity}:{version:020d}"
        case Tombstone(identity, version):
            return f"table_tombstone:{identity}:{version:020d}"
        case Commit(id=commit_id):
            return commit_id
        case Head(branch):
            return f"graph_head:{branch}"
        case SchemaContract():
            return SCHEMA_OBJECT_ID


def to_table(entries: Iterable[Entry]) -> pa.Table:
    """Entries as rows."""
    rows = [_values(entry) for entry in entries]
    columns = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    arrays = [
        pa.array(values, type=field.type) for values, field in zip(columns, COLUMNS, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=COLUMNS)


def _values(entry: Entry) -> tuple[Any, ...]:
    """An entry as the values of its row."""
    if isinstance(entry, Registration | TableVersion):
        return _values_of_table(entry)
    if isinstance(entry, SchemaContract):
        return _values_of_schema(entry)
    return _in_order(_encode(entry))


# A publish writes every table of the graph again, and all but a few are as they were.
@lru_cache(maxsize=TABLES_KEPT)
def _values_of_table(entry: Registration | TableVersion) -> tuple[Any, ...]:
    return _in_order(_encode(entry))


@lru_cache(maxsize=SCHEMAS_KEPT)
def _values_of_schema(entry: SchemaContract) -> tuple[Any, ...]:
    return _in_order(_encode(entry))


def _in_order(row: _Row) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in COLUMNS.names)


def from_table(table: pa.Table) -> Iterator[Entry]:
    """Rows as entries."""
    for row in table.to_pylist():
        try:
            yield _checked(_decode(row), row)
        except (KeyError, TypeError, ValueError) as error:
            raise StorageError(
                f"the manifest holds a row that cannot be read: {row.get('object_id')!r} ({error})",
                kind="permanent",
            ) from error


def _encode(entry: Entry) -> _Row:
    row: _Row = {"object_id": object_id(entry), "table_key": ""}
    match entry:
        case Registration():
            row |= {"object_type": "table", "location": entry.path, "table_key": entry.type_key}
            return row | _identity(entry.identity)
        case TableVersion():
            row |= {
                "object_type": "table_version",
                "table_version": entry.version,
                "table_branch": entry.branch,
                "row_count": entry.pin.row_count,
                "metadata": _json(_version_metadata(entry.pin)),
            }
            return row | _identity(entry.identity)
        case Tombstone():
            row |= {"object_type": "table_tombstone", "table_version": entry.version}
            return row | _identity(entry.identity)
        case Commit():
            return row | {
                "object_type": "graph_commit",
                "table_version": entry.manifest_version,
                "table_branch": entry.branch,
                "metadata": _json(_commit_metadata(entry)),
            }
        case Head():
            return row | {
                "object_type": "graph_head",
                "table_version": entry.version,
                "table_branch": None if entry.branch == MAIN else entry.branch,
                "metadata": _json(_head_metadata(entry)),
            }
        case SchemaContract():
            return row | {"object_type": "schema", "metadata": _json(_schema_metadata(entry))}


def _version_metadata(pin: TablePin) -> dict[str, Any]:
    known = {"lance_version": pin.version, "transaction_uuid": pin.transaction_uuid}
    return known if pin.checksum is None else known | {"checksum": pin.checksum}


def _identity(identity: TableIdentity) -> _Row:
    return {
        "stable_table_id": identity.table_id,
        "table_incarnation_id": identity.incarnation,
    }


def _commit_metadata(commit: Commit) -> dict[str, Any]:
    known = {
        "parent_commit_id": commit.parent_id,
        "merged_parent_commit_id": commit.merged_parent_id,
        "actor_id": commit.actor,
        "created_at": commit.created_at,
        "metadata": dict(commit.metadata) or None,
        "stored": _stored(commit.stored),
    }
    return _given(known)


def _head_metadata(head: Head) -> dict[str, Any]:
    known: dict[str, Any] = {
        "head_commit_id": head.commit_id,
        "parent_commit_id": head.parent_id,
        "branch_id": head.branch_id,
        "collection_epoch": head.epoch,
        "oldest_retained_commit_id": head.oldest_commit_id,
        "ended": head.ended or None,
    }
    if head.origin is not None:
        origin = head.origin
        known["forked_from"] = {
            "branch": origin.branch,
            "manifest_version": origin.manifest_version,
            "stored": _stored(origin.stored),
            "commit_id": origin.commit_id,
            "history": [_stored(one) for one in origin.history],
            "oldest_retained_commit_id": origin.oldest_commit_id,
        }
    return _given(known)


def _stored(version: StoredVersion) -> tuple[str, int]:
    return version.branch_id, version.version


def _schema_metadata(schema: SchemaContract) -> dict[str, Any]:
    return {
        "source": schema.source,
        "ir": schema.ir,
        "schema_shape_hash": schema.shape_hash,
        "schema_ir_hash": schema.ir_hash,
        "schema_identity_domain": schema.identity_domain,
        "columns": schema.columns,
    }


def _given(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _json(value: dict[str, Any]) -> str:
    return msgspec.json.encode(value).decode()


def _decode(row: _Row) -> Entry:
    metadata: dict[str, Any] = (
        msgspec.json.decode(row["metadata"], type=dict[str, Any]) if row["metadata"] else {}
    )
    match row["object_type"]:
        case "table":
            return Registration(_identity_of(row), row["table_key"], _given_column(row, "location"))
        case "table_version":
            pin = TablePin(
                int(metadata["lance_version"]),
                metadata["transaction_uuid"],
                _given_column(row, "row_count"),
                metadata.get("checksum"),
            )
            return TableVersion(_identity_of(row), row["table_version"], pin, row["table_branch"])
        case "table_tombstone":
            return Tombstone(_identity_of(row), row["table_version"])
        case "graph_commit":
            return _commit(row, metadata)
        case "graph_head":
            return _head(row, metadata)
        case "schema":
            return SchemaContract(
                metadata["source"],
                metadata["ir"],
                metadata["schema_shape_hash"],
                metadata["schema_ir_hash"],
                metadata["schema_identity_domain"],
                metadata["columns"],
            )
        case unknown:
            raise ValueError(f"unknown object type {unknown!r}")


def _checked(entry: Entry, row: _Row) -> Entry:
    if object_id(entry) != row["object_id"]:
        raise ValueError(f"its content belongs to {object_id(entry)!r}")
    return entry


def _given_column(row: _Row, name: str) -> Any:
    if row[name] is None:
        raise ValueError(f"{name} is missing")
    return row[name]


def _commit(row: _Row, metadata: dict[str, Any]) -> Commit:
    return Commit(
        row["object_id"],
        row["table_branch"],
        _given_column(row, "table_version"),
        metadata.get("parent_commit_id"),
        metadata.get("merged_parent_commit_id"),
        metadata.get("actor_id"),
        int(metadata["created_at"]),
        metadata.get("metadata", {}),
        StoredVersion(*metadata["stored"]),
    )


def _head(row: _Row, metadata: dict[str, Any]) -> Head:
    found = metadata.get("forked_from")
    origin = found and Origin(
        found["branch"],
        found["manifest_version"],
        StoredVersion(*found["stored"]),
        found["commit_id"],
        tuple(StoredVersion(*one) for one in found["history"]),
        found["oldest_retained_commit_id"],
    )
    return Head(
        row["object_id"].removeprefix("graph_head:"),
        metadata["head_commit_id"],
        metadata.get("parent_commit_id"),
        metadata["branch_id"],
        _given_column(row, "table_version"),
        int(metadata["collection_epoch"]),
        metadata.get("oldest_retained_commit_id"),
        origin,
        bool(metadata.get("ended")),
    )


def _identity_of(row: _Row) -> TableIdentity:
    return TableIdentity(row["stable_table_id"], row["table_incarnation_id"])


def stamped(rows: pa.Table) -> pa.Table:
    """The rows of a new manifest, with the format they are written in."""
    return rows.replace_schema_metadata({FORMAT_KEY: str(INTERNAL_SCHEMA).encode()})


def check_stamp(metadata: Mapping[bytes, bytes]) -> None:
    """Refuse a manifest of another format."""
    found = metadata.get(FORMAT_KEY, b"").decode(errors="replace")
    if found == str(INTERNAL_SCHEMA):
        return
    details = {"found": found, "supported": INTERNAL_SCHEMA}
    if not (found.isascii() and found.isdigit()):
        raise UnsupportedFormat(
            "this manifest carries no format stamp: it was not written by OmniGraph",
            details=details,
        )
    number = int(found)
    if number > INTERNAL_SCHEMA:
        raise UnsupportedFormat(
            f"this graph has storage format {number}, newer than the {INTERNAL_SCHEMA} this "
            "program knows: upgrade the program",
            details=details,
        )
    release = _RELEASES.get(number, "unknown")
    raise UnsupportedFormat(
        f"this graph has storage format {number} (release {release}): export it with that "
        "release and import it into a new graph",
        details=details,
    )
