"""Laws of changes over random histories with merges: differences and feeds rebuild the model."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy

import pytest
from hypothesis.stateful import run_state_machine_as_test

from omnigraph.history.changes import Change, Image
from tests import profile
from tests.history.changing import follow
from tests.history.history_machine import Histories, seen
from tests.history.history_model import Row, State


def row_of(image: Image) -> Row:
    row = dict(image.properties)
    if image.endpoints is not None:
        row |= {"from": image.endpoints.source, "to": image.endpoints.target}
    return row


def replay(state: State, changes: Iterable[Change]) -> int:
    """Take a state to the next one; counts the changes."""
    count = 0
    for change in changes:
        rows = state[f"{change.kind}:{change.type.name}"]
        before = None if change.before is None else row_of(change.before)
        assert rows.pop(change.id, None) == before
        if change.after is not None:
            after = row_of(change.after)
            rows[change.id] = after
            assert before != after
        count += 1
    return count


class Changing(Histories):
    """The same histories; when one ends, everything that tells of changes is asked."""

    def teardown(self) -> None:
        if self.graphs:
            for source in self.history.heads:
                self.check_feed(source)
                for target in self.history.heads:
                    self.check_diff(source, target)
        super().teardown()

    def check_diff(self, one: str, other: str) -> None:
        state = self.history.state(one)
        count = replay(state, self.graphs[0].diff(one, other))
        assert state == self.history.state(other), (one, other)
        assert (count == 0) == (self.history.state(one) == state)
        seen["differences"] += count

    def check_feed(self, branch: str) -> None:
        blocks, _ = follow(self.graphs[1], branch=branch, limit=3)
        commits = []
        at = self.history.commits[self.history.heads[branch]]
        while at.parents:
            commits.append(at)
            at = self.history.commits[at.parents[0]]
        state = deepcopy(at.state)
        assert [block.cause.graph_commit_id for block in blocks] == [
            commit.id for commit in reversed(commits)
        ]
        for block, commit in zip(blocks, reversed(commits), strict=True):
            seen["changes of commits"] += replay(state, block.changes)
            assert state == commit.state, commit.id
            parents = (block.cause.parent_commit_id, block.cause.merged_parent_commit_id)
            assert tuple(parent for parent in parents if parent is not None) == commit.parents


@pytest.mark.slow
@pytest.mark.soak
def test_changes_rebuild_every_branch(capsys: pytest.CaptureFixture[str]) -> None:
    seen.clear()
    run_state_machine_as_test(Changing, settings=profile.histories(12, 20))
    with capsys.disabled():
        counted = ", ".join(f"{count} {what}" for what, count in sorted(seen.items()))
        print(f"\n{counted}")  # noqa: T201 - says what was looked at
    # What Hypothesis draws depends on more than the seed: this asks for variety, not for counts.
    assert seen["differences"] >= 15
    assert seen["changes of commits"] >= 100
    assert seen["merge: merged"]
