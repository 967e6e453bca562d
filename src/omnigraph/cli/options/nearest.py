"""The nearest of what there is, for a branch, a graph or a stored query that is not there.

Owns asking for it, once a command has failed for that. Whoever may not list the names is told none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import click

from omnigraph.errors import NotFound, OmniGraphError

NO_QUERY = "stored query not found"
"""What a server says of a query that it has not, or not for whoever asks; it does not name it."""
_KNOWN = "omnigraph.known"
_QUERY = "omnigraph.query"
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


def remember_query(name: str, names: Callable[[], Iterable[str]]) -> None:
    """Keep which stored query was asked of a server, and who can say which there are."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[_QUERY] = name, names


def with_nearest(error: NotFound, ctx: click.Context) -> NotFound:
    """The same error; the name that is nearest to the one that is not there stands in it."""
    if error.message == NO_QUERY and _QUERY in ctx.meta:
        return _told(error, _hint(*ctx.meta[_QUERY]))
    known: Known | None = ctx.meta.get(_KNOWN)
    if known is None:
        return error
    for pattern, names in ((_BRANCH, known.branches), (_GRAPH, known.graphs)):
        found = pattern.fullmatch(error.message)
        if found is not None:
            return _told(error, _hint(next(filter(None, found.groups())), names))
    return error


def _told(error: NotFound, hint: str | None) -> NotFound:
    if hint is None:
        return error
    return type(error)(f"{error.message}: {hint}", code=error.code, details=error.details)


def _hint(name: str, names: Callable[[], Iterable[str]]) -> str | None:
    from omnigraph.lang.diagnostics import did_you_mean

    try:
        return did_you_mean(name, names())
    except OmniGraphError:
        return None
