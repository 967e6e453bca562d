"""Projects: the graphs of an `omnigraph.yaml`, by their names.

Owns opening them, and which token goes to those on servers. What the file says is for
`omnigraph.config` to read.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph import graph as engine
from omnigraph.client.address import ServerAddress
from omnigraph.client.connection import Ask, Connection
from omnigraph.config.credentials import token_for_graph
from omnigraph.config.discovery import discover
from omnigraph.config.embedding import embedding_of
from omnigraph.config.layers import Layers
from omnigraph.config.operator import OperatorConfig, read_operator_config
from omnigraph.config.project import ProjectFile, ProjectGraph
from omnigraph.config.variables import load_env_file
from omnigraph.errors import BadRequest, NotFound, OmniGraphError
from omnigraph.graph.guard import guarded
from omnigraph.graph.opening import embedded_by
from omnigraph.wire.serving import GraphsBody

if TYPE_CHECKING:
    from omnigraph.client.graph import ServedGraph


class Project:
    """The graphs of a file, opened when they are asked for, and once."""

    def __init__(self, file: ProjectFile, operator: OperatorConfig) -> None:
        self._file = file
        self._layers = Layers(operator, file)
        self._opened: dict[str, engine.Graph | ServedGraph] = {}

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    @property
    def name(self) -> str | None:
        """What people call it."""
        return self._file.name

    @property
    def default(self) -> str | None:
        """The graph that is meant where none is named."""
        place = self._layers.place
        return place.target if place is not None and place.kind == "graph" else self._file.default

    @guarded
    def branch(self, name: str | None = None) -> str:
        """The default branch of a graph.

        >>> done = Path("omnigraph.yaml").write_text("graphs: {film: {uri: film.omni}}")
        >>> og.project().branch("film")
        'main'
        """
        return self._layers.branch(self._meant(name).name).value

    @guarded
    def open(
        self, name: str | None = None, *, read_only: bool = False, actor: str | None = None
    ) -> engine.Graph | ServedGraph:
        """Open a graph, the default one without a name; on a server the token says who acts.

        >>> done = Path("omnigraph.yaml").write_text("graphs: {film: {uri: film.omni}}")
        >>> og.project().open("film", read_only=True).branches.list()
        ['draft', 'main']
        """
        found = self._meant(name)
        if not found.is_served:
            who = actor or self._layers.actor.value
            opened = engine.open(found.uri, read_only=read_only, actor=who)
            embedding = embedding_of(self._file, found)
            return opened if embedding is None else embedded_by(opened, embedding)
        if read_only or actor is not None:
            raise BadRequest(f"'{found.name}' is on a server: leave read_only= and actor= out")
        operator = self._layers.operator
        address = address_in(self._file, found, operator)
        return connected(address, token_for_graph(found, address.base, operator))

    def _meant(self, name: str | None) -> ProjectGraph:
        wanted = self.default if name is None else name
        if wanted is None:
            names = ", ".join(self) or "none"
            raise BadRequest(f"which graph of {self.path}? it has {names}, and no default")
        return self._file.graph(wanted)

    def __getitem__(self, name: str) -> engine.Graph | ServedGraph:
        if name not in self._opened:
            self._opened[name] = self.open(name)
        return self._opened[name]

    def __contains__(self, name: object) -> bool:
        return name in self._file.graphs

    def __iter__(self) -> Iterator[str]:
        return iter(self._file.graphs)

    def __len__(self) -> int:
        return len(self._file.graphs)

    def __repr__(self) -> str:
        return f"<Project {self.path}: {', '.join(self) or 'no graphs'}>"


@guarded
def project(location: str | Path | None = None) -> Project:
    """The project of the working directory, of another one, or of a file.

    What nobody knows in the file is a warning; the variables of its `env_file` are set.

    >>> done = Path("omnigraph.yaml").write_text("graphs: {film: {uri: film.omni}}")
    >>> list(og.project())
    ['film']
    """
    is_file = location is not None and Path(location).is_file()
    if location is not None and not Path(location).exists():
        raise NotFound(f"there is no {location}")
    start = None if location is None or is_file else Path(location)
    found = (
        discover(str(location))
        if is_file
        else discover(None, start, {})
        if start is not None
        else discover()
    )
    if found is None:
        raise NotFound(f"there is no omnigraph.yaml in {start or Path.cwd()} or above it")
    remarks = list(found.warnings)
    if found.env_file is not None:
        variables = {provider.key_variable for provider in found.embedding.values()}
        remarks += load_env_file(found.env_file, frozenset(filter(None, variables)))
    for remark in remarks:
        warnings.warn(remark, stacklevel=2)
    return Project(found, read_operator_config())


def address_in(
    project: ProjectFile, graph: ProjectGraph, operator: OperatorConfig
) -> ServerAddress:
    """The address of a graph on a server; of a server with one graph it is that one."""
    address = ServerAddress.parse(graph.uri)
    if address.graph is not None:
        return address
    ids = _ids(address, token_for_graph(graph, address.base, operator))
    if len(ids) > 1:
        raise BadRequest(
            f"{address.base} has the graphs {', '.join(ids)}: write {address.base}/graphs/ID as "
            f"the uri of '{graph.name}' in {project.path}"
        )
    return ServerAddress(address.base, ids[0] if ids else None)


def _ids(address: ServerAddress, token: str | None) -> list[str]:
    connection = Connection(address, token, None)
    try:
        found = connection.json(Ask(method="GET", parts=("graphs",)), GraphsBody)
    except OmniGraphError:
        # Whoever may not list them may still use one; what is wrong with the address shows then.
        return []
    return [one.graph_id for one in found.graphs]


def connected(address: ServerAddress, token: str | None) -> ServedGraph:
    """A graph for which no other token is looked for than this one, if there is one."""
    from omnigraph.client.graph import ServedGraph

    return ServedGraph(Connection(address, token, None))
