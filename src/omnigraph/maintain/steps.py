"""Maintenance steps: what one round of maintenance did, left out and left over, with reasons.

Owns the shape of its report, and what it may spend. Without the engine: whoever only shows a
report needs no more than this.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from omnigraph.errors import BadRequest

Work = Literal["recover", "optimize", "cleanup"]
"""Ending the stories of dead writers, work on tables of a branch, removal of files."""
Outcome = Literal["done", "planned", "skipped", "left", "failed"]
"""`skipped` was in nobody's interest or somebody else's work, `left` is for the next round."""


@dataclass(frozen=True, slots=True)
class MaintenanceStep:
    """One piece of work; ``branch`` is None where it is about the whole graph.

    ``bytes`` are those that were read and written again, or removed.
    """

    work: Work
    outcome: Outcome
    reason: str
    branch: str | None = None
    types: tuple[str, ...] = ()
    bytes: int = 0
    commit_id: str | None = None


@dataclass(frozen=True, slots=True)
class MaintenanceReport:
    """One round; without a step there was nothing to do."""

    steps: tuple[MaintenanceStep, ...]
    seconds: float
    dry_run: bool = False

    def of(self, outcome: Outcome) -> tuple[MaintenanceStep, ...]:
        """The steps that ended so."""
        return tuple(step for step in self.steps if step.outcome == outcome)

    @property
    def done(self) -> tuple[MaintenanceStep, ...]:
        """What was done."""
        return self.of("done")

    @property
    def left(self) -> tuple[MaintenanceStep, ...]:
        """What the next round has to do."""
        return self.of("left")

    @property
    def failed(self) -> tuple[MaintenanceStep, ...]:
        """What went wrong."""
        return self.of("failed")


@dataclass(frozen=True, slots=True)
class MaintenanceLimits:
    """What a round may spend, and which commits it may let go of: none, unless that is said.

    A piece of work that has begun is finished: ``max_seconds`` says when none begins any more.
    """

    max_seconds: float | None = None
    max_bytes: int | None = None
    keep: int | None = None
    older_than: timedelta | None = None
    grace: timedelta = timedelta(hours=1)
    optimizes: bool = True
    """Whether tables are written again, and their indexes made to fit."""

    def __post_init__(self) -> None:
        """Refuse what is no limit."""
        if self.max_seconds is not None and self.max_seconds <= 0:
            raise BadRequest("maintenance needs some time: give max_seconds more than 0")
        if self.max_bytes is not None and self.max_bytes <= 0:
            raise BadRequest("maintenance has to write something: give max_bytes more than 0")

    @property
    def reclaims_commits(self) -> bool:
        """Whether somebody has said which commits are to be kept."""
        return self.keep is not None or self.older_than is not None
