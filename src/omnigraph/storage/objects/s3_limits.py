"""How long S3 is waited for, in the words of the libraries that wait.

Owns the settings and their reading. Must never leave a request without an end.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Self

from omnigraph.errors import StorageError

if TYPE_CHECKING:
    from obstore.store import RetryConfig

RETRIES = 10
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class S3Limits:
    """Milliseconds: to connect, without a byte of an answer, for a whole request, for retries.

    What fails in a way that may pass is tried again until ``retry_ms`` have gone by since the
    first attempt began; an attempt that has begun by then still ends by the other three.
    """

    connect_timeout_ms: int = 3_000
    read_timeout_ms: int = 30_000
    timeout_ms: int = 120_000
    retry_ms: int = 10_000

    @classmethod
    def of_environment(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """What the variables say; empty is not set."""
        given = {
            "connect_timeout_ms": environ.get("OMNIGRAPH_S3_CONNECT_TIMEOUT_MS", ""),
            "read_timeout_ms": environ.get("OMNIGRAPH_S3_READ_TIMEOUT_MS", ""),
            "timeout_ms": environ.get("OMNIGRAPH_S3_TIMEOUT_MS", ""),
            "retry_ms": environ.get("OMNIGRAPH_S3_RETRY_MS", ""),
        }
        return cls(
            **{name: _ms(name, text.strip()) for name, text in given.items() if text.strip()}
        )

    @property
    def client_options(self) -> dict[str, str]:
        """The limits of one request, which Lance and obstore call the same."""
        return {
            "connect_timeout": f"{self.connect_timeout_ms}ms",
            "read_timeout": f"{self.read_timeout_ms}ms",
            "timeout": f"{self.timeout_ms}ms",
        }

    @property
    def lance_options(self) -> dict[str, str]:
        """All of it for Lance, which counts retries in whole seconds."""
        return {
            **self.client_options,
            "client_max_retries": str(RETRIES),
            "client_retry_timeout": str(-(-self.retry_ms // 1000)),
        }

    @property
    def retry_config(self) -> RetryConfig:
        """How obstore tries again."""
        wait = timedelta(milliseconds=self.retry_ms)
        return {"max_retries": RETRIES, "retry_timeout": wait}


def _ms(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= _DAY_MS):
        raise StorageError(
            f"OMNIGRAPH_S3_{name.upper()} is {text!r:.60}: set it to milliseconds, from 1 to "
            f"{_DAY_MS:,}",
            kind="configuration",
        )
    return int(text)
