"""`omnigraph cluster`: the graphs of a team, deployed by plan and apply.

Owns the rendering, and who is named as the actor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from omnigraph.cli.command import VerbCommand, VerbGroup, json_option
from omnigraph.cli.options.configured import layers_of
from omnigraph.cli.options.scope import CommandScope
from omnigraph.cli.render.output import write_json, write_note, write_text

if TYPE_CHECKING:
    from omnigraph.cluster.changes import Change
    from omnigraph.cluster.reports import Observed, Report

_TOLD_ONCE = ("external_blob_ingress_default_deny",)
"""What `validate` tells a person, and no other command again."""

_config_option = click.option(
    "--config",
    "config_dir",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="DIR",
    help="The directory that cluster.yaml is in; this one if not given.",
)


@click.group("cluster", cls=VerbGroup)
def command() -> None:
    """Deploy the graphs of a team: plan what is different, and apply it."""


@command.command("validate", cls=VerbCommand)
@_config_option
@json_option
def validate(*, config_dir: Path, as_json: bool) -> int:
    """Check cluster.yaml and every file that it names; looks at no storage.

    Exits with 1 if anything is wrong.
    """
    from omnigraph.cluster.planning import validate as run
    from omnigraph.wire.clusters import ValidatedBody

    found = run(config_dir)
    if as_json:
        write_json(ValidatedBody.of(found))
    else:
        kinds = [one.kind for one in found.resources]
        counted = ", ".join(f"{kind} {kinds.count(kind)}" for kind in sorted(set(kinds)))
        _write(
            found, [f"{found.config_file} is valid ({counted or 'nothing is declared'})"], hides=()
        )
    return _code(found)


@command.command("plan", cls=VerbCommand)
@_config_option
@json_option
def plan(*, config_dir: Path, as_json: bool) -> int:
    """Show what an apply would do, and which approvals it needs; changes nothing."""
    from omnigraph.cluster.planning import plan as run
    from omnigraph.wire.clusters import ClusterPlanBody

    found = run(config_dir)
    if as_json:
        write_json(ClusterPlanBody.of(found))
    else:
        # Whoever needs what is new comes with it.
        new = {one.resource for one in found.changes if one.operation == "create"}
        affected = {one: of for one, of in found.blast_radius if one not in new}
        lines = list(_changes(found.changes, affected))
        lines += [
            f"approval needed: omnigraph cluster approve {one.resource} --as ACTOR ({one.reason})"
            for one in found.approvals
            if not one.satisfied
        ]
        _write(found, lines or ["nothing is different: the cluster is as it is declared"])
    return _code(found)


@command.command("apply", cls=VerbCommand)
@_config_option
@json_option
@click.pass_obj
def apply(scope: CommandScope, *, config_dir: Path, as_json: bool) -> int:
    """Bring the cluster to what is declared, as far as it goes, and tell how far.

    What was not done is told as a warning; apply again when its reason is gone.
    """
    from omnigraph.cluster.applying import apply as run
    from omnigraph.wire.clusters import ClusterAppliedBody

    found = run(config_dir, _actor(scope))
    if as_json:
        write_json(ClusterAppliedBody.of(found))
    else:
        end = "converged" if found.converged else "not converged: see what is left above"
        counted = f"{found.applied_count} applied, {found.deferred_count} left"
        ledger = found.state.state_revision
        lines = [*_changes(found.changes, {}), f"{counted}; {end} (revision {ledger or 0})"]
        _write(found, lines)
    return _code(found)


@command.command("approve", cls=VerbCommand)
@click.argument("resource")
@_config_option
@json_option
@click.pass_obj
def approve(scope: CommandScope, *, resource: str, config_dir: Path, as_json: bool) -> int:
    """Agree to lose a graph, as the plan shows it now: graph.ID.

    Any change of the configuration or of the graph's entry makes an approval stale.
    """
    from omnigraph.cluster.approving import approve as run
    from omnigraph.wire.clusters import ApprovedBody

    actor = _actor(scope)
    if actor is None:
        raise click.UsageError("who approves? give --as ACTOR, or set operator.actor")
    found = run(config_dir, resource, actor)
    if as_json:
        write_json(ApprovedBody.of(found))
    else:
        _write(found, [f"approved: delete {resource} (approval {found.approval_id}, by {actor})"])
    return _code(found)


@command.command("status", cls=VerbCommand)
@_config_option
@json_option
def status(*, config_dir: Path, as_json: bool) -> int:
    """Show what the ledger says, and whether the catalog is whole; takes no lock."""
    from omnigraph.cluster.observing import status as run

    return _observed(run(config_dir), as_json=as_json)


@command.command("refresh", cls=VerbCommand)
@_config_option
@json_option
def refresh(*, config_dir: Path, as_json: bool) -> int:
    """Look at every graph again, and have the ledger say what is there."""
    from omnigraph.cluster.observing import refresh as run

    return _observed(run(config_dir), as_json=as_json)


@command.command("import", cls=VerbCommand)
@_config_option
@json_option
def import_(*, config_dir: Path, as_json: bool) -> int:
    """Make the first ledger, of the graphs that are there already."""
    from omnigraph.cluster.observing import import_ as run

    return _observed(run(config_dir), as_json=as_json)


@command.command("force-unlock", cls=VerbCommand)
@click.argument("lock_id")
@_config_option
@json_option
def force_unlock(*, lock_id: str, config_dir: Path, as_json: bool) -> int:
    """Take away the lock that a dead operation has left, by its very id."""
    from omnigraph.cluster.observing import force_unlock as run
    from omnigraph.wire.clusters import UnlockedBody

    found = run(config_dir, lock_id)
    if as_json:
        write_json(UnlockedBody.of(found))
    else:
        _write(found, [f"took away the lock {lock_id} of `cluster {found.operation}`"])
    return _code(found)


def _actor(scope: CommandScope) -> str | None:
    return layers_of(scope).actor.value


def _code(found: Report) -> int:
    return 0 if found.ok else 1


def _observed(found: Observed, *, as_json: bool) -> int:
    from omnigraph.wire.clusters import ClusterStatusBody

    if as_json:
        write_json(ClusterStatusBody.of(found))
        return _code(found)
    lines = [f"state: {found.state.root}, revision {found.state.state_revision or 'none'}"]
    if found.state.lock is not None:
        lines.append(f"lock: {found.state.lock.lock_id}, {found.state.lock.holder}")
    width = max((len(address) for address in found.statuses), default=0)
    for address, one in found.statuses.items():
        more = [*one.conditions, *([one.message] if one.message else [])]
        told = f"  {'; '.join(more)}" if more else ""
        lines.append(f"{address:<{width}}  {one.status}{told}")
    _write(found, lines)
    return _code(found)


def _changes(changes: Iterable[Change], affected: Mapping[str, list[str]]) -> Iterator[str]:
    for change in changes:
        reason = "" if change.reason is None else f": {change.reason}"
        yield f"{change.operation:<6} {change.resource}  ({change.disposition}{reason})"
        for line in change.described.splitlines():
            yield f"         {line}".rstrip()
        if change.binding_change is not None:
            before, after = change.binding_change["before"], change.binding_change["after"]
            yield f"         bound to {', '.join(after)}, before to {', '.join(before)}"
        reached = affected.get(change.resource)
        if reached:
            yield f"         affects {', '.join(reached)}"


def _write(found: Report, lines: Iterable[str], hides: Collection[str] = _TOLD_ONCE) -> None:
    """The result on stdout, if there is one, and what was found on stderr."""
    for diagnostic in found.diagnostics:
        if diagnostic.code not in hides:
            write_note(str(diagnostic))
    if found.ok or not _is_refused(found):
        write_text("\n".join(lines))


def _is_refused(found: Report) -> bool:
    """Whether nothing was done, so that there is nothing to show."""
    return not getattr(found, "changes", None)
