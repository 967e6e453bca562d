"""Tiers so small that a test of a few rows folds all the time."""

from __future__ import annotations

import pytest

from omnigraph.write.publish import folding


def fold_often(monkeypatch: pytest.MonkeyPatch, tier: int = 2) -> None:
    """Let so many fragments of about one size be too many."""
    monkeypatch.setattr(folding, "TIER", tier)
    monkeypatch.setattr(folding, "FOLDED_ROWS", tier**4)
