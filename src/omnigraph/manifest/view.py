"""Views: a state of a branch together with the storage version it was read from.

Owns the pair and the way from it into history. Immutable.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.manifest.rows import Entry, from_table
from omnigraph.manifest.state import ManifestState
from omnigraph.storage.headlog import HeadLog


@dataclass(frozen=True, slots=True)
class View:
    """One state of a branch together with the storage version it was read from."""

    log: HeadLog
    state: ManifestState
    identifier: str | None
    """Tells a branch from a later one of the same name; None for main."""


def history(view: View) -> Iterator[Entry]:
    """Commits and superseded versions; most look-ups are answered without touching the log."""
    yield from view.state.recent
    if view.log.log_sizes():
        yield from from_table(view.log.log())
