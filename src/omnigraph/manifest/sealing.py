"""Sealing: when history leaves the head fragment, and how log fragments are merged.

Owns the layout that keeps cost flat: the head stays small, and the log has few
fragments however long it grows, because equal-sized neighbours are merged.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from omnigraph.manifest.entries import Commit, TableVersion
from omnigraph.manifest.state import ManifestState

SEAL_ENTRIES = 64
FANOUT = 8


@dataclass(frozen=True, slots=True)
class Seal:
    """The head that stays, what is sealed, and the log positions that are merged into it."""

    state: ManifestState
    sealed: tuple[Commit | TableVersion, ...] = ()
    absorbed: tuple[int, ...] = ()


def seal(state: ManifestState, log_sizes: Sequence[int], brought: Collection[str] = ()) -> Seal:
    """Move history out of the head once there is enough of it.

    What this very publish has brought along stays: should it lose, its log is read all the same.
    """
    if len(state.recent) < SEAL_ENTRIES:
        return Seal(state)
    # The newest commit stays: it is the head's own witness.
    stays = {state.head_commit_id, *brought}
    kept: list[Commit | TableVersion] = []
    sealed: list[Commit | TableVersion] = []
    for entry in state.recent:
        (kept if isinstance(entry, Commit) and entry.id in stays else sealed).append(entry)
    if not sealed:
        return Seal(state)
    return Seal(
        replace(state, recent=tuple(kept)), tuple(sealed), _absorbed(len(sealed), log_sizes)
    )


def _absorbed(size: int, log_sizes: Sequence[int]) -> tuple[int, ...]:
    """The newest fragments to merge: a full row of the same tier, tier by tier."""
    first = len(log_sizes)
    while True:
        tier = _tier(size)
        run = first
        while run > 0 and _tier(log_sizes[run - 1]) <= tier:
            run -= 1
        if first - run < FANOUT - 1:
            return tuple(range(first, len(log_sizes)))
        size += sum(log_sizes[run:first])
        first = run


def _tier(size: int) -> int:
    tier, limit = 0, SEAL_ENTRIES * FANOUT // 2
    while size >= limit:
        tier, limit = tier + 1, limit * FANOUT
    return tier
