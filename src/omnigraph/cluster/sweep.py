"""The sweep: what became of operations that died, found out before anything else is done.

Owns reading it off the graphs: a sidecar says what was about to happen, the graph says whether
it has. Changes no graph; what it finds goes into the next ledger.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from omnigraph.cluster.draft import Draft
from omnigraph.cluster.layout import Root
from omnigraph.cluster.live_graphs import BrokenGraph, LiveGraph, look_at
from omnigraph.cluster.sidecars import Sidecar
from omnigraph.config.cluster.diagnostics import Diagnostics

ROLLED_FORWARD = "rolled_forward"
NOTHING_DONE = "nothing_done"


@dataclass(slots=True)
class Swept:
    """What a sweep has found."""

    settled: list[Sidecar] = field(default_factory=list)
    """What can be removed once the ledger is written."""
    blocked: dict[str, str] = field(default_factory=dict)
    """The graphs on which nothing can be done, each with the reason."""
    unfinished: set[str] = field(default_factory=set)
    """The graphs of which an init that died has left something, and nothing else is there."""
    hidden: set[str] = field(default_factory=set)
    """The graphs whose deletion has begun."""


def sweep(
    root: Root,
    draft: Draft,
    sidecars: Iterable[Sidecar],
    wanted: Collection[str],
    found: Diagnostics,
) -> Swept:
    """Settle what can be settled; ``wanted`` are the ids of the graphs that are declared."""
    swept = Swept()
    for sidecar in sidecars:
        live = look_at(root, sidecar.graph_id)
        match sidecar.kind:
            case "graph_create":
                _created(sidecar, live, draft, swept, found, wanted=wanted)
            case "schema_apply":
                _applied(sidecar, live, draft, swept, found)
            case "graph_delete":
                _deleted(sidecar, live, draft, swept, found, wanted=wanted)
    return swept


def _created(
    sidecar: Sidecar,
    live: LiveGraph | BrokenGraph | None,
    draft: Draft,
    swept: Swept,
    found: Diagnostics,
    *,
    wanted: Collection[str],
) -> None:
    id_, address = sidecar.graph_id, f"graph.{sidecar.graph_id}"
    if address in draft.resources or live is None:
        swept.settled.append(sidecar)
    elif isinstance(live, LiveGraph):
        if live.observation.schema_digest == sidecar.desired_schema_digest:
            _roll_forward(sidecar, live, draft, swept, found)
        else:
            _unattributed(sidecar, swept, found)
    elif live.is_unfinished_init:
        if id_ in wanted:
            swept.unfinished.add(id_)
            swept.settled.append(sidecar)
        else:
            found.warn(
                "cluster_recovery_pending",
                address,
                f"{live.reason}: no row was ever in it, remove {sidecar.graph_uri} by hand",
            )
    else:
        swept.blocked[id_] = live.reason
        found.error(
            "graph_create_incomplete",
            address,
            f"{live.reason}: an apply died while it made this graph, and what is there now is not "
            f"its doing; move {sidecar.graph_uri} away, then apply again",
        )


def _applied(
    sidecar: Sidecar,
    live: LiveGraph | BrokenGraph | None,
    draft: Draft,
    swept: Swept,
    found: Diagnostics,
) -> None:
    id_, address = sidecar.graph_id, f"graph.{sidecar.graph_id}"
    schema = draft.resources.get(f"schema.{id_}")
    if schema is None or schema.digest == sidecar.desired_schema_digest:
        swept.settled.append(sidecar)
    elif not isinstance(live, LiveGraph):
        reason = "it is gone" if live is None else live.reason
        swept.blocked[id_] = reason
        found.error("graph_observation_error", address, f"{reason}: restore {sidecar.graph_uri}")
    elif live.observation.schema_digest == sidecar.desired_schema_digest:
        _roll_forward(sidecar, live, draft, swept, found)
    elif live.observation.schema_digest == _seen(draft, address):
        swept.settled.append(sidecar)
    else:
        _unattributed(sidecar, swept, found)


def _deleted(
    sidecar: Sidecar,
    live: LiveGraph | BrokenGraph | None,
    draft: Draft,
    swept: Swept,
    found: Diagnostics,
    *,
    wanted: Collection[str],
) -> None:
    id_, address = sidecar.graph_id, f"graph.{sidecar.graph_id}"
    if address not in draft.resources or isinstance(live, LiveGraph):
        # Either the ledger knows, or nothing has gone yet: a graph is hidden before it is deleted.
        swept.settled.append(sidecar)
        return
    swept.hidden.add(id_)
    left = "nothing of it is left" if live is None else "some of its files are left"
    advice = (
        f"remove graph {id_} from cluster.yaml, approve {address} and apply; then it can be "
        "declared again"
        if id_ in wanted
        else f"approve {address} if there is no approval that fits, then apply"
    )
    found.warn(
        "graph_delete_incomplete",
        address,
        f"an apply died while it deleted this graph under the approval {sidecar.approval_id}, and "
        f"{left}: {advice}",
    )
    if id_ in wanted:
        swept.blocked[id_] = "its deletion has begun and was not finished"
    else:
        # The deletion goes on, or waits for an approval; when it has ended, this is settled.
        swept.settled.append(sidecar)


def _seen(draft: Draft, address: str) -> str | None:
    seen = draft.observations.get(address)
    return None if seen is None else seen.schema_digest


def _roll_forward(
    sidecar: Sidecar, live: LiveGraph, draft: Draft, swept: Swept, found: Diagnostics
) -> None:
    draft.has_graph(sidecar.graph_id, live.observation.schema_digest, live.observation)
    draft.recoveries[sidecar.operation_id] = ROLLED_FORWARD
    swept.settled.append(sidecar)
    what = "made this graph" if sidecar.kind == "graph_create" else "changed its schema"
    found.warn(
        "cluster_recovery_rolled_forward",
        f"graph.{sidecar.graph_id}",
        f"the operation {sidecar.operation_id}, which did not end, had {what}: the ledger says so",
    )


def _unattributed(sidecar: Sidecar, swept: Swept, found: Diagnostics) -> None:
    swept.blocked[sidecar.graph_id] = "its schema is neither the one before nor the one wanted"
    found.error(
        "cluster_recovery_unattributed",
        f"graph.{sidecar.graph_id}",
        f"the operation {sidecar.operation_id} did not end well, and the schema of the graph is "
        "neither the one it had before nor the one it was to get: look at "
        f"`omnigraph schema log --store {sidecar.graph_uri}`, then run "
        "`omnigraph cluster refresh` to take it as it is",
    )
