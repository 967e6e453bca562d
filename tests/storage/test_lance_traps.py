"""What Lance really does, where it surprises: each test is a reason for code in storage.

A new version of pylance that changes one of these turns its test red: then look
for the code that stands on it, before changing the test.
"""

from __future__ import annotations

import dataclasses
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation
from lance.commit import CommitConflictError
from lance.dataset import Transaction
from lance.fragment import RowIdSequence, write_fragments
from lance.lance import _Session
from lance.query import MatchQuery
from lance.schema import LanceSchema

PRIMARY_KEY = {b"lance-schema:unenforced-primary-key": b"true"}
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False, metadata=PRIMARY_KEY),
        pa.field("n", pa.int64()),
        pa.field("text", pa.string()),
    ]
)


def rows(*numbers: int, shift: int = 0) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{number}" for number in numbers],
            "n": [number + shift for number in numbers],
            "text": [f"word{number + shift} common" for number in numbers],
        },
        schema=SCHEMA,
    )


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """A table of ten rows at version 1."""
    path = str(tmp_path / "table")
    lance.write_dataset(
        rows(*range(10)),
        path,
        mode="create",
        enable_stable_row_ids=True,
        data_storage_version="2.2",
    )
    return path


def staged_append(dataset: LanceDataset, *numbers: int) -> Transaction:
    return Transaction(
        dataset.version,
        LanceOperation.Append(write_fragments(rows(*numbers), dataset, mode="append")),
    )


def staged_merge(dataset: LanceDataset, data: pa.Table) -> Transaction:
    merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    return merge.execute_uncommitted(data)[0]


def staged_delete(dataset: LanceDataset, offset: int, fragment: int = 0) -> Transaction:
    found = dataset.get_fragment(fragment)
    assert found is not None
    left = found.delete_rows([offset])
    assert left is not None
    return Transaction(dataset.version, LanceOperation.Delete([left], [], "by address"))


def staged_update(dataset: LanceDataset, fields: list[int]) -> Transaction:
    """`k5` gets other values, by hand, the way staging.update_rows does it."""
    [written] = write_fragments(rows(5, shift=1000), dataset, mode="append")
    written = dataclasses.replace(written, row_id_meta=RowIdSequence([5]).to_inline_metadata())
    operation = staged_delete(dataset, 5).operation
    assert isinstance(operation, LanceOperation.Delete)
    return Transaction(
        dataset.version,
        LanceOperation.Update(
            removed_fragment_ids=[],
            updated_fragments=list(operation.updated_fragments),
            new_fragments=[written],
            update_mode="rewrite_rows",
            fields_for_preserving_frag_bitmap=fields,
        ),
    )


def detached(dataset: LanceDataset, transaction: Transaction) -> LanceDataset:
    return LanceDataset.commit(dataset, transaction, detached=True)


def search(dataset: LanceDataset, text: str) -> list[str]:
    found = dataset.to_table(
        columns=["id"],
        full_text_query=MatchQuery(text, "text"),
        disable_scoring_autoprojection=True,
    )
    return sorted(found["id"].to_pylist())


def fragment_ids(dataset: LanceDataset) -> list[int]:
    return [fragment.fragment_id for fragment in dataset.get_fragments()]


# --- conflicts -----------------------------------------------------------------------------------


def test_a_staged_merge_insert_loses_the_primary_key_filter(uri: str) -> None:
    first, second = lance.dataset(uri), lance.dataset(uri)
    transactions = [staged_merge(first, rows(77)), staged_merge(second, rows(77))]
    LanceDataset.commit(first, transactions[0], max_retries=0)
    after = LanceDataset.commit(second, transactions[1], max_retries=0)
    assert after.count_rows("id = 'k77'") == 2


def test_an_inline_merge_insert_has_the_primary_key_filter(uri: str) -> None:
    first, second = lance.dataset(uri), lance.dataset(uri)
    for dataset in (first, second):
        merge = dataset.merge_insert("id").when_not_matched_insert_all().conflict_retries(0)
        if dataset is first:
            merge.execute(rows(77))
        else:
            with pytest.raises(OSError, match="concurrent writers"):
                merge.execute(rows(77))


def test_an_append_is_rebased_even_without_retries(uri: str) -> None:
    stale = lance.dataset(uri)
    transaction = staged_append(stale, 20)
    LanceDataset.commit(lance.dataset(uri), staged_append(stale, 21), max_retries=0)
    after = LanceDataset.commit(stale, transaction, max_retries=0)
    assert after.version == 3
    assert after.count_rows() == 12


@pytest.mark.parametrize("other", ["update", "delete"])
def test_changes_of_one_fragment_conflict_even_on_other_rows(uri: str, other: str) -> None:
    stale = lance.dataset(uri)
    mine = staged_delete(stale, 1)
    theirs = staged_delete(stale, 2) if other == "delete" else staged_merge(stale, rows(2))
    LanceDataset.commit(stale, theirs, max_retries=0)
    with pytest.raises(CommitConflictError) as conflict:
        LanceDataset.commit(stale, mine, max_retries=0)
    assert conflict.value.retryable


def test_replacing_one_fragment_is_a_compare_and_swap(uri: str) -> None:
    stale = lance.dataset(uri)

    def replace(number: int) -> Transaction:
        return Transaction(
            stale.version,
            LanceOperation.Update(
                removed_fragment_ids=[0],
                new_fragments=write_fragments(rows(number), stale, mode="append"),
                update_mode="rewrite_rows",
                fields_for_preserving_frag_bitmap=[0, 1, 2],
            ),
        )

    mine = replace(20)
    LanceDataset.commit(stale, replace(21), max_retries=0)
    with pytest.raises(CommitConflictError) as conflict:
        LanceDataset.commit(stale, mine, max_retries=0)
    assert conflict.value.retryable
    assert lance.dataset(uri).to_table(columns=["id"])["id"].to_pylist() == ["k21"]


def test_a_restore_commits_blindly(uri: str) -> None:
    stale = lance.dataset(uri)
    LanceDataset.commit(lance.dataset(uri), staged_append(stale, 20))
    transaction = Transaction(stale.version, LanceOperation.Restore(1))
    after = LanceDataset.commit(stale, transaction, max_retries=0)
    assert after.version == 3
    assert after.count_rows() == 10


def test_an_overwrite_is_strict(uri: str) -> None:
    stale = lance.dataset(uri)
    mine = Transaction(
        stale.version,
        LanceOperation.Overwrite(SCHEMA, write_fragments(rows(1), stale, mode="append")),
    )
    LanceDataset.commit(lance.dataset(uri), staged_append(stale, 20))
    with pytest.raises(OSError, match=r"(?i)conflict|concurrent"):
        LanceDataset.commit(stale, mine, max_retries=0)


def test_a_second_creator_overwrites_unless_without_retries(tmp_path: Path) -> None:
    path = str(tmp_path / "raced")

    def create() -> Transaction:
        return write_fragments(
            rows(1), path, mode="create", return_transaction=True, enable_stable_row_ids=True
        )

    transactions = [create(), create(), create()]
    LanceDataset.commit(path, transactions[0], enable_stable_row_ids=True)
    with pytest.raises((OSError, ValueError)):
        LanceDataset.commit(path, transactions[1], enable_stable_row_ids=True, max_retries=0)
    assert lance.dataset(path).version == 1
    after = LanceDataset.commit(path, transactions[2], enable_stable_row_ids=True)
    assert after.version == 2
    assert after.count_rows() == 1


# --- writing -------------------------------------------------------------------------------------


def test_committing_a_transaction_twice_appends_twice(uri: str) -> None:
    dataset = lance.dataset(uri)
    transaction = staged_append(dataset, 20)
    transaction.uuid = str(uuid.uuid4())
    LanceDataset.commit(dataset, transaction)
    assert LanceDataset.commit(dataset, transaction).count_rows("id = 'k20'") == 2


def test_duplicate_new_keys_are_both_inserted(uri: str) -> None:
    dataset = lance.dataset(uri)
    after = LanceDataset.commit(dataset, staged_merge(dataset, rows(20, 20)))
    assert after.count_rows("id = 'k20'") == 2


def test_writes_without_effect_still_make_versions(uri: str) -> None:
    dataset = lance.dataset(uri)
    dataset.delete("n = 12345")
    assert dataset.version == 2
    dataset.update({"n": "1"}, where="n = 12345")
    assert dataset.version == 3
    after = lance.write_dataset(rows(), uri, mode="append")
    assert after.version == 4


def test_the_primary_key_column_can_be_dropped(uri: str) -> None:
    dataset = lance.dataset(uri)
    dataset.drop_columns(["id"])
    assert dataset.lance_schema.unenforced_primary_key() == []


def test_from_pyarrow_renumbers_fields_and_reads_go_wrong(uri: str) -> None:
    dataset = lance.dataset(uri)
    dataset.drop_columns(["n"])
    assert [field.id() for field in dataset.lance_schema.fields()] == [0, 2]
    renumbered = LanceSchema.from_pyarrow(dataset.schema)
    assert [field.id() for field in renumbered.fields()] == [0, 1]
    after = detached(dataset, Transaction(dataset.version, LanceOperation.Project(renumbered)))
    try:
        wrong = after.to_table()["text"].to_pylist() != dataset.to_table()["text"].to_pylist()
    except (OSError, ValueError, RuntimeError):
        wrong = True
    assert wrong


def test_a_schema_pickles_as_one_message_per_field() -> None:
    schema = pa.schema([pa.field("n", pa.int64()), pa.field("l", pa.list_(pa.string()))])
    reduced: Any = LanceSchema.from_pyarrow(schema).__reduce__()
    build, (metadata, *messages) = reduced
    assert metadata == "{}"
    # name = 2, id = 3, parent id = 4 (-1 at the top level), as field_ids.py reads them.
    assert messages[0].startswith(b"\x12\x01n\x20" + b"\xff" * 9 + b"\x01")
    assert messages[2].startswith(b"\x12\x04item\x18\x02\x20\x01")
    assert build(metadata, *messages) == LanceSchema.from_pyarrow(schema)


# --- detached versions ---------------------------------------------------------------------------


def test_a_detached_commit_needs_retries(uri: str) -> None:
    dataset = lance.dataset(uri)
    with pytest.raises(CommitConflictError, match="random"):
        LanceDataset.commit(dataset, staged_append(dataset, 20), detached=True, max_retries=0)


def test_detached_ids_have_the_highest_bit_and_their_own_file_name(uri: str) -> None:
    dataset = lance.dataset(uri)
    made = detached(dataset, staged_append(dataset, 20))
    assert made.version >= 2**63
    assert Path(uri, "_versions", f"d{made.version}.manifest").is_file()
    assert lance.dataset(uri).version == 1


def test_row_stamps_are_the_version_id_built_from_plus_one(uri: str) -> None:
    dataset = lance.dataset(uri)
    first = detached(dataset, staged_append(dataset, 20))
    second = detached(first, staged_append(first, 21))
    stamps = second.to_table(
        columns=["id", "_row_created_at_version", "_row_last_updated_at_version"],
        filter="n >= 20",
    ).to_pylist()
    assert stamps == [
        {"id": "k20", "_row_created_at_version": 2, "_row_last_updated_at_version": 2},
        {
            "id": "k21",
            "_row_created_at_version": first.version + 1,
            "_row_last_updated_at_version": first.version + 1,
        },
    ]
    third = detached(second, staged_merge(second, rows(20, shift=5)))
    [row] = third.to_table(
        columns=["_row_created_at_version", "_row_last_updated_at_version"], filter="id = 'k20'"
    ).to_pylist()
    assert row == {
        "_row_created_at_version": 2,
        "_row_last_updated_at_version": second.version + 1,
    }


def test_cleanup_deletes_what_only_detached_versions_refer_to(uri: str) -> None:
    dataset = lance.dataset(uri)
    made = detached(dataset, staged_append(dataset, 20))
    dataset.cleanup_old_versions(timedelta(0), delete_unverified=True)
    fresh = lance.dataset(uri)
    assert fresh.count_rows() == 10
    with pytest.raises((OSError, ValueError)):
        lance.dataset(uri, version=made.version, session=_Session()).to_table()


def test_tracked_files_knows_no_detached_version(uri: str) -> None:
    dataset = lance.dataset(uri)
    made = detached(dataset, staged_append(dataset, 20))
    tracked = made.tracked_files().read_all()["path"].to_pylist()
    assert f"_versions/d{made.version}.manifest" not in tracked


def test_tracked_files_knows_no_blob_files(tmp_path: Path) -> None:
    path = str(tmp_path / "blobs")
    data = pa.table(
        [lance.blob_array([b"x" * 5_000_000])], schema=pa.schema([lance.blob_field("blob")])
    )
    dataset = lance.write_dataset(data, path, data_storage_version="2.2")
    tracked = dataset.tracked_files().read_all()["path"].to_pylist()
    present = dataset.all_files().read_all()["path"].to_pylist()
    assert [name for name in present if name.endswith(".blob")]
    assert not [name for name in tracked if name.endswith(".blob")]


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


# --- places --------------------------------------------------------------------------------------


def test_a_dataset_in_memory_cannot_be_opened_again() -> None:
    lance.write_dataset(rows(1), "memory://trap")
    with pytest.raises((OSError, ValueError)):
        lance.dataset("memory://trap")


def test_the_version_hint_is_written_on_local_disks(uri: str) -> None:
    assert Path(uri, "_versions", "latest_version_hint.json").is_file()
