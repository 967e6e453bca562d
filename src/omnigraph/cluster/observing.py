"""Looking at a cluster: its status, taking up what is there, and making the first ledger.

Owns `status`, `refresh`, `import` and `force-unlock`. Changes no graph and no blob.
"""

from __future__ import annotations

from pathlib import Path

from omnigraph.cluster import catalog
from omnigraph.cluster.desired import Desired, find_root, read_desired
from omnigraph.cluster.draft import Draft
from omnigraph.cluster.layout import STATE, Root
from omnigraph.cluster.ledger import EMPTY, HeldLedger, Ledger, read_ledger, write_ledger
from omnigraph.cluster.live_graphs import LiveGraph, look_at
from omnigraph.cluster.lock import ClusterLock, locked, read_lock, unlock
from omnigraph.cluster.reports import Observed, StateObservations, Unlocked
from omnigraph.cluster.sidecars import Sidecar, read_sidecars, remove_sidecar
from omnigraph.config.cluster.diagnostics import Diagnostics

PENDING = "actual_applied_state_pending"
"""The condition of what is declared and was never seen applied."""


def status(config_dir: Path) -> Observed:
    """What the ledger says, and whether the catalog is whole; takes no lock, writes nothing."""
    found = Diagnostics()
    root = find_root(config_dir, found)
    if root is None:
        return _observed(config_dir, "status", None, None, found)
    lock = read_lock(root, found, is_needed=False)
    held = read_ledger(root, found)
    if held is None:
        if not found.has_errors:
            found.warn("state_missing", STATE, "nothing was applied here yet: see cluster import")
        return _observed(config_dir, "status", root, None, found, lock=lock)
    catalog.verify(root, held.ledger.resources, found)
    for sidecar in read_sidecars(root, found):
        _is_pending(sidecar, found)
    return _observed(config_dir, "status", root, held, found, lock=lock)


def refresh(config_dir: Path) -> Observed:
    """Look at every graph and blob again, and have the ledger say what is there."""
    found = Diagnostics()
    desired = read_desired(config_dir, found)
    if desired is None or found.has_errors:
        return _observed(config_dir, "refresh", None, None, found)
    root = Root(desired.storage)
    held = None
    with locked(root, "refresh", found, locks=desired.document.locks) as is_free:
        if is_free:
            held = read_ledger(root, found)
            if held is None and not found.has_errors:
                found.error("state_missing", STATE, "there is no ledger: see cluster import")
            if held is not None:
                held = _refreshed(root, desired, held, found)
    return _observed(config_dir, "refresh", root, held, found)


def import_(config_dir: Path) -> Observed:
    """Make the first ledger, of the graphs that are there already."""
    found = Diagnostics()
    desired = read_desired(config_dir, found)
    if desired is None or found.has_errors:
        return _observed(config_dir, "import", None, None, found)
    root = Root(desired.storage)
    held = None
    with locked(root, "import", found, locks=desired.document.locks) as is_free:
        if is_free:
            if read_ledger(root, found) is not None:
                found.error(
                    "state_already_exists",
                    STATE,
                    "there is a ledger already: `omnigraph cluster refresh` takes up what is there",
                )
            if not found.has_errors:
                draft = Draft.of(EMPTY)
                _look_at_graphs(root, desired, draft, found)
                _judge(desired, draft, {}, {*draft.graphs})
                if write_ledger(root, None, _first(draft), found):
                    held = read_ledger(root, found)
    return _observed(config_dir, "import", root, held, found)


def force_unlock(config_dir: Path, lock_id: str) -> Unlocked:
    """Take away the lock that an operation has left, by its very id."""
    found = Diagnostics()
    root = find_root(config_dir, found)
    taken = None if root is None else unlock(root, lock_id, found)
    return Unlocked(
        config_dir=str(config_dir),
        diagnostics=found.found,
        lock_id=lock_id,
        operation=None if taken is None else taken.operation,
    )


def _first(draft: Draft) -> Ledger:
    """The ledger of a draft, as the first revision also where nothing was found."""
    ledger = draft.ledger
    return Ledger(
        ledger.version,
        1,
        ledger.applied_revision,
        ledger.resource_statuses,
        ledger.approval_records,
        ledger.recovery_records,
        ledger.observations,
    )


def _refreshed(root: Root, desired: Desired, held: HeldLedger, found: Diagnostics) -> HeldLedger:
    draft = Draft.of(held.ledger)
    sidecars = read_sidecars(root, found)
    if found.has_errors:
        return held
    live = _look_at_graphs(root, desired, draft, found)
    wrong = catalog.verify(root, draft.resources, found)
    _judge(desired, draft, wrong, live)
    ledger = draft.ledger
    if ledger is not held.ledger and not write_ledger(root, held, ledger, found):
        return held
    for sidecar in sidecars:
        # What a graph is by now has just been taken as it is, whoever made it so.
        if sidecar.graph_id in live and sidecar.kind != "graph_delete":
            remove_sidecar(root, sidecar, found)
        else:
            _is_pending(sidecar, found)
    return read_ledger(root, found) or held


def _look_at_graphs(root: Root, desired: Desired, draft: Draft, found: Diagnostics) -> set[str]:
    """The graphs that are there; the draft says of each what it is."""
    live = set()
    for id_ in sorted({*desired.document.graphs, *draft.before.graphs}):
        address = f"graph.{id_}"
        seen = look_at(root, id_)
        if isinstance(seen, LiveGraph):
            live.add(id_)
            known, applied = draft.observations.get(address), draft.resources.get(f"schema.{id_}")
            digest = seen.observation.schema_digest
            if known is not None and applied is not None and known.schema_digest == digest:
                # The text that was applied may be another that means the same.
                digest = applied.digest
            draft.has_graph(id_, digest, seen.observation)
        elif address in draft.resources:
            reason = "it is gone" if seen is None else seen.reason
            found.error(
                "graph_observation_error",
                address,
                f"{reason}: restore {root.graph(id_)}; or if it is to be given up, remove it from "
                f"cluster.yaml, and approve {address}",
            )
            draft.say(address, "error", reason)
        elif seen is not None:
            found.error("graph_observation_error", address, seen.reason)
    return live


def _judge(desired: Desired, draft: Draft, wrong: dict[str, str], live: set[str]) -> None:
    """How every resource stands, beside what is wanted; ``live`` are the graphs that are there."""
    for address in {*draft.statuses} - {*draft.resources, *desired.resources}:
        del draft.statuses[address]
    for address in sorted({*draft.resources, *desired.resources}):
        applied, wanted = draft.resources.get(address), desired.resources.get(address)
        before = draft.before.resources.get(address)
        if applied is None:
            draft.say(address, "pending", None, PENDING)
        elif address in wrong:
            draft.say(address, "drifted", wrong[address])
        elif address.startswith("graph.") and address.removeprefix("graph.") not in live:
            continue  # what is wrong with it was said when it was looked at
        elif before is not None and before.digest != applied.digest:
            draft.say(address, "drifted", "somebody has changed it")
        elif wanted is None or wanted.digest != applied.digest:
            draft.say(address, "pending", None, PENDING)
        else:
            draft.say(address, "applied")


def _is_pending(sidecar: Sidecar, found: Diagnostics) -> None:
    found.warn(
        "cluster_recovery_pending",
        f"graph.{sidecar.graph_id}",
        f"the operation {sidecar.operation_id} ({sidecar.kind}) died: the next apply finds out "
        "what became of it",
    )


def _observed(
    config_dir: Path,
    operation: str,
    root: Root | None,
    held: HeldLedger | None,
    found: Diagnostics,
    *,
    lock: ClusterLock | None = None,
) -> Observed:
    ledger = EMPTY if held is None else held.ledger
    return Observed(
        config_dir=str(config_dir),
        diagnostics=found.found,
        operation=operation,
        state=StateObservations.of("" if root is None else str(root.location), held, lock),
        resource_digests={name: one.digest for name, one in sorted(ledger.resources.items())},
        statuses=dict(sorted(ledger.resource_statuses.items())),
        observations=dict(sorted(ledger.observations.items())),
    )
