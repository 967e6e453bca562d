"""The budget of a query: how long it may run, how much it may hold, and whether it is wanted.

Owns the ledger of what a query holds, be it one that reads or one that changes, and ending it in
time: between pieces of work it looks, and work that cannot look is waited for no longer than the
query may run. Exceeding a bound is an error that names it; nothing is returned or changed then.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from omnigraph.errors import QueryCancelled, ResourceLimit
from omnigraph.storage.cancellation import Cancellation
from omnigraph.storage.memory import memory_limit, size_of_setting

_VARIABLE = "OMNIGRAPH_QUERY_BYTES"
# Without a word from outside, a query may hold so large a part of the memory.
DEFAULT_PART = 4
# Whoever holds less than this is not asked about it.
LITTLE = 1 << 20
# Work on fewer rows than this ends before anybody would have waited for it.
HEAVY = 500_000
# How often somebody looks who waits, in seconds.
PAUSE = 0.02

_Made = TypeVar("_Made")


class _Buffers(Protocol):
    """What Arrow makes: arrays and tables."""

    def get_total_buffer_size(self) -> int: ...


_Array = TypeVar("_Array", bound="_Buffers | npt.NDArray[Any]")


@lru_cache(maxsize=1)
def configured_bytes() -> int:
    """What the environment allows a query to hold, or a part of the machine's memory.

    Asked once: the answer takes as long as a small query.
    """
    default = memory_limit() // DEFAULT_PART
    return size_of_setting(_VARIABLE, os.environ.get(_VARIABLE, ""), default)


@dataclass(slots=True)
class Budget:
    """The bounds of one run, and what it holds; None is no timeout, and the default of bytes."""

    timeout: float | None = None
    max_bytes: int | None = None
    cancellation: Cancellation | None = None
    started: float = field(default_factory=time.monotonic)
    operator: Callable[[], str] | None = None
    """Tells what is at work."""
    held: int = 0
    """Bytes that large arrays of the query take by now."""
    peak: int = 0
    """The most that it has taken."""
    _is_over: bool = False
    _refs: dict[int, weakref.ref[Any]] = field(default_factory=dict, repr=False)
    _lock: Any = field(default_factory=threading.RLock, repr=False)
    """Reentrant: an array may go wherever another one is made."""

    @property
    def limit(self) -> int:
        """How many bytes it may hold at once."""
        if self.max_bytes is None:
            self.max_bytes = configured_bytes()
        return self.max_bytes

    @property
    def of_default_bytes(self) -> Budget:
        """The same with the bound that everybody has: one of choice would tell what is read."""
        return Budget(self.timeout, None, self.cancellation, self.started)

    # -- looking ---------------------------------------------------------------------

    def look(self) -> None:
        """Stop when nobody wants the result any more, or it comes too late."""
        if self._is_over or (self.cancellation is not None and self.cancellation.is_cancelled):
            raise QueryCancelled("the query was cancelled")
        if self.timeout is None:
            return
        spent = time.monotonic() - self.started
        if spent > self.timeout:
            raise ResourceLimit(
                f"the query has run for {spent:.1f} s, longer than its timeout of "
                f"{self.timeout:g} s: narrow it down, or allow it more time",
                details={"resource": "query_seconds", "limit": self.timeout, "actual": spent},
            )

    def need(self, more: int) -> None:
        """Look, and stop when so many bytes more would be too many; ask before making them."""
        self.look()
        whole = self.held + int(more)
        if whole > self.peak:
            if whole > self.limit:
                raise self.refusal(whole)
            self.peak = whole

    def refusal(self, whole: int) -> ResourceLimit:
        """What is said when so many bytes are too many."""
        operator = "the query" if self.operator is None else self.operator()
        return ResourceLimit(
            f"the query needs {whole:,} bytes at once in `{operator}`, more than the "
            f"{self.limit:,} it may have: narrow it down, or allow it more memory",
            details={
                "resource": "query_bytes",
                "limit": self.limit,
                "actual": whole,
                "operator": operator,
            },
        )

    # -- holding ---------------------------------------------------------------------

    def keep(self, more: int) -> None:
        """Count bytes that stay until the query has ended."""
        with self._lock:
            self.held += more
        self.need(0)

    def took(self, made: _Buffers | npt.NDArray[Any]) -> None:
        """Count an array for as long as it lives."""
        while isinstance(made, np.ndarray) and isinstance(made.base, np.ndarray):
            made = made.base
        size, key = _size(made), id(made)

        def gone(_: object) -> None:
            with self._lock:
                self._refs.pop(key, None)
                self.held -= size

        with self._lock:
            if key in self._refs:
                return
            self._refs[key] = weakref.ref(made, gone)
            self.held += size
        self.need(0)

    # -- waiting ---------------------------------------------------------------------

    def beside(self, rows: int, work: Callable[[], _Made]) -> _Made:
        """Do something; if it is about many rows, on a thread that is left behind at the end.

        Native code cannot be stopped. Whoever waits for it can be, and it stops at its next look.
        """
        if rows < HEAVY or _is_beside.get() or not self._may_end:
            return work()
        run = _Work(work)
        context = copy_context()
        context.run(_is_beside.set, True)  # noqa: FBT003 - the value, no option
        threading.Thread(target=context.run, args=(run.do,), daemon=True).start()
        try:
            while not run.done.wait(PAUSE):
                self.look()
        except BaseException:
            self._is_over = True
            raise
        return run.result()

    @property
    def _may_end(self) -> bool:
        """Whether anything can stop the query: a bound, somebody, or an interrupt."""
        is_main = threading.current_thread() is threading.main_thread()
        return is_main or self.timeout is not None or self.cancellation is not None

    def run(self, rows: int, work: Callable[[], _Made]) -> _Made:
        """Do something about so many rows; what it makes and looks at is on this budget."""
        before = _at_work.set(self)
        try:
            return self.beside(rows, work)
        except MemoryError as error:
            raise self.refusal(self.held + self.limit) from error
        finally:
            _at_work.reset(before)


class _Work(Generic[_Made]):
    """Something that a thread does for another one."""

    def __init__(self, work: Callable[[], _Made]) -> None:
        self._work = work
        self._made: _Made
        self._failure: BaseException | None = None
        self.done = threading.Event()

    def do(self) -> None:
        try:
            self._made = self._work()
        except BaseException as error:  # noqa: BLE001 - whoever waits for it raises it
            self._failure = error
        finally:
            del self._work
            self.done.set()

    def result(self) -> _Made:
        if self._failure is not None:
            raise self._failure
        return self._made


_at_work: ContextVar[Budget | None] = ContextVar("budget", default=None)
_is_beside: ContextVar[bool] = ContextVar("is_beside", default=False)


# -- for whoever works for a query, and for nobody else just as well -------------------


def look() -> None:
    """Stop if the query at work has to."""
    budget = _at_work.get()
    if budget is not None:
        budget.look()


def need(more: int) -> None:
    """Look, and stop the query at work if it may not hold so many bytes more."""
    budget = _at_work.get()
    if budget is not None:
        budget.need(more)


def keep(more: int) -> None:
    """Count bytes that stay until the query at work has ended."""
    budget = _at_work.get()
    if budget is not None:
        budget.keep(more)


def keep_all(made: _Buffers) -> None:
    """Count what was read or made and stays until the query at work has ended, however small."""
    budget = _at_work.get()
    if budget is not None:
        budget.keep(_size(made))


def name_operator(operator: str) -> None:
    """Say what the query at work is at, for the error that it may end with."""
    budget = _at_work.get()
    if budget is not None:
        budget.operator = lambda: operator


def took(made: _Array) -> _Array:
    """An array that was just made, counted for the query at work while it lives."""
    budget = _at_work.get()
    if budget is not None and _size(made) >= LITTLE:
        budget.took(made)
    return made


def _size(made: _Buffers | npt.NDArray[Any]) -> int:
    # Of a slice, Arrow's own `nbytes` counts every offset: it takes as long as a small query.
    return made.nbytes if isinstance(made, np.ndarray) else int(made.get_total_buffer_size())


def beside(rows: int, work: Callable[[], _Made]) -> _Made:
    """Do something about so many rows; the query at work does not outlive its bounds for it."""
    budget = _at_work.get() if rows >= HEAVY else None
    return work() if budget is None else budget.beside(rows, work)
