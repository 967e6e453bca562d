"""OmniGraph: a lakehouse graph database.

Owns the public names. Importing it stays cheap: nothing here may pull in
Arrow, Lance, Spark or the command line; the graph comes when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph import errors
from omnigraph.errors import OmniGraphError
from omnigraph.version import __version__

if TYPE_CHECKING:
    from omnigraph.client.opening import open  # noqa: A004 - `omnigraph.open` is the name
    from omnigraph.client.projects import project
    from omnigraph.graph import (
        Cancellation,
        CsvOptions,
        Graph,
        MigrationPlan,
        SchemaCommit,
        SchemaResult,
        Session,
        init,
        repair,
        verify,
    )
    from omnigraph.inference.proposal import infer
else:
    # Hidden from type checkers, to which it would mean that every name exists.
    def __getattr__(name: str) -> Any:
        if name not in _OF_GRAPH:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name == "open":
            from omnigraph.client import opening

            return opening.open
        if name == "project":
            from omnigraph.client import projects

            return projects.project
        if name == "infer":
            from omnigraph.inference import proposal

            return proposal.infer
        from omnigraph import graph

        return getattr(graph, name)


__all__ = [
    "Cancellation",
    "CsvOptions",
    "Graph",
    "MigrationPlan",
    "OmniGraphError",
    "SchemaCommit",
    "SchemaResult",
    "Session",
    "__version__",
    "errors",
    "infer",
    "init",
    "open",
    "project",
    "repair",
    "verify",
]

_OF_GRAPH = {*__all__} - {"OmniGraphError", "__version__", "errors"}


def __dir__() -> list[str]:
    return sorted({*globals(), *_OF_GRAPH})


def load_ipython_extension(ipython: Any) -> None:
    """What `%load_ext omnigraph` does: queries in cells, and completion in them."""
    from omnigraph.notebook.extension import load

    load(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """What `%unload_ext omnigraph` does."""
    from omnigraph.notebook.extension import unload

    unload(ipython)
