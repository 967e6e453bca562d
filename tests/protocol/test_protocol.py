"""The protocol of writes, names and collection, explored to the end in the small.

Exhaustive for the sets of actors below: one run of cleanup beside up to three others, two runs
beside one to three others, on up to three names. Each actor works once and tries until it has its
answer, and may be stopped for ever at any step. Merges that hand files on beside two runs are
explored from a given beginning only.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import profile
from tests.protocol.actors import Actor, LongWriter, Writer
from tests.protocol.cleaner import Cleaner
from tests.protocol.merging import LongMerger, Merger
from tests.protocol.naming import Brancher, Deleter, ForkingLoad, Renamer
from tests.protocol.runs import RunWriter
from tests.protocol.scenario import OLD, Scenario
from tests.protocol.world import FEATURE, MAIN, TOPIC, Mistake

BOTH = (MAIN, FEATURE)

append, replace = Writer(name=MAIN), Writer(name=MAIN, replaces=True)
replace_feature = Writer(name=FEATURE, replaces=True)
append_feature = Writer(name=FEATURE)
load = LongWriter(name=MAIN)
branch = Brancher(source=MAIN, name=FEATURE)
branch_old = Brancher(source=MAIN, name=FEATURE, wanted=OLD)
branch_on = Brancher(source=FEATURE, name=TOPIC)
fork = ForkingLoad(source=MAIN, name=FEATURE)
fork_on = ForkingLoad(source=FEATURE, name=TOPIC)
delete = Deleter(name=FEATURE)
rename = Renamer(old=FEATURE, new=TOPIC)
merge = Merger(source=FEATURE, target=MAIN)
merge_old_back = Merger(source=MAIN, target=FEATURE, wanted=OLD)
merge_long = LongMerger(source=FEATURE, target=MAIN)
put_back = Merger(source=MAIN, target=MAIN, wanted=OLD)
clean = Cleaner()
run, run_feature = RunWriter(name=MAIN), RunWriter(name=FEATURE)

HANDED_ON = "3 3 3:1 0 0 0 0 3 3 3:0 1 1 0 1 1 2 2"
"""One merge goes to a branch fenced once, the next from there to a branch fenced twice."""


def of(*actors: Actor, existing: tuple[int, ...] = (MAIN,), prologue: str = "") -> Scenario:
    return Scenario(actors, existing, prologue)


SCENARIOS = {
    "writers and a cleaner": of(append, replace, clean),
    "three writers and a cleaner": of(append, replace, append, clean),
    "a long writer and a cleaner": of(load, clean),
    "a long writer and two cleaners": of(load, clean, clean),
    "a long writer, a merge and a cleaner": of(
        LongWriter(name=FEATURE, replaces=True), merge, clean, existing=BOTH
    ),
    "a long writer, a deletion and a cleaner": of(
        LongWriter(name=FEATURE), delete, clean, existing=BOTH
    ),
    "a long writer, a forking load and a cleaner": of(
        LongWriter(name=MAIN, replaces=True), fork, clean
    ),
    "a branch, a writer and a cleaner": of(branch, replace, clean),
    "a branch of an old commit, a writer and a cleaner": of(branch_old, replace, clean),
    "a forking load, a writer and a cleaner": of(fork, replace, clean),
    "a forking load and two cleaners": of(fork, clean, clean),
    "a forking load, its deletion, a writer and a cleaner": of(fork, delete, replace, clean),
    "a name deleted, made again and written": of(
        delete, append_feature, branch, clean, existing=BOTH
    ),
    "a name deleted and made again beside two cleaners": of(
        delete, branch_old, clean, clean, existing=BOTH
    ),
    "a deletion, a writer and two cleaners": of(
        delete, append_feature, clean, clean, existing=BOTH
    ),
    "a rename, a deletion, a writer and a cleaner": of(
        rename, delete, append_feature, clean, existing=BOTH
    ),
    "a rename, a branch, a writer and a cleaner": of(
        rename, branch, append_feature, clean, existing=BOTH
    ),
    "a branch of a branch that is deleted": of(branch_old, branch_on, delete, clean),
    "a forking load on a branch that is deleted": of(branch_old, fork_on, delete, clean),
    "a branch of a deleted branch beside two cleaners": of(
        branch_old, branch_on, delete, clean, clean
    ),
    "a merge, a writer and a cleaner": of(merge, replace_feature, clean, existing=BOTH),
    "a merge, a deletion and a cleaner": of(merge, delete, clean, existing=BOTH),
    "a merge, a deletion and two cleaners": of(merge, delete, clean, clean, existing=BOTH),
    "a merge, a name made again and a cleaner": of(delete, merge, branch_old, clean, existing=BOTH),
    "a long merge, a writer and a cleaner": of(merge_long, replace_feature, clean, existing=BOTH),
    "a long merge, a deletion and a cleaner": of(merge_long, delete, clean, existing=BOTH),
    "an old commit put back beside two cleaners": of(put_back, replace, clean, clean),
    "merges there and back, and a deletion": of(
        merge_old_back, merge, delete, clean, existing=BOTH
    ),
    "merges there and back, and a writer": of(
        merge_old_back, merge, replace_feature, clean, existing=BOTH
    ),
    "a merge, a branch of its target and a deletion": of(
        merge_old_back, branch_on, delete, clean, existing=BOTH
    ),
    "merges that hand on beside two cleaners": of(
        merge_old_back, merge, replace_feature, clean, clean, existing=BOTH, prologue=HANDED_ON
    ),
    "merges that hand on beside a deletion and two cleaners": of(
        merge_old_back, merge, delete, clean, clean, existing=BOTH, prologue=HANDED_ON
    ),
    "a run on two branches": of(run, run_feature, existing=BOTH),
    "a run twice on a branch": of(run, run),
    "a run on two branches and a cleaner": of(run, run_feature, clean, existing=BOTH),
    "a run on a branch that is deleted": of(run, run_feature, delete, existing=BOTH),
    "a run, a writer and a cleaner": of(run, append, clean),
    "a run and two cleaners": of(run, clean, clean),
}

LARGER = {
    "writers and two cleaners": of(append, replace, clean, clean),
    "a branch, a writer and two cleaners": of(branch, replace, clean, clean),
    "a long writer, a writer and two cleaners": of(load, replace, clean, clean),
    "a merge, a writer and two cleaners": of(merge, replace_feature, clean, clean, existing=BOTH),
    "a long merge, a deletion and two cleaners": of(
        merge_long, delete, clean, clean, existing=BOTH
    ),
    "a run twice on a branch and a cleaner": of(run, run, clean),
    "a run on a branch that is deleted, and a cleaner": of(
        run, run_feature, delete, clean, existing=BOTH
    ),
}
"""Millions of states: explored by `make soak`."""

EXPLORED = SCENARIOS | LARGER if profile.CHOSEN.larger else SCENARIOS

MISTAKES = {
    Mistake.LIST_LAST: of(append, replace, clean),
    Mistake.NAMES_FIRST: of(branch_old, clean),
    Mistake.NAMES_UNFENCED: of(branch, clean),
    Mistake.LATE_BRANCHES_UNSEEN: of(fork, clean),
    Mistake.NAMES_READ_LATER: of(branch_old, branch_on, delete, clean),
    Mistake.INTENTS_AT_END: of(load, clean, clean),
    Mistake.PINS_AT_END: of(branch, replace, clean, clean),
    Mistake.ONE_FENCE: of(merge, replace_feature, clean, existing=BOTH),
    Mistake.ENDED_FORGOTTEN: of(merge_old_back, merge, delete, clean, existing=BOTH),
    Mistake.DROPS_IGNORED: of(
        merge_old_back, merge, replace_feature, clean, clean, existing=BOTH, prologue=HANDED_ON
    ),
    Mistake.INTENT_BEFORE_HEAD: of(load, clean),
    Mistake.INTENT_UNREAD: of(load, clean),
    Mistake.FILES_ACROSS_EPOCHS: of(append, clean),
    Mistake.REBASED_BY_NAME: of(delete, append_feature, branch, existing=BOTH),
    Mistake.FORK_UNCOMPARED: of(fork, clean),
    Mistake.NO_END_MARK: of(merge, delete, clean, existing=BOTH),
    Mistake.END_MARK_COLLECTED: of(delete, append_feature, clean, existing=BOTH),
    Mistake.END_UNPROVEN: of(delete, rename, append_feature, clean, existing=BOTH),
    Mistake.NAME_REMOVED_BLINDLY: of(delete, branch, clean, existing=BOTH),
    Mistake.ACKNOWLEDGED_UNPROVEN: of(append, replace, clean),
    Mistake.SOURCE_FIRST: of(merge, delete, clean, existing=BOTH),
    Mistake.SOURCE_READ_ONCE: of(merge, delete, clean, existing=BOTH),
    Mistake.RETENTION_UNREAD: of(branch_old, clean),
    Mistake.DATASET_REUSED: of(branch, clean),
    Mistake.NAME_FIRST: of(branch, clean),
    Mistake.CLAIM_UNMARKED: of(run, run_feature, existing=BOTH),
    Mistake.CLAIM_UNFENCED: of(run, run_feature, existing=BOTH),
    Mistake.CLAIM_ACROSS_EPOCHS: of(run, run_feature, clean, existing=BOTH),
    Mistake.CLAIMS_LISTED_FIRST: of(run, run_feature, existing=BOTH),
    Mistake.CLAIM_AFTER_LISTING: of(run, run_feature, existing=BOTH),
    Mistake.CLAIMS_LISTED_LAST: of(run, run_feature, clean, existing=BOTH),
}
"""Each is found although the run of cleanup looks at the branches once more before it deletes."""


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("scenario", EXPLORED.values(), ids=EXPLORED.keys())
def test_no_interleaving_breaks_a_promise(
    scenario: Scenario, record_property: Callable[[str, object], None]
) -> None:
    explored = scenario.explore()
    assert explored.loss is None, str(explored.loss)
    record_property("protocol states", explored.states)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.value)
def test_a_mistake_in_the_protocol_is_found(mistake: Mistake) -> None:
    loss = MISTAKES[mistake].explore([mistake], looks_last=True).loss
    assert loss is not None


def test_a_dataset_that_another_run_removed_between_the_fences_is_a_reason_to_delete_nothing() -> (
    None
):
    scenario = of(merge_old_back, merge, delete, clean, clean, existing=BOTH, prologue=HANDED_ON)
    assert scenario.explore([Mistake.VANISHED_IGNORED]).loss is not None


def test_a_second_fence_is_published_only_when_the_newest_state_shows_it() -> None:
    other_run_fenced = "4 4 4 4 4 4 4 4 4"
    merge_under_way = "3 3 3 0 0 0 0 1 1 1 1 3 3"
    scenario = of(
        merge,
        replace_feature,
        append,
        clean,
        clean,
        existing=BOTH,
        prologue=f"{other_run_fenced} {merge_under_way}",
    )
    assert scenario.explore([Mistake.FENCE_UNPROVEN]).loss is not None


def test_every_mistake_is_planted_somewhere() -> None:
    alone = {Mistake.VANISHED_IGNORED, Mistake.FENCE_UNPROVEN}
    assert {*MISTAKES} | alone == {*Mistake}


def test_a_long_merge_reads_its_source_again_under_a_new_epoch() -> None:
    scenario = of(merge_long, delete, clean, existing=BOTH)
    assert scenario.explore([Mistake.SOURCE_READ_ONCE], looks_last=True).loss is not None


def test_a_write_after_a_deletion_without_an_end_mark_is_found() -> None:
    loss = of(delete, append_feature, existing=BOTH).explore([Mistake.NO_END_MARK]).loss
    assert loss is not None
    assert loss.promise == "a commit has landed on a deleted branch"


def test_a_loss_is_told_by_its_shortest_trace() -> None:
    loss = of(branch, clean).explore([Mistake.NAME_FIRST]).loss
    assert str(loss).splitlines() == [
        "a name leads to a branch whose dataset is gone",
        "  1 Brancher 0: read names",
        "  2 Brancher 0: read source",
        "  3 Brancher 0: enter",
    ]
