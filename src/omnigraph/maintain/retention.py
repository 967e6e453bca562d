"""Retention: which commits of a branch a person wants to keep.

Owns the rule and the refusals of a rule that says nothing. Knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from omnigraph.errors import BadRequest
from omnigraph.manifest.entries import Commit
from omnigraph.write.recovery.intents import microseconds

NONE = timedelta(0)


@dataclass(frozen=True, slots=True)
class Retention:
    """Keep the newest so many commits of a branch, and those younger than an age.

    What was the newest less than the ``grace`` ago stays too, for whoever still reads it.
    """

    keep: int | None
    older_than: timedelta | None
    grace: timedelta = NONE

    @classmethod
    def of(cls, keep: int | None, older_than: timedelta | None, grace: timedelta = NONE) -> Self:
        """The rule that was asked for, or why it is none."""
        if keep is None and older_than is None:
            raise BadRequest(
                "cleanup needs to know what to keep: give the number of commits to keep on every "
                "branch (keep), the age from which commits may go (older_than), or both"
            )
        if keep is not None and keep < 0:
            raise BadRequest(f"cleanup cannot keep {keep} commits: give 1 or more")
        if older_than is not None and older_than < NONE:
            raise BadRequest("cleanup cannot reclaim commits from the future: give a positive age")
        if grace < NONE:
            raise BadRequest("the grace cannot be negative: 0 keeps nothing for late readers")
        # The head of a branch is the branch: it cannot go.
        return cls(None if keep is None else max(keep, 1), older_than, grace)

    def kept(self, commits: Sequence[Commit], now: int) -> Sequence[Commit]:
        """Those of a branch's commits, newest first, that stay: a commit goes by all rules.

        Whatever clocks said, none goes that is newer than one that stays.
        """
        last = max(
            position
            for position, commit in enumerate(commits)
            if position < (self.keep or 1)
            or not self._is_old(commit, now)
            or commits[position - 1].created_at > now - microseconds(self.grace)
        )
        return commits[: last + 1]

    def _is_old(self, commit: Commit, now: int) -> bool:
        if self.older_than is None:
            return True
        return commit.created_at <= now - microseconds(self.older_than)
