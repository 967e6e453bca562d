"""The nearest of what there is, for a branch or a graph that is not there.

Owns asking for it, once a command has failed for that. Whoever may not list the names is told none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import click

from omnigraph.errors import NotFound, OmniGraphError

_KNOWN = "omnigraph.known"
_BRANCH = re.compile(r"there is no branch (\S+)|branch '([^']+)' not found")
_GRAPH = re.compile(r"graph '([^']+)' not found")


@dataclass(frozen=True, slots=True)
class Known:
    """Who can say which names there are beside the one that was given."""

    branches: Callable[[], Iterable[str]]
    graphs: Callable[[], Iterable[str]] = tuple


def remember(known: Known) -> None:
    """Keep who can be asked, for as long as the command runs."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[_KNOWN] = known


def with_nearest(error: NotFound, ctx: click.Context) -> NotFound:
    """The same error; the name that is nearest to the one that is not there stands in it."""
    known: Known | None = ctx.meta.get(_KNOWN)
    if known is None:
        return error
    for pattern, names in ((_BRANCH, known.branches), (_GRAPH, known.graphs)):
        found = pattern.fullmatch(error.message)
        if found is not None:
            hint = _hint(next(filter(None, found.groups())), names)
            told = error.message if hint is None else f"{error.message}: {hint}"
            return type(error)(told, code=error.code, details=error.details)
    return error


def _hint(name: str, names: Callable[[], Iterable[str]]) -> str | None:
    from omnigraph.lang.diagnostics import did_you_mean

    try:
        return did_you_mean(name, names())
    except OmniGraphError:
        return None
