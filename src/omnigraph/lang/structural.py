"""Structural columns: what every row has besides its properties.

Owns their names, which no property can have. In memory and in storage alike a row has its id, and
an edge the ids of its ends; what people write for them is the business of those who read it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

ID = "@id"
SRC = "@src"
DST = "@dst"
TYPE = "@type"
"""The name of an entity's type, which nothing stores: it is what tells those of several apart."""

NODE_COLUMNS = (ID,)
EDGE_COLUMNS = (ID, SRC, DST)

ENDPOINTS: Mapping[str, str] = {SRC: "from", DST: "to"}
"""The columns of an edge's ends, and what rows and statements call them."""


def spelling(column: str, properties: Container[str]) -> str:
    """What rows that people write call a structural column: `id`, unless that is a property."""
    bare = column.removeprefix("@")
    return column if bare in properties else bare


def end_type_column(label: str, properties: Container[str]) -> str:
    """What rows call the type of a node at an end, beside its id; `@to_type` if that is taken."""
    told = f"{label}_type"
    return f"@{told.removeprefix('@')}" if told in properties else told
