"""Degrees: the sources that would have too many or too few edges.

Owns adding up what is staged and what is stored, source by source.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.pipeline.load.check.key_index import KeyIndex, open_part
from omnigraph.pipeline.load.check.violations import SCHEMA
from omnigraph.write.rules.references import cardinality_text


@dataclass(frozen=True, slots=True)
class CardinalityErrors:
    """Sources with a wrong number of edges, and what is said of each.

    ``sources`` have staged edges; ``strays`` have none, in the shape of verdicts.
    """

    sources: pa.Table
    strays: pa.Table


def miscounted(
    edge: EdgeType,
    sources: KeyIndex,
    stored: Sequence[str],
    nodes: Sequence[KeyIndex] | None,
    staged: Collection[int],
) -> CardinalityErrors | None:
    """The sources whose edges, staged and stored together, break the bounds of a type.

    ``nodes`` are asked which sources will be there at all, where not all will. The fragments
    ``staged`` tell which sources the input names.
    """
    wrong = []
    listed = [sources.area.read_table(name) for name in stored]
    more = (
        pa.concat_tables(listed).group_by("text").aggregate([("count_all", "sum")])
        if listed
        else None
    )
    for part in sources.parts:
        keys = open_part(sources.area, part).keys
        counts = keys.column("count").to_numpy().copy()
        if more is not None:
            at = open_part(sources.area, part).index.find(more.column("text").combine_chunks())
            hit = at >= 0
            np.add.at(counts, at[hit], more.column("count_all_sum").to_numpy()[hit])
        bad = counts < edge.min_out
        if edge.max_out is not None:
            bad |= counts > edge.max_out
        found = keys.filter(pa.array(bad)).append_column("edges", pa.array(counts[bad]))
        if nodes is not None and found.num_rows:
            texts = found.column("text").combine_chunks()
            there = np.zeros(len(texts), dtype=bool)
            for directory in nodes:
                there |= directory.has(texts)
            found = found.filter(pa.array(there))
        wrong.append(found)
    every = pa.concat_tables(wrong)
    if not every.num_rows:
        return None
    texts = every.column("text").to_pylist()
    said = map(cardinality_text, [edge] * len(texts), texts, every.column("edges").to_pylist())
    every = every.append_column("message", pa.array(said, pa.string()))
    is_named = pc.is_in(every.column("fragment"), pa.array(sorted(staged), pa.int32()))
    strays = every.filter(pc.invert(is_named))
    return CardinalityErrors(
        every.filter(is_named),
        pa.table(
            {
                "address": pa.array(np.zeros(strays.num_rows, dtype=np.uint64)),
                "message": strays.column("message"),
                "entity": strays.column("text"),
            }
        ).cast(SCHEMA),
    )
