"""Random histories and cleanups: retained commits read as ever, and nothing else is left."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

import omnigraph as og
from omnigraph import errors
from omnigraph.write.recovery import intent_scope
from tests import faults, profile
from tests.maintain.cleaning import NO_GRACE, SCHEMA, clean, forget_all, shown
from tests.maintain.reachable import Lineage, hollow, manifest_file, reachable, stored
from tests.sound import check_sound
from tests.write.writing import compact_all, index_all, mutate

seen: Counter[str] = Counter()
"""What the examples have met, so that the test can tell whether it looked at anything."""

NAMES = st.sampled_from(["ann", "bob", "cid", "dan", "eve"])
BRANCHES = ["dev", "test", "team/a"]
KINDS = {
    "write": 5,
    "load": 2,
    "fork": 3,
    "drop": 1,
    "merge": 3,
    "maintain": 1,
    "crash": 2,
    "crash_announced": 2,
    "cleanup": 3,
}
"""What happens in a history, and how often."""
CRASHES = ["rows_written", "table_staged", "publish_ready", "published", "before_commit"]
INTENT_POINTS = ["intent_written", "intent_extended", "publish_ready", "published"]


class Histories(RuleBasedStateMachine):
    """One graph with two handles; every commit is remembered as it was shown at first."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="cleanup-"))
        self.root = self.place / "graph"
        self.graphs: list[og.Graph] = []
        self.images: dict[str, tuple[str, ...]] = {}

    def teardown(self) -> None:
        try:
            if self.graphs:
                self.collect_everything()
        finally:
            shutil.rmtree(self.place)

    @initialize()
    def begin(self) -> None:
        seen["examples"] += 1
        self.graphs = [og.init(self.root, SCHEMA), og.open(self.root)]
        self.remember()

    # -- drawing -----------------------------------------------------------------------

    def handle(self, data: st.DataObject) -> og.Graph:
        return self.graphs[data.draw(st.integers(0, 1), "handle")]

    def branch(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(self.graphs[0].branches.list()), "branch")

    def statement(self, data: st.DataObject) -> str:
        one, other = data.draw(NAMES), data.draw(NAMES)
        kinds = [
            f'insert Person {{ name: "{one}", age: {data.draw(st.integers(0, 9))} }}',
            f'insert Film {{ title: "{one}" }}',
            f'insert Person {{ name: "{one}" }} insert Knows {{ from: "{one}", to: "{one}" }}',
            f'update Person set {{ age: {len(other)} }} where name != "{other}"',  # noqa: S608 - no SQL
            f'delete Person where name = "{other}"',
        ]
        return data.draw(st.sampled_from(kinds), "statement")

    # -- steps -------------------------------------------------------------------------

    # One rule: of several, Hypothesis would leave some out of most examples.
    @rule(
        data=st.data(),
        kind=st.sampled_from([kind for kind, often in KINDS.items() for _ in range(often)]),
    )
    def step(self, data: st.DataObject, kind: str) -> None:
        getattr(self, kind)(data)

    def write(self, data: st.DataObject) -> None:
        branch = self.branch(data)
        for _ in range(data.draw(st.integers(1, 4), "commits")):
            mutate(self.handle(data), self.statement(data), branch=branch)
            self.remember()
            seen["writes"] += 1

    def load(self, data: st.DataObject) -> None:
        mode = data.draw(st.sampled_from(["merge", "overwrite"]), "mode")
        names = data.draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
        lines = [json.dumps({"type": "Film", "data": {"title": name}}) for name in names]
        self.handle(data).load("\n".join(lines), mode=mode, branch=self.branch(data))
        self.remember()
        seen["loads"] += 1

    def fork(self, data: st.DataObject) -> None:
        graph = self.handle(data)
        missing = sorted(set(BRANCHES) - set(graph.branches.list()))
        if missing:
            graph.branches.create(data.draw(st.sampled_from(missing), "name"), self.branch(data))
            seen["forks"] += 1

    def drop(self, data: st.DataObject) -> None:
        graph = self.handle(data)
        names = [name for name in graph.branches.list() if name != "main"]
        if not names:
            return
        try:
            graph.branches.delete(data.draw(st.sampled_from(names), "name"))
        except errors.Conflict:
            return
        seen["deleted branches"] += 1

    def merge(self, data: st.DataObject) -> None:
        graph = self.handle(data)
        names = graph.branches.list()
        if len(names) < 2:
            return
        source, into = data.draw(st.permutations(names), "branches")[:2]
        try:
            result = graph.branches.merge(source, into, resolve="source")
        except (errors.MergeConflicts, errors.ValidationError):
            seen["refused merges"] += 1
            return
        except errors.ChangeFeedGap as error:
            raise AssertionError("two live branches have lost their merge base") from error
        self.remember()
        seen[f"merges, {result.outcome}"] += 1

    def maintain(self, data: st.DataObject) -> None:
        work = data.draw(st.sampled_from([compact_all, index_all]), "work")
        try:
            work(self.handle(data), self.branch(data))
        except AssertionError:
            pass  # there was nothing to do, which is published all the same
        else:
            seen["maintenance"] += 1
        self.remember()

    def crash(self, data: st.DataObject) -> None:
        """A small write that dies: nobody knows of its files."""
        self.die(data, data.draw(st.sampled_from(CRASHES), "point"))
        seen["dead writes"] += 1

    def crash_announced(self, data: st.DataObject) -> None:
        """A long write that dies, and may count as alive for the next cleanup."""
        point = data.draw(st.sampled_from(INTENT_POINTS), "point")
        before, small = self.intents(), intent_scope.REQUEST_BYTES
        intent_scope.REQUEST_BYTES = -1
        try:
            self.die(data, point)
        finally:
            intent_scope.REQUEST_BYTES = small
        for path in self.intents() - before:
            staged = {
                f"{table['table_path']}/{name}"
                for table in json.loads(path.read_bytes())["tables"]
                for name in table["staged"]
            }
            self.some_cleanup(data, 1)
            assert path.exists() == (point != "published")
            assert staged <= stored(self.root)
            seen["live intents"] += 1
        if data.draw(st.booleans(), "settle"):
            self.expire()

    def cleanup(self, data: st.DataObject) -> None:
        if data.draw(st.sampled_from([True, True, False]), "thorough"):
            self.expire()
        self.some_cleanup(data, data.draw(st.integers(1, 6), "keep"))

    # -- what steps are made of --------------------------------------------------------

    def die(self, data: st.DataObject, point: str) -> None:
        graph = og.open(self.root)
        skip = data.draw(st.integers(0, 1), "skip")
        with faults.armed(point, skip=skip), suppress(errors.StorageError):
            mutate(graph, self.statement(data), branch=self.branch(data))
        self.remember()

    def intents(self) -> set[Path]:
        return set((self.root / "__recovery").glob("*.json"))

    def expire(self) -> None:
        for path in self.intents():
            intent = json.loads(path.read_bytes())
            path.write_text(json.dumps({**intent, "expires_at": 1_700_000_000_000_000}))

    def remember(self) -> None:
        """Note what every commit shows that was not there before."""
        graph = self.graphs[0]
        for commit in Lineage.of(graph).listed:
            if commit not in self.images:
                self.images[commit] = shown(graph, commit)

    def some_cleanup(self, data: st.DataObject, keep: int) -> None:
        graph = self.handle(data)
        other = og.open(self.root)
        meanwhile = self.statement(data)
        lineage = Lineage.of(graph)
        expected = {
            commit
            for commit in lineage.needed(keep)
            if manifest_file(self.root, lineage.commits[commit].stored).exists()
        }
        is_beside = data.draw(st.booleans(), "somebody writes meanwhile")
        with faults.observed("cleanup_traced", lambda: is_beside and mutate(other, meanwhile)):
            report = clean(graph, keep)
        self.remember()
        seen["cleanups"] += 1
        seen["commits reclaimed"] += report.commits_reclaimed
        seen["files removed"] += report.files_removed
        self.check(expected)

    def check(self, expected: set[str]) -> None:
        """Every commit that is still listed reads the same, or was to go."""
        forget_all()
        graph = og.open(self.root, read_only=True)
        lineage = Lineage.of(graph)
        for commit in lineage.commits:
            try:
                graph.snapshot(commit=commit)
            except errors.ChangeFeedGap:
                assert commit not in expected
                continue
            assert shown(graph, commit) == self.images[commit]
            seen["commits compared"] += 1
        for found_commits in lineage.lists.values():
            head = found_commits[0].id
            assert shown(graph, head) == self.images[head]

    def collect_everything(self) -> None:
        """With nobody at work, what is left is what somebody else computes to be needed."""
        self.expire()
        lineage = Lineage.of(self.graphs[0])
        seen["commits reclaimed"] += clean(self.graphs[0]).commits_reclaimed
        assert stored(self.root) == reachable(self.root)
        assert hollow(self.root) == []
        again = self.graphs[1].cleanup(1, grace=NO_GRACE)
        assert (again.files_removed, again.commits_reclaimed) == (0, 0)
        self.check({commits[0].id for commits in lineage.lists.values()})
        check_sound(self.root, with_crashes=True)
        seen["graphs compared file by file"] += 1


@pytest.mark.slow
@pytest.mark.soak
def test_cleanup_keeps_what_is_needed_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    seen.clear()
    run_state_machine_as_test(Histories, settings=profile.histories(6, 22))
    with capsys.disabled():
        counted = ", ".join(f"{count} {what}" for what, count in sorted(seen.items()))
        print(f"\n{counted}")  # noqa: T201 - says what was looked at
    # What Hypothesis draws depends on more than the seed, so this asks for variety, not for counts.
    for what in ("commits reclaimed", "commits compared", "files removed"):
        assert seen[what] >= 40, what
    for what in ("cleanups", "forks", "deleted branches", "live intents", "dead writes"):
        assert seen[what], what
    assert seen["graphs compared file by file"] == seen["examples"]
