"""The query that words mean: `[LOCATION] [NAME] [ARG…]`, an alias, or the text of an option.

Owns which of the words is what, and what is said where they could mean two things. Runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.options.completed import queries
from omnigraph.cli.options.configured import layers_of, project_file
from omnigraph.cli.options.nearest import NO_QUERY, remember_query
from omnigraph.cli.options.project_queries import (
    bind,
    find_alias,
    find_in_source,
    queries_of,
    query_path,
    require_command,
    source_of,
)
from omnigraph.cli.options.query_source import query_text, read_params, read_query
from omnigraph.cli.options.scope import CommandScope, Target, project_target, target_of
from omnigraph.cli.options.shared import together
from omnigraph.cli.options.words import is_graph_named
from omnigraph.errors import BadRequest, NotFound, OmniGraphError
from omnigraph.lang.diagnostics import name_hint

if TYPE_CHECKING:
    from omnigraph.config.project import Alias, ProjectFile
    from omnigraph.lang.source import Source
    from omnigraph.server.stored_queries import StoredQueries, StoredQuery

_FILE = click.Path(path_type=Path)
_WHICH = "which query? give --query FILE or -e GQ, or the NAME of a stored one or of an alias"
_MANIFEST = "__manifest"

param_options = together(
    click.option(
        "-p",
        "--params",
        metavar="JSON|NAME=VALUE",
        multiple=True,
        help="The parameters as a JSON object, or one of them; may be given several times.",
    ),
    click.option("--params-file", type=_FILE, help="The parameters, a file with a JSON object."),
)
_source_options = together(
    click.argument("words", metavar="[LOCATION] [NAME] [ARG…]", nargs=-1, shell_complete=queries),
    click.option("--query", type=_FILE, help="The query, a .gq file."),
    click.option("-e", "--query-string", metavar="GQ", help="The query itself."),
    click.option("--alias", "alias", metavar="NAME", help="The query of a configured alias."),
    param_options,
)


@dataclass(frozen=True, slots=True)
class AskedQuery:
    """A query as a command line names it, its parameters, and the graph it is asked of."""

    target: Target
    source: Source | None
    """Without one, the name is that of a stored query of the server."""
    name: str | None
    params: Mapping[str, Any] | None
    alias: Alias | None = None

    def branch(self, scope: CommandScope, given: str | None) -> str:
        """The branch it is asked of."""
        graph = None if self.target.graph is None else self.target.graph.name
        return layers_of(scope, branch=given).branch(graph, self.alias).value

    def written(self) -> tuple[Source, str | None, Mapping[str, Any] | None]:
        """What a graph is asked: a text."""
        if self.source is None:
            raise click.UsageError(
                f"which query? give --query FILE or -e GQ: '{self.name}' is a stored query of the "
                "server, which is run there"
            )
        return self.source, self.name, self.params


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The words of a query and its options, which become ``asked``."""

    @wraps(command)
    def ask(
        *args: Any,
        words: tuple[str, ...],
        query: Path | None,
        query_string: str | None,
        alias: str | None,
        params: tuple[str, ...],
        params_file: Path | None,
        **others: Any,
    ) -> Any:
        scope: CommandScope = click.get_current_context().obj
        path = None if query is None else query_path(query, project_file(scope))
        text = read_query(path, query_string)
        given = read_params(params, params_file)
        if alias is not None:
            if text is not None:
                raise click.UsageError("an alias is a query: leave --query and -e out")
            found = find_alias(alias, layers_of(scope).aliases)
            asked = asked_alias(scope, found, words, given)
        else:
            asked = _ask(scope, words, text, given)
        return command(*args, asked=asked, **others)

    return _source_options(ask)


def _ask(
    scope: CommandScope,
    words: Sequence[str],
    text: Source | None,
    given: Mapping[str, Any] | None,
) -> AskedQuery:
    if text is None:
        at = _place_of_text(scope, words)
        if at is not None:
            text = _text_of(words[at])
            words = [*words[:at], *words[at + 1 :]]
    if text is None and not words:
        raise click.UsageError(_WHICH)
    location, rest = _split(scope, words, text)
    if text is None:
        if not rest:
            raise click.UsageError(_WHICH)
        return _stored(scope, location, rest[0], rest[1:], given)
    name, args = (rest[0] if rest else None), rest[1:]
    target = target_of(scope, location, "--store")
    if not args:
        return AskedQuery(target, text, name, given)
    syntax = find_in_source(text, name)
    names = [param.name for param in syntax.params]
    return AskedQuery(target, text, name, _united(_bound(args, names, syntax), given))


def _place_of_text(scope: CommandScope, words: Sequence[str]) -> int | None:
    """Where the query itself is among the words: first, or behind the graph."""
    if words and _is_text(words[0]) and not is_graph_named(scope, words[0]):
        return 0
    # No name and no place has a brace.
    if len(words) < 2 or not (_is_text(words[1]) and is_graph_named(scope, words[0])):
        return next((at for at, word in enumerate(words[:2]) if "{" in word), None)
    return 1


def _is_text(word: str) -> bool:
    """Whether a word is a query, or says where one is, and no name."""
    return word == "-" or word.endswith(".gq") or "{" in word or any(map(str.isspace, word))


def _text_of(word: str) -> Source | None:
    is_place = word == "-" or word.endswith(".gq")
    return read_query(Path(word), None) if is_place else query_text(word)


# -- a location or a name ----------------------------------------------------------------


def _split(
    scope: CommandScope, words: Sequence[str], text: Source | None
) -> tuple[str | None, Sequence[str]]:
    """The location among the words, if the first one is that, and the others."""
    if not words:
        return None, words
    first = words[0]
    if scope.is_addressed:
        if "://" in first:
            raise click.UsageError("more than one address is given: leave the location out")
        return None, words
    if "://" in first:
        return first, words[1:]
    project = project_file(scope)
    is_named = project is not None and first in project.graphs
    is_path = (Path(first) / _MANIFEST).exists()
    if not is_named and not is_path:
        # No query is called so: a graph is meant that is not there.
        looks_so = "/" in first or first.endswith(".omni")
        if looks_so and first not in layers_of(scope).aliases:
            return first, words[1:]
        return None, words
    meant = list(_queries_called(scope, first, text))
    if meant:
        where = f"the graph at {first}" if is_path else f"the graph `{first}` (--graph {first})"
        raise BadRequest(
            f"`{first}` could be {where}, or {' or '.join(meant)}: name the graph with --graph or "
            "--store"
        )
    return first, words[1:]


def _queries_called(scope: CommandScope, name: str, text: Source | None) -> list[str]:
    """What a word means that is a query and not a location."""
    if text is not None:
        try:
            find_in_source(text, name)
        except OmniGraphError:
            return []
        return [f"the query `{name}` of {text.name}"]
    layers, found = layers_of(scope), []
    place, project = layers.place, layers.project
    if project is not None and place is not None and place.kind == "graph":
        stored = queries_of(project, project.graph(place.target))
        if name in stored.by_name:
            found.append(f"the stored query `{name}` of {place.target}")
    if name in layers.aliases:
        found.append(f"the alias `{name}` (--alias {name})")
    return found


# -- stored queries and aliases ----------------------------------------------------------


def _stored(
    scope: CommandScope,
    location: str | None,
    name: str,
    words: Sequence[str],
    given: Mapping[str, Any] | None,
) -> AskedQuery:
    """A stored query of the graph that is meant, else an alias."""
    aliases = layers_of(scope).aliases
    alias = aliases.get(name)
    try:
        target = target_of(scope, location, "--store")
    except click.UsageError:
        if alias is None or location is not None:
            raise
        return asked_alias(scope, alias, words, given)
    if target.is_served:
        remember_query(name, lambda: {*aliases, *_names_on_server(target)})
        if alias is None or name in _names_on_server(target):
            params = _united(_bound_on_server(target, name, words), given)
            return AskedQuery(target, None, name, params)
        return asked_alias(scope, alias, words, given)
    project = project_file(scope)
    stored = _stored_of(project, target)
    found = None if stored is None else stored.by_name.get(name)
    if found is not None:
        names = [param.name for param in found.syntax.params]
        params = _united(_bound(words, names, found.syntax), given)
        return AskedQuery(target, found.source, name, params)
    if alias is not None:
        is_chosen = any(one is not None for one in (location, scope.store, scope.location))
        return asked_alias(scope, alias, words, given, target if is_chosen else None)
    if stored is None and not aliases:
        raise click.UsageError(
            f"which query? give --query FILE or -e GQ: '{name}' alone is a stored query, and those "
            "are on servers (--server NAME|URL --graph ID) and in projects (omnigraph.yaml)"
        )
    graphs = () if project is None or location is not None else project.graphs
    known = {*aliases, *graphs, *(() if stored is None else stored.by_name)}
    hint = name_hint(name, known) or "none is stored, and there is no alias"
    raise NotFound(f"there is no stored query and no alias `{name}`: {hint}")


def asked_alias(
    scope: CommandScope,
    alias: Alias,
    words: Sequence[str],
    given: Mapping[str, Any] | None,
    target: Target | None = None,
) -> AskedQuery:
    """What an alias stands for, with words and values as its parameters."""
    project, what = project_file(scope), f"the alias '{alias.name}'"
    target = target or _target_of_alias(scope, alias, project)
    if alias.is_file:
        source = source_of(alias, project)
        syntax = find_in_source(source, alias.query_name)
        require_command(alias, syntax)
        names = list(alias.args) or [
            param.name for param in syntax.params if param.name not in alias.params
        ]
        params = {**alias.params, **_bound(words, names, syntax, what)}
        return AskedQuery(target, source, syntax.name.text, _united(params, given), alias)
    if not target.is_served:
        found = _require_stored(_stored_of(project, target), alias)
        names = list(alias.args) or [
            param.name for param in found.syntax.params if param.name not in alias.params
        ]
        params = {**alias.params, **_bound(words, names, found.syntax, what)}
        return AskedQuery(target, found.source, alias.query, _united(params, given), alias)
    bound = (
        bind(words, alias.args, what)
        if alias.args or not words
        else _bound_on_server(target, alias.query, words)
    )
    return AskedQuery(target, None, alias.query, _united({**alias.params, **bound}, given), alias)


def _target_of_alias(scope: CommandScope, alias: Alias, project: ProjectFile | None) -> Target:
    if scope.is_addressed:
        return target_of(scope, None, "--store")
    if alias.server is not None:
        from omnigraph.cli.options.served import served_target

        return served_target(alias.server, alias.graph)
    if alias.graph is None:
        return target_of(scope, None, "--store")
    if project is not None and alias.graph in project.graphs:
        return project_target(scope, project, project.graphs[alias.graph])
    place = layers_of(scope).place
    if place is not None and place.kind == "server":
        from omnigraph.cli.options.served import served_target

        return served_target(place.target, alias.graph)
    raise NotFound(
        f"the alias '{alias.name}' of {alias.source} is for the graph `{alias.graph}`, and there "
        "is no such graph here: give one with --store or --server"
    )


def _stored_of(project: ProjectFile | None, target: Target) -> StoredQueries | None:
    if project is None or target.graph is None:
        return None
    return queries_of(project, target.graph)


def _require_stored(stored: StoredQueries | None, alias: Alias) -> StoredQuery:
    names = {} if stored is None else stored.by_name
    found = names.get(alias.query)
    if found is None:
        hint = name_hint(alias.query, names) or "none is stored"
        raise NotFound(
            f"the alias '{alias.name}' of {alias.source} is for the stored query `{alias.query}`, "
            f"and the graph has none of that name: {hint}"
        )
    return found


def _names_on_server(target: Target) -> set[str]:
    """The stored queries of a server; none, where it does not tell."""
    try:
        return {one.name for one in target.served().stored_queries().queries}
    except OmniGraphError:
        return set()


def _bound_on_server(target: Target, name: str, words: Sequence[str]) -> dict[str, Any]:
    """Words as parameters of a stored query; asked for only if there are words."""
    if not words:
        return {}
    for one in target.served().stored_queries().queries:
        if one.name == name:
            names = [param.name for param in one.params]
            kinds = {param.name: param.kind for param in one.params}
            return bind(words, names, f"the query `{name}`", kinds)
    raise NotFound(NO_QUERY)


def _bound(
    words: Sequence[str], names: Sequence[str], syntax: Any, what: str | None = None
) -> dict[str, Any]:
    from omnigraph.lang.query.compile import describe_params

    kinds = {param.name: param.kind for param in describe_params(syntax)}
    return bind(words, names, what or f"the query `{syntax.name.text}`", kinds)


def _united(
    first: Mapping[str, Any], stronger: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """All parameters; None where there are none."""
    return {**first, **(stronger or {})} or None
