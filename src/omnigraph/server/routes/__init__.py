"""The routes of the server, a module for each subject, and the list of all of them."""

from __future__ import annotations

from omnigraph.server.router import Route


def all_routes() -> tuple[Route, ...]:
    """Every route, in the order in which they are described."""
    from omnigraph.server.routes import (
        blobs,
        branches,
        changes,
        commits,
        loads,
        public,
        queries,
        reads,
        schema,
        upkeep,
        writes,
    )

    modules = (
        public,
        reads,
        queries,
        blobs,
        writes,
        loads,
        branches,
        commits,
        changes,
        schema,
        upkeep,
    )
    return tuple(route for module in modules for route in module.ROUTES)
