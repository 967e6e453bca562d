"""Memory: how much of it this process may use, and sizes as people write them.

Owns asking the machine and its control groups, and giving back what is free. Never fails because a
machine does not tell.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
import sys
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from pathlib import Path, PurePosixPath

from omnigraph.errors import StorageError

# What a machine is taken to have that does not tell.
UNKNOWN = 4 * 2**30
# More than this no machine has; larger numbers overflow where they are used.
MOST_BYTES = 2**60

# Trim and mmap thresholds, by the numbers that mallopt knows them by.
_BOUNDS = ((-1, 128 << 10), (-3, 32 << 20))
_SAID = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)(b?)", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def parse_size(text: str) -> int | None:
    """Bytes from a text such as `1048576`, `512MB` or `1.5 GiB`; None if it is no size.

    `MB` counts in thousands and `MiB` in steps of 1,024; a lone `M` is `MiB`.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        return None
    number, unit, binary, byte = found.groups()
    if binary and not unit:
        return None
    step = 1000 if byte and not binary else 1024
    return int(Decimal(number) * step ** _POWERS[unit.lower()])


def size_of_setting(variable: str, text: str, default: int) -> int:
    """The bytes that the text of a variable names; the default if it is empty."""
    text = text.strip()
    if not text:
        return default
    found = parse_size(text)
    if found is None or found > MOST_BYTES:
        raise StorageError(
            f"{variable} is {text!r:.60}: set it to a size such as 512MB, 2GiB or 900000000",
            kind="configuration",
        )
    return found


def memory_limit(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> int:
    """The bytes this process may use: those of the machine, or fewer if its group has fewer."""
    return min([_physical(), *_group_limits(proc, groups)])


def memory_peak() -> int:
    """The most bytes this process has held so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def keep_little_memory() -> None:
    """Let the C library keep less of freed memory from now on, unless somebody has said how much.

    Left to itself it raises its bounds with every large block, until freed blocks of up to 32 MiB
    stay with it, apart for each thread.
    """
    library = _c_library()
    if library is None or not hasattr(library, "mallopt") or any(map(os.environ.get, _SAID)):
        return
    for bound, size in _BOUNDS:
        library.mallopt(bound, size)


def give_memory_back() -> None:
    """Give the system what allocators keep of freed memory, where they can.

    What several threads have freed is kept apart for each: after some large pieces of work that
    is several times what any of them needs.
    """
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    library = _c_library()
    if library is not None and hasattr(library, "malloc_trim"):
        library.malloc_trim(ctypes.c_size_t(0))


@lru_cache(maxsize=1)
def _c_library() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(None)
    except (OSError, TypeError):
        return None


def _physical() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return UNKNOWN


def _group_limits(proc: Path, groups: Path) -> Iterator[int]:
    """The limits of the groups that this process is in, and of all groups around them.

    In a container the names are those of the host, while only the container's own group
    can be seen, as the outermost one.
    """
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        if not controllers:
            root, file = groups, "memory.max"
        elif "memory" in controllers.split(","):
            root, file = groups / "memory", "memory.limit_in_bytes"
        else:
            continue
        path = PurePosixPath(name.lstrip("/"))
        for group in (path, *path.parents):
            yield from _limit(root / group / file)


def _limit(file: Path) -> Iterator[int]:
    """What a file of a group says, if it is there and says a number."""
    try:
        text = file.read_text().strip()
    except OSError:
        return
    if text.isdecimal():
        yield int(text)
