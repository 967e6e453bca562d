"""The queries of a project: those stored for a graph, those of aliases, and bare `.gq` files.

Owns finding them, and what words of a command line are as parameters. Runs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omnigraph.errors import BadRequest, NotFound
from omnigraph.lang.diagnostics import name_hint

if TYPE_CHECKING:
    from omnigraph.config.project import Alias, ProjectFile, ProjectGraph
    from omnigraph.lang.query import syntax as ast
    from omnigraph.lang.source import Source
    from omnigraph.server.stored_queries import StoredQueries


_TEXTS = frozenset({"string", "date", "datetime", "blob"})


def queries_of(project: ProjectFile, graph: ProjectGraph) -> StoredQueries:
    """The stored queries of a graph, as a server of the project has them."""
    from omnigraph.server.sources.project import stored_queries

    return stored_queries(project, graph)


def query_sources(project: ProjectFile, graph: ProjectGraph) -> list[Source]:
    """The texts that the stored queries of a graph stand in."""
    found = {one.source.name: one.source for one in queries_of(project, graph).by_name.values()}
    return list(found.values())


def query_path(path: Path, project: ProjectFile | None) -> Path:
    """A `.gq` file as it is named; a bare name is also looked for in the project's roots."""
    if project is None or path.exists() or len(path.parts) > 1 or path.is_absolute():
        return path
    return project.query_file(path.name) or path


def source_of(alias: Alias, project: ProjectFile | None) -> Source:
    """The text that an alias stands for."""
    from omnigraph.cli.options.query_source import read_source

    if project is None:
        return read_source(Path(alias.query))
    found = project.query_file(alias.query)
    if found is None:
        roots = ", ".join(str(root) for root in (*project.roots, project.directory))
        raise NotFound(f"there is no {alias.query} for the alias '{alias.name}': not in {roots}")
    return read_source(found)


def find_in_source(source: Source, name: str | None) -> ast.Query:
    """The query of a text that a name means."""
    from omnigraph.lang.query.compile import parse_source, select_query

    return select_query(parse_source(source), name)


def require_command(alias: Alias, syntax: ast.Query) -> None:
    """Refuse an alias whose file calls a mutation a read, or the other way round."""
    from omnigraph.lang.query.syntax import Read

    is_read = isinstance(syntax.body, Read)
    if alias.command is not None and (alias.command == "query") is not is_read:
        what = "reads" if is_read else "changes"
        said = "read" if alias.command == "query" else "change"
        raise BadRequest(
            f"the alias '{alias.name}' of {alias.source} says `command: {said}`, but its query "
            f"{what}: correct the file"
        )


def find_alias(name: str, aliases: Mapping[str, Alias]) -> Alias:
    """An alias by its name."""
    found = aliases.get(name)
    if found is None:
        hint = name_hint(name, aliases) or "none is configured"
        raise NotFound(f"there is no alias '{name}': {hint}")
    return found


def bind(
    words: Sequence[str],
    names: Sequence[str],
    what: str,
    kinds: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Words as parameters, in the order of their names; ``kinds`` are what they are, if known."""
    if len(words) > len(names):
        takes = f"takes {', '.join(names)}" if names else "takes no words"
        raise click.UsageError(
            f"{what} {takes}: {len(words)} were given", click.get_current_context(silent=True)
        )
    return {
        name: _value(word, (kinds or {}).get(name))
        for name, word in zip(names, words, strict=False)
    }


def _value(word: str, kind: str | None) -> Any:
    """A word as JSON if it is that, else as text; where a text is wanted it is one."""
    try:
        found = json.loads(word)
    except (ValueError, RecursionError):
        return word
    if kind in _TEXTS and not isinstance(found, str):
        return word
    return found
