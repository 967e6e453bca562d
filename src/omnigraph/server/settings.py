"""Settings: the limits of a server, from its environment.

Owns the variables, their defaults and what a wrong one is answered with. Opens nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.errors import BadRequest

MIB = 1 << 20
BODY_LIMIT = MIB
LOAD_LIMIT = 32 * MIB
"""How many bytes the body of a load may have."""

STREAMS = 8
STREAM_BYTES = 256 * 1024
STREAM_WAIT = 0.25
"""How many streams a process sends at once, what each reserves, how long one waits for its turn."""

HEADER_BYTES = 32 * 1024
HEADER_SECONDS = 20.0
"""How large the headers of a request may be, and how long a client may take for them."""
BODY_SECONDS = 30.0
BODY_RATE = 16 * 1024
"""How long a client may take for the next piece of a body; and for all of it, beside a second for
so many bytes."""
SEND_SECONDS = 60.0
SEND_BYTES = 64 * 1024
"""How many bytes of an answer a client has to take in what time, if so many are there."""
LINGER_SECONDS = 2.0
LONGEST_LINGER = 30.0
LINGER_BYTES = 2 * LOAD_LIMIT
"""How long, and for how many bytes, somebody listens to a client that was answered already: until
it is silent for the first of them, and no longer than the second."""


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one process of a server allows."""

    request_seconds: float = 60.0
    drain_seconds: float = 30.0
    requests_per_actor: int = 16
    bytes_per_actor: int = 4 << 30
    readers: int = 0
    writers: int = 16
    keep_alive_seconds: float = 75.0
    wait_seconds: float = 300.0
    """How long a request may wait for something to happen."""
    maintain_seconds: float = 0.0
    """From one round of background maintenance to the next; 0 for none at all."""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Limits:
        """The limits that the environment asks for."""
        return cls(
            request_seconds=_number(environment, "OMNIGRAPH_REQUEST_TIMEOUT", 60.0),
            drain_seconds=_number(environment, "OMNIGRAPH_DRAIN_TIMEOUT", 30.0),
            requests_per_actor=int(_number(environment, "OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX", 16)),
            bytes_per_actor=int(_number(environment, "OMNIGRAPH_PER_ACTOR_BYTES_MAX", 4 << 30)),
            readers=int(_number(environment, "OMNIGRAPH_SERVER_THREADS", max(4, 2 * _cores()))),
            maintain_seconds=_number(environment, "OMNIGRAPH_MAINTAIN_EVERY", 0.0),
        )

    @property
    def read_threads(self) -> int:
        """How many reads run at once."""
        return self.readers or max(4, 2 * _cores())


def is_set(environment: Mapping[str, str], name: str) -> bool:
    """Whether a variable that is a flag is on."""
    return environment.get(name, "").strip().lower() not in ("", "0", "false")


def _number(environment: Mapping[str, str], name: str, default: float) -> float:
    text = environment.get(name, "").strip()
    if not text:
        return default
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise BadRequest(f"{name} is {text!r:.60}: set it to a number above 0")
    return found
