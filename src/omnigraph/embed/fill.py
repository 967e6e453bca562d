"""Filling: the `@embed` vectors of rows that bring a text and no vector.

Owns which vectors are computed and from what. One implementation over Arrow rows,
for writes in this process and for tasks elsewhere. Never replaces a vector that
was given.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embed.protocol import Embedder
from omnigraph.errors import EmbeddingError
from omnigraph.lang.schema.catalog import EdgeType, Embedding, NodeType
from omnigraph.lang.structural import ID

Marks = npt.NDArray[np.bool_]


def embedded_properties(type_: NodeType | EdgeType) -> dict[str, Embedding]:
    """The `@embed` vectors of a type, by name, and what they are made from."""
    return {
        name: property_.embedding
        for name, property_ in sorted(type_.properties.items())
        if property_.embedding is not None
    }


def check_model(place: str, model: str | None, embedder: Embedder) -> None:
    """Refuse to compare or to mix the vectors of two models.

    ``place`` is like `Film.meaning`, and ``model`` what its `@embed` records.
    """
    if model is None or model == embedder.model:
        return
    raise EmbeddingError(
        f"the vectors of {place} are made with the model '{model}', but the embedding "
        f"provider '{embedder.provider}' uses '{embedder.model}': set OMNIGRAPH_EMBED_PROVIDER "
        "and OMNIGRAPH_EMBED_MODEL to that model, or give the vectors",
        kind="model",
        details={
            "property": place,
            "expected": model,
            "provider": embedder.provider,
            "actual": embedder.model,
        },
    )


def lacks_vectors(rows: pa.Table, type_: NodeType | EdgeType) -> bool:
    """Whether any `@embed` vector of the rows is to be computed."""
    return any(
        _empty(rows, name, embedding.source).any()
        for name, embedding in embedded_properties(type_).items()
    )


def fill_vectors(
    rows: pa.Table,
    type_: NodeType | EdgeType,
    embedder: Embedder,
    among: Mapping[str, Marks] | None = None,
) -> pa.Table:
    """The rows with every empty `@embed` vector computed whose text is not blank.

    ``among`` marks, by the name of the vector, the rows that may be touched; without it
    all may be. The embedder is asked for nothing when nothing is empty.
    """
    for name, embedding in embedded_properties(type_).items():
        wanted = _empty(rows, name, embedding.source)
        if among is not None:
            wanted = wanted & among[name]
        if wanted.any():
            place = f"{type_.name}.{name}"
            check_model(place, embedding.model, embedder)
            try:
                rows = _filled(rows, name, embedding.source, wanted, embedder)
            except EmbeddingError as error:
                raise _placed(error, place, rows, wanted) from None
    return rows


def _filled(rows: pa.Table, name: str, source: str, wanted: Marks, embedder: Embedder) -> pa.Table:
    """The rows with one vector computed from its source where it is wanted."""
    position = rows.schema.get_field_index(name)
    field = rows.schema.field(position)
    texts = rows.column(source).filter(pa.array(wanted))
    made = embedder.embed(texts, field.type.list_size)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(made.reshape(-1)), type=field.type)
    # Taken from the old and the new behind each other: that keeps what was given bit by bit.
    both = pa.chunked_array([*rows.column(name).chunks, vectors], field.type).combine_chunks()
    places = np.arange(len(wanted))
    places[wanted] = len(wanted) + np.arange(len(vectors))
    return rows.set_column(position, field, both.take(pa.array(places)))


def _placed(error: EmbeddingError, place: str, rows: pa.Table, wanted: Marks) -> EmbeddingError:
    """The error with the property, and with the row whose text is to blame if there is one."""
    details = {**error.details, "property": place}
    if error.position is None:
        return EmbeddingError(f"{place}: {error}", kind=error.kind, details=details)
    row = int(np.flatnonzero(wanted)[error.position])
    details["id"] = rows.column(ID)[row].as_py()
    return EmbeddingError(
        f"{place} of '{details['id']}': {error}", kind=error.kind, details=details
    )


def _empty(rows: pa.Table, name: str, source: str) -> Marks:
    """The rows that have a text and no vector."""
    vectors = rows.column(name)
    if not vectors.null_count:
        return np.zeros(rows.num_rows, dtype=bool)
    is_null: Marks = vectors.is_null().to_numpy()
    return is_null & has_text(rows, source)


def has_text(rows: pa.Table, source: str) -> Marks:
    """The rows that have a text to make a vector from."""
    found = pc.not_equal(pc.utf8_trim_whitespace(rows.column(source)), "")
    marks: Marks = pc.fill_null(found, fill_value=False).to_numpy()
    return marks
