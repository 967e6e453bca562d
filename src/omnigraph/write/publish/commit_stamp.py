"""Stamps: what every table commit of a graph says about itself.

Owns the names of the properties: the graph commit it was made for, the operation,
and whether it changed what the table says or only how it is laid out.
"""

from __future__ import annotations

from typing import Literal

from omnigraph.storage.tables.detached import Stamp

OperationClass = Literal["logical", "maintenance"]
_COMMIT = "omnigraph.commit"
_OPERATION = "omnigraph.operation"
_CLASS = "omnigraph.class"


def stamp(commit_id: str, operation_id: str, class_: OperationClass) -> Stamp:
    """The stamp of one table commit."""
    return Stamp(properties={_COMMIT: commit_id, _OPERATION: operation_id, _CLASS: class_})


def is_maintenance(found: Stamp | None) -> bool:
    """Whether a table commit is known to have changed no row."""
    return found is not None and found.properties.get(_CLASS) == "maintenance"
