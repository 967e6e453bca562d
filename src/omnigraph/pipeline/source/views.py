"""Views: the types of one commit as temporary views of a session, for Spark's SQL.

Owns their names. Several commits stand side by side under prefixes of their own; what is asked
of a view is read as any DataFrame of the graph is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from omnigraph.errors import BadRequest
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.manifest.snapshot import Snapshot, catalog_of
from omnigraph.pipeline.source.frame import read_frame
from omnigraph.storage.objects.location import Location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph.pipeline.spark.settings import SparkSettings

_PREFIX = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class ViewChoice:
    """Which types get a view, all if none are named, and which columns of them, if not all."""

    prefix: str = ""
    types: Sequence[str] | None = None
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)


def create_views(
    root: Location,
    shown: Snapshot,
    spark: SparkSession | SparkSettings | str | None,
    choice: ViewChoice,
) -> list[str]:
    """Make the views; what they are called. One that has the name already is replaced."""
    catalog = catalog_of(shown.schema)
    names = view_names(catalog, choice.prefix, choice.types)
    narrowed = {_key(catalog, name): some for name, some in choice.columns.items()}
    for key in narrowed:
        if key not in names:
            raise BadRequest(f"columns of {key} are named, but no view of it: add it to types")
    for key, name in names.items():
        frame = read_frame(root, shown, key, narrowed.get(key), spark)
        frame.createOrReplaceTempView(name)
    return list(names.values())


def view_names(catalog: Catalog, prefix: str, types: Sequence[str] | None) -> dict[str, str]:
    """The name of the view of every type, by its key.

    Where a node and an edge type share a name, that of the edge ends in `_edge`.
    """
    if prefix and _PREFIX.fullmatch(prefix) is None:
        raise BadRequest(
            f"{prefix!r} cannot begin the name of a view: take letters, digits and _, such as old_"
        )
    every = [f"node:{name}" for name in catalog.nodes] + [f"edge:{name}" for name in catalog.edges]
    wanted = every if types is None else [_key(catalog, name) for name in types]
    names: dict[str, str] = {}
    taken: dict[str, str] = {}
    for key in dict.fromkeys(wanted):
        kind, _, name = key.partition(":")
        view = f"{prefix}{name}" + ("_edge" if kind == "edge" and name in catalog.nodes else "")
        # Spark does not tell names apart by their case.
        other = taken.setdefault(view.lower(), key)
        if other != key:
            raise BadRequest(
                f"the views of {other} and {key} would have one name, {view}: name the types that"
                " you want, and make the others with another prefix"
            )
        names[key] = view
    return names


def _key(catalog: Catalog, name: str) -> str:
    found: NodeType | EdgeType = catalog.find(name)
    return f"{found.kind}:{found.name}"
