"""Key predicates: conditions that name rows by their id, key or endpoint.

Owns recognising them, so that such rows are looked up instead of searched for. The
answer is the same either way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.lang.predicates import Comparison, InList, Predicate, Property
from omnigraph.lang.structural import EDGE_COLUMNS, ID
from omnigraph.lang.types import INTEGERS, Scalar
from omnigraph.rows.filters import ValueOf


@dataclass(frozen=True, slots=True)
class KeyPredicate:
    """A text column, and the texts that wanted rows hold in it."""

    column: str
    texts: pa.Array


@dataclass(frozen=True, slots=True)
class Naming:
    """A predicate that names rows, whatever values it has: where, and what it compares with."""

    column: str
    predicate: Comparison | InList
    scalar: Scalar

    def anchor(self, value_of: ValueOf) -> KeyPredicate:
        """With the texts that its values are."""
        values: tuple[object, ...]
        if isinstance(self.predicate, InList):
            several = value_of(self.predicate.choices)
            values = several if isinstance(several, tuple) else ()
        else:
            chosen = value_of(self.predicate.right)
            values = () if chosen is None else (chosen,)
        texts = [text for value in values if (text := _text(value, self.scalar)) is not None]
        return KeyPredicate(self.column, pa.array(texts, pa.string()))


def anchor(
    key: tuple[str, ...], predicates: Iterable[Predicate], value_of: ValueOf
) -> KeyPredicate | None:
    """The first predicate that names rows by a text, if there is one, with its texts."""
    named = naming(key, predicates)
    return None if named is None else named.anchor(value_of)


def naming(key: tuple[str, ...], predicates: Iterable[Predicate]) -> Naming | None:
    """The first predicate that names rows by a text, if there is one.

    ``key`` are the properties that make up the id of the rows, empty where nothing does.
    """
    for predicate in predicates:
        match predicate:
            case Comparison(Property() as column, "=", value) if not isinstance(value, Property):
                pass
            case InList(Property() as column, _):
                pass
            case _:
                continue
        stored = _stored_text(column.name, key)
        scalar = column.type.scalar
        if stored is not None and (scalar is Scalar.STRING or scalar in INTEGERS):
            return Naming(stored, predicate, scalar)
    return None


def _stored_text(name: str, key: tuple[str, ...]) -> str | None:
    """The structural column that has a property's values as texts, if there is one."""
    if name in EDGE_COLUMNS:
        return name
    return ID if key == (name,) else None


def _text(value: object, scalar: Scalar) -> str | None:
    """How ids spell a value of a column; None for one that no row can have."""
    if scalar in INTEGERS and isinstance(value, float):
        return str(int(value)) if value.is_integer() else None
    return str(value)
