"""Policies: what a bundle holds, what its tests say, and one decision with its rule.

Owns the names of these bodies.
"""

from __future__ import annotations

from omnigraph.wire.body import Body


class PolicyBody(Body, frozen=True):
    """A bundle that is valid."""

    bundle: str
    kind: str
    actors: int
    rules: int


class PolicyTestsBody(Body, frozen=True):
    """The tests of a bundle: how many, and a line for each that failed."""

    ok: bool
    cases: int
    failures: tuple[str, ...]


class DecisionBody(Body, frozen=True):
    """One decision."""

    decision: str
    actor: str
    action: str
    branch: str | None
    target_branch: str | None
    matched_rule: str | None
    message: str
