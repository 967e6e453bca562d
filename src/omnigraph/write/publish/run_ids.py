"""Runs: loads that may be repeated and happen once.

Owns finding the commit of a run by the name its caller gave it, and the claim that there is
none yet. The name stands in the commit itself, so that the two cannot come apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omnigraph.manifest.branch_state import BranchState, commits_of
from omnigraph.manifest.entries import Commit
from omnigraph.write.change.protocol import AlreadyDone, WriteTxn
from omnigraph.write.publish.base import Base

RUN_ID = "run_id"


def require_first_run(txn: WriteTxn, run_id: str | None) -> None:
    """Stop when the branch has the commit of this run, and depend on that it gets none."""
    if run_id is None:
        return
    done = find_marked(txn.base.view, RUN_ID, run_id)
    if done is not None:
        raise AlreadyDone(done)
    txn.reads.claim(RunIdUnused(RUN_ID, run_id))


def find_marked(view: BranchState, member: str, value: Any) -> Commit | None:
    """The newest commit whose metadata has this value, if the branch shows one."""
    commits = commits_of(view)
    return next((commit for commit in commits if commit.metadata.get(member) == value), None)


@dataclass(frozen=True, slots=True)
class RunIdUnused:
    """The claim that nobody has made the commit of a run: part of a read set."""

    member: str
    value: Any
    type_key: str = "commit"

    def holds(self, before: Base, after: Base) -> bool:
        """Whether none of the commits since then is it."""
        return before.head == after.head or (
            find_marked(after.view, self.member, self.value) is None
        )
