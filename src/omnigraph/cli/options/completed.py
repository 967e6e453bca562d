"""What a shell is offered where one presses Tab: graphs, branches, tags, types, stored queries.

Owns finding the names. Says nothing of what goes wrong: half a command line means little yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from omnigraph.cli.options.configured import TAKES_STORE, layers_of, project_file
from omnigraph.cli.options.scope import scope_of, target_of
from omnigraph.errors import OmniGraphError

if TYPE_CHECKING:
    from omnigraph.graph import Graph

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
Names = Callable[[click.Context], Iterable[str]]


def _offering(names: Names) -> Complete:
    def complete(
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG001 - click's signature
        incomplete: str,
    ) -> list[CompletionItem]:
        ctx.meta[TAKES_STORE] = True
        try:
            with ctx.scope(cleanup=False):
                found = sorted({name for name in names(ctx) if name.startswith(incomplete)})
        except (OmniGraphError, click.ClickException, OSError):
            return []
        return [CompletionItem(name) for name in found]

    return complete


def _asked(ctx: click.Context, names: Callable[[Graph], Iterable[str]]) -> list[str]:
    """What the graph of a command line says."""
    scope, location = scope_of(ctx), ctx.params.get("uri")
    if location is None and not scope.is_addressed:
        location = next(iter(ctx.params.get("words") or ctx.args), None)
    with target_of(scope, location).read() as graph:
        return list(names(graph))


def _type_names(graph: Graph) -> Iterable[str]:
    catalog = graph.catalog
    return (*catalog.nodes, *catalog.edges)


def _graph_names(ctx: click.Context) -> Iterator[str]:
    project = project_file(scope_of(ctx))
    yield from () if project is None else project.graphs
    for pattern in ("*/__manifest", "*/*/__manifest"):
        yield from (str(path.parent) for path in Path().glob(pattern))


def _query_names(ctx: click.Context) -> Iterable[str]:
    """The graph of a query, and the queries that are stored for it."""
    from omnigraph.cli.options.project_queries import queries_of

    scope = scope_of(ctx)
    layers, project = layers_of(scope), project_file(scope)
    place = layers.place
    stored: Iterable[str] = ()
    if project is not None and place is not None and place.kind == "graph":
        stored = queries_of(project, project.graph(place.target)).by_name
    return chain(_graph_names(ctx), stored, layers.aliases)


graphs = _offering(_graph_names)
queries = _offering(_query_names)
branches = _offering(lambda ctx: _asked(ctx, lambda graph: graph.branches.list()))
tags = _offering(lambda ctx: _asked(ctx, lambda graph: graph.tags.list()))
refs = _offering(
    lambda ctx: _asked(ctx, lambda graph: (*graph.branches.list(), *graph.tags.list()))
)
types = _offering(lambda ctx: _asked(ctx, _type_names))
