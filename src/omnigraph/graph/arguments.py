"""Arguments: whether a value is what the annotation of its parameter says.

Owns the reading of annotations, once for each function, and the words for what does not fit.
Never converts a value, and never decides what one means.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature, unwrap
from pathlib import PurePath
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from omnigraph.errors import BadRequest, OmniGraphError, ParamError

Accepts = Callable[[Any], bool]
LARGEST = 2**63 - 1
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Kind:
    """What an argument may be, and how that is called."""

    accepts: Accepts
    wanted: str


def is_text(value: Any) -> bool:
    """Whether something is text that can be stored: half of a surrogate pair cannot."""
    if not isinstance(value, str):
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(value: object) -> str:
    """A value as a message can have it, whatever it is."""
    if isinstance(value, bool | float) or value is None:
        return str(value)
    if isinstance(value, int):
        return str(value) if abs(value) <= LARGEST else "a number beyond 64 bits"
    if isinstance(value, str):
        text = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
        return repr(text) if is_text(value) else f"{text!a}, which is not Unicode text"
    return f"a {type(value).__name__}"


def _is_path(value: Any) -> bool:
    return isinstance(value, PurePath) and is_text(str(value))


def _is_integer(value: Any) -> bool:
    return type(value) is not bool and isinstance(value, int) and -LARGEST <= value <= LARGEST


def _is_number(value: Any) -> bool:
    return _is_integer(value) or (isinstance(value, float) and not math.isnan(value))


_PLAIN: Mapping[Any, Kind] = {
    str: Kind(is_text, "text"),
    int: Kind(_is_integer, "a whole number"),
    float: Kind(_is_number, "a number"),
    bool: Kind(lambda value: isinstance(value, bool), "True or False"),
    NoneType: Kind(lambda value: value is None, "None"),
    None: Kind(lambda value: value is None, "None"),
}


def _kind(annotation: Any) -> Kind | None:
    """What an annotation asks for; None where anything will do."""
    if annotation in (Any, object):
        return None
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, members = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return _any_of(members)
    if origin is Literal:
        words = " or ".join(map(repr, members))
        return Kind(lambda value: isinstance(value, str) and value in members, words)
    if origin is not None:
        return _generic(origin, members)
    if issubclass(annotation, PurePath):
        return Kind(_is_path, "a path")
    if getattr(annotation, "_is_protocol", False):
        return _protocol(annotation)
    return Kind(lambda value: isinstance(value, annotation), f"a {annotation.__name__}")


def _any_of(members: Sequence[Any]) -> Kind | None:
    kinds = [_kind(member) for member in members]
    known = [kind for kind in kinds if kind is not None]
    if len(known) < len(kinds):
        return None
    tests = tuple(kind.accepts for kind in known)

    def accepts(value: Any) -> bool:
        for test in tests:  # noqa: SIM110 - `any` with a generator takes three times as long
            if test(value):
                return True
        return False

    words = [kind.wanted for kind in known if kind.wanted != "None"]
    return Kind(accepts, " or ".join(words))


def _generic(origin: Any, members: Sequence[Any]) -> Kind:
    if issubclass(origin, Mapping):
        keys, values = (_test(member) for member in members)
        return Kind(
            lambda found: (
                isinstance(found, Mapping) and all(map(keys, found)) and _all(values, found)
            ),
            "a mapping",
        )
    if issubclass(origin, Collection):
        test = _test(members[0])
        return Kind(lambda found: _is_collection(found) and all(map(test, found)), "a list of text")
    return Kind(callable, "a function")


def _all(test: Accepts, found: Mapping[Any, Any]) -> bool:
    return test is _anything or all(map(test, found.values()))


def _is_collection(value: Any) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)


def _test(annotation: Any) -> Accepts:
    kind = _kind(annotation)
    return _anything if kind is None else kind.accepts


def _anything(_: Any) -> bool:
    return True


def _protocol(annotation: type) -> Kind:
    names = [name for name in vars(annotation) if not name.startswith("_")]
    return Kind(
        lambda value: all(callable(getattr(value, name, None)) for name in names),
        f"a {annotation.__name__}",
    )


class _Elsewhere(dict[str, Any]):
    """Names that exist for type checkers alone: of those anything is taken."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        super().__init__()
        self._known = known

    def __missing__(self, name: str) -> Any:
        if name in self._known or hasattr(builtins, name):
            raise KeyError(name)
        return Any


class Arguments:
    """The checks of one function, made when it is first called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = unwrap(function)
        self._placed: tuple[tuple[str, Kind | None], ...] | None = None
        self._named: dict[str, Kind] = {}

    def check(self, args: Sequence[Any], named: Mapping[str, Any]) -> None:
        """Refuse an argument that is not what it is declared to be."""
        placed = self._placed
        if placed is None:
            placed = self._read()
        for (name, kind), value in zip(placed, args, strict=False):
            if kind is not None and not kind.accepts(value):
                raise self._refusal(name, kind, value)
        known = self._named
        for name, value in named.items():
            kind = known.get(name)
            if kind is not None and not kind.accepts(value):
                raise self._refusal(name, kind, value)

    def misfit(self, args: Sequence[Any], named: Mapping[str, Any]) -> BadRequest | None:
        """What is wrong with the number or the names of the arguments, if anything is."""
        try:
            signature(self._function).bind(*args, **named)
        except TypeError as error:
            return BadRequest(f"{self._function.__name__}: {error}")
        return None

    def _read(self) -> tuple[tuple[str, Kind | None], ...]:
        function: Any = self._function
        # Not those of the function itself: what it returns may have no meaning at run time.
        asked = {name: text for name, text in function.__annotations__.items() if name != "return"}
        known = function.__globals__
        hints = get_type_hints(SimpleNamespace(__annotations__=asked), known, _Elsewhere(known))
        placed: list[tuple[str, Kind | None]] = []
        for parameter in signature(function).parameters.values():
            kind = _kind(hints.get(parameter.name, Any))
            if kind is not None:
                self._named[parameter.name] = kind
            if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD:
                placed.append((parameter.name, kind))
        self._placed = tuple(placed)
        return self._placed

    def _refusal(self, name: str, kind: Kind, value: object) -> OmniGraphError:
        refused = ParamError if name == "params" else BadRequest
        return refused(
            f"{self._function.__name__}: {name} must be {kind.wanted}, not {_shown_whole(value)}",
            details={"argument": name},
        )


def _shown_whole(value: object) -> str:
    """The value; of one that holds others, the first that is no text."""
    if isinstance(value, PurePath):
        return shown(str(value))
    if _is_collection(value) or isinstance(value, Mapping):
        wrong = next((one for one in _flat(value) if not is_text(one)), None)
        return f"a {type(value).__name__} with {shown(wrong)}"
    return shown(value)


def _flat(value: Any) -> list[Any]:
    return [*value, *value.values()] if isinstance(value, Mapping) else [*value]
