"""Cells: a query or a mutation that is written in a notebook, run, and its result.

Owns which graph and which branch it is for: that which was opened here, the one that is named, or
the only one that the notebook has. What a query does is the graph's to know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from omnigraph.errors import BadRequest, NotFound
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.lang.query.unnamed import is_mutation
from omnigraph.lang.source import Source
from omnigraph.manifest.entries import MAIN
from omnigraph.notebook.header import Expression, Header, read_header

if TYPE_CHECKING:
    from omnigraph.graph import Session

CELL = "<cell>"


class Shell(Protocol):
    """What is needed of IPython."""

    user_ns: dict[str, Any]

    def ev(self, expr: str) -> Any:
        """The value of an expression of the notebook."""


@dataclass
class Cells:
    """What a notebook has said about graphs so far."""

    shell: Shell
    graph: Session | None = None
    """The one that was opened by `%gq_open`."""
    branch: str = MAIN

    # -- which graph -----------------------------------------------------------------

    def open(
        self,
        location: str,
        *,
        branch: str = MAIN,
        graph: str | None = None,
        actor: str | None = None,
        read_only: bool = False,
    ) -> Session:
        """Open the graph that cells are about from now on."""
        from omnigraph.client.address import is_server_url
        from omnigraph.client.opening import open as open_graph

        if is_server_url(location):
            found = _on_server(location, graph, actor, is_read_only=read_only)
        else:
            found = open_graph(location, read_only=read_only, actor=actor)
        self.graph, self.branch = found, branch
        return found

    def graphs(self) -> dict[str, Session]:
        """The graphs that the notebook has in variables of its own."""
        return {
            name: value
            for name, value in self.shell.user_ns.items()
            if not name.startswith("_") and is_graph(value)
        }

    def meant(self, name: str | None) -> Session:
        """The graph that is named; without a name the one there is."""
        held = self.graphs()
        if name is not None:
            if name in held:
                return held[name]
            hint = did_you_mean(name, sorted(held)) or _listed(held)
            raise NotFound(f"there is no graph in a variable {name}: {hint}")
        if self.graph is not None:
            return self.graph
        different = {id(graph): graph for graph in held.values()}
        if len(different) == 1:
            return next(iter(different.values()))
        if different:
            raise BadRequest(f"which graph? say --graph NAME: {_listed(held)}")
        raise BadRequest("no graph is open: %gq_open LOCATION, or graph = omnigraph.open(…)")

    # -- running ---------------------------------------------------------------------

    def run(self, line: str, cell: str | None) -> Any:
        """Run what a cell says, or the rest of a line; the result."""
        header = read_header(line)
        if cell is not None and header.rest:
            raise BadRequest(f"the query begins below the line of %%gq, not with {header.rest!r}")
        text = header.rest if cell is None else cell
        if not text.strip():
            raise BadRequest("there is no query: %gq match { … } return { … }, or %%gq and a cell")
        out = header.value("--out")
        if out is not None and not out.isidentifier():
            raise BadRequest(f"{out} cannot be the name of a variable")
        result = self._result(header, text)
        if out is not None:
            self.shell.user_ns[out] = result
        return result

    def _result(self, header: Header, text: str) -> Any:
        graph, source = self.meant(header.value("--graph")), Source(text, CELL)
        name, params = header.value("--name"), self._params(header)
        branch, snapshot = self.branch_of(header), header.value("--snapshot")
        is_change = is_mutation(text, name)
        if is_change and (snapshot is not None or header.is_explaining):
            raise BadRequest("a mutation changes a branch: leave --snapshot and --explain out")
        if is_change:
            message = header.value("--message")
            return graph.mutate(source, name, params, branch=branch, message=message)
        if header.value("--message") is not None:
            raise BadRequest("this query changes nothing: leave --message out")
        ask = graph.explain if header.is_explaining else graph.query
        return ask(source, name, params, branch=branch, snapshot=snapshot)

    def branch_of(self, header: Header) -> str:
        """The branch that is named, or that of the graph that was opened for cells."""
        named, is_opened = header.value("--branch"), header.value("--graph") is None
        return named or (self.branch if is_opened and self.graph is not None else MAIN)

    def _params(self, header: Header) -> dict[str, Any] | None:
        params: dict[str, Any] = {}
        if header.all_params is not None:
            given = self.shell.ev(header.all_params.text)
            if not isinstance(given, Mapping):
                raise BadRequest(f"--params is a {type(given).__name__}, and has to be a mapping")
            params.update(given)
        for name, value in header.params.items():
            params[name] = self.shell.ev(value.text) if isinstance(value, Expression) else value
        return params or None


def is_graph(value: object) -> bool:
    """Whether a value can be asked here."""
    from omnigraph.client.graph import ServedGraph
    from omnigraph.graph import Session

    return isinstance(value, Session | ServedGraph)


def _listed(held: Mapping[str, object]) -> str:
    return f"there are {', '.join(sorted(held))}" if held else "there is no graph in any"


def _on_server(
    location: str, graph: str | None, actor: str | None, *, is_read_only: bool
) -> Session:
    """A graph that is served, by the token of the environment: it has the methods of a session."""
    from omnigraph.client.address import ServerAddress
    from omnigraph.client.opening import served

    if actor is not None or is_read_only:
        raise BadRequest("on a server the token decides: leave --actor and --read-only out")
    address = ServerAddress.parse(location, graph)
    if address.graph is None:
        raise BadRequest(f"{address.base} is a server: which graph? --graph ID, or …/graphs/ID")
    return cast("Session", served(address))
