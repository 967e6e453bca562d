"""The options that choose changes: by kind, by type and by operation.

Owns their spelling, which every verb that shows changes shares.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, TypeVar

import click

_Function = TypeVar("_Function", bound=Callable[..., Any])

_OPTIONS = (
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
    ),
    click.option(
        "--op",
        "ops",
        type=click.Choice(["insert", "update", "delete"]),
        multiple=True,
        help="Only what was inserted, updated or deleted; may be given repeatedly.",
    ),
)

limit_option = click.option(
    "--limit", metavar="N", type=int, help="How many changes a page has; 1000 if not given."
)


def change_filters(function: _Function) -> _Function:
    """Add `--kind`, `--type` and `--op` to a command."""
    return reduce(lambda wrapped, option: option(wrapped), reversed(_OPTIONS), function)
