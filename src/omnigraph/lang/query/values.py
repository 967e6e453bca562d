"""The values of one run: what its literals, its parameters and `now()` stand for.

Owns the look-up and the clock of a statement. One moment holds for a whole run,
wherever it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from omnigraph.lang.expressions import Const, Constant, Fixed, Now, ParamRef
from omnigraph.lang.query.params import ParamValue, require


def statement_time() -> datetime:
    """The moment of a run that begins now, to the millisecond that is stored."""
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


@dataclass(frozen=True, slots=True)
class Values:
    """The parameters of one run, and its moment."""

    params: Mapping[str, ParamValue]
    now: datetime

    def of(self, value: Fixed) -> Constant:
        """What an operand that is the same for every row stands for."""
        match value:
            case Const(constant, _):
                return constant
            case ParamRef(name, _):
                return require(self.params, name)
            case Now():
                return self.now
