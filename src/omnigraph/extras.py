"""The parts of OmniGraph that are installed only where they are wanted.

Owns the names of the extras, the modules by which each is known to be there, and asking for one
before it is used. Must never import one of these modules.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Literal

from omnigraph.errors import MissingExtra

Extra = Literal["spark", "connect", "server", "embed", "sql", "ways", "notebook"]

# What the product imports itself. Not Java: Spark says better what it needs where there is none.
MODULES: Mapping[Extra, tuple[str, ...]] = {
    "spark": ("pyspark", "pandas"),
    "connect": ("pyspark", "grpc", "grpc_status", "pandas", "zstandard"),
    "server": ("starlette", "uvicorn", "uvloop", "httptools", "prometheus_client"),
    "embed": ("wordllama", "tokenizers", "safetensors"),
    "sql": ("duckdb",),
    "ways": ("scipy",),
    "notebook": ("pandas",),
}


def has_extra(extra: Extra) -> bool:
    """Whether all modules of an extra are there."""
    return all(map(_is_there, MODULES[extra]))


def require_extra(extra: Extra, what: str, *, otherwise: str | None = None) -> None:
    """Say what to install for ``what``, or to do ``otherwise``, where something is missing."""
    missing = [name for name in MODULES[extra] if not _is_there(name)]
    if missing:
        raise MissingExtra(what, extra=extra, missing=missing, otherwise=otherwise)


def _is_there(name: str) -> bool:
    # Not imported: some take longer than all that follows.
    return find_spec(name) is not None
