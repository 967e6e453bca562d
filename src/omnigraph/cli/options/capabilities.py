"""Which command takes which of the flags that name a target, and what is said of the others.

Owns that table. Looks at no target.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

Flag = Literal["server", "cluster", "graph", "store", "uri", "as", "profile"]
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
    # Whatever opens storage takes both spellings of where it is.
    both: tuple[Flag, ...] = ("uri",) if "store" in takes else ()
    capability = Capability(kind, frozenset((*takes, *both)))
    return {command.strip(): capability for command in commands.split(",")}


# A command of two words that is not listed has the capability of its first word.
CAPABILITIES: Mapping[str, Capability] = {
    **_row(
        "data",
        "query, explain, blob, log, commit, show, history, blame, diff, changes, recovery, status, "
        "pipeline validate, schema diff, schema log",
        *("server", "graph", "store", "profile"),
    ),
    **_row(
        "data",
        "mutate, shell, load, ingest, pipeline run, branch, tag, revert, cherry-pick, snapshot, "
        "export, schema show, schema apply",
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
    # A server does it, too, for whoever has no keys of the storage.
    **_row("direct", "maintain", "server", "graph", "store", "cluster", "as", "profile"),
    **_row("direct", "serve", "graph", "store", "cluster", "profile"),
    **_row("direct", "schema plan", "store", "profile"),
    **_row("direct", "init", "store"),
    **_row("control", "policy, queries", "graph", "cluster", "profile"),
    **_row("control", "cluster"),
    **_row("control", "cluster apply, cluster approve", "as"),
    **_row("local", "config", "server", "graph", "store", "as", "profile"),
    **_row("local", "alias, fmt, generate, infer, login, logout, lsp, profile, submit, version"),
    **_row("local", "completion"),
    # The one that can do without a graph.
    **_row("local", "embed", "server", "graph", "store", "as"),
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
