"""The global options and the graph they mean: where a command works, as whom, how loudly.

Owns the table of which command takes which of them, the way from addresses to an opened graph,
and what is said and asked before one is changed. Must import the engine only when a graph is
opened.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import click

from omnigraph.cli.render.output import diagnose, is_terminal, write_note
from omnigraph.errors import BadRequest

if TYPE_CHECKING:
    from omnigraph.client.graph import ServedGraph
    from omnigraph.config.operator import OperatorConfig
    from omnigraph.graph import Graph

Flag = Literal["server", "cluster", "graph", "store", "as", "profile"]
Kind = Literal["data", "served", "direct", "control", "local"]

# The order in which refused flags are reported.
FLAGS: tuple[Flag, ...] = get_args(Flag)

uri_argument = click.argument("uri", metavar="[URI]", required=False)
uri_option = click.option("--uri", metavar="URI", help="The graph: a path or s3://bucket/prefix.")


@dataclass(frozen=True, slots=True)
class Capability:
    """What kind of target a command works on, and the scope flags that can name it."""

    kind: Kind
    takes: frozenset[Flag] = frozenset()


@dataclass(frozen=True, slots=True)
class Refusal:
    """One flag that was given to a command that does not take it."""

    command: str
    kind: Kind
    flag: Flag
    hint: str

    def __str__(self) -> str:
        return f"`{self.command}` is a {self.kind} command and takes no --{self.flag}: {self.hint}"


def _row(kind: Kind, commands: str, *takes: Flag) -> dict[str, Capability]:
    capability = Capability(kind, frozenset(takes))
    return {command.strip(): capability for command in commands.split(",")}


# A command of two words that is not listed has the capability of its first word.
CAPABILITIES: Mapping[str, Capability] = {
    **_row(
        "data",
        "query, explain, blob, log, commit, diff, changes, recovery, status, pipeline validate, "
        "schema diff, schema log",
        *("server", "graph", "store", "profile"),
    ),
    **_row(
        "data",
        "mutate, load, ingest, pipeline run, branch, snapshot, export, schema show, schema apply",
        *("server", "graph", "store", "as", "profile"),
    ),
    **_row("served", "graphs list", "server", "profile"),
    **_row(
        "direct",
        "index, optimize, repair, verify, cleanup, lint",
        "graph",
        "store",
        "cluster",
        "profile",
    ),
    **_row("direct", "maintain", "graph", "store", "cluster", "as", "profile"),
    **_row("direct", "serve", "graph", "store", "cluster", "profile"),
    **_row("direct", "schema plan", "store", "profile"),
    **_row("direct", "init"),
    **_row("control", "policy, queries", "graph", "cluster", "profile"),
    **_row("control", "cluster"),
    **_row("control", "cluster apply, cluster approve", "as"),
    **_row("local", "alias, fmt, generate, login, logout, profile, submit, version"),
    # The one that can do without a graph.
    **_row("local", "embed", "store", "as"),
}

_ADDRESSES: Mapping[Flag, str] = {
    "server": "--server NAME|URL",
    "cluster": "--cluster DIR|URI",
    "store": "--store URI",
}

_HINTS: Mapping[tuple[Kind, Flag], str] = {
    ("data", "as"): "it writes nothing, so no actor is recorded",
    ("served", "as"): "the token of the server decides who acts",
    ("direct", "as"): "it records no actor",
    ("control", "as"): "only `cluster apply` and `cluster approve` record an actor",
    ("served", "graph"): "it lists every graph of the server",
}


def capability(command: str) -> Capability:
    """The capability of a command, given by its words (`schema plan`)."""
    found = CAPABILITIES.get(command) or CAPABILITIES.get(command.partition(" ")[0])
    if found is None:
        raise LookupError(f"no capability is declared for the command `{command}`")
    return found


def refusals(command: str, given: Collection[Flag]) -> list[Refusal]:
    """Every flag of ``given`` that ``command`` does not take, in reporting order."""
    allowed = capability(command)
    return [
        Refusal(command, allowed.kind, flag, _hint(allowed, flag))
        for flag in FLAGS
        if flag in given and flag not in allowed.takes
    ]


def _hint(allowed: Capability, flag: Flag) -> str:
    special = _HINTS.get((allowed.kind, flag))
    if special is not None:
        return special
    addresses = [text for name, text in _ADDRESSES.items() if name in allowed.takes]
    if addresses:
        return f"use {' or '.join(addresses)}"
    return "it works on its own arguments alone"


_META = "omnigraph.scope"
_WARNED = "omnigraph.config.warned"


@dataclass(frozen=True, slots=True)
class CommandScope:
    """What the user said about the target, before anything is looked up."""

    server: str | None = None
    graph: str | None = None
    store: str | None = None
    cluster: str | None = None
    profile: str | None = None
    actor: str | None = None
    yes: bool = False
    quiet: bool = False

    @property
    def given(self) -> frozenset[Flag]:
        """The flags that were given (`--yes` and `--quiet` select no scope)."""
        values: Mapping[Flag, str | None] = {
            "server": self.server,
            "cluster": self.cluster,
            "graph": self.graph,
            "store": self.store,
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
    ]


def scope_of(ctx: click.Context) -> CommandScope:
    """The scope collected so far, from every level of the command line."""
    return CommandScope(**ctx.meta.get(_META, {}))


def _scope_option(flag: Flag, metavar: str, help_text: str) -> GlobalOption:
    # `as` is a Python keyword, so its field is named for what it holds.
    field = "actor" if flag == "as" else flag
    return GlobalOption([f"--{flag}", field], flag=flag, metavar=metavar, help=help_text)


def _remember(ctx: click.Context, param: click.Parameter, value: str | bool | None) -> None:  # noqa: FBT001 - click calls it
    # click shares `meta` between the contexts of one command line: a later option overwrites.
    if value is not None and value is not False:
        ctx.meta.setdefault(_META, {})[param.name] = value


@dataclass(frozen=True, slots=True)
class Target:
    """One graph, as the user wrote it: in storage, unless it says otherwise."""

    uri: str

    @property
    def is_local(self) -> bool:
        """Whether it is on a disk of this machine."""
        return "://" not in self.uri or self.uri.startswith("file://")

    @property
    def is_served(self) -> bool:
        """Whether it is a graph on a server, which has methods of its own."""
        return False

    def served(self) -> ServedGraph:
        """The graph with the methods that only servers offer."""
        raise LookupError(f"{self.uri} is not on a server")

    def read(self) -> Graph:
        """Open the graph to look at it; nothing is written."""
        from omnigraph import graph

        return graph.open(self.uri, read_only=True)

    def write(self, command: str, scope: CommandScope) -> Graph:
        """Open the graph to change it, and name it on stderr."""
        from omnigraph import graph

        opened = graph.open(self.uri, actor=scope.actor or _operator())
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


def target_of(scope: CommandScope, uri: str | None, wanted: str = "its URI, or --store") -> Target:
    """The graph named by the command's own address, the global options, or what is configured.

    ``wanted`` says what could name it, where nothing does.
    """
    given = {"URI": uri, "--store": scope.store, "--server": scope.server}
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
        return _served(scope, address, scope.graph)
    if scope.graph is not None:
        raise _usage("a store is one graph: leave --graph out")
    return storage_target(address)


def _configured(scope: CommandScope, wanted: str) -> Target:
    """The graph of the profile, else of the defaults."""
    from omnigraph.config.operator import active_profile

    config = operator_config()
    name = active_profile(scope.profile)
    if name is not None:
        profile = config.profile(name)
        kind, address = profile.binding
        graph = scope.graph or profile.default_graph
        where = f"the profile '{name}' names"
    elif config.defaults.server is not None:
        kind, address = "server", config.defaults.server
        graph, where = scope.graph or config.defaults.default_graph, "the defaults name"
    elif config.defaults.store is not None:
        kind, address = "store", config.defaults.store
        graph, where = scope.graph, "the defaults name"
    else:
        other = "" if _takes("server") is False else ", or --server NAME|URL with --graph ID"
        raise _usage(f"which graph? give {wanted} URI: a path or s3://bucket/prefix{other}")
    if _takes(kind) is False:
        raise _usage(f"{where} a {kind}, which this command cannot use: give another address")
    if kind == "server":
        return _served(scope, address, graph)
    if kind == "cluster":
        return _clustered(address, graph)
    if graph is not None:
        raise _usage("a store is one graph: leave --graph out")
    return storage_target(address)


def _clustered(cluster: str, graph: str | None) -> Target:
    from omnigraph.cli.options.cluster import clustered_target

    return clustered_target(cluster, graph)


def _served(scope: CommandScope, server: str, graph: str | None) -> Target:
    from omnigraph.cli.options.served import served_target

    if scope.actor is not None:
        raise _usage("the token of the server decides who acts: leave --as out")
    return served_target(server, graph)


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


def operator_config() -> OperatorConfig:
    """What the person at the keyboard has configured; what is not known in it is remarked once."""
    from omnigraph.config.operator import read_operator_config

    config = read_operator_config()
    context = click.get_current_context(silent=True)
    said = {} if context is None else context.meta
    if not said.get(_WARNED):
        said[_WARNED] = True
        for warning in config.warnings:
            diagnose("warning", warning)
    return config


def _operator() -> str | None:
    return operator_config().actor


def storage_target(uri: str) -> Target:
    """A graph by its storage alone."""
    if uri.lower().startswith(("http://", "https://")):
        raise _usage(f"{uri} is not a storage location: remote graphs need --server")
    return Target(uri)


def _usage(message: str) -> click.UsageError:
    return click.UsageError(message, click.get_current_context(silent=True))
