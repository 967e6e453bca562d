"""Key predicates: conditions that name rows by their id, key or endpoint.

Owns recognising them, so that such rows are looked up instead of searched for. The
answer is the same either way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.lang.expressions import Comparison, InList, Predicate, Property, is_fixed
from omnigraph.lang.structural import EDGE_COLUMNS, ID
from omnigraph.lang.types import INTEGERS, Scalar
from omnigraph.rows.evaluation import constant_of
from omnigraph.rows.filters import ValueOf
from omnigraph.rows.json_strings import json_arrays


@dataclass(frozen=True, slots=True)
class KeyPredicate:
    """A text column, and the texts that wanted rows hold in it."""

    column: str
    texts: pa.Array


@dataclass(frozen=True, slots=True)
class Naming:
    """Predicates that name rows, whatever values they have: where, and what they compare with.

    Several of them name rows by a key of several members, in the order of ids.
    """

    column: str
    members: tuple[tuple[Comparison | InList, Scalar], ...]

    @property
    def predicates(self) -> tuple[Comparison | InList, ...]:
        """What the texts decide, so that nobody else has to."""
        return tuple(predicate for predicate, _ in self.members)

    def anchor(self, value_of: ValueOf) -> KeyPredicate:
        """With the texts that their values are."""
        texts = [_texts(predicate, scalar, value_of) for predicate, scalar in self.members]
        if len(texts) == 1 or not all(map(len, texts)):
            return KeyPredicate(self.column, min(texts, key=len))
        return KeyPredicate(self.column, json_arrays(texts))


def anchor(
    key: tuple[str, ...], predicates: Iterable[Predicate], value_of: ValueOf
) -> KeyPredicate | None:
    """What names rows by a text, if there is anything, with its texts."""
    named = naming(key, predicates)
    return None if named is None else named.anchor(value_of)


def naming(key: tuple[str, ...], predicates: Iterable[Predicate]) -> Naming | None:
    """The equalities that give a whole key, else the first predicate that names rows by a text.

    ``key`` are the members that make up the id of the rows, empty where nothing does.
    """
    first: Naming | None = None
    equal: dict[str, tuple[Comparison | InList, Scalar]] = {}
    for predicate in predicates:
        match predicate:
            case Comparison(Property() as column, "=", value) if is_fixed(value):
                pass
            case InList(Property() as column, choices) if is_fixed(choices):
                pass
            case _:
                continue
        scalar = column.type.scalar
        if scalar is not Scalar.STRING and scalar not in INTEGERS:
            continue
        if isinstance(predicate, Comparison):
            equal.setdefault(column.name, (predicate, scalar))
        stored = _stored_text(column.name, key)
        if stored is not None and first is None:
            first = Naming(stored, ((predicate, scalar),))
    by_id = first is not None and first.column == ID
    if len(key) > 1 and equal.keys() >= set(key) and not by_id:
        return Naming(ID, tuple(equal[member] for member in key))
    return first


def _texts(predicate: Comparison | InList, scalar: Scalar, value_of: ValueOf) -> pa.Array:
    """The texts of the values that a predicate compares with."""
    values: tuple[object, ...]
    if isinstance(predicate, InList):
        several = constant_of(predicate.choices, value_of)
        values = several if isinstance(several, tuple) else ()
    else:
        chosen = constant_of(predicate.right, value_of)
        values = () if chosen is None else (chosen,)
    texts = [text for value in values if (text := _text(value, scalar)) is not None]
    return pa.array(texts, pa.string())


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
