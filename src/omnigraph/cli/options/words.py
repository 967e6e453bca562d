"""The words behind a verb: the graph, which may stand first, and what the verb itself takes.

Owns which word is which. Opens no graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from omnigraph.cli.options.completed import graphs
from omnigraph.cli.options.configured import project_file
from omnigraph.cli.options.scope import CommandScope, scope_of

_SHARES = "omnigraph.words"
_PATHS = ("/", "./", "../", "~/")


class Word(click.Argument):
    """A word of a verb that a graph may stand before."""

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Nothing: words are shared out when all options are known."""

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Take what was meant for it."""
        return super().handle_parse_result(ctx, {**opts, **ctx.meta.get(_SHARES, {})}, args)


class GraphWord(Word):
    """The graph a verb works on, where its words begin with one; the first of all its words."""

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Share out all words."""
        params = ctx.command.get_params(ctx)
        others = [one for one in params if isinstance(one, Word) and one is not self]
        has_graph = begins_with_graph(ctx, args, others)
        names = [self.name, *(one.name for one in others)][not has_graph :]
        ctx.meta[_SHARES] = dict(zip(names, args, strict=False))
        return super().handle_parse_result(ctx, opts, args[len(names) :])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The graphs there are, and what else may stand first."""
        params = ctx.command.get_params(ctx)
        others = [one for one in params if isinstance(one, Word) and one is not self]
        after = others[0].shell_complete(ctx, incomplete) if others else []
        return [*graphs(ctx, self, incomplete), *after]


def begins_with_graph(
    ctx: click.Context, words: Sequence[str], others: Sequence[click.Parameter]
) -> bool:
    """Whether the first word is the graph.

    It is where there is a word more than the verb takes, and never where there are only as many as
    it needs. Between the two the first word decides: whether it looks like a graph.
    """
    needed = sum(one.required for one in others)
    if not words or len(words) > len(others):
        return bool(words)
    scope = scope_of(ctx)
    if scope.is_addressed:
        return False
    if len(words) > needed:
        return is_graph_named(scope, words[0])
    if ctx.resilient_parsing:
        return is_graph_named(scope, words[0])
    if not is_graph(words[0]):
        return False
    missing = others[len(words) - 1].human_readable_name
    raise click.UsageError(
        f"{words[0]} is a graph, and {missing} is missing; if it is meant as "
        f"{others[0].human_readable_name}, name the graph with --uri",
        ctx,
    )


def is_graph_named(scope: CommandScope, word: str) -> bool:
    """Whether a word names a graph: an address, a path of one, or a graph of the project."""
    if "://" in word or word.endswith(".omni") or word.startswith(_PATHS) or is_graph(word):
        return True
    project = project_file(scope)
    return project is not None and word in project.graphs


def is_graph(word: str) -> bool:
    """Whether a word is the path of a graph."""
    return (Path(word) / "__manifest").is_dir()


def word(name: str, metavar: str | None = None, **attrs: Any) -> Callable[[Any], Any]:
    """A word of a verb, which stands behind that of the graph."""
    return click.argument(name, cls=Word, metavar=metavar, **attrs)


uri_argument = click.argument("uri", cls=GraphWord, metavar="[URI]", required=False)
"""The graph; it is declared before all other words."""
