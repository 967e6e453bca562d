"""Anchors: conditions that name rows by their id, key or endpoint.

Owns recognising them, so that such rows are looked up instead of searched for. The
answer is the same either way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.lang.predicates import Comparison, InList, Predicate, Property
from omnigraph.lang.types import INTEGERS, Scalar
from omnigraph.rows.filters import STRUCTURAL, ValueOf


@dataclass(frozen=True, slots=True)
class KeyPredicate:
    """A text column, the texts that wanted rows hold in it, and the predicate that says so."""

    column: str
    texts: pa.Array
    predicate: Predicate


def anchor(
    key: tuple[str, ...], predicates: Iterable[Predicate], value_of: ValueOf
) -> KeyPredicate | None:
    """The first predicate that names rows by a text, if there is one.

    ``key`` are the properties that make up the id of the rows, empty where nothing does.
    """
    for predicate in predicates:
        named = _named(predicate, value_of)
        if named is None:
            continue
        column, values = named
        stored = STRUCTURAL.get(column.name) or ("id" if key == (column.name,) else None)
        texts = _texts(column, values) if stored is not None else None
        if stored is not None and texts is not None:
            return KeyPredicate(stored, pa.array(texts, pa.string()), predicate)
    return None


def _named(predicate: Predicate, value_of: ValueOf) -> tuple[Property, tuple[object, ...]] | None:
    match predicate:
        case Comparison(Property() as column, "=", value) if not isinstance(value, Property):
            chosen = value_of(value)
            return column, () if chosen is None else (chosen,)
        case InList(Property() as column, choices):
            several = value_of(choices)
            return column, several if isinstance(several, tuple) else ()
    return None


def _texts(column: Property, values: tuple[object, ...]) -> list[str] | None:
    """How ids spell values of a column; None where that is not plain."""
    if column.type.scalar is Scalar.STRING:
        return [str(value) for value in values]
    if column.type.scalar in INTEGERS and all(isinstance(value, int) for value in values):
        return [str(value) for value in values]
    return None
