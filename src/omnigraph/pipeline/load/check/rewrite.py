"""Resolving: fragments that hold rows that were left out, written again without them.

Owns what a task does about one fragment. The others are taken as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.pipeline.load.check.key_columns import Rows
from omnigraph.pipeline.load.stage.staged_types import StagedType
from omnigraph.storage.tables.fragments import FragmentPart, stream_parts
from omnigraph.storage.tables.table import Table
from omnigraph.storage.tables.write_rows import WrittenRows, write_rows
from omnigraph.write.publish.read_set import has_blobs


@dataclass(frozen=True, slots=True)
class RewriteJob:
    """One fragment, and the rows to leave out of it."""

    table: Table
    part: FragmentPart
    left_out: Rows


def rewrite(job: RewriteJob) -> WrittenRows:
    """The fragment without those rows; nothing is written when none are left."""
    names = tuple(job.table.schema.names)
    blobs = has_blobs(job.table.schema)
    batches = list(stream_parts(job.table, names, (job.part,), with_blobs=blobs))
    kept = np.ones(job.part.rows, dtype=bool)
    kept[job.left_out] = False
    rows = pa.Table.from_batches(batches).filter(pa.array(kept))
    return write_rows(job.table, None, rows)


def rewrites(staged: StagedType, left_out: Mapping[int, Rows]) -> list[RewriteJob]:
    """The fragments of a type that hold rows that were left out."""
    return [
        RewriteJob(staged.table, part, left_out[part.number])
        for part in staged.parts
        if part.number in left_out
    ]


def resolved(staged: StagedType, rewritten: Mapping[int, WrittenRows]) -> tuple[WrittenRows, ...]:
    """The files of a type in order, with those that were written again in place of the old."""
    return tuple(
        rewritten.get(part.number, rows.written)
        for part, rows in zip(staged.parts, staged.rows, strict=True)
    )
