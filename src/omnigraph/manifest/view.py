"""Views: a state of a branch together with the storage version it was read from.

Owns the pair and the way from it into history. Immutable.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow.compute as pc

from omnigraph.manifest.entries import Commit
from omnigraph.manifest.rows import from_table
from omnigraph.manifest.state import ManifestState
from omnigraph.storage.headlog import HeadLog


@dataclass(frozen=True, slots=True)
class View:
    """One state of a branch together with the storage version it was read from."""

    log: HeadLog
    state: ManifestState
    identifier: str | None
    """Tells a branch from a later one of the same name; None for main."""


def commits_of(view: View) -> list[Commit]:
    """Every commit a branch can see, newest first."""
    found = [*view.state.commits, *_sealed(view, pc.field("object_type") == "graph_commit")]
    found.sort(key=lambda commit: (commit.manifest_version, commit.created_at, commit.id))
    return found[::-1]


def find_commit(view: View, commit_id: str) -> Commit | None:
    """One commit a branch can see; most are found without touching the log."""
    wanted = pc.field("object_id") == commit_id
    recent = (commit for commit in view.state.commits if commit.id == commit_id)
    return next(recent, None) or next(_sealed(view, wanted), None)


def _sealed(view: View, where: pc.Expression) -> Iterator[Commit]:
    """The commits of the log; the filter runs in the scan, so other rows are never decoded."""
    if view.log.log_sizes():
        entries = from_table(view.log.log(where))
        yield from (entry for entry in entries if isinstance(entry, Commit))
