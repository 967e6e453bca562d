"""Background maintenance: the graphs of a server are kept in order beside their requests.

Owns the one thread that goes from graph to graph, and that of several processes of a server one
does it. What is due, and how it is done, is not known here. Must never reclaim a commit, unless
the owner of the graph has said which are kept. A round that fails is told in the log and ends
nothing: the next one may pass.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from threading import Event, Thread

from omnigraph.errors import OmniGraphError
from omnigraph.maintain.reconcile import Maintainer
from omnigraph.maintain.steps import MaintenanceReport
from omnigraph.maintain.wanted import next_pause
from omnigraph.server.metrics import Metrics, shared_directory
from omnigraph.server.served import ServedGraph

ACTOR = "omnigraph:server"
ROUND_SECONDS = 300.0
"""So long after a round has begun it begins no other piece of work: others have their turn."""
_log = logging.getLogger("omnigraph.server")


@dataclass(slots=True)
class _Kept:
    """A graph, when its next round is due, and how often there was nothing to do."""

    keeper: Maintainer
    due: float
    idle: int = 0


@dataclass(slots=True)
class BackgroundMaintenance:
    """Rounds of maintenance for all graphs, one at a time, until it is told to stop."""

    graphs: Mapping[str, ServedGraph]
    seconds: float
    """From one round of a graph to the next; the pause grows while there is nothing to do."""
    metrics: Metrics
    _stop: Event = field(default_factory=Event)
    _thread: Thread | None = None

    def start(self) -> None:
        """Begin, where there is a graph."""
        if self._thread is None and self.graphs:
            # A process that has to end does not wait for it: whatever dies in it is done again.
            self._thread = Thread(target=self._run, name="maintenance", daemon=True)
            self._thread.start()

    def stop(self, patience: float) -> None:
        """Begin nothing more, and wait so many seconds for what has begun."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(patience)

    def _run(self) -> None:
        with ExitStack() as held:
            while not _is_ours(held):
                if self._stop.wait(self.seconds):
                    return
            now = time.monotonic()
            kept = {id_: _Kept(_keeper(one), now) for id_, one in sorted(self.graphs.items())}
            while True:
                id_ = min(kept, key=lambda one: kept[one].due)
                if self._stop.wait(max(0.0, kept[id_].due - time.monotonic())):
                    return
                self._round(id_, kept[id_])

    def _round(self, id_: str, kept: _Kept) -> None:
        try:
            report = kept.keeper.run_next()
        except OmniGraphError as error:
            _log.warning("maintenance of %s: %s", id_, error.message)
            is_idle = True
        except Exception:  # noqa: BLE001 - it is told, and the other graphs have to go on
            _log.exception("maintenance of %s failed", id_)
            is_idle = True
        else:
            self._tell(id_, report)
            is_idle = not (report.done or report.left)
        kept.idle = kept.idle + 1 if is_idle else 0
        kept.due = time.monotonic() + next_pause(self.seconds, kept.idle)

    def _tell(self, id_: str, report: MaintenanceReport) -> None:
        for step in report.steps:
            self.metrics.maintenance(id_, step.work, step.outcome)
            if step.outcome in ("done", "failed"):
                level = logging.WARNING if step.outcome == "failed" else logging.INFO
                on = "" if step.branch is None else f" on {step.branch}"
                _log.log(
                    level,
                    "maintenance of %s: %s%s %s: %s",
                    id_,
                    step.work,
                    on,
                    step.outcome,
                    step.reason,
                )


def _keeper(served: ServedGraph) -> Maintainer:
    limits = replace(served.maintenance, max_seconds=ROUND_SECONDS)
    return Maintainer(served.graph.location, served.graph.manifest, limits, actor=ACTOR)


def _is_ours(held: ExitStack) -> bool:
    """Whether this process does the work of all processes of the server, from now to its end."""
    directory = shared_directory()
    if directory is None:
        return True
    import fcntl

    file = os.open(f"{directory}/maintenance", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return False
    held.callback(os.close, file)
    return True
