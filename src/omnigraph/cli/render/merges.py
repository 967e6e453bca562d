"""Merges for people: how one went, and every conflict with what both sides say.

Owns the layout, and the hints on how to resolve.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from textwrap import indent
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.render.plans import plan_text
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
HOW_TO_RESOLVE_SCHEMAS = (
    "a disagreement of the schemas is also settled with --resolve TYPE=SIDE or --resolve "
    "TYPE.PROPERTY=SIDE"
)


_WORDS = {
    "merge": ("merge", "merged", "into"),
    "revert": ("revert", "reverted", "on"),
    "cherry-pick": ("pick", "picked", "onto"),
    "branch reset": ("reset", "reset", "to"),
}


def merge_text(result: MergeResult, verb: str = "merge") -> str:
    """What became of a merge, or of another verb that replays a commit, for people."""
    infinitive, participle, preposition = _WORDS[verb]
    names = f"{result.source} {preposition} {result.target}"
    if verb == "branch reset":
        names = f"{result.target} {preposition} {result.source}"
    done = f"would {infinitive}" if result.is_dry_run else participle
    first = f"cannot {infinitive} {names}" if result.conflicts else f"{done} {names}"
    if verb == "merge" and not result.conflicts:
        first += f": {result.outcome}"
    elif result.outcome == "already_up_to_date":
        first = f"{result.target} is so already: nothing to {infinitive}"
    lines = [first]
    if result.schema.steps:
        lines += ["schema:", indent(plan_text(result.schema), "  ")]
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
            if _has_sides(conflict):
                lines += _values(conflict)
    lines.append(HOW_TO_RESOLVE)
    if any(map(_concerns_schema, conflicts)):
        lines.append(HOW_TO_RESOLVE_SCHEMAS)
    return "\n".join(lines)


def _has_sides(conflict: MergeConflict) -> bool:
    if conflict.base is not None or conflict.kind.startswith(("divergent", "delete")):
        return True
    return _concerns_schema(conflict) and (conflict.source or conflict.target) is not None


def _values(conflict: MergeConflict) -> list[str]:
    label = "" if conflict.property is None else f"{conflict.property} "
    text: Callable[[Any], str] = value_text
    if _concerns_schema(conflict):
        # What each side says is a piece of a schema, not a value.
        label, text = "", str
    sides = (("base", conflict.base), ("source", conflict.source), ("target", conflict.target))
    return [
        f"    {side:>6}  {label}{'(none)' if value is None else text(value)}"
        for side, value in sides
    ]


def _concerns_schema(conflict: MergeConflict) -> bool:
    return not conflict.entity_id


def _entity(conflict: MergeConflict) -> str:
    if _concerns_schema(conflict):
        part = "" if conflict.property is None else f".{conflict.property}"
        return f"{conflict.entity_kind} {conflict.type_name}{part}"
    return f"{conflict.type_name}:{printable(conflict.entity_id)}"


def _counted(count: int) -> str:
    return "1 conflict" if count == 1 else f"{count} conflicts"
