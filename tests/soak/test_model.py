"""The model of the soak notices what must not happen, and allows what may."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from tests.soak.ledger import Entry, Ledger, Violation
from tests.soak.lineage import Lineage
from tests.soak.operations import Operation
from tests.soak.processes import DAY, ROOT
from tests.soak.rows import EMPTY, Effect, Impossible, State, append, delete, merged, nothing, put

Line = list[dict[str, Any]]


class Told:
    """A ledger and a lineage, and a clock that counts what was told."""

    def __init__(self) -> None:
        self.ledger = Ledger(linger=0.0)
        self.lineage = Lineage(self.ledger)
        self._now = 0.0

    def ask(
        self,
        do: str,
        branch: str | None = "main",
        effect: Effect = nothing,
        source: str | None = None,
        **arguments: Any,
    ) -> Entry:
        self._now += 1
        if source is not None:
            arguments["from"] = source
        id_ = f"op{len(self.ledger.entries)}"
        operation = Operation(id_, do, branch, arguments, effect, do)
        return self.ledger.ask(operation, "0", self._now)

    def answer(self, entry: Entry, **answer: Any) -> Entry:
        self._now += 1
        times = {"started": entry.started, "ended": self._now}
        return self.ledger.take({"id": entry.operation.id, **times, "message": "", **answer})

    def done(self, do: str, branch: str | None = "main", **more: Any) -> Entry:
        return self.answer(self.ask(do, branch, **more))

    def die(self, entry: Entry) -> None:
        self._now += 1
        self.ledger.die(entry, self._now)

    def written(self, commit_id: str, branch: str = "main", effect: Effect = nothing) -> Entry:
        return self.answer(self.ask("mutate", branch, effect), commit={"id": commit_id})


def line(*commits: tuple[str, str | None], **merges: str) -> Line:
    """Commits and who made them, the oldest first, as a branch lists them."""
    ids = [None, *(id_ for id_, _ in commits)]
    return [
        {
            "id": id_,
            "parent": parent,
            "merged": merges.get(id_),
            "actor": actor,
            "created_at": place,
        }
        for place, ((id_, actor), parent) in enumerate(zip(commits, ids, strict=False))
    ][::-1]


def state(people: Mapping[str, str], edges: Mapping[str, str] | None = None) -> State:
    return {**EMPTY, "Person": people, "Knows": edges or {}}


@pytest.fixture
def told() -> Told:
    return Told()


# -- answers -------------------------------------------------------------------------------


@pytest.mark.parametrize("error", ["crash", "StorageError", "EngineError", "VersionMismatch"])
def test_an_error_that_nobody_should_be_told(told: Told, error: str) -> None:
    with pytest.raises(Violation, match=error):
        told.answer(told.ask("mutate"), error=error, kind="not_found")


@pytest.mark.parametrize("error", ["Conflict", "ReadSetChanged", "PreconditionFailed"])
def test_a_refusal_that_is_expected(told: Told, error: str) -> None:
    assert told.answer(told.ask("mutate"), error=error, kind=None).outcome == "refused"


def test_a_gap_is_told_to_those_who_read_the_past_only(told: Told) -> None:
    told.answer(told.ask("read", back=3), error="ChangeFeedGap", kind=None)
    with pytest.raises(Violation):
        told.answer(told.ask("merge", source="b0"), error="ChangeFeedGap", kind=None)


def test_a_branch_that_stood_all_the_time_is_found(told: Told) -> None:
    told.done("create", "b0", source="main")
    with pytest.raises(Violation, match="b0"):
        told.answer(told.ask("mutate", "b0"), error="BranchNotFound", kind=None)


def test_a_branch_that_is_being_deleted_may_be_missing(told: Told) -> None:
    told.done("create", "b0", source="main")
    told.ask("delete", "b0")
    told.answer(told.ask("mutate", "b0"), error="BranchNotFound", kind=None)


def test_maintenance_may_make_several_commits_and_they_are_its_own(told: Told) -> None:
    round_ = told.ask("maintain", None)
    told.lineage.learn("main", line(("c0", None), ("c1", round_.operation.id)))
    told.answer(round_, commits=["c1", "c2"])
    told.lineage.learn(
        "main", line(("c0", None), ("c1", round_.operation.id), ("c2", round_.operation.id))
    )
    with pytest.raises(Violation, match="was its own"):
        told.lineage.learn("b0", line(("c0", None), ("c3", round_.operation.id)))


# -- names ---------------------------------------------------------------------------------


def test_a_created_branch_is_listed(told: Told) -> None:
    told.done("create", "b0", source="main")
    told.ledger.check_names({"main", "b0"}, {}, {"b0"})
    with pytest.raises(Violation, match="not there"):
        told.ledger.check_names({"main"}, {}, {"b0"})


def test_a_deleted_branch_is_not_listed(told: Told) -> None:
    told.done("create", "b0", source="main")
    told.done("delete", "b0")
    told.ledger.check_names({"main"}, {}, {"b0"})
    with pytest.raises(Violation, match="deleted or never created"):
        told.ledger.check_names({"main", "b0"}, {}, {"b0"})


def test_a_branch_whose_deleter_was_killed_may_be_there_half_or_not_at_all(told: Told) -> None:
    told.done("create", "b0", source="main")
    told.die(told.ask("delete", "b0"))
    told.ledger.check_names({"main"}, {}, {"b0"})
    told.ledger.check_names({"main", "b0"}, {}, {"b0"})
    told.ledger.check_names({"main", "b0"}, {"b0": "gone"}, {"b0"})


def test_a_branch_that_nobody_deletes_can_be_opened(told: Told) -> None:
    told.done("create", "b0", source="main")
    with pytest.raises(Violation, match="cannot be opened"):
        told.ledger.check_names({"main", "b0"}, {"b0": "gone"}, {"b0"})


def test_a_merge_that_could_not_delete_its_source_has_not(told: Told) -> None:
    told.done("create", "b0", source="main")
    merge = told.ask("merge", "main", source="b0", delete_source=True)
    told.answer(merge, deleted=False)
    told.ledger.check_names({"main", "b0"}, {}, {"b0"})


# -- commits -------------------------------------------------------------------------------


def test_an_acknowledged_commit_is_in_the_line_of_its_branch(told: Told) -> None:
    told.written("c1")
    told.ledger.check_acknowledged({"main": {"c1"}})
    with pytest.raises(Violation, match="c1"):
        told.ledger.check_acknowledged({"main": set()})


def test_a_commit_acknowledged_after_its_branch_was_deleted(told: Told) -> None:
    told.done("create", "b0", source="main")
    told.done("delete", "b0")
    told.written("c1", "b0")
    with pytest.raises(Violation, match="c1"):
        told.ledger.check_acknowledged({"main": set()})


def test_a_commit_may_go_with_its_branch(told: Told) -> None:
    told.done("create", "b0", source="main")
    write = told.ask("mutate", "b0")
    told.done("delete", "b0")
    told.answer(write, commit={"id": "c1"})
    told.ledger.check_acknowledged({"main": set()})


def test_a_line_without_gaps_of_commits_that_were_asked_for(told: Told) -> None:
    write = told.ask("mutate")
    assert told.lineage.learn("main", line(("g", None), ("c1", write.operation.id))) == ["c1", "g"]
    with pytest.raises(Violation, match="nobody asked"):
        told.lineage.learn("main", line(("g", None), ("c1", write.operation.id), ("c2", "who")))


def test_a_line_that_misses_a_commit(told: Told) -> None:
    listed = line(("g", None), ("c1", told.ask("mutate").operation.id))
    with pytest.raises(Violation, match="parent"):
        told.lineage.learn("main", listed[:1])


def test_a_write_that_was_refused_has_not_happened(told: Told) -> None:
    write = told.answer(told.ask("mutate"), error="Conflict", kind=None)
    with pytest.raises(Violation, match="Conflict"):
        told.lineage.learn("main", line(("g", None), ("c1", write.operation.id)))


def test_a_write_happens_once(told: Told) -> None:
    write = told.ask("mutate").operation.id
    with pytest.raises(Violation, match="twice"):
        told.lineage.learn("main", line(("g", None), ("c1", write), ("c2", write)))


# -- rows ----------------------------------------------------------------------------------


def test_the_rows_of_a_commit_are_what_its_line_made(told: Told) -> None:
    one = told.ask("mutate", effect=put("Person", {"ann": "1"})).operation.id
    two = told.ask("mutate", effect=put("Person", {"ann": "2", "ben": "2"})).operation.id
    told.lineage.learn("main", line(("g", None), ("c1", one), ("c2", two)))
    told.lineage.compare("c1", state({"ann": "1"}), "main~1")
    told.lineage.compare("c2", state({"ann": "2", "ben": "2"}), "main")
    with pytest.raises(Violation, match="ben"):
        told.lineage.compare("c2", state({"ann": "2"}), "main")


def test_the_rows_of_both_sides_of_a_merge(told: Told) -> None:
    one = told.ask("mutate", "b0", put("Person", {"ann": "1"})).operation.id
    two = told.ask("mutate", effect=put("Person", {"ben": "2"})).operation.id
    merge = told.ask("merge", source="b0").operation.id
    told.lineage.learn("b0", line(("g", None), ("c1", one)))
    told.lineage.learn("main", line(("g", None), ("c2", two), ("c3", merge), c3="c1"))
    told.lineage.compare("c3", state({"ann": "1", "ben": "2"}), "main")
    with pytest.raises(Violation, match="ann"):
        told.lineage.compare("c3", state({"ben": "2"}), "main")


def test_rows_of_a_merge_whose_source_nobody_saw_are_taken_as_they_are(told: Told) -> None:
    merge = told.ask("merge", source="b0").operation.id
    write = told.ask("mutate", effect=put("Person", {"ben": "2"})).operation.id
    told.lineage.learn("main", line(("g", None), ("c1", merge), ("c2", write), c1="unseen"))
    told.lineage.compare("c1", state({"ann": "1"}), "main~1")
    with pytest.raises(Violation, match="ann"):
        told.lineage.compare("c2", state({"ben": "2"}), "main")


def test_an_append_of_what_is_there_cannot_have_happened() -> None:
    with pytest.raises(Impossible):
        append({"Person": {"ann": "2"}})(state({"ann": "1"}))


def test_edges_go_with_their_nodes() -> None:
    before = state({"ann": "1", "ben": "1"}, {"ann>ben#1": "1"})
    assert delete(lambda name: name == "ben")(before) == state({"ann": "1"})


def test_sides_that_disagree_are_not_merged() -> None:
    with pytest.raises(Impossible, match="ann"):
        merged(state({"ann": "1"}), state({"ann": "2"}), state({"ann": "3"}))


def test_an_edge_whose_end_the_other_side_deleted_is_not_merged() -> None:
    base = state({"ann": "1", "ben": "1"})
    source = state({"ann": "1", "ben": "1"}, {"ann>ben#2": "2"})
    with pytest.raises(Impossible, match="ann>ben"):
        merged(base, source, state({"ann": "1"}))


# -- cleanup -------------------------------------------------------------------------------


def test_a_commit_that_every_cleanup_kept_can_be_read(told: Told) -> None:
    write = told.ask("mutate")
    told.lineage.learn("main", line(("g", None), ("c1", write.operation.id)))
    told.done("cleanup", None, keep=2)
    told.lineage.check_gap("c1", 2, "main", "reclaimed")
    with pytest.raises(Violation, match="main~1"):
        told.lineage.check_gap("c1", 1, "main", "reclaimed")


def test_without_a_cleanup_everything_can_be_read(told: Told) -> None:
    told.lineage.learn("main", line(("g", None)))
    with pytest.raises(Violation, match="main~90"):
        told.lineage.check_gap("g", 90, "main", "reclaimed")


# -- clocks --------------------------------------------------------------------------------


def test_a_wrong_clock_is_wrong_everywhere() -> None:
    # The true time comes from the parent: the child has no clock that is right.
    code = (
        "import sys\n"
        "from tests.soak.clock import shift_clock\n"
        "shift_clock(float(sys.argv[1]))\n"
        "import time, datetime\n"
        "print(time.time(), time.time_ns() / 1e9, datetime.datetime.now().timestamp(),\n"
        "      datetime.datetime.now(datetime.UTC).timestamp())"
    )
    shown = [
        subprocess.run(
            [sys.executable, "-c", code, str(skew)], cwd=ROOT, capture_output=True, check=True
        ).stdout.split()
        for skew in (0, DAY)
    ]
    for true, wrong in zip(*shown, strict=True):
        assert DAY <= float(wrong) - float(true) < DAY + 600
