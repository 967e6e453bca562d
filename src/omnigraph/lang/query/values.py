"""The values of one run: what its literals, its parameters and `now()` stand for.

Owns the look-up. One moment holds for a whole run, wherever it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from omnigraph.lang.query import plan
from omnigraph.lang.query.params import ParamValue, require


@dataclass(frozen=True, slots=True)
class Values:
    """The parameters of one run, and its moment."""

    params: Mapping[str, ParamValue]
    now: datetime

    def of(self, value: plan.Scalarish) -> plan.Constant:
        """What an operand that is the same for every row stands for."""
        match value:
            case plan.Const(constant, _):
                return constant
            case plan.ParamRef(name, _):
                return require(self.params, name)
            case plan.Now():
                return self.now
            case plan.Property():
                raise AssertionError("a property has a value for each row, not one")
