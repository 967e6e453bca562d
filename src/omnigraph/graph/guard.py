"""The guard of the public surface: only errors of the product leave it.

Owns what becomes of an exception that nobody meant to raise, and that arguments are looked at
before anything is done with them. Never swallows one, and lets interrupts pass.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from omnigraph.errors import BadRequest, InternalError, OmniGraphError, ResourceLimit
from omnigraph.graph.arguments import Arguments
from omnigraph.storage.memory import memory_limit, memory_peak
from omnigraph.storage.objects.errors import is_panic, translate

Function = TypeVar("Function", bound=Callable[..., Any])


def guarded(function: Function) -> Function:
    """The function, called with what it declares to take, and failing as the product does."""
    arguments = Arguments(function)

    @wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        arguments.check(args, named)
        try:
            return function(*args, **named)
        except OmniGraphError:
            raise
        except BaseException as error:
            misfit = arguments.misfit(args, named) if isinstance(error, TypeError) else None
            if misfit is not None:
                # It says what was given wrong; who gave it has no use for where that was noticed.
                raise misfit from None
            failure = failure_of(error, function.__name__)
            if failure is None:
                raise
            raise failure from error

    return cast("Function", call)


def failure_of(error: BaseException, action: str) -> OmniGraphError | None:
    """What a caller is told of an exception of another kind; None for an interrupt."""
    if isinstance(error, MemoryError):
        return ResourceLimit(
            f"{action}: memory ran out: ask for less at once, or give the process more",
            details={"resource": "memory", "limit": memory_limit(), "actual": memory_peak()},
        )
    if isinstance(error, RecursionError):
        depth = sys.getrecursionlimit()
        return ResourceLimit(
            f"{action}: what was given is nested too deeply",
            details={"resource": "nesting", "limit": depth, "actual": depth},
        )
    if isinstance(error, UnicodeEncodeError) and error.encoding.startswith("utf"):
        return BadRequest(f"{action}: some text that was given is not Unicode: {error.reason}")
    if isinstance(error, UnicodeEncodeError):
        letter = ascii(error.object[error.start : error.start + 1])
        return BadRequest(f"{action}: {error.encoding} has no letter {letter}: set PYTHONUTF8=1")
    if isinstance(error, ValueError) and str(error).startswith("embedded null"):
        return BadRequest(f"{action}: a path cannot hold the character NUL")
    if isinstance(error, OSError) or is_panic(error):
        return translate(error, action)
    if isinstance(error, Exception):
        return InternalError(
            f"{action} failed in a way nobody had thought of ({type(error).__name__}: {error}): "
            "this is a defect of OmniGraph, please report it",
            details={"cause": type(error).__name__},
        )
    return None
