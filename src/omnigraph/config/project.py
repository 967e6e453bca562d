"""A project as its file describes it: graphs, aliases, providers, maintenance, a server.

Owns the shape of what was read, and where each value stands in the file. Reads no file and opens
no graph; holds the names of variables and never what is in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from omnigraph.config.keys import BlobScope, CellLayout, Output, ProviderKind
from omnigraph.errors import BadRequest
from omnigraph.lang.diagnostics import name_hint


@dataclass(frozen=True, slots=True)
class QueryFile:
    """A `.gq` file or a directory of them; ``name`` if just one query of it is meant."""

    path: Path
    name: str | None = None


@dataclass(frozen=True, slots=True)
class BlobBase:
    """A place below which blobs of a graph may lie, and who may follow them there."""

    base: str
    scope: BlobScope


@dataclass(frozen=True, slots=True)
class ProjectGraph:
    """One graph: where it is, and what belongs to it."""

    name: str
    uri: str
    """As it is used: a path of storage is absolute."""
    written: str
    """As the file has it."""
    branch: str | None = None
    schema: Path | None = None
    queries: tuple[QueryFile, ...] = ()
    policy: Path | None = None
    embedding_provider: str | None = None
    external_blobs: tuple[BlobBase, ...] = ()
    bearer_token_env: str | None = None

    @property
    def is_served(self) -> bool:
        """Whether it is on a server and not in storage."""
        return self.uri.lower().startswith(("http://", "https://"))


@dataclass(frozen=True, slots=True)
class Alias:
    """A query under a short name, with some of its parameters."""

    name: str
    query: str
    query_name: str | None = None
    args: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    server: str | None = None
    graph: str | None = None
    branch: str | None = None
    format: Output | None = None
    command: Literal["query", "mutate"] | None = None
    source: str = ""
    """The file it was read from, as people are told."""

    @property
    def is_file(self) -> bool:
        """Whether its query stands in a file, and is not a stored one."""
        return self.query.endswith(".gq")


@dataclass(frozen=True, slots=True)
class EmbeddingProvider:
    """Who makes vectors; ``key_variable`` is where the key is."""

    name: str
    kind: ProviderKind = "openai-compatible"
    base_url: str | None = None
    model: str | None = None
    key_variable: str | None = None


@dataclass(frozen=True, slots=True)
class Maintenance:
    """What is kept, and whether files are put in order."""

    keep: timedelta | None = None
    commits: int | None = None
    optimize: bool = True


@dataclass(frozen=True, slots=True)
class ServerSection:
    """How the graphs are served."""

    bind: str | None = None
    graphs: tuple[str, ...] | None = None
    policy: Path | None = None
    workers: int | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """How rows are shown, where that is said."""

    format: Output | None = None
    table_max_column_width: int | None = None
    table_cell_layout: CellLayout | None = None


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """A whole file."""

    path: Path
    name: str | None = None
    graphs: Mapping[str, ProjectGraph] = field(default_factory=dict)
    default_graph: str | None = None
    default_branch: str | None = None
    actor: str | None = None
    """Of the older dialect: used only if the person has said nothing."""
    output: Layout = Layout()
    roots: tuple[Path, ...] = ()
    aliases: Mapping[str, Alias] = field(default_factory=dict)
    embedding: Mapping[str, EmbeddingProvider] = field(default_factory=dict)
    maintenance: Maintenance | None = None
    server: ServerSection = ServerSection()
    policy: Path | None = None
    """Of the older dialect: the policy and the stored queries of the one graph that is served."""
    queries: tuple[QueryFile, ...] = ()
    env_file: Path | None = None
    is_older: bool = False
    lines: Mapping[str, int] = field(default_factory=dict)
    """The line of every key that was understood, by its path in the words of version 1."""
    warnings: tuple[str, ...] = ()

    @property
    def directory(self) -> Path:
        """Where relative paths begin."""
        return self.path.parent

    def graph(self, name: str) -> ProjectGraph:
        """A graph by its name."""
        found = self.graphs.get(name)
        if found is None:
            hint = name_hint(name, self.graphs) or "it has none: write one under `graphs:`"
            raise BadRequest(f"there is no graph {name!r} in {self.path}: {hint}")
        return found

    @property
    def default(self) -> str | None:
        """The graph that is meant where none is named: the one that it says, else the only one."""
        if self.default_graph is not None:
            return self.default_graph
        return next(iter(self.graphs)) if len(self.graphs) == 1 else None

    def branch_of(self, graph: ProjectGraph) -> str | None:
        """The default branch of a graph, if the file says one."""
        return graph.branch or self.default_branch

    def served(self) -> tuple[ProjectGraph, ...]:
        """The graphs that a server of this project has."""
        names = self.server.graphs
        if names is None:
            return tuple(graph for graph in self.graphs.values() if not graph.is_served)
        return tuple(self.graph(name) for name in names)

    def policy_of(self, graph: ProjectGraph) -> Path | None:
        """The policy of a graph; that of the older dialect is of the one that is served."""
        return graph.policy or (self.policy if self.served() == (graph,) else None)

    def place(self, key: str) -> str:
        """Where a key stands, for people."""
        line = self.lines.get(key)
        return self.path.name if line is None else f"{self.path.name}:{line}"

    def query_file(self, name: str) -> Path | None:
        """A `.gq` file that is named bare, in the first root that has it, else below the file."""
        for root in (*self.roots, self.directory):
            if (root / name).is_file():
                return root / name
        return None
