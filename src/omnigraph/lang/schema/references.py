"""References: how an edge names the node at an end that may be of several types.

Owns their text: the stable id of the node's type, a colon, the node's id. Where all nodes at an end
are of one type an edge names them by their ids alone.
"""

from __future__ import annotations

COLON = ":"
OPEN = 0
"""Stands for the type while that is not known yet."""


def reference(type_id: int, node_id: str) -> str:
    """What an edge calls a node."""
    return f"{type_id}{COLON}{node_id}"


def split_reference(text: str) -> tuple[int, str]:
    """The id of the type, 0 where it is not known, and that of the node."""
    type_id, _, node_id = text.partition(COLON)
    return int(type_id or 0), node_id


def node_of(text: str) -> str:
    """The id of the node alone."""
    return text.partition(COLON)[2]
