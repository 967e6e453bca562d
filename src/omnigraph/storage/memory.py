"""Memory: how much of it this process may use, and sizes as people write them.

Owns asking the machine and its control groups. Never fails because a machine does not tell.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path, PurePosixPath

from omnigraph.errors import StorageError

# What a machine is taken to have that does not tell.
UNKNOWN = 4 * 2**30

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


def configured_size(variable: str, text: str) -> int | None:
    """What a variable of the environment says in bytes; None if it says nothing."""
    if not text.strip():
        return None
    found = parse_size(text)
    if found is None:
        raise StorageError(
            f"{variable} is {text!r}: set it to a size such as 512MB, 2GiB or 900000000",
            kind="configuration",
        )
    return found


def memory_limit(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> int:
    """The bytes this process may use: those of the machine, or fewer if its group has fewer."""
    return min([_physical(), *_group_limits(proc, groups)])


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
