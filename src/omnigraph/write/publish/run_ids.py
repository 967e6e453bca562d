"""Run ids: loads that may be repeated and happen once.

Owns that a load whose commit the branch has is not done again, and the claim that it still has
none. What tells a load apart stands in the commit itself, so that the two cannot come apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from omnigraph.manifest.entries import Commit
from omnigraph.manifest.snapshot import BranchState, commits_of
from omnigraph.write.change.protocol import AlreadyDone, WriteTxn
from omnigraph.write.publish.base import Base

RUN_ID = "run_id"


class Once(Protocol):
    """What tells a load apart from all others."""

    def find(self, view: BranchState) -> Commit | None:
        """The commit that shows that it was done, if the branch has one."""


@dataclass(frozen=True, slots=True)
class RunId:
    """The name that a caller gave to a load."""

    name: str

    def find(self, view: BranchState) -> Commit | None:
        """The newest commit of this name."""
        commits = commits_of(view)
        return next((one for one in commits if one.metadata.get(RUN_ID) == self.name), None)


@dataclass(frozen=True, slots=True)
class RunIdUnused:
    """The claim that nobody has made the commit of a load: part of a read set."""

    load: Once
    type_key: str = "commit"

    def holds(self, before: Base, after: Base) -> bool:
        """Whether none of the commits since then is it."""
        return before.head == after.head or self.load.find(after.view) is None


def require_first_run(txn: WriteTxn, loads: Iterable[Once]) -> None:
    """Stop when the branch has the commit of a load, and depend on that it gets none."""
    for load in loads:
        done = load.find(txn.base.view)
        if done is not None:
            raise AlreadyDone(done)
        txn.reads.claim(RunIdUnused(load))
