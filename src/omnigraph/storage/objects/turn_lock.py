"""Turn locks: a file on a local disk that one process of the machine holds at a time.

Owns waiting for it, and passing over a holder that stands still. The system takes a lock from a
process that ends, however it ends. Must never be what something relies on: where a disk has no
locks nobody waits, and a holder that is passed over goes on believing that it has its turn.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Final

HOLDER_BYTES: Final = 8
_NOTE_BYTES: Final = 2 * HOLDER_BYTES


def new_holder() -> bytes:
    """What tells one who takes turns from all others."""
    return os.urandom(HOLDER_BYTES)


class _Descriptor:
    """An open file, closed when nobody has it any more: a thread may still wait inside of it."""

    __slots__ = ("_number",)

    def __init__(self, number: int) -> None:
        self._number = number

    def fileno(self) -> int:
        """Its number, for the calls of the system."""
        return self._number

    def __del__(self) -> None:
        os.close(self._number)


class TurnLock:
    """The lock at one path, for the holder of this name; the directory above it is made."""

    def __init__(self, path: str, holder: bytes) -> None:
        self._path = path
        self._holder = holder
        self._held: _Descriptor | None = None

    def take(self, patience: float) -> bool:
        """Wait for it; returns whether this holder is the one who had it last.

        Nobody is waited for who has held it for so many seconds without letting go: the file is
        replaced by another, which those who come after find.
        """
        import fcntl

        while True:
            found = self._open()
            if found is None:
                return False
            try:
                fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not self._wait(found, patience):
                    continue
            except OSError:
                return False  # there are no locks here
            if self._is_current(found):
                break
        last = _note(found)
        self._held = found
        try:
            os.pwrite(found.fileno(), self._holder + time.monotonic_ns().to_bytes(8), 0)
        except OSError:
            return False  # a full disk
        return last[:HOLDER_BYTES] == self._holder

    def release(self) -> None:
        """Let the next one have it."""
        self._held = None

    def _open(self) -> _Descriptor | None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            try:
                return _Descriptor(os.open(self._path, flags, 0o666))
            except FileNotFoundError:
                # Not what is above it: somebody may have removed all of it on purpose.
                os.mkdir(os.path.dirname(self._path))  # noqa: PTH102, PTH120 - on every write
                return _Descriptor(os.open(self._path, flags, 0o666))
        except OSError:
            return None

    def _wait(self, found: _Descriptor, patience: float) -> bool:
        """Wait inside the system, which wakes the waiter; False to look for another file."""
        import fcntl

        # A thread of its own, since no call waits for a lock and a time. When it is left alone
        # it gets the lock some day, and lets go of it with the descriptor that it alone has.
        waiter = threading.Thread(target=fcntl.flock, args=(found, fcntl.LOCK_EX), daemon=True)
        seen = _note(found)
        waiter.start()
        while True:
            waiter.join(patience)
            if not waiter.is_alive():
                return True
            if not self._is_current(found):
                return False
            now = _note(found)
            if now == seen:
                self._pass_over(found)
                return False
            seen = now

    def _is_current(self, found: _Descriptor) -> bool:
        """Whether the path still leads to this file."""
        try:
            return os.fstat(found.fileno()).st_ino == os.stat(self._path).st_ino  # noqa: PTH116 - on every write
        except OSError:
            return False

    def _pass_over(self, found: _Descriptor) -> None:
        # Of two who do it at once, one may take away what the other has just made: then two
        # have their turn at the same time, and one of them loses a race.
        if self._is_current(found):
            try:
                os.unlink(self._path)  # noqa: PTH108 - as above
            except OSError:
                return


def _note(found: _Descriptor) -> bytes:
    """Who had it last, and since when: another one after each time it is taken."""
    try:
        return os.pread(found.fileno(), _NOTE_BYTES, 0)
    except OSError:
        return b""
