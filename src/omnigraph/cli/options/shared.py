"""The options that several verbs share: branches, runs, changes, and which Spark to run on.

Owns their spelling and how those of Spark become settings. Never imports pyspark: most runs
need none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from omnigraph.cli.options.completed import branches, types

if TYPE_CHECKING:
    from omnigraph.pipeline.spark.settings import SparkSettings

_Function = TypeVar("_Function", bound=Callable[..., Any])


def together(*options: Callable[[Any], Any]) -> Callable[[_Function], _Function]:
    """Several options as one decorator, in their order."""
    return lambda function: reduce(lambda made, option: option(made), options[::-1], function)


class BranchOption(click.Option):
    """The branch that a command works on: where none is given, what is configured, else main."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The branches there are."""
        return branches(ctx, self, incomplete)


branch_option = click.option(
    "--branch",
    metavar="B",
    cls=BranchOption,
    default="main",
    help="The branch; main if not given, and nothing else is configured.",
)


def _commit_id(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """An id that is not empty: a script whose variable is unset means something else."""
    if value is not None and not value.strip():
        raise click.BadParameter("the commit id is empty", ctx, param)
    return None if value is None else value.strip()


if_commit_option = click.option(
    "--if-commit",
    metavar="COMMIT_ID",
    callback=_commit_id,
    help="Only if this commit is the head of the branch; exits with 4 if not.",
)
limit_option = click.option(
    "--limit", metavar="N", type=int, help="How many changes a page has; 1000 if not given."
)
run_id_option = click.option(
    "--run-id",
    metavar="ID",
    help="A name of yours for this run: repeated with it, it changes nothing.",
)
message_option = click.option(
    "-m", "--message", metavar="TEXT", help="What is said of it to people who read the history."
)
change_filters = together(
    click.option(
        "--kind",
        "kinds",
        type=click.Choice(["node", "edge"]),
        multiple=True,
        help="Only nodes or only edges; may be given repeatedly.",
    ),
    click.option(
        "--type",
        "types",
        metavar="T",
        multiple=True,
        help="Only this type; may be given repeatedly.",
        shell_complete=types,
    ),
    click.option(
        "--op",
        "ops",
        type=click.Choice(["insert", "update", "delete"]),
        multiple=True,
        help="Only what was inserted, updated or deleted; may be given repeatedly.",
    ),
)
spark_options = together(
    click.option("--master", metavar="URL", help="The Spark to run on; local[*] if not given."),
    click.option("--remote", metavar="URL", help="A Spark Connect server, sc://host:port."),
    click.option("--conf", "conf", metavar="KEY=VALUE", multiple=True, help="A setting of Spark."),
)


def engine_of(engine: str, master: str | None, remote: str | None) -> str:
    """The engine that options mean: whoever names a Spark wants it used."""
    names_spark = engine == "auto" and (master is not None or remote is not None)
    return "spark" if names_spark else engine


def spark_settings(
    master: str | None, remote: str | None, conf: Sequence[str]
) -> SparkSettings | None:
    """The settings that options describe; None when there are none."""
    if master is None and remote is None and not conf:
        return None
    from omnigraph.errors import BadRequest
    from omnigraph.pipeline.spark.settings import SparkSettings

    pairs = {}
    for text in conf:
        key, separator, value = text.partition("=")
        if not separator:
            raise BadRequest(f"--conf takes KEY=VALUE, found {text!r}")
        pairs[key.strip()] = value.strip()
    if master is None:
        return SparkSettings(remote=remote, conf=pairs)
    return SparkSettings(master=master, remote=remote, conf=pairs)
