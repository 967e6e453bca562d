"""Real processes for tests of writers: they start fast, and they can be killed.

A process that has imported everything and used nothing forks them: Lance has no threads yet
there, so it is as safe as starting anew, and saves the second that importing takes.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import warnings
from collections import Counter
from pathlib import Path

import omnigraph as og

# It cannot know that the process which forks has never used it.
warnings.filterwarnings("ignore", "lance is not fork-safe", UserWarning)
context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["omnigraph.graph", "tests.write.processes"])


def die() -> None:
    """End this process as a crash would: nothing is flushed, closed or told."""
    os.kill(os.getpid(), signal.SIGKILL)


def check_chain(root: Path | str, branch: str = "main") -> Counter[str]:
    """The commits of a branch are one line, each on top of the one before; counts by actor."""
    commits = og.open(root, read_only=True).commits.list(branch)[::-1]
    assert [commit.parent_id for commit in commits] == [None, *(c.id for c in commits[:-1])]
    assert len({commit.id for commit in commits}) == len(commits)
    versions = [commit.manifest_version for commit in commits]
    assert versions == sorted(set(versions))
    return Counter(str(commit.actor) for commit in commits[1:])
