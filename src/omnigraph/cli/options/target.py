"""Which graph a command means, and what is said and asked before one is changed.

Owns the way from addresses on the command line to an opened graph. Must import
the engine only when a graph is opened.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from omnigraph.cli.options.scope import CommandScope
from omnigraph.cli.render.output import diagnose, is_terminal, write_note
from omnigraph.errors import BadRequest

if TYPE_CHECKING:
    from omnigraph.graph import Graph

uri_argument = click.argument("uri", metavar="[URI]", required=False)
uri_option = click.option("--uri", metavar="URI", help="The graph: a path or s3://bucket/prefix.")

_UNAVAILABLE = "this version opens graphs directly: served and cluster scopes are not supported yet"


@dataclass(frozen=True, slots=True)
class Target:
    """The storage of one graph, as the user wrote it."""

    uri: str

    @property
    def is_local(self) -> bool:
        """Whether it is on a disk of this machine."""
        return "://" not in self.uri or self.uri.startswith("file://")

    def read(self) -> Graph:
        """Open the graph to look at it; nothing is written."""
        from omnigraph import graph

        return graph.open(self.uri, read_only=True)

    def write(self, command: str, scope: CommandScope) -> Graph:
        """Open the graph to change it, and name it on stderr."""
        from omnigraph import graph

        opened = graph.open(self.uri, actor=scope.actor)
        for notice in opened.notices:
            diagnose("note", notice)
        if not scope.quiet:
            place = "local" if self.is_local else "remote"
            write_note(f"omnigraph {command} → {self.uri} (direct, {place})")
        return opened

    def require_consent(self, deed: str, scope: CommandScope, *, as_json: bool) -> None:
        """Ask before something is destroyed that is not on this machine."""
        if self.is_local or scope.yes:
            return
        if as_json or not is_terminal(sys.stdin):
            raise BadRequest(f"{deed} on {self.uri} cannot be undone: agree to it with --yes")
        if not click.confirm(f"{deed} on {self.uri}: are you sure?", err=True):
            raise BadRequest("not confirmed, nothing was changed")


def target_of(scope: CommandScope, uri: str | None) -> Target:
    """The graph named by the command's own address or by the global options."""
    given = {"URI": uri, "--store": scope.store, "--server": scope.server}
    given["--cluster"] = scope.cluster
    addresses = {name: value for name, value in given.items() if value is not None}
    if len(addresses) > 1:
        raise _usage(f"more than one address is given ({', '.join(addresses)}): choose one")
    if "--server" in addresses or "--cluster" in addresses:
        raise _usage(_UNAVAILABLE)
    if not addresses:
        if scope.profile is not None or scope.graph is not None:
            raise _usage(_UNAVAILABLE)
        raise _usage("which graph? give its URI, or --store URI: a path or s3://bucket/prefix")
    if scope.graph is not None:
        raise _usage("a store is one graph: leave --graph out")
    (address,) = addresses.values()
    return storage_target(address)


def storage_target(uri: str) -> Target:
    """A graph by its storage alone."""
    if uri.lower().startswith(("http://", "https://")):
        raise _usage(f"{uri} is not a storage location: remote graphs need --server")
    return Target(uri)


def _usage(message: str) -> click.UsageError:
    return click.UsageError(message, click.get_current_context(silent=True))
