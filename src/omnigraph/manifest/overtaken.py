"""How often writes of this process were overtaken by others, for whoever watches them.

Owns two counts: races for a head that were lost, and writes that were prepared again for it. A
server tells of them; nothing is decided by them.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Literal

Retry = Literal["lost_race", "prepared_again"]

_lock = threading.Lock()
_counts: dict[Retry, int] = {"lost_race": 0, "prepared_again": 0}


def note_retry(kind: Retry) -> None:
    """Count that a write has to try again."""
    with _lock:
        _counts[kind] += 1


def retries_so_far() -> Mapping[Retry, int]:
    """The counts since the process began."""
    with _lock:
        return dict(_counts)
