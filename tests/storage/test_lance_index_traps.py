"""What Lance really does with indexes, searches and branches, where it surprises.

A new version of pylance that changes one of these turns its test red: then look
for the code that stands on it, before changing the test.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import lance
import pytest
from lance import LanceDataset, LanceOperation
from lance.dataset import Transaction
from lance.query import MatchQuery

from tests.storage.trap_table import (
    detached,
    fragment_ids,
    rows,
    search,
    staged_append,
    staged_update,
)

# --- indexes -------------------------------------------------------------------------------------


def text_segment(dataset: LanceDataset, fragments: list[int]) -> Any:
    return dataset.create_index_uncommitted(
        "text", "INVERTED", name="text_idx", replace=True, fragment_ids=fragments
    )


def with_text_index(dataset: LanceDataset) -> LanceDataset:
    segment = text_segment(dataset, fragment_ids(dataset))
    segment = dataset.merge_existing_index_segments([segment])
    operation = LanceOperation.CreateIndex([dataclasses.replace(segment, name="text_idx")], [])
    return detached(dataset, Transaction(dataset.version, operation))


@pytest.mark.parametrize(
    ("fields", "old", "new"), [([], ["k5"], []), ([0, 1, 2], [], ["k5"])], ids=["none", "all"]
)
def test_an_update_that_preserves_no_fields_gives_stale_answers(
    uri: str, fields: list[int], old: list[str], new: list[str]
) -> None:
    dataset = with_text_index(lance.dataset(uri))
    after = detached(dataset, staged_update(dataset, fields))
    assert search(after, "word5") == old
    assert search(after, "word1005") == new


def test_a_text_index_as_it_comes_breaks_every_search(uri: str) -> None:
    dataset = lance.dataset(uri)
    segment = text_segment(dataset, [0])
    operation = LanceOperation.CreateIndex([dataclasses.replace(segment, name="text_idx")], [])
    after = detached(dataset, Transaction(dataset.version, operation))
    with pytest.raises((OSError, ValueError, RuntimeError)):
        search(after, "word5")


def test_a_text_index_with_a_second_segment_gives_stale_answers(uri: str) -> None:
    dataset = with_text_index(lance.dataset(uri))
    updated = detached(dataset, staged_update(dataset, [0, 1, 2]))
    assert search(updated, "word5") == []
    segment = text_segment(updated, [fragment_ids(updated)[-1]])
    segment = updated.merge_existing_index_segments([segment])
    operation = LanceOperation.CreateIndex([dataclasses.replace(segment, name="text_idx")], [])
    extended = detached(updated, Transaction(updated.version, operation))
    assert search(extended, "word5") == ["k5"]
    assert len(search(extended, "common")) == 11


def test_prefilter_is_off_by_default(uri: str) -> None:
    dataset = with_text_index(lance.dataset(uri))
    query: dict[str, Any] = {
        "columns": ["id"],
        "full_text_query": MatchQuery("common", "text"),
        "filter": "n = 9",
        "limit": 3,
        "disable_scoring_autoprojection": True,
    }
    assert dataset.to_table(**query).num_rows == 0
    assert dataset.to_table(**query, prefilter=True)["id"].to_pylist() == ["k9"]


def test_a_compaction_of_an_indexed_table_cannot_be_read_back(uri: str) -> None:
    lance.write_dataset(rows(20), uri, mode="append")
    dataset = lance.dataset(uri)
    dataset.create_scalar_index("n", "BTREE")
    before = dataset.version
    dataset.optimize.compact_files()
    dataset = lance.dataset(uri)
    assert dataset.version == before + 2
    with pytest.raises(TypeError):
        dataset.get_transactions(2)


@pytest.mark.parametrize(("fuzziness", "found"), [(0, 0), (1, 10), (2, 10), (None, 0)])
def test_fuzzy_search_needs_an_index_and_a_number(uri: str, fuzziness: Any, found: int) -> None:
    dataset = lance.dataset(uri)
    query = MatchQuery("comon", "text", fuzziness=fuzziness)
    assert dataset.to_table(full_text_query=query).num_rows == 0
    dataset.create_scalar_index("text", "INVERTED")
    assert lance.dataset(uri).to_table(full_text_query=query).num_rows == found


# --- branches ------------------------------------------------------------------------------------


def test_a_stale_handle_writes_into_a_recreated_branch(uri: str) -> None:
    dataset = lance.dataset(uri)
    stale = dataset.create_branch("b")
    identity = dataset.branches.list()["b"]["branch_identifier"]
    transaction = staged_append(stale, 20)
    dataset.branches.delete("b")
    fresh = dataset.create_branch("b")
    fresh = LanceDataset.commit(fresh, staged_append(fresh, 21))
    # Nothing refuses it; only the identifier tells that it is another branch.
    LanceDataset.commit(stale, transaction, max_retries=0)
    assert dataset.branches.list()["b"]["branch_identifier"] != identity
    assert lance.dataset(f"{uri}/tree/b").version > fresh.version


def test_deleting_a_branch_below_which_another_lies_leaves_its_directory(uri: str) -> None:
    dataset = lance.dataset(uri)
    dataset.create_branch("a")
    dataset.create_branch("a/b")
    dataset.branches.delete("a")
    assert list(dataset.branches.list()) == ["a/b"]
    assert Path(uri, "tree", "a").is_dir()


def test_a_branch_with_a_child_cannot_be_deleted(uri: str) -> None:
    dataset = lance.dataset(uri)
    child = dataset.create_branch("parent")
    child.create_branch("child")
    with pytest.raises((OSError, ValueError, RuntimeError)):
        dataset.branches.delete("parent")


def test_a_branch_directory_without_its_ref_blocks_the_name(uri: str) -> None:
    dataset = lance.dataset(uri)
    dataset.create_branch("b")
    Path(uri, "_refs", "branches", "b.json").unlink()
    assert dataset.branches.list() == {}
    with pytest.raises(OSError, match="internal error"):
        dataset.create_branch("b")
    LanceDataset.drop(f"{uri}/tree/b", storage_options={})
    assert dataset.create_branch("b").version == 1
