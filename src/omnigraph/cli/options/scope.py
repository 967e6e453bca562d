"""The global options: where a command works, as whom, and how loudly.

Owns the table of which command takes which of them. Opens nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import click

Flag = Literal["server", "cluster", "graph", "store", "as", "profile"]
Kind = Literal["data", "served", "direct", "control", "local"]

# The order in which refused flags are reported.
FLAGS: tuple[Flag, ...] = get_args(Flag)


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
        "query, explain, blob, log, commit, diff, changes, recovery, pipeline validate",
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
