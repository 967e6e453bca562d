"""Failpoints: every boundary of an apply at which a crash is tested.

Owns their names. The crash tests are generated from this list.
"""

from __future__ import annotations

from typing import Literal, get_args

from omnigraph.storage.objects import faults

Failpoint = Literal[
    "cluster_locked",
    "cluster_swept",
    "cluster_announced",
    "cluster_graph_created",
    "cluster_schema_applied",
    "cluster_blob_written",
    "cluster_graph_hidden",
    "cluster_graph_deleted",
    "cluster_state_ready",
    "cluster_state_written",
    "cluster_approval_consumed",
    "cluster_recovery_settled",
    "cluster_unlocking",
]
FAILPOINTS: tuple[Failpoint, ...] = get_args(Failpoint)


def reach(point: Failpoint, target: str = "") -> None:
    """Pass a point; ``target`` says which resource it concerns."""
    faults.reach(point, target)
