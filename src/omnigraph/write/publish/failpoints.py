"""Failpoints: every boundary of a write at which a crash is tested.

Owns their names, those of branches too, which the manifest passes. The crash tests are
generated from this list: a point that no writer passes, or that is passed and not listed,
fails them.
"""

from __future__ import annotations

from typing import Literal, get_args

from omnigraph.storage.objects import faults

Failpoint = Literal[
    "txn_captured",
    "changes_built",
    "changes_checked",
    "rows_written",
    "tables_created",
    "columns_written",
    "table_staged",
    "branch_creating",
    "branch_created",
    "branch_forked",
    "branch_deleting",
    "branch_ended",
    "branch_deleted",
    "run_claimed",
    "run_revoked",
    "run_fenced",
    "publish_ready",
    "rebase_begun",
    "rebase_done",
    "published",
    "copies_lagging",
    "intent_written",
    "intent_extended",
    "intent_removed",
    "sweep_found",
    "sweep_revoked",
    "sweep_discarded",
    "sweep_audited",
    "sweep_done",
    "cleanup_listed",
    "cleanup_fencing",
    "cleanup_named",
    "cleanup_traced",
    "cleanup_deleting",
]
FAILPOINTS: tuple[Failpoint, ...] = get_args(Failpoint)


def reach(point: Failpoint, target: str = "") -> None:
    """Pass a point; ``target`` says which table, branch or operation it concerns."""
    faults.reach(point, target)
