"""The functions that choose between values, and values as those of one type.

Owns bringing columns to the type that they have in common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.types import INTEGERS, ValueType
from omnigraph.rows.arrow_types import arrow_type
from omnigraph.rows.functions.call import Call, Kernel, is_true
from omnigraph.rows.functions.integers import unified


def of_one_type(columns: Sequence[pa.Array], type_: ValueType) -> list[pa.Array]:
    """Columns as those of a type, integers as those of the type of 64 bits that holds them."""
    if type_.scalar in INTEGERS and not type_.is_list:
        return unified(list(columns))
    target = arrow_type(type_)
    return [column.cast(target, safe=False) for column in columns]


def _coalesce(call: Call) -> pa.Array:
    columns = [call.column(place) for place in range(len(call.arguments))]
    return pc.coalesce(*of_one_type(columns, call.result))


def _if(call: Call) -> pa.Array:
    condition, *branches = (call.column(place) for place in range(3))
    return pc.if_else(pa.array(is_true(condition)), *of_one_type(branches, call.result))


KERNELS: Mapping[str, Kernel] = {"coalesce": _coalesce, "if": _if}
