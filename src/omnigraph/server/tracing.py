"""Tracing: a span for each request, where OpenTelemetry is installed.

Owns the names of its attributes. Without the API, or without a tracer that somebody has
configured, a request costs nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from typing import Any

from starlette.types import Scope

Finish = Callable[[str, Mapping[str, Any]], None]


@lru_cache(maxsize=1)
def _api() -> tuple[Any, Any] | None:
    """The tracer of this program and what reads the context of a caller; None without them."""
    try:
        trace, propagate = map(import_module, ("opentelemetry.trace", "opentelemetry.propagate"))
    except ImportError:
        return None
    return trace.get_tracer("omnigraph.server"), propagate.extract


@contextmanager
def request_span(scope: Scope) -> Iterator[Finish]:
    """The span of a request; what is handed out names it when it is known what it was."""
    api = _api()
    if api is None:
        yield lambda _, __: None
        return
    tracer, extract = api
    carried = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    with tracer.start_as_current_span(scope["method"], context=extract(carried)) as span:

        def finish(name: str, told: Mapping[str, Any]) -> None:
            span.update_name(name)
            for key, value in told.items():
                if value is not None:
                    span.set_attribute(key, value)

        yield finish
