"""`omnigraph maintain`: do what is worth doing to keep a graph small and fast.

Owns the options, the rendering, and the end by a signal; what is to be done is the engine's to say.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.configured import project_file
from omnigraph.cli.options.query_source import size_of_option
from omnigraph.cli.options.scope import CommandScope, Target, target_of
from omnigraph.cli.options.words import uri_argument
from omnigraph.cli.render.output import diagnose, write_data, write_json, write_text
from omnigraph.cli.render.sizes import size_text
from omnigraph.cli.verbs.maintain.cleanup import Duration
from omnigraph.errors import OmniGraphError

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.maintain.steps import MaintenanceLimits, MaintenanceReport, MaintenanceStep

_COLOURS = {"done": "green", "planned": "cyan", "left": "yellow", "failed": "red"}


@click.command("maintain", cls=VerbCommand)
@uri_argument
@click.option("--branch", metavar="B", help="Only this branch; all of them if not given.")
@click.option("--once/--watch", "once", default=True, help="One round, or on until stopped.")
@click.option(
    "--every",
    metavar="D",
    type=Duration(),
    default="60s",
    help="The pause between two rounds of --watch; 60s if not given.",
)
@click.option(
    "--max-seconds", metavar="N", type=float, help="Begin nothing new after so many seconds."
)
@click.option(
    "--max-bytes",
    metavar="SIZE",
    callback=size_of_option,
    help="Write no more than this again in a round, such as 2GB.",
)
@click.option(
    "--keep",
    metavar="N",
    type=click.IntRange(min=0),
    help="Reclaim commits beyond the newest N of every branch.",
)
@click.option(
    "--older-than", metavar="D", type=Duration(), help="Reclaim only commits older than this."
)
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@json_option
@click.pass_obj
def command(
    scope: CommandScope,
    *,
    uri: str | None,
    branch: str | None,
    once: bool,
    every: timedelta,
    max_seconds: float | None,
    max_bytes: int | None,
    keep: int | None,
    older_than: timedelta | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Do what is worth doing to keep a graph small and fast.

    No query returns anything else after it, and no writer waits. Commits are only reclaimed
    with --keep or --older-than, or as the `maintenance` of the project says. The exit code is 1
    when something went wrong.
    """
    if dry_run and not once:
        raise click.UsageError("a dry run is one round: leave --watch out")
    target = target_of(scope, uri)
    if target.is_served and not once:
        raise click.UsageError(
            "a server keeps its graphs in order by itself with --maintain-every: leave --watch out"
        )
    configured = _configured(scope, target)
    keep = configured.keep if keep is None else keep
    older_than = configured.older_than if older_than is None else older_than
    if (keep is not None or older_than is not None) and not dry_run:
        target.require_consent("reclaiming old commits", scope, as_json=as_json)
    from omnigraph.maintain.reconcile import Maintainer
    from omnigraph.maintain.steps import MaintenanceLimits

    limits = MaintenanceLimits(
        max_seconds, max_bytes, keep, older_than, optimizes=configured.optimizes
    )
    with target.read() if dry_run else target.write("maintain", scope) as graph:
        if not once:
            return _watch(graph, limits, branch, every, as_json=as_json)
        if target.is_served:
            report = graph.maintain(
                branch,
                max_seconds=max_seconds,
                max_bytes=max_bytes,
                keep=keep,
                older_than=older_than,
                dry_run=dry_run,
            )
        else:
            keeper = Maintainer(graph.location, graph.manifest, limits, branch, graph.actor)
            report = keeper.run_once(dry_run=dry_run)
    if as_json:
        from omnigraph.wire.health import MaintenanceBody

        write_json(MaintenanceBody.of(report, target.uri))
    else:
        write_text("\n".join(_lines(report)) or "nothing to do")
    return 1 if report.failed else 0


def _configured(scope: CommandScope, target: Target) -> MaintenanceLimits:
    """What the project says about the maintenance of its graphs."""
    from omnigraph.server.sources.project import maintenance_limits

    project = project_file(scope)
    found = None if project is None or target.graph is None else project.maintenance
    return maintenance_limits(found)


def _watch(
    graph: Graph,
    limits: MaintenanceLimits,
    branch: str | None,
    every: timedelta,
    *,
    as_json: bool,
) -> int:
    """Round after round; a line for each that did something."""
    from omnigraph.maintain.reconcile import Maintainer

    def tell(found: MaintenanceReport | OmniGraphError) -> None:
        if isinstance(found, OmniGraphError):
            diagnose("warning", f"{found.message}: trying again")
        elif as_json and (found.done or found.failed):
            from omnigraph.wire.body import encode
            from omnigraph.wire.health import MaintenanceBody

            write_data(encode(MaintenanceBody.of(found, str(graph.location))).decode())
        elif found.done or found.failed:
            moment = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
            told = [*found.done, *found.failed]
            write_text("\n".join(f"{moment} {_line(step)}" for step in told))

    stop = threading.Event()
    keeper = Maintainer(graph.location, graph.manifest, limits, branch, graph.actor)
    failure: list[BaseException] = []

    def work() -> None:
        try:
            keeper.run_forever(stop, every, tell)
        except BaseException as error:  # noqa: BLE001 - raised again where it can be told
            failure.append(error)

    # Not in this thread: a signal that comes while it waits would meet the lock it waits with.
    thread = threading.Thread(target=work, name="maintain")
    with _stopped_by_signals(stop):
        thread.start()
        while thread.is_alive():
            thread.join(0.2)
    if failure:
        raise failure[0]
    return 0


@contextmanager
def _stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """Within the block, Ctrl-C and SIGTERM end it after the work that has begun."""
    before = {
        number: signal.signal(number, lambda *_: stop.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _lines(report: MaintenanceReport) -> Iterator[str]:
    yield from map(_line, report.steps)


def _line(step: MaintenanceStep) -> str:
    where = "" if step.branch is None else f" {step.branch}"
    size = f" ({size_text(step.bytes)})" if step.bytes else ""
    commit = "" if step.commit_id is None else f", commit {step.commit_id}"
    outcome = click.style(step.outcome, fg=_COLOURS.get(step.outcome))
    return f"{step.work}{where}: {outcome}: {step.reason}{size}{commit}"
