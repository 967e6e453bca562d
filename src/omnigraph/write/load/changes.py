"""Loads: from decoded batches to one change set, by mode.

Owns what append, merge and overwrite mean; a patch is the merge of the rows that it makes.
Never decodes and never publishes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.structural import ID
from omnigraph.write.change.change_set import (
    ChangeSet,
    TypeBatch,
    TypeChange,
    last_of_each_id,
    located_columns,
    no_located,
    type_key,
)
from omnigraph.write.load.rejects import ChosenPlaces
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.read_set import ReadSet

LoadMode = Literal["append", "merge", "patch", "overwrite"]
MODES: tuple[LoadMode, ...] = get_args(LoadMode)


def load_changes(
    batches: Sequence[TypeBatch], mode: LoadMode, base: Base, reads: ReadSet
) -> ChangeSet:
    """What a load of these batches does."""
    types = {type_key(batch.type): _change(batch, mode, base, reads) for batch in batches}
    return ChangeSet(types, repeatable=mode != "overwrite")


def _change(batch: TypeBatch, mode: LoadMode, base: Base, reads: ReadSet) -> TypeChange:
    key = type_key(batch.type)
    kept = last_of_each_id(batch.rows)
    rows, places = batch.rows, batch.places
    if kept is not None:
        rows, places = rows.take(pa.array(kept)), ChosenPlaces(places, kept, by_batch=True)
    existing = no_located(batch.type)
    if mode == "overwrite":
        reads.depend_on(key)
    else:
        found = reads.hold(base, key, ID, _known_ids(batch), *located_columns(batch.type))
        existing = found.select(existing.column_names).cast(existing.schema)
    return TypeChange(
        batch.type,
        rows,
        existing,
        no_located(batch.type),
        (batch,),
        places,
        replaces_all=mode == "overwrite",
        refuses_existing=mode == "append",
        refuses_repeats=mode != "merge",
    )


def _known_ids(batch: TypeBatch) -> pa.Array:
    """The ids that a stored row may have; those made up here cannot be stored."""
    ids = batch.rows.column(ID).combine_chunks()
    return ids.slice(0, 0) if batch.fresh is None else ids.filter(pc.invert(batch.fresh))
