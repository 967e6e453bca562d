"""Signatures: the places of a function, the type of its result, and what is wrong with a call.

Owns how a call is judged from the types of its arguments. Never reports: the checker does,
where the argument stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.lang.functions.kinds import Kind
from omnigraph.lang.types import ValueType

Types = Sequence[ValueType]


class Group(StrEnum):
    """What functions are about; the value is a heading."""

    CHOICE = "Null and choice"
    NUMBERS = "Numbers"
    TEXTS = "Text"
    TIMES = "Time"
    LISTS = "Lists"
    CONVERSION = "Conversion"
    SPACE = "Vectors and space"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A place of a function: what it is called, what it takes, and which texts if only some."""

    name: str
    kind: Kind
    optional: bool = False
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    """One function: `name(parameters)`, with the last place repeated if it is variadic."""

    name: str
    group: Group
    parameters: tuple[Parameter, ...]
    result: Callable[[Types], ValueType | None]
    """The type of a result that is not null; None when the arguments do not go together."""
    description: str
    example: str
    """A call of constants."""
    gives: str
    """What the example gives, as JSON."""
    variadic: bool = False
    may_be_null: bool = False
    """Whether the result may be null although no argument is."""
    null_if_any: bool = True
    """Whether the result is null wherever an argument is: null in, null out."""
    together: str = "be of one kind"
    """What arguments must be that do not go together; completes "the arguments of f must …"."""

    @property
    def signature(self) -> str:
        """The call as it is shown to people: `round(x[, digits])`."""
        shown = ""
        for number, parameter in enumerate(self.parameters):
            text = f"{', ' if number else ''}{parameter.name}"
            shown += f"[{text}]" if parameter.optional else text
        return f"{self.name}({shown}{', …' if self.variadic else ''})"

    @property
    def least(self) -> int:
        """How many arguments it takes at least."""
        return sum(not parameter.optional for parameter in self.parameters)

    @property
    def most(self) -> int | None:
        """How many arguments it takes at most, if there is a bound."""
        return None if self.variadic else len(self.parameters)

    def parameter(self, place: int) -> Parameter:
        """The parameter that an argument is for."""
        return self.parameters[min(place, len(self.parameters) - 1)]


@dataclass(frozen=True, slots=True)
class Misuse:
    """Why a call is wrong, and which argument is to blame; None: the call as a whole."""

    message: str
    argument: int | None = None


def judge(function: Function, arguments: Types) -> ValueType | Misuse:
    """The type of a call's result, or what is wrong with it."""
    given = len(arguments)
    most = function.most
    if given < function.least or (most is not None and given > most):
        return Misuse(f"{function.name} takes {_how_many(function)}, found {given}")
    for place, type_ in enumerate(arguments):
        kind = function.parameter(place).kind
        if not kind.accepts(type_):
            return Misuse(
                f"{function.name} expects {kind.noun} as {_name_of(function, place)}, "
                f"found {type_}",
                place,
            )
    result = function.result(arguments)
    if result is None:
        return Misuse(f"the arguments of {function.name} must {function.together}")
    inherits = function.null_if_any and any(type_.nullable for type_ in arguments)
    return result.or_null(when=function.may_be_null or inherits)


def _how_many(function: Function) -> str:
    least, most = function.least, function.most
    if most is None:
        return f"at least {_counted(least)}"
    if least == most:
        return _counted(least) if least else "no argument"
    return f"{least} to {most} arguments"


def _counted(number: int) -> str:
    return f"{number} argument" if number == 1 else f"{number} arguments"


def _name_of(function: Function, place: int) -> str:
    return f"`{function.parameter(place).name}`"
