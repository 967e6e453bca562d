"""Graphs on servers as the targets of commands.

Owns the way from a name or an address, and what is configured for it, to a served graph with its
token.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from omnigraph.cli.options.configured import operator_config
from omnigraph.cli.options.nearest import Known, remember
from omnigraph.cli.options.scope import CommandScope, Target
from omnigraph.cli.render.output import write_note
from omnigraph.client.address import ServerAddress
from omnigraph.config.credentials import token_for, token_for_graph
from omnigraph.errors import BadRequest, OmniGraphError

if TYPE_CHECKING:
    from omnigraph.client.graph import ServedGraph
    from omnigraph.config.operator import OperatorConfig
    from omnigraph.config.project import ProjectFile, ProjectGraph
    from omnigraph.graph import Graph
    from omnigraph.wire.serving import GraphsBody


@dataclass(frozen=True, slots=True)
class ServedTarget(Target):
    """A graph on a server."""

    address: ServerAddress = field(kw_only=True)

    @property
    def is_served(self) -> bool:
        """Always: it has the methods that a server offers."""
        return True

    @property
    def is_local(self) -> bool:
        """Never: what is on a server is others' too."""
        return False

    def served(self) -> ServedGraph:
        """The graph, with the token that is configured for its server."""
        config = operator_config()
        if self.graph is not None:
            from omnigraph.client.projects import connected

            token = token_for_graph(self.graph, self.address.base, config)
            opened = connected(self.address, token)
            remember(Known(opened.branches.list))
        else:
            from omnigraph.client.opening import served

            opened = served(self.address, token_for(self.address.base, config))
            remember(Known(opened.branches.list, lambda: _ids(self.address, config)))
        return opened

    def read(self) -> Graph:
        """The same for a command that knows of no servers: it has the methods of a graph."""
        return cast("Graph", self.served())

    def write(self, command: str, scope: CommandScope) -> Graph:
        """The graph, named on stderr first."""
        if not scope.quiet:
            write_note(f"omnigraph {command} → {self.shown} (served)")
        return self.read()


def served_target(server: str, graph: str | None) -> ServedTarget:
    """The graph of a server that is named or addressed; which one, it is asked if need be."""
    config = operator_config()
    address = address_of(server, config, graph)
    if address.graph is None:
        ids = _ids(address, config)
        if ids:
            raise BadRequest(
                f"{address.base} has the graphs {', '.join(ids)}: choose one with --graph"
            )
    return ServedTarget(str(address), address=address)


def target_on_server(project: ProjectFile, graph: ProjectGraph) -> ServedTarget:
    """A graph of the project that is on a server."""
    from omnigraph.client.projects import address_in

    address = address_in(project, graph, operator_config())
    return ServedTarget(str(address), graph, project, address=address)


def address_of(server: str, config: OperatorConfig, graph: str | None = None) -> ServerAddress:
    """The address of a server by its name or its URL."""
    return ServerAddress.parse(server if "://" in server else config.server_url(server), graph)


def graphs_of(address: ServerAddress, config: OperatorConfig) -> GraphsBody:
    """The graphs of a server."""
    from omnigraph.client.opening import list_graphs

    return list_graphs(address, token_for(address.base, config))


def _ids(address: ServerAddress, config: OperatorConfig) -> list[str]:
    try:
        return [one.graph_id for one in graphs_of(address, config).graphs]
    except OmniGraphError:
        # Whoever may not list them may still use one; what is wrong with the address shows then.
        return []
