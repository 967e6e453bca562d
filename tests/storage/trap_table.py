"""A table to be trapped with, and transactions that are staged but not committed."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.dataset import Transaction
from lance.fragment import RowIdSequence, write_fragments
from lance.query import MatchQuery

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
