"""SQL over the tables of one commit: each type a view, asked by DuckDB in this process.

Owns what the views are called and what they show. DuckDB reads the stored tables itself, only the
columns and rows that it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import pyarrow as pa

from omnigraph.errors import QueryError
from omnigraph.extras import require_extra
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.manifest.snapshot import Snapshot, SnapshotTable

SOURCE = "omnigraph_table_{}"


Params = Sequence[Any] | Mapping[str, Any]


def run_sql(shown: Snapshot, text: str, params: Params | None = None) -> pa.Table:
    """What a statement returns, with a view for every type of the snapshot."""
    require_extra("sql", "SQL")
    duckdb = import_module("duckdb")
    connection = duckdb.connect(":memory:")
    try:
        for number, (name, table) in enumerate(_views(shown)):
            source = SOURCE.format(number)
            connection.register(source, table.pinned.dataset())
            columns = ", ".join(
                f"{_quoted(stored)} as {_quoted(said)}" for said, stored in _columns(table).items()
            )
            # Names of the schema, quoted: what a person writes is the statement alone.
            connection.execute(f"create view {_quoted(name)} as select {columns} from {source}")  # noqa: S608
        # Tables are those of the graph, and not what Python variables happen to be called so.
        connection.execute("set python_enable_replacements = false")
        found = connection.sql(text, params=params)
        rows: pa.Table = pa.table({}) if found is None else found.to_arrow_table()
        return rows
    except duckdb.Error as error:
        raise QueryError(f"DuckDB: {error}") from None
    finally:
        connection.close()


def _views(shown: Snapshot) -> Iterator[tuple[str, SnapshotTable]]:
    """The types by the names of their views; an edge type called like a node type has its key."""
    nodes = {key.removeprefix("node:") for key in shown.tables if key.startswith("node:")}
    for key, table in shown.tables.items():
        name = table.table.type_name
        yield (key if key.startswith("edge:") and name in nodes else name), table


def _columns(table: SnapshotTable) -> dict[str, str]:
    """What each column of a view is called in storage.

    The ends of an edge are `from` and `to`, and its id `id`, unless a property has that name.
    """
    stored = dict(table.columns)
    said = {ID: "id", SRC: "from", DST: "to"}
    return {
        said[name] if name in said and said[name] not in stored else name: column
        for name, column in stored.items()
    }


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
