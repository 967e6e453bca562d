"""Collection epochs: how a collector makes sure that nobody publishes what it takes away.

Owns the two marks, on a branch and on the names. A write stages its files in one epoch of one
branch and publishes them in that epoch or not at all: so when a branch has a new epoch, what
was staged before and is not published by then never will be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from omnigraph.manifest.branch_state import BranchState
from omnigraph.manifest.entries import Head
from omnigraph.manifest.refs import Refs
from omnigraph.manifest.store import Manifest

Oldest = Callable[[BranchState], str | None]
"""The oldest commit of a branch that can be read from then on; None for all of them."""


def begin_epoch(manifest: Manifest, branch_id: str, oldest: Oldest | None = None) -> BranchState:
    """Begin a new epoch of a branch, unless it has ended; returns its state then."""

    def begun(view: BranchState) -> Head | None:
        head = view.state.head
        if head.ended:
            return None
        kept = head.oldest_commit_id if oldest is None else oldest(view)
        return replace(head, epoch=head.epoch + 1, oldest_commit_id=kept)

    return manifest.mark(branch_id, begun)


def begin_epoch_of_names(manifest: Manifest) -> Refs:
    """Begin a new epoch of the names: no branch is named that was being made before.

    Returns the names at the very moment when it begins.
    """
    return manifest.refs.change(lambda refs: replace(refs, epoch=refs.epoch + 1))
