"""The options that say which Spark to run on, the same for every verb that can.

Owns their names and how they become settings. Never imports pyspark: most runs need none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from omnigraph.pipeline.spark.settings import SparkSettings

_Function = TypeVar("_Function", bound=Callable[..., Any])


def spark_options(function: _Function) -> _Function:
    """Add --master, --remote and --conf."""
    options = (
        click.option("--master", metavar="URL", help="The Spark to run on; local[*] if not given."),
        click.option("--remote", metavar="URL", help="A Spark Connect server, sc://host:port."),
        click.option(
            "--conf", "conf", metavar="KEY=VALUE", multiple=True, help="A setting of Spark."
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


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
