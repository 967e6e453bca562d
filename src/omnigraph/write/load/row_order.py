"""Row order: by what the rows of a load are put in order before they are written.

Owns what a person may ask for, and one text for each row that sorts like its columns. The order is
a matter of speed alone: what is read later together lies together. Never sorts by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from omnigraph.errors import BadRequest
from omnigraph.lang.diagnostics import name_hint
from omnigraph.lang.schema.catalog import Catalog, NodeType
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.write.change.change_set import EntityType, type_key

OrderBy = bool | Mapping[str, Sequence[str]]

_BETWEEN = "\0"
_DIGITS = 20
# Above every other text.
_LAST = "\U0010ffff"
_SIGN = np.uint64(1 << 63)


@dataclass(frozen=True, slots=True)
class RowOrder:
    """The order of the rows of a load: of all types by their ids, or of some by properties."""

    by_keys: bool = False
    by_type: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, asked: OrderBy | None) -> RowOrder:
        """What a caller says: all types in the order of their keys, or columns by type."""
        if asked is None or isinstance(asked, bool):
            return cls(bool(asked))
        if not isinstance(asked, Mapping):
            raise BadRequest(
                'order_by is True, or says by what, like {"Person": ["name"]}; found'
                f" {type(asked).__name__}"
            )
        by_type = {}
        for name, columns in asked.items():
            some = (columns,) if isinstance(columns, str) else columns
            if not isinstance(some, list | tuple) or not all(isinstance(o, str) for o in some):
                raise BadRequest(f"order_by names the properties of {name} as texts in a list")
            if not some:
                raise BadRequest(f"order_by names no properties of {name}")
            by_type[str(name)] = tuple(some)
        return cls(by_type=by_type)

    def __bool__(self) -> bool:
        return self.by_keys or bool(self.by_type)

    def columns(self, catalog: Catalog) -> dict[str, tuple[str, ...]]:
        """The columns that rows are put in order by, by the key of their type."""
        found: dict[str, tuple[str, ...]] = {}
        if self.by_keys:
            found |= {f"node:{name}": (ID,) for name in catalog.nodes}
            found |= {f"edge:{name}": (SRC, DST) for name in catalog.edges}
        for name, columns in self.by_type.items():
            type_ = catalog.find(name)
            found[type_key(type_)] = tuple(_column(type_, one) for one in columns)
        return found


def _column(type_: EntityType, name: str) -> str:
    property_ = type_.properties.get(name)
    if property_ is not None:
        kind = property_.type
        if kind.is_list or kind.is_vector or kind.is_blob:
            raise BadRequest(
                f"rows cannot be put in order by {type_.name}.{name}, which is a"
                f" {kind.without_null}: name a property with one value"
            )
        return name
    structural = {"id": ID, ID: ID}
    if not isinstance(type_, NodeType):
        structural |= {"from": SRC, "src": SRC, SRC: SRC, "to": DST, "dst": DST, DST: DST}
    if name in structural:
        return structural[name]
    hint = name_hint(name, type_.properties)
    raise BadRequest(
        f"order_by: {type_.name} has no property '{name}'" + (f"; {hint}" if hint else "")
    )


def sort_texts(rows: pa.Table, columns: Sequence[str]) -> pa.Array:
    """A text for each row, ascending as the columns are; a null comes last."""
    texts = [_texts(rows.column(name).combine_chunks()) for name in columns]
    return texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, _BETWEEN)


def _texts(column: pa.Array) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    kind = column.type
    if pt.is_string(kind) or pt.is_large_string(kind):
        return pc.coalesce(column.cast(pa.string()), pa.scalar(_LAST))
    known = column.is_valid()
    numbers = np.zeros(len(column), dtype=np.uint64)
    numbers[known.to_numpy(zero_copy_only=False)] = _ascending(column.drop_null())
    digits = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), _DIGITS, "0")
    return pc.if_else(known, digits, _LAST)


def _ascending(values: pa.Array) -> np.ndarray:
    """Numbers without a sign in the order of the values."""
    kind = values.type
    if pt.is_floating(kind):
        # Of equal sign the bits of floats ascend with them, and descend below zero.
        bits = (values.cast(pa.float64()).to_numpy(zero_copy_only=False) + 0.0).view(np.uint64)
        ascending: np.ndarray = np.where(bits & _SIGN, ~bits, bits | _SIGN)
        return ascending
    if pt.is_boolean(kind):
        values = values.cast(pa.uint8())
    if pt.is_unsigned_integer(values.type):
        unsigned: np.ndarray = values.cast(pa.uint64()).to_numpy(zero_copy_only=False)
        return unsigned
    if pt.is_date32(kind):
        values = values.cast(pa.int32())
    signed = values.cast(pa.int64()).to_numpy(zero_copy_only=False)
    shifted: np.ndarray = signed.view(np.uint64) ^ _SIGN
    return shifted


def in_row_order(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Rows that fit into memory, in order."""
    return rows.take(pc.sort_indices(sort_texts(rows, columns)))
