"""The schema that a project names for a graph.

Owns where it is looked for when no option gives one. Reads nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from omnigraph.cli.options.configured import layers_of, project_file

if TYPE_CHECKING:
    from omnigraph.cli.options.scope import CommandScope, Target
    from omnigraph.config.project import ProjectFile, ProjectGraph


def schema_of(scope: CommandScope, target: Target, given: Path | None) -> Path:
    """The schema that was given, else that of the graph in the project."""
    if given is not None:
        return given
    graph = target.graph or _graph_at(project_file(scope), target.uri)
    if graph is None or graph.schema is None:
        raise click.UsageError(
            "which schema? give --schema FILE, or write `schema:` of the graph in omnigraph.yaml",
            click.get_current_context(silent=True),
        )
    return graph.schema


def default_graph_with_schema(
    scope: CommandScope,
) -> tuple[ProjectFile, ProjectGraph, Path] | None:
    """The graph of the project that is meant without an address, if its schema is named."""
    if any((scope.store, scope.location, scope.server, scope.cluster)):
        return None
    layers = layers_of(scope)
    place, project = layers.place, layers.project
    if place is None or place.kind != "graph" or project is None:
        return None
    graph = project.graph(place.target)
    return None if graph.schema is None else (project, graph, graph.schema)


def _graph_at(project: ProjectFile | None, uri: str) -> ProjectGraph | None:
    """The graph of the project that is at a location."""
    if project is None or "://" in uri:
        return None
    there = Path(uri).resolve()
    for graph in project.graphs.values():
        if "://" not in graph.uri and Path(graph.uri).resolve() == there:
            return graph
    return None
