"""Merges for people: the outcome, what a trial run would do, and the conflicts in full.

Owns the texts and the JSON of `branch merge`. Shows values as JSON, on one line.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.render.bodies import commit_body
from omnigraph.cli.render.tables import printable, render_table

if TYPE_CHECKING:
    from omnigraph.errors import MergeConflict
    from omnigraph.history.merge.results import MergeResult

MAX_VALUE = 60
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
    return [f"    {side:>6}  {label}{_shown(value)}" for side, value in sides]


def _shown(value: object) -> str:
    import msgspec

    text = "(none)" if value is None else printable(msgspec.json.encode(value).decode())
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"


def _entity(conflict: MergeConflict) -> str:
    return f"{conflict.type_name}:{printable(conflict.entity_id)}"


def _counted(count: int) -> str:
    return "1 conflict" if count == 1 else f"{count} conflicts"


def merge_body(result: MergeResult) -> dict[str, Any]:
    """What became of a merge, as the server sends it; more only where there is more."""
    body: dict[str, Any] = {
        "source": result.source,
        "target": result.target,
        "outcome": result.outcome,
        "actor_id": result.actor,
    }
    if result.commit is not None:
        body["commit"] = commit_body(result.commit)
    if result.branch_deleted is not None:
        body["branch_deleted"] = result.branch_deleted
    if result.branch_delete_error is not None:
        body["branch_delete_error"] = result.branch_delete_error
    if result.resolved:
        body["resolved"] = [
            {**conflict_body(conflict), "side": side} for conflict, side in result.resolved
        ]
    if result.is_dry_run:
        body["dry_run"] = True
        body["changes"] = [_counts_body(key, counts) for key, counts in result.counts.items()]
        body["merge_conflicts"] = [conflict_body(conflict) for conflict in result.conflicts]
    return body


def _counts_body(key: str, counts: Any) -> dict[str, Any]:
    kind, name = key.split(":", 1)
    return {
        "entity_kind": kind,
        "type_name": name,
        "inserted": counts.inserted,
        "updated": counts.updated,
        "deleted": counts.deleted,
        "combined": counts.combined,
    }


def conflict_body(conflict: MergeConflict) -> dict[str, Any]:
    """One conflict with the values of all sides."""
    return {
        "entity_kind": conflict.entity_kind,
        "type_name": conflict.type_name,
        "entity_id": conflict.entity_id,
        "kind": conflict.kind,
        "message": conflict.message,
        "property": conflict.property,
        "base": conflict.base,
        "source": conflict.source,
        "target": conflict.target,
    }
