"""Merges for people: the outcome, what a trial run would do, and the conflicts in full.

Owns the texts of `branch merge`. Shows values as JSON, on one line.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import click

from omnigraph.cli.render.tables import render_table, value_text
from omnigraph.read.output.cells import printable

if TYPE_CHECKING:
    from omnigraph.errors import MergeConflict
    from omnigraph.history.merge.conflicts import MergeResult

HOW_TO_RESOLVE = (
    "take a side with --resolve source or --resolve target: for one kind of conflict with\n"
    "--resolve KIND=SIDE, for one entity with --resolve TYPE:ID=SIDE; or change one of the "
    "branches"
)


def merge_text(result: MergeResult) -> str:
    """What became of a merge, for people."""
    names = f"{result.source} into {result.target}"
    verb = "would merge" if result.is_dry_run else "merged"
    first = f"cannot merge {names}" if result.conflicts else f"{verb} {names}: {result.outcome}"
    lines = [first]
    if result.counts:
        columns = ("type", "inserted", "updated", "deleted", "combined")
        rows = [
            (key, counts.inserted, counts.updated, counts.deleted, counts.combined)
            for key, counts in result.counts.items()
        ]
        lines.append(render_table(columns, rows))
    if result.resolved:
        lines.append(f"{_counted(len(result.resolved))} resolved:")
        for conflict, side in result.resolved:
            lines.append(f"  {_entity(conflict)}: {conflict.kind}, {side} wins")
    if result.conflicts:
        lines.append(conflicts_text(result.conflicts))
    return "\n".join(lines)


def conflicts_text(conflicts: Sequence[MergeConflict]) -> str:
    """Every conflict by entity, with what the base and both sides say."""
    lines = [f"{_counted(len(conflicts))}:"]
    for entity, found in groupby(conflicts, _entity):
        lines.append(click.style(entity, bold=True))
        for conflict in found:
            lines.append(f"  {click.style(conflict.kind, fg='red')}: {conflict.message}")
            if conflict.base is not None or conflict.kind.startswith(("divergent", "delete")):
                lines += _values(conflict)
    lines.append(HOW_TO_RESOLVE)
    return "\n".join(lines)


def _values(conflict: MergeConflict) -> list[str]:
    label = "" if conflict.property is None else f"{conflict.property} "
    sides = (("base", conflict.base), ("source", conflict.source), ("target", conflict.target))
    return [
        f"    {side:>6}  {label}{'(none)' if value is None else value_text(value)}"
        for side, value in sides
    ]


def _entity(conflict: MergeConflict) -> str:
    return f"{conflict.type_name}:{printable(conflict.entity_id)}"


def _counted(count: int) -> str:
    return "1 conflict" if count == 1 else f"{count} conflicts"
