"""The click classes behind every verb: global options, scope check, lazy loading, old spellings.

Owns how a command line becomes a call. Never imports a verb before it is run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import click

from omnigraph.cli.options.capabilities import capability, refusals
from omnigraph.cli.options.configured import TAKES_STORE
from omnigraph.cli.options.default_branch import fill_branch
from omnigraph.cli.options.nearest import with_nearest
from omnigraph.cli.options.scope import GlobalOption, global_options, scope_of, words_of
from omnigraph.cli.options.shared import BranchOption
from omnigraph.cli.options.words import is_graph
from omnigraph.cli.verbs import Verb
from omnigraph.errors import NotFound

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class VerbCommand(click.Command):
    """A command that takes the global options and finds its `Scope` as the context object.

    Its function returns the exit code, or None for 0. An option of its own takes the place
    of a global one that is spelled the same.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = {name for param in self.params for name in param.opts}
        shared = [option for option in global_options() if own.isdisjoint(option.opts)]
        self.params = [*self.params, *shared]

    def invoke(self, ctx: click.Context) -> Any:
        """Refuse the flags this command does not take, then run it."""
        scope = scope_of(ctx)
        refused = refusals(words_of(ctx), scope.given)
        if refused:
            raise click.UsageError("\n".join(map(str, refused)), ctx)
        ctx.obj = scope
        ctx.meta[TAKES_STORE] = "store" in capability(words_of(ctx)).takes
        for param in self.params:
            if isinstance(param, BranchOption):
                fill_branch(ctx, scope, param)
        try:
            return super().invoke(ctx)
        except NotFound as error:
            raise with_nearest(error, ctx) from error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the command's own options, then the global ones it has a use for."""
        takes = capability(words_of(ctx)).takes
        own: list[click.Parameter] = []
        shared: list[click.Parameter] = []
        for param in self.get_params(ctx):
            if not isinstance(param, click.Option):
                continue  # the usage line has the arguments
            if not isinstance(param, GlobalOption):
                own.append(param)
            elif param.flag is None or param.flag in takes:
                shared.append(param)
        _write_options(ctx, formatter, "Options", own)
        _write_options(ctx, formatter, "Global options", shared)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """End with what to type."""
        _write_examples(ctx, formatter)


class VerbGroup(click.Group):
    """A verb of two words: its commands share the first one and the global options.

    ``aliases`` are further spellings of the second word, understood but not listed.
    """

    def __init__(self, *args: Any, aliases: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.aliases = aliases or {}
        self.params = [*self.params, *global_options()]

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The commands in the order they were declared."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, after replacing another spelling by the command's own."""
        return super().resolve_command(ctx, [self.aliases.get(args[0], args[0]), *args[1:]])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options a group has itself, then its commands."""
        own = [param for param in self.get_params(ctx) if not isinstance(param, GlobalOption)]
        _write_options(ctx, formatter, "Options", own)
        self.format_commands(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """End with what to type."""
        _write_examples(ctx, formatter)


class LazyGroup(VerbGroup):
    """The root: verbs listed by name and help, imported one at a time."""

    def __init__(self, *args: Any, package: str, verbs: Mapping[str, Verb], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.package = package
        self.verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The verbs in the order of the registry."""
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import the verb's module."""
        verb = self.verbs.get(cmd_name)
        if verb is None:
            return None
        module = f"{self.package}.{verb.room}.{cmd_name.replace('-', '_')}"
        command: click.Command = import_module(module).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, but suggest from the registry, which click cannot see."""
        if args[0] not in self.verbs and not args[0].startswith("-"):
            if is_graph(args[0]):
                return super().resolve_command(ctx, ["shell", *args])
            from omnigraph.cli.foreign_words import ANSWERS

            if answer := ANSWERS.get(args[0].lower()):
                raise click.UsageError(f"there is no command '{args[0]}': {answer}", ctx)
            raise click.NoSuchCommand(args[0], possibilities=self.verbs, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options, then the verbs."""
        _write_options(ctx, formatter, "Options", self.get_params(ctx))
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """List the verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.help) for name, verb in self.verbs.items()])


def _write_options(
    ctx: click.Context,
    formatter: click.HelpFormatter,
    title: str,
    params: list[click.Parameter],
) -> None:
    records = [record for param in params if (record := param.get_help_record(ctx)) is not None]
    if records:
        with formatter.section(title):
            formatter.write_dl(records)


def _write_examples(ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Each on a line of its own, however long: it is there to be copied."""
    from omnigraph.cli.examples import examples_of

    with formatter.section("Examples"):
        for line in examples_of(words_of(ctx)):
            formatter.write(f"{' ' * formatter.current_indent}{line}\n")


SPELLINGS: Mapping[tuple[str, ...], str] = {
    ("change",): "mutate",
    ("read",): "query",
    ("check",): "lint",
    ("query", "lint"): "lint",
    ("query", "check"): "lint",
}


def rewrite(args: Sequence[str]) -> tuple[list[str], str | None]:
    """The command line in today's words, and a warning if that changed it."""
    for words, verb in SPELLINGS.items():
        if tuple(args[: len(words)]) == words:
            old = " ".join(words)
            warning = f"`omnigraph {old}` is deprecated: use `omnigraph {verb}`"
            return [verb, *args[len(words) :]], warning
    return list(args), None
