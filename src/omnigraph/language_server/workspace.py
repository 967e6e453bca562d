"""The files of a workspace: open texts before those on the disk, and whose schema is whose.

Owns finding the schema of a file of queries: the project file says it, else the only `.pg` beside
the file or in the first directory above that has one. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from omnigraph.config.discovery import find_project_file
from omnigraph.config.project import ProjectFile, ProjectGraph
from omnigraph.config.project_reader import read_project
from omnigraph.errors import OmniGraphError
from omnigraph.lang.source import Source
from omnigraph.language_server.declared import DeclaredSchema, declared_in
from omnigraph.language_server.meaning import Text

SUFFIXES = (".pg", ".gq")


class Files:
    """The texts that an editor has open, and the others as the disk has them."""

    def __init__(self) -> None:
        self._open: dict[Path, str] = {}

    def opened(self, path: Path, text: str) -> None:
        """A text was opened in the editor, or is another now."""
        self._open[path] = text

    def closed(self, path: Path) -> None:
        """The editor holds it no more: the disk counts."""
        self._open.pop(path, None)

    @property
    def open_paths(self) -> tuple[Path, ...]:
        """What the editor has open."""
        return tuple(self._open)

    def source(self, path: Path) -> Source | None:
        """The text of a file; None if there is none that can be read."""
        text = self._open.get(path)
        if text is None:
            try:
                text = path.read_bytes().decode("utf-8")
            except (OSError, UnicodeDecodeError):
                return None
        return Source(text, str(path))

    def schema_path(self, path: Path) -> Path | None:
        """The schema that a file speaks of; of a schema itself."""
        if path.suffix == ".pg":
            return path
        project = _project(path.parent)
        named = None if project is None else _schema_in_project(project, path)
        return named or self._only_schema_near(path)

    def schema_source(self, path: Path) -> Source | None:
        """The text of that schema."""
        schema = self.schema_path(path)
        return None if schema is None else self.source(schema)

    def text(self, path: Path) -> Text | None:
        """A file of either language beside its schema."""
        source = self.source(path)
        if source is None or path.suffix not in SUFFIXES:
            return None
        schema = self.schema_source(path)
        declared = DeclaredSchema(Source("")) if schema is None else declared_in(schema)
        return Text(source, "pg" if path.suffix == ".pg" else "gq", declared)

    def queries_of(self, schema: Path) -> list[Source]:
        """Every file of queries that speaks of a schema: of its project, else below it."""
        project = find_project_file(schema.parent)
        root = schema.parent if project is None else project.parent
        paths = {one for one in self._open if one.suffix == ".gq"}
        paths |= {
            found.resolve()
            for found in root.rglob("*.gq")
            if not any(part.startswith(".") for part in found.relative_to(root).parts)
        }
        sources = (self.source(one) for one in sorted(paths) if self.schema_path(one) == schema)
        return [one for one in sources if one is not None]

    def _only_schema_near(self, path: Path) -> Path | None:
        for directory in path.parents:
            found = {one for one in self._open if one.parent == directory and one.suffix == ".pg"}
            found |= set(_schemas_in(directory))
            if found:
                return found.pop() if len(found) == 1 else None
            if (directory / ".git").exists():
                return None
        return None


def _schemas_in(directory: Path) -> Iterator[Path]:
    try:
        yield from (one for one in directory.iterdir() if one.suffix == ".pg" and one.is_file())
    except OSError:
        # A directory that may not be listed has no schema for us.
        return


def _project(directory: Path) -> ProjectFile | None:
    found = find_project_file(directory)
    if found is None:
        return None
    try:
        return read_project(found)
    except (OmniGraphError, OSError):
        # `omnigraph config validate` says what is wrong with it; a schema beside counts.
        return None


def _schema_in_project(project: ProjectFile, path: Path) -> Path | None:
    for graph in project.graphs.values():
        if graph.schema is not None and _has_query_file(graph, path):
            return graph.schema.resolve()
    default = project.default
    schema = None if default is None else project.graph(default).schema
    return None if schema is None else schema.resolve()


def _has_query_file(graph: ProjectGraph, path: Path) -> bool:
    return any(
        path == one.path.resolve() or one.path.resolve() in path.parents for one in graph.queries
    )
