"""Numbers beside floats: where any number stands among the floats of a column.

Owns the one rule of comparing a literal or a parameter with a float of fewer digits, whoever
compares. A number is exactly what it is; only the shortest number that reads back as a float,
which is what the float is printed as, is that float.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.lang.expressions import CompareOp
from omnigraph.lang.types import Scalar
from omnigraph.rows.arrow_types import SCALARS


@dataclass(frozen=True, slots=True)
class Place:
    """The nearest float of a width, and on which side of it a number lies: -1, 0 or 1."""

    nearest: float
    side: int

    def test(self, op: CompareOp) -> tuple[CompareOp, float] | bool:
        """What `float op number` asks of a float: a comparison with the nearest, or a verdict."""
        if self.side == 0:
            return op, self.nearest
        if op in ("=", "!="):
            return op == "!="
        if op in ("<", "<="):
            return ("<=" if self.side > 0 else "<"), self.nearest
        return (">" if self.side > 0 else ">="), self.nearest


def place(number: float, scalar: Scalar) -> Place:
    """Where a number stands among the floats of a type."""
    if scalar is not Scalar.F32:
        return _beside(float(number), number)
    with np.errstate(over="ignore", under="ignore"):
        narrow = np.float32(number)
    if float(str(narrow)) == number:
        return Place(float(narrow), 0)
    return _beside(float(narrow), number)


def _beside(nearest: float, number: float) -> Place:
    return Place(nearest, (number > nearest) - (number < nearest))


def floats_equal_to(numbers: Iterable[float], scalar: Scalar) -> pa.Array:
    """The floats of a type that equal one of some numbers, for a test of membership."""
    places = [place(number, scalar) for number in numbers]
    found = [one.nearest for one in places if one.side == 0]
    if 0 in found:
        found += [0.0, -0.0]  # a list tells them apart, a comparison does not
    return pa.array(found, SCALARS[scalar])
