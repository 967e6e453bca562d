"""Health: what a status tells, and the verdict on it.

Owns the shape of a status and what a person is to do about every part of it. Pure, and without
the engine: whoever only shows a status needs no more than this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from omnigraph.maintain.wanted import first_of, is_mostly_history, is_worth_cleaning

if TYPE_CHECKING:
    # Not at run time: those who only render a status have no use for Arrow.
    from omnigraph.manifest.entries import Commit

Level = Literal["ok", "due", "look", "damaged"]
"""`due` is what `maintain` does, `look` is for a person to decide, `damaged` for one to hurry."""
_ORDER: tuple[Level, ...] = ("ok", "due", "look", "damaged")
MAINTAIN = "run omnigraph maintain"
VERIFY = "run omnigraph verify, and restore what is lost"


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """One thing that is not as it should be, and what to do about it."""

    level: Level
    subject: str
    message: str
    advice: str


@dataclass(frozen=True, slots=True)
class TypeStatus:
    """One type of the branch.

    ``live_bytes`` are those of the files that its newest state needs, ``stored_bytes`` those of
    all that lie in its directory. ``error`` says in what way it is damaged.
    """

    type_key: str
    rows: int
    fragments: int = 0
    small_fragments: int = 0
    deleted_rows: int = 0
    indexes_complete: int = 0
    indexes_partial: int = 0
    indexes_pending: int = 0
    indexes_unasked: int = 0
    live_bytes: int = 0
    stored_bytes: int = 0
    due: tuple[str, ...] = ()
    """Why it is to be maintained."""
    error: str | None = None

    @property
    def level(self) -> Level:
        """How it is."""
        return "damaged" if self.error is not None else "due" if self.due else "ok"


@dataclass(frozen=True, slots=True, repr=False)
class GraphStatus:
    """A graph, and one of its branches in detail.

    ``reclaimable_bytes`` are those of files that no commit needs which can still be read. Where
    there are so many commits that following them would take long, they are an estimate: all that
    the newest state of the branch does not need, which is the most that it can be.
    """

    location: str
    format: int
    branch: str
    head: Commit
    schema_hash: str
    types: tuple[TypeStatus, ...]
    branches: int
    stale_branches: tuple[str, ...]
    unreadable_branches: Mapping[str, str]
    """By name, why."""
    commits_kept: int
    oldest_commit: Commit
    live_bytes: int
    stored_bytes: int
    reclaimable_bytes: int
    is_estimate: bool
    writes_at_work: int
    writes_dead: int
    findings: tuple[HealthFinding, ...] = field(default=())

    @property
    def rows(self) -> int:
        """Rows in all."""
        return sum(one.rows for one in self.types)

    @property
    def level(self) -> Level:
        """The worst of what was found."""
        return max((one.level for one in self.findings), key=_ORDER.index, default="ok")

    def __repr__(self) -> str:
        return f"<GraphStatus {self._heading}>"

    def _repr_html_(self) -> str:
        from omnigraph.display.graphs import status_html

        return status_html(self._heading, self.types, self.findings)

    @property
    def _heading(self) -> str:
        """All of it in one line."""
        return (
            f"{self.location}: {self.level}, {self.branch} at {self.head.id}, {self.rows:,} rows "
            f"in {len(self.types):,} types, {self.commits_kept:,} commits, "
            f"{self.stored_bytes:,} bytes"
        )


def judged(status: GraphStatus, notices: Sequence[str] = ()) -> GraphStatus:
    """A status with its verdict; ``notices`` are on files of writes that nobody understands."""
    return replace(status, findings=tuple(_findings(status, notices)))


def _findings(status: GraphStatus, notices: Sequence[str]) -> Iterator[HealthFinding]:
    for one in status.types:
        if one.error is not None:
            yield HealthFinding("damaged", one.type_key, one.error, VERIFY)
    for name, error in status.unreadable_branches.items():
        yield HealthFinding("damaged", f"branch {name}", error, VERIFY)
    for one in status.types:
        if one.due:
            yield HealthFinding("due", one.type_key, "; ".join(one.due), MAINTAIN)
    if status.writes_dead:
        yield HealthFinding("due", "writes", f"{status.writes_dead} died and left files", MAINTAIN)
    if not status.is_estimate and is_worth_cleaning(status.reclaimable_bytes, status.stored_bytes):
        message = f"{status.reclaimable_bytes:,} bytes belong to no commit"
        yield HealthFinding("due", "space", message, MAINTAIN)
    if status.is_estimate and is_mostly_history(status.reclaimable_bytes, status.live_bytes):
        message = f"old commits and leftovers take up to {status.reclaimable_bytes:,} bytes"
        advice = "keep fewer commits: omnigraph cleanup --keep N or --older-than D"
        yield HealthFinding("look", "space", message, advice)
    if status.stale_branches:
        count = len(status.stale_branches)
        message = f"{count:,} without a commit for 30 days: {first_of(status.stale_branches)}"
        yield HealthFinding("look", "branches", message, "delete those that nobody needs")
    for notice in notices:
        yield HealthFinding(
            "look", "writes", notice, "look at it, and remove it if it is not yours"
        )
