"""Whether what a project names is there and fits: addresses, schemas, queries, aliases, policies.

Owns the list of what is looked at. Opens no graph and asks no server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.errors import OmniGraphError

if TYPE_CHECKING:
    from omnigraph.config.project import Alias, ProjectFile, ProjectGraph
    from omnigraph.lang.schema.catalog import Catalog
    from omnigraph.server.stored_queries import StoredQueries

Problem = tuple[str, str]


def check_project(project: ProjectFile) -> Iterator[Problem]:
    """Everything that is wrong with what a file names: where it is named, and what is said."""
    catalogs: dict[str, Catalog] = {}
    for name, graph in project.graphs.items():
        yield from _address(project, graph)
        catalog = None
        if graph.schema is not None:
            try:
                catalog = _catalog(graph.schema)
            except OmniGraphError as error:
                yield project.place(f"graphs.{name}.schema"), str(error)
        if catalog is not None:
            catalogs[name] = catalog
        yield from _queries(project, graph, catalog)
        if graph.policy is not None:
            yield from _policy(project, f"graphs.{name}.policy", graph.policy, "graph")
    for name, alias in project.aliases.items():
        yield from _alias(project, name, alias, catalogs)
    if project.policy is not None:
        yield from _policy(project, "policy.file", project.policy, "graph")
    if project.server.policy is not None:
        yield from _policy(project, "server.policy", project.server.policy, "server")


def _address(project: ProjectFile, graph: ProjectGraph) -> Iterator[Problem]:
    from omnigraph.client.address import ServerAddress
    from omnigraph.storage.objects.location import Location

    try:
        if graph.is_served:
            ServerAddress.parse(graph.uri)
        else:
            Location.parse(graph.uri)
    except OmniGraphError as error:
        yield project.place(f"graphs.{graph.name}.uri"), error.message


def _catalog(path: Path) -> Catalog:
    from omnigraph.cli.options.query_source import read_source
    from omnigraph.lang.schema.compile import compile_schema

    return compile_schema(read_source(path)).catalog


def _queries(
    project: ProjectFile, graph: ProjectGraph, catalog: Catalog | None
) -> Iterator[Problem]:
    from omnigraph.cli.options.project_queries import queries_of

    place = project.place(f"graphs.{graph.name}.queries")
    try:
        stored: StoredQueries = queries_of(project, graph)
    except OmniGraphError as error:
        yield place, str(error)
        return
    if catalog is None:
        return
    from omnigraph.lang.diagnostics import as_error
    from omnigraph.lang.query.compile import check_query

    for query in stored.by_name.values():
        compiled, diagnostics = check_query(query.source, query.syntax, catalog)
        if compiled is None:
            yield place, f"query `{query.name}`: {as_error(diagnostics)}"


def _alias(
    project: ProjectFile, name: str, alias: Alias, catalogs: Mapping[str, Catalog]
) -> Iterator[Problem]:
    from omnigraph.cli.options.project_queries import find_in_source, require_command, source_of

    if not alias.is_file:
        return
    place = project.place(f"aliases.{name}.query")
    try:
        source = source_of(alias, project)
        syntax = find_in_source(source, alias.query_name)
        require_command(alias, syntax)
        known = {param.name for param in syntax.params}
        for wanted in (*alias.args, *alias.params):
            if wanted not in known:
                from omnigraph.lang.diagnostics import name_hint

                hint = name_hint(wanted, known) or "it takes none"
                yield place, f"its query has no parameter `{wanted}`: {hint}"
    except OmniGraphError as error:
        yield place, str(error)
        return
    catalog = catalogs.get(alias.graph or project.default or "")
    if catalog is not None:
        from omnigraph.lang.diagnostics import as_error
        from omnigraph.lang.query.compile import check_query

        compiled, diagnostics = check_query(source, syntax, catalog)
        if compiled is None:
            yield place, str(as_error(diagnostics))


def _policy(project: ProjectFile, key: str, path: Path, kind: str) -> Iterator[Problem]:
    from omnigraph.policy import load

    try:
        load(str(path), "graph" if kind == "graph" else "server")
    except OmniGraphError as error:
        yield project.place(key), str(error)
