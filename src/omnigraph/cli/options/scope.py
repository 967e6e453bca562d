"""The global options and the graph they mean: where a command works, as whom, how loudly.

Owns the way from addresses and what is configured to an opened graph, and what is said and asked
before one is changed. Must import the engine only when a graph is opened.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.options.capabilities import Flag, capability
from omnigraph.cli.options.configured import layers_of, project_file
from omnigraph.cli.options.nearest import Known, remember
from omnigraph.cli.render.output import diagnose, is_terminal, write_note
from omnigraph.errors import BadRequest

if TYPE_CHECKING:
    from omnigraph.client.graph import ServedGraph
    from omnigraph.config.layers import Place
    from omnigraph.config.project import ProjectFile, ProjectGraph
    from omnigraph.graph import Graph

_META = "omnigraph.scope"


@dataclass(frozen=True, slots=True)
class CommandScope:
    """What the user said about the target, before anything is looked up."""

    server: str | None = None
    graph: str | None = None
    store: str | None = None
    location: str | None = None
    """What ``--uri`` says."""
    cluster: str | None = None
    profile: str | None = None
    actor: str | None = None
    yes: bool = False
    quiet: bool = False
    config: str | None = None
    no_config: bool = False

    @property
    def is_addressed(self) -> bool:
        """Whether an option names the graph."""
        addresses = (self.store, self.location, self.server, self.cluster, self.graph)
        return any(address is not None for address in addresses)

    @property
    def given(self) -> frozenset[Flag]:
        """The flags that were given (the others select no scope)."""
        values: Mapping[Flag, str | None] = {
            "server": self.server,
            "cluster": self.cluster,
            "graph": self.graph,
            "store": self.store,
            "uri": self.location,
            "as": self.actor,
            "profile": self.profile,
        }
        return frozenset(flag for flag, value in values.items() if value is not None)


class GlobalOption(click.Option):
    """An option every command accepts on its command line, to use it or to refuse it well."""

    def __init__(self, names: list[str], *, flag: Flag | None = None, **attrs: Any) -> None:
        super().__init__(names, expose_value=False, callback=_remember, **attrs)
        self.flag = flag


def global_options() -> list[click.Parameter]:
    """Fresh option objects for one command of the tree."""
    return [
        _scope_option("server", "NAME|URL", "A configured server, or its URL."),
        _scope_option("graph", "ID", "The graph on that server or cluster."),
        _scope_option("store", "URI", "The storage of one graph, opened directly."),
        _scope_option("uri", "URI", "The graph, where it does not stand first behind the command."),
        _scope_option("cluster", "DIR|URI", "A cluster: its name, directory or storage root."),
        _scope_option("profile", "NAME", "A configured scope."),
        _scope_option("as", "ACTOR", "Who is recorded as the author of a direct write."),
        GlobalOption(
            ["--yes"],
            is_flag=True,
            help="Agree to a destructive write on a target that is not local.",
        ),
        GlobalOption(
            ["--quiet"], is_flag=True, help="Do not name the target of a write on stderr."
        ),
        GlobalOption(["--config"], metavar="FILE", help="The omnigraph.yaml that is meant."),
        GlobalOption(["--no-config"], is_flag=True, help="Look for no omnigraph.yaml."),
    ]


# `as` is a Python keyword, and `uri` the word of the graph.
_FIELDS: Mapping[Flag, str] = {"as": "actor", "uri": "location"}


def scope_of(ctx: click.Context) -> CommandScope:
    """The scope collected so far, from every level of the command line."""
    return CommandScope(**ctx.meta.get(_META, {}))


def _scope_option(flag: Flag, metavar: str, help_text: str) -> GlobalOption:
    field = _FIELDS.get(flag, flag)
    return GlobalOption([f"--{flag}", field], flag=flag, metavar=metavar, help=help_text)


def _remember(ctx: click.Context, param: click.Parameter, value: str | bool | None) -> None:  # noqa: FBT001 - click calls it
    # click shares `meta` between the contexts of one command line: a later option overwrites.
    if value is not None and value is not False:
        ctx.meta.setdefault(_META, {})[param.name] = value


@dataclass(frozen=True, slots=True)
class Target:
    """One graph, as the user wrote it: in storage, unless it says otherwise."""

    uri: str
    graph: ProjectGraph | None = None
    """The graph of the project, if it is one."""
    project: ProjectFile | None = None
    """The project that named it, if no option did."""

    @property
    def is_local(self) -> bool:
        """Whether it is on a disk of this machine."""
        return "://" not in self.uri or self.uri.startswith("file://")

    @property
    def is_served(self) -> bool:
        """Whether it is a graph on a server, which has methods of its own."""
        return False

    @property
    def shown(self) -> str:
        """What a write is said to go to."""
        if self.graph is None or self.project is None:
            return self.uri
        return f"{self.graph.name} ({self.uri}) from {self.project.path.name}"

    def served(self) -> ServedGraph:
        """The graph with the methods that only servers offer."""
        raise LookupError(f"{self.uri} is not on a server")

    def read(self) -> Graph:
        """Open the graph to look at it; nothing is written."""
        from omnigraph import graph

        return self._embedded(graph.open(self.uri, read_only=True))

    def write(self, command: str, scope: CommandScope) -> Graph:
        """Open the graph to change it, and name it on stderr."""
        from omnigraph import graph

        opened = graph.open(self.uri, actor=layers_of(scope).actor.value)
        for notice in opened.notices:
            diagnose("note", notice)
        opened = self._embedded(opened)
        if not scope.quiet:
            place = "local" if self.is_local else "remote"
            write_note(f"omnigraph {command} → {self.shown} (direct, {place})")
        return opened

    def _embedded(self, opened: Graph) -> Graph:
        """The graph with the embedder that the project names for it."""
        remember(Known(opened.branches.list))
        if self.graph is None or self.graph.embedding_provider is None or self.project is None:
            return opened
        from omnigraph.config.embedding import embedding_of
        from omnigraph.graph.opening import embedded_by

        return embedded_by(opened, embedding_of(self.project, self.graph))

    def require_consent(self, deed: str, scope: CommandScope, *, as_json: bool) -> None:
        """Ask before something is destroyed that is not on this machine."""
        if self.is_local or scope.yes:
            return
        if as_json or not is_terminal(sys.stdin):
            raise BadRequest(f"{deed} on {self.uri} cannot be undone: agree to it with --yes")
        if not click.confirm(f"{deed} on {self.uri}: are you sure?", err=True):
            raise BadRequest("not confirmed, nothing was changed")


def target_of(scope: CommandScope, uri: str | None, wanted: str = "its URI, or --store") -> Target:
    """The graph named by the command's own address, the global options, or what is configured.

    ``wanted`` says what could name it, where nothing does.
    """
    given = {"URI": uri, "--uri": scope.location, "--store": scope.store}
    given["--server"] = scope.server
    given["--cluster"] = scope.cluster
    addresses = {name: value for name, value in given.items() if value is not None}
    if len(addresses) > 1:
        raise _usage(f"more than one address is given ({', '.join(addresses)}): choose one")
    if not addresses:
        return _configured(scope, wanted)
    ((name, address),) = addresses.items()
    if name == "--cluster":
        return _clustered(address, scope.graph)
    if name == "--server":
        meant = layers_of(scope).graph_name
        return _served(scope, address, None if meant is None else meant.value)
    if scope.graph is not None:
        raise _usage("a store is one graph: leave --graph out")
    is_store = name == "--store"
    named = None if is_store else graph_of_project(scope, address)
    if named is None and not is_store:
        _require_no_misspelling(scope, address)
    return storage_target(address) if named is None else named


def graph_of_project(scope: CommandScope, name: str) -> Target | None:
    """The graph of the project under a name; what is there as a path is meant as a path."""
    if "://" in name:
        return None
    project = project_file(scope)
    if project is None or name not in project.graphs:
        return None
    own = project.graphs[name].uri
    if Path(name).exists() and Path(name).resolve() != Path(own).resolve():
        diagnose(
            "note",
            f"{name} is taken as the path that is there; the graph of {project.path.name} of that "
            f"name is --graph {name}",
        )
        return None
    return project_target(scope, project, project.graphs[name])


def _require_no_misspelling(scope: CommandScope, name: str) -> None:
    """Refuse a word that is no path, and nearly the name of a graph of the project."""
    if "/" in name or Path(name).exists():
        return
    project = project_file(scope)
    if project is None:
        return
    from omnigraph.lang.diagnostics import did_you_mean

    hint = did_you_mean(name, project.graphs)
    if hint is not None:
        raise BadRequest(
            f"there is no graph at {name}, and no graph {name!r} in {project.path}: {hint}"
        )


def project_target(scope: CommandScope, project: ProjectFile, graph: ProjectGraph) -> Target:
    """A graph of the project."""
    if not graph.is_served:
        return Target(_from_here(graph.uri), graph, project)
    if _takes("server") is False:
        raise _usage(
            f"the graph '{graph.name}' of {project.path.name} is on a server, which this command "
            "cannot use: give another one"
        )
    _require_no_actor(scope)
    from omnigraph.cli.options.served import target_on_server

    return target_on_server(project, graph)


def _from_here(uri: str) -> str:
    """A path of storage as short as it can be written from here."""
    if "://" in uri:
        return uri
    path, here = Path(os.path.normpath(uri)), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _configured(scope: CommandScope, wanted: str) -> Target:
    """The graph that the environment, a profile, the project or the defaults name."""
    place = layers_of(scope).place
    if place is None:
        other = "" if _takes("server") is False else ", or --server NAME|URL with --graph ID"
        raise _usage(f"which graph? give {wanted} URI: a path or s3://bucket/prefix{other}")
    project = project_file(scope)
    if place.kind == "graph" and project is not None:
        return project_target(scope, project, project.graph(place.target))
    return _placed(scope, place)


def _placed(scope: CommandScope, place: Place) -> Target:
    where = f"{place.source} names"
    if place.kind == "cluster":
        if _takes("cluster") is False:
            raise _usage(f"{where} a cluster, which this command cannot use: give another address")
        return _clustered(place.target, scope.graph or place.graph)
    if place.kind == "server":
        if _takes("server") is False:
            raise _usage(f"{where} a server, which this command cannot use: give another address")
        return _served(scope, place.target, place.graph)
    if _takes("store") is False:
        raise _usage(f"{where} a store, which this command cannot use: give another address")
    if scope.graph is not None:
        raise _usage("a store is one graph: leave --graph out")
    return storage_target(place.target)


def _clustered(cluster: str, graph: str | None) -> Target:
    from omnigraph.cli.options.cluster import clustered_target

    return clustered_target(cluster, graph)


def _served(scope: CommandScope, server: str, graph: str | None) -> Target:
    from omnigraph.cli.options.served import served_target

    _require_no_actor(scope)
    return served_target(server, graph)


def _require_no_actor(scope: CommandScope) -> None:
    if scope.actor is not None:
        raise _usage("the token of the server decides who acts: leave --as out")


def _takes(flag: Flag) -> bool | None:
    """Whether the command that runs takes a flag; None where none runs."""
    context = click.get_current_context(silent=True)
    if context is None or context.parent is None:
        return None
    return flag in capability(words_of(context)).takes


def words_of(ctx: click.Context) -> str:
    """The command as typed below the root, such as `schema plan`."""
    names: list[str] = []
    level: click.Context | None = ctx
    while level is not None and level.parent is not None:
        names.append(level.info_name or "")
        level = level.parent
    return " ".join(reversed(names))


def storage_target(uri: str) -> Target:
    """A graph by its storage alone."""
    if uri.lower().startswith(("http://", "https://")):
        raise _usage(f"{uri} is not a storage location: remote graphs need --server")
    return Target(uri)


def _usage(message: str) -> click.UsageError:
    return click.UsageError(message, click.get_current_context(silent=True))
