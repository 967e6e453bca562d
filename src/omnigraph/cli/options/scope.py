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
    from omnigraph.graph import Graph

Flag = Literal["server", "cluster", "graph", "store", "as", "profile"]
Kind = Literal["data", "served", "direct", "control", "local"]

# The order in which refused flags are reported.
FLAGS: tuple[Flag, ...] = get_args(Flag)

uri_argument = click.argument("uri", metavar="[URI]", required=False)
uri_option = click.option("--uri", metavar="URI", help="The graph: a path or s3://bucket/prefix.")

_UNAVAILABLE = "this version opens graphs directly: served and cluster scopes are not supported yet"


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
        "query, explain, blob, log, commit, diff, changes, recovery, pipeline validate, "
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
        "direct", "index, optimize, repair, cleanup, lint", "graph", "store", "cluster", "profile"
    ),
    **_row("direct", "schema plan", "store", "profile"),
    **_row("direct", "init"),
    **_row("control", "policy, queries", "graph", "cluster", "profile"),
    **_row("control", "cluster"),
    **_row("control", "cluster apply, cluster approve", "as"),
    **_row("local", "alias, fmt, generate, login, logout, profile, version"),
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
