"""The global options: where a command works, as whom, and how loudly.

Owns the options themselves and `Scope`, their values. They may stand before or
after the verb; the last one wins. Resolves no names and opens nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from omnigraph.cli.options.capability import Flag

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
