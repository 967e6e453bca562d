"""Baselines: everything a branch holds, and the cursor from which its feed goes on.

Owns the handshake line and the lock of the file that is written. A file that is there is
complete; two programs never write the same one at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from omnigraph.errors import BadRequest, Conflict
from omnigraph.read.output.export import Export, ExportReport, write_export


@dataclass(frozen=True, slots=True)
class Baseline:
    """A written baseline: its commit, the cursor behind it, and what was written."""

    snapshot_commit_id: str
    resume_cursor: str
    report: ExportReport


class BaselineLines(Iterator[str]):
    """The lines of a baseline without their newlines; the last one is the handshake.

    Without that line the baseline was not captured. ``chunks`` gives the same text in large
    pieces.
    """

    def __init__(self, export: Export, commit_id: str, cursor: str) -> None:
        self.snapshot_commit_id: str = commit_id
        self.resume_cursor: str = cursor
        self._export = export
        self._lines = self._all()

    def __next__(self) -> str:
        return next(self._lines)

    def _all(self) -> Iterator[str]:
        yield from self._export
        yield self._last

    def chunks(self) -> Iterator[bytes]:
        """The lines in pieces of some megabytes.

        >>> lines = b"".join(graph.changes.baseline().chunks()).splitlines()
        >>> len(lines)
        8
        """
        for chunk in self._export.chunks():
            yield chunk.data
        yield f"{self._last}\n".encode()

    @property
    def _last(self) -> str:
        names = {
            "snapshot_commit_id": self.snapshot_commit_id,
            "resume_cursor": self.resume_cursor,
        }
        return msgspec.json.encode({"baseline": names}).decode()


def write_baseline(export: Export, path: str | Path, commit_id: str, cursor: str) -> Baseline:
    """Write the entity lines to a local file, which is replaced as a whole when they are safe."""
    with locked(path):
        return Baseline(commit_id, cursor, write_export(export, path))


@contextmanager
def locked(path: str | Path) -> Iterator[None]:
    """Hold `PATH.lock`, which another program cannot hold at the same time."""
    if "://" in str(path):
        raise BadRequest(f"cannot write a baseline to {path}: give the path of a local file")
    target = Path(path).resolve()
    lock = target.with_name(f"{target.name}.lock")
    try:
        descriptor = _acquire(lock)
    except OSError as error:
        raise BadRequest(f"cannot write {target}: {error.strerror or error}") from None
    if descriptor is None:
        raise Conflict(
            f"another program is writing a baseline to {path}: wait for it, or choose another path",
            details={"path": str(path)},
        )
    try:
        yield
    finally:
        # Removed while it is held: whoever waits for this very file finds that it is gone.
        lock.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(lock: Path) -> int | None:
    """An open, locked file; None if somebody else has it."""
    import fcntl

    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if lock.exists() and os.path.samestat(os.fstat(descriptor), lock.stat()):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)
