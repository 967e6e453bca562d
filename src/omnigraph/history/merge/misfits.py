"""Rows of a side that do not fit the schema of a merge, told as conflicts.

Owns their words. What a side's plan refuses was found when it was planned; nothing is read here.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.errors import MergeConflict
from omnigraph.history.merge.schema import MergedSchema
from omnigraph.lang.schema.catalog import EdgeType


def misfits(merged: MergedSchema) -> Iterator[MergeConflict]:
    """What rows of a side cannot be made to fit the merged schema."""
    for side, plan in (("target", merged.plan), ("source", merged.source_plan)):
        for refusal in plan.refusals:
            kind, _, name = refusal.entity.partition(":")
            owner, _, property_ = name.partition(".")
            yield MergeConflict(
                "value_constraint_violation",
                "edge" if kind == "edge" else "node",
                owner,
                "",
                f"rows of the {side} do not fit the merged schema: {refusal.reason}",
                property_ or None,
            )
    yield from _foreign_references(merged)


def _foreign_references(merged: MergedSchema) -> Iterator[MergeConflict]:
    """Edges name nodes by types that have other identities after the merge."""
    for name, side in (("target", merged.target), ("source", merged.source)):
        moved = set(side.numbers.values())
        for type_id, edge in merged.types.items():
            table = side.table(type_id) if isinstance(edge, EdgeType) else None
            if not isinstance(edge, EdgeType) or table is None or not table.pin.row_count:
                continue
            for end, type_name in edge.end_types:
                if end in moved:
                    yield MergeConflict(
                        "value_constraint_violation",
                        "edge",
                        edge.name,
                        "",
                        f"edges of the {name} lead to a {type_name} that both branches have "
                        "added: add the type on one of them, and the edges after the merge",
                    )
