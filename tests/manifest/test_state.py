"""Folding rows into a state: which rows win, and which make no state at all."""

from __future__ import annotations

import pytest

from omnigraph.errors import NotFound, StorageError
from omnigraph.manifest.entries import (
    Commit,
    Head,
    Registration,
    SchemaContract,
    TableIdentity,
    TableVersion,
    Tombstone,
)
from omnigraph.manifest.rows import Entry
from omnigraph.manifest.snapshot import snapshot_of
from omnigraph.manifest.state import ManifestState, fold
from tests.manifest.graphs import KNOWS, PERSON, ROOT, genesis, pin


def folded(*more: Entry) -> ManifestState:
    return fold([*genesis(), *more])


def test_highest_version_wins_in_any_order() -> None:
    versions = [
        TableVersion(PERSON, number, pin(number)) for number in (5, 11, 2, 4, 3, 10, 6, 9, 7, 8)
    ]
    state = folded(*versions)
    assert state.versions[PERSON] == TableVersion(PERSON, 11, pin(11))
    assert state.current_version(PERSON) == 11
    superseded = [entry for entry in state.recent if isinstance(entry, TableVersion)]
    assert [entry.version for entry in superseded] == list(range(1, 11))


def test_folding_what_a_state_writes_gives_the_state() -> None:
    state = folded(TableVersion(PERSON, 2, pin(2)), Tombstone(KNOWS, 2))
    assert fold(state.entries()) == state


@pytest.mark.parametrize(("tombstone", "gone"), [(2, False), (3, True), (4, True)])
def test_tombstone_at_or_above_the_version_ends_the_table(tombstone: int, gone: bool) -> None:
    state = folded(TableVersion(PERSON, 3, pin(3)), Tombstone(PERSON, tombstone))
    assert state.current_version(PERSON) == (0 if gone else 3)
    assert ("node:Person" in snapshot_of(state, ROOT).tables) is not gone


def test_highest_tombstone_counts_in_any_order() -> None:
    state = folded(TableVersion(PERSON, 3, pin(3)), Tombstone(PERSON, 4), Tombstone(PERSON, 2))
    assert state.current_version(PERSON) == 0


def test_absent_table_is_at_version_zero() -> None:
    assert folded().current_version(TableIdentity(9, 9)) == 0


def test_name_of_a_dropped_table_is_free() -> None:
    again = TableIdentity(1, 2)
    state = folded(
        Tombstone(PERSON, 2),
        Registration(again, "node:Person", "nodes/again"),
        TableVersion(again, 1, pin(1)),
    )
    assert snapshot_of(state, ROOT).table("node", "Person").identity == again


def test_head_commit_is_the_newest() -> None:
    entries = [entry for entry in genesis() if not isinstance(entry, Head)]
    state = fold(
        [
            *entries,
            Commit("Z", None, 2, "GENESIS", None, None, 50),
            Commit("A", None, 3, "Z", None, None, 40),
            Head("main", "A", "Z", version=3),
        ]
    )
    assert (state.head_commit_id, state.version) == ("A", 3)
    assert [commit.id for commit in state.commits] == ["GENESIS", "Z", "A"]


def test_commits_of_a_branch_are_its_first_parents() -> None:
    entries = [entry for entry in genesis() if not isinstance(entry, Head)]
    state = fold(
        [
            Head("main", "MERGE", "GENESIS", version=3),
            Commit("MERGE", None, 3, "GENESIS", "THEIRS", None, 50),
            Commit("THEIRS", "dev", 2, "GENESIS", None, None, 40),
            *entries,
        ]
    )
    assert [commit.id for commit in state.commits] == ["GENESIS", "MERGE"]
    assert set(state.known_commits) == {"GENESIS", "THEIRS", "MERGE"}


OTHER = TableIdentity(7, 1)


@pytest.mark.parametrize(
    ("entries", "complaint"),
    [
        ([e for e in genesis() if not isinstance(e, SchemaContract)], "names no schema"),
        (
            [e for e in genesis() if not isinstance(e, Commit)],
            "does not hold its newest commit GENESIS",
        ),
        ([e for e in genesis() if not isinstance(e, Head)], "it has no head"),
        ([*genesis(), Head("dev", "GENESIS", None, "ID")], "it has two heads"),
        ([*genesis(), Registration(OTHER, "node:X", "x")], "node:X has no version"),
        ([*genesis(), TableVersion(OTHER, 1, pin(1))], f"{OTHER} has a version but no name"),
        (
            [
                *genesis(),
                Registration(OTHER, "node:Person", "x"),
                TableVersion(OTHER, 1, pin(1)),
            ],
            "two tables are called node:Person",
        ),
        ([*genesis(), TableVersion(PERSON, 1, pin(7))], "is two versions"),
    ],
)
def test_corruption_is_refused(entries: list[Entry], complaint: str) -> None:
    with pytest.raises(StorageError, match="manifest is inconsistent") as caught:
        fold(entries)
    assert complaint in caught.value.message
    assert caught.value.kind == "permanent"


def test_snapshot_names_what_it_lacks() -> None:
    with pytest.raises(NotFound, match="no node type Dog"):
        snapshot_of(folded(), ROOT).table("node", "Dog")
