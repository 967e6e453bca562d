"""Degrees: the sources that would have too many or too few edges.

Owns adding up what is staged and what is stored, source by source.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import repeat

import numpy as np
import pyarrow as pa

from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.pipeline.load.check.key_index import KeyIndex, open_part
from omnigraph.storage.tables.row_address import fragments_of
from omnigraph.write.rules.edges import cardinality_text, miscounted, missing_ends
from omnigraph.write.rules.key_finder import HeldKeys


def wrong_degrees(
    edge: EdgeType,
    sources: KeyIndex,
    stored: Sequence[str],
    nodes: Sequence[KeyIndex] | None,
    staged: Collection[int],
) -> pa.Table:
    """The sources whose edges, staged and stored together, break the bounds of a type.

    They come in the shape of verdicts; ``is_stray`` those that no edge in the fragments ``staged``
    names. ``nodes`` are asked which sources will be there at all, where not all will.
    """
    more = _counted(sources, stored)
    wrong = [_NOBODY]
    for part in sources.parts:
        one = KeyIndex(sources.area, (part,))
        # Its keys are one piece: that is how they were written.
        texts = open_part(sources.area, part).keys.column("text").combine_chunks()
        found = miscounted(edge, texts, [one, more])
        names = found.column("src").combine_chunks()
        found = found.append_column("address", one.find(names).column("address"))
        if nodes is not None:
            found = found.filter(pa.array(~missing_ends(names, nodes)))
        wrong.append(found)
    every = pa.concat_tables(wrong)
    names, counts = every.column("src").to_pylist(), every.column("edges").to_pylist()
    fragments = fragments_of(every.column("address").to_numpy())
    return pa.table(
        {
            "address": every.column("address"),
            "message": pa.array(map(cardinality_text, repeat(edge), names, counts), pa.string()),
            "entity": pa.array(names, pa.string()),
            "is_stray": ~np.isin(fragments, list(staged)),
        }
    )


_NOBODY = pa.schema(
    [("src", pa.large_string()), ("edges", pa.int64()), ("address", pa.uint64())]
).empty_table()


def _counted(sources: KeyIndex, stored: Sequence[str]) -> HeldKeys:
    """What tasks have counted of the stored edges, put together."""
    tables = [sources.area.read_table(name) for name in stored]
    columns = pa.schema([("text", pa.large_string()), ("count_all", pa.int64())])
    counted = pa.concat_tables([columns.empty_table(), *tables])
    return HeldKeys(
        counted.column("text").combine_chunks(), weights=counted.column("count_all").to_numpy()
    )
