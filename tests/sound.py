"""The end of a model test: whatever has happened to a graph, nothing is damaged."""

from __future__ import annotations

from pathlib import Path

import omnigraph as og

EVERY = 6
"""Of so many examples one graph is verified: it takes as long as some of their steps."""
NOTES = {"intent_expired", "deletion_unfinished", "copy_lags"}
"""What whoever dies leaves behind."""


def check_sound(root: Path | str, *, with_crashes: bool = False) -> None:
    """Verify everything, and find nothing."""
    report = og.verify(root, deep=True)
    assert report.damage == ()
    assert {one.kind for one in report.findings} <= (NOTES if with_crashes else set())
    assert report.looked.commits
