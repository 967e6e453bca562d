"""Who says what counts: flags, environment, profile, project, the person's own file, built in.

Owns the order of these layers, the same for every value, and the source of each. Opens no graph
and asks no server.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Generic, Literal, TypeVar

from omnigraph.config.keys import BRANCH, GRAPH, STORE, CellLayout, Output
from omnigraph.config.operator import PROFILE, OperatorConfig, Profile
from omnigraph.config.project import Alias, ProjectFile

T = TypeVar("T")
BUILT_IN = "built-in"
PlaceKind = Literal["graph", "server", "store", "cluster"]
"""`graph` is one of the project."""


@dataclass(frozen=True, slots=True)
class Sourced(Generic[T]):
    """A value, and who says it."""

    value: T
    source: str


@dataclass(frozen=True, slots=True)
class Place:
    """Which graph is meant: one of the project by its name, or what an address is."""

    kind: PlaceKind
    target: str
    graph: str | None
    source: str


@dataclass(frozen=True, slots=True)
class Flags:
    """What was said on the command line."""

    graph: str | None = None
    branch: str | None = None
    format: Output | None = None
    actor: str | None = None
    profile: str | None = None


@dataclass(frozen=True, slots=True)
class Layers:
    """All that was said about one command, by whom."""

    operator: OperatorConfig
    project: ProjectFile | None = None
    flags: Flags = Flags()
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    takes_store: bool = False
    """Whether a location of storage may be meant that only the environment names."""

    # -- which graph ---------------------------------------------------------------

    @property
    def profile(self) -> Sourced[Profile] | None:
        """The profile that is active."""
        if self.flags.profile is not None:
            return Sourced(self.operator.profile(self.flags.profile), "--profile")
        name = self._variable(PROFILE)
        return None if name is None else Sourced(self.operator.profile(name), PROFILE)

    @property
    def graph_name(self) -> Sourced[str] | None:
        """The graph that was named, by a flag or in the environment."""
        if self.flags.graph is not None:
            return Sourced(self.flags.graph, "--graph")
        name = self._variable(GRAPH)
        return None if name is None else Sourced(name, GRAPH)

    @property
    def place(self) -> Place | None:
        """The graph that is meant without an address."""
        store = self._variable(STORE) if self.takes_store else None
        if store is not None and self.flags.graph is None and self.flags.profile is None:
            return Place("store", store, None, STORE)
        named, project, defaults = self.graph_name, self.project, self.operator.defaults
        profile = self.profile
        if profile is not None:
            kind, target = profile.value.binding
            if kind != "store":
                graph = profile.value.default_graph if named is None else named.value
                return Place(kind, target, graph, self._of_profile(profile))
        if named is not None:
            if project is not None and (named.value in project.graphs or not defaults.server):
                return Place("graph", project.graph(named.value).name, None, named.source)
            if defaults.server is not None and profile is None:
                return Place("server", defaults.server, named.value, named.source)
        if profile is not None:
            return Place("store", profile.value.binding[1], None, self._of_profile(profile))
        if project is not None and project.default is not None:
            name = project.default
            key = "default.graph" if project.default_graph else f"graphs.{name}.uri"
            return Place("graph", name, None, project.place(key))
        mine = str(self.operator.path)
        if defaults.server is not None:
            return Place("server", defaults.server, defaults.default_graph, mine)
        if defaults.store is not None:
            return Place("store", defaults.store, None, mine)
        return None

    def _of_profile(self, profile: Sourced[Profile]) -> str:
        return f"profile '{profile.value.name}' ({profile.source})"

    def branch(self, graph: str | None = None, alias: Alias | None = None) -> Sourced[str]:
        """The branch that is meant, of a graph of the project or of another."""
        if self.flags.branch is not None:
            return Sourced(self.flags.branch, "--branch")
        variable = self._variable(BRANCH)
        if variable is not None:
            return Sourced(variable, BRANCH)
        if alias is not None and alias.branch is not None:
            return Sourced(alias.branch, f"the alias '{alias.name}' of {alias.source}")
        project = self.project
        if project is not None and graph is not None:
            own = project.graph(graph).branch
            if own is not None:
                return Sourced(own, project.place(f"graphs.{graph}.branch"))
            if project.default_branch is not None:
                return Sourced(project.default_branch, project.place("default.branch"))
        return Sourced("main", BUILT_IN)

    # -- how it is shown -----------------------------------------------------------

    def format(self, alias: Alias | None = None) -> Sourced[Output]:
        """How rows are printed."""
        if self.flags.format is not None:
            return Sourced(self.flags.format, "--format")
        if alias is not None and alias.format is not None:
            return Sourced(alias.format, f"the alias '{alias.name}' of {alias.source}")
        return self._shown(
            "format", lambda p: p.output.format, self.operator.defaults.output, "table"
        )

    @property
    def width(self) -> Sourced[int]:
        """The widest a column of a table gets."""
        name = "table_max_column_width"
        mine = self.operator.defaults.table_max_column_width
        return self._shown(name, lambda p: p.output.table_max_column_width, mine, 80)

    @property
    def cell_layout(self) -> Sourced[CellLayout]:
        """What becomes of text that is wider."""
        mine = self.operator.defaults.table_cell_layout
        name = "table_cell_layout"
        return self._shown(name, lambda p: p.output.table_cell_layout, mine, "truncate")

    def _shown(
        self, name: str, of: Callable[[ProjectFile], T | None], mine: T | None, built_in: T
    ) -> Sourced[T]:
        found = None if self.project is None else of(self.project)
        if self.project is not None and found is not None:
            return Sourced(found, self.project.place(f"output.{name}"))
        if mine is not None:
            return Sourced(mine, str(self.operator.path))
        return Sourced(built_in, BUILT_IN)

    # -- who, and what is named ----------------------------------------------------

    @property
    def actor(self) -> Sourced[str | None]:
        """Who is recorded; a project says it only for a person who has said nothing."""
        if self.flags.actor is not None:
            return Sourced(self.flags.actor, "--as")
        if self.operator.actor is not None:
            return Sourced(self.operator.actor, str(self.operator.path))
        if self.project is not None and self.project.actor is not None:
            return Sourced(self.project.actor, self.project.place("cli.actor"))
        return Sourced(None, BUILT_IN)

    @property
    def aliases(self) -> Mapping[str, Alias]:
        """All aliases; one of the project takes the place of the person's own of its name."""
        own = {} if self.project is None else self.project.aliases
        return {**self.operator.aliases, **own}

    def _variable(self, name: str) -> str | None:
        return self.environment.get(name, "").strip() or None

    # -- all of it -----------------------------------------------------------------

    def values(self) -> Iterator[tuple[str, Sourced[Any]]]:
        """Every effective value, with its source."""
        place = self.place
        graph = place.target if place is not None and place.kind == "graph" else None
        if place is not None:
            yield "graph", Sourced(_place_text(place), place.source)
        yield "branch", self.branch(graph)
        yield "actor", self.actor
        yield "output.format", self.format()
        yield "output.table_max_column_width", self.width
        yield "output.table_cell_layout", self.cell_layout
        mine = str(self.operator.path)
        for name, url in self.operator.servers.items():
            yield f"servers.{name}.url", Sourced(url, mine)
        for name, root in self.operator.clusters.items():
            yield f"clusters.{name}.root", Sourced(root, mine)
        for name, profile in self.operator.profiles.items():
            target: dict[str, str] = {str(kind): text for kind, text in profile.target.items()}
            bound = {**target, "default_graph": profile.default_graph}
            yield f"profiles.{name}", Sourced(_present(bound), mine)
        for name, alias in sorted(self.aliases.items()):
            is_own = self.project is not None and name in self.project.aliases
            source = (
                self.project.place(f"aliases.{name}.query") if is_own and self.project else mine
            )
            yield f"aliases.{name}", Sourced(_alias_values(alias), source)
        if self.project is not None:
            yield from _project_values(self.project)


def _place_text(place: Place) -> str:
    if place.kind == "graph":
        return place.target
    of = "" if place.graph is None else f", graph {place.graph}"
    return f"{place.kind} {place.target}{of}"


def _project_values(project: ProjectFile) -> Iterator[tuple[str, Sourced[Any]]]:
    """What only a project says."""
    if project.name is not None:
        yield "project.name", Sourced(project.name, project.place("project.name"))
    for name, graph in project.graphs.items():
        found = {
            "uri": graph.uri,
            "branch": graph.branch,
            "schema": _text(graph.schema),
            "queries": [str(one.path) for one in graph.queries] or None,
            "policy": _text(graph.policy),
            "embedding_provider": graph.embedding_provider,
            "external_blobs": [f"{one.base} ({one.scope})" for one in graph.external_blobs] or None,
            "bearer_token_env": graph.bearer_token_env,
        }
        for key, value in _present(found).items():
            path = f"graphs.{name}.{key}"
            yield path, Sourced(value, project.place(path))
    if project.roots:
        roots = [str(root) for root in project.roots]
        yield "query.roots", Sourced(roots, project.place("query.roots"))
    for name, provider in project.embedding.items():
        shown = {
            "kind": provider.kind,
            "base_url": provider.base_url,
            "model": provider.model,
            # The name of the variable: what is in it is nobody's to see.
            "api_key": provider.key_variable and f"${{{provider.key_variable}}}",
        }
        where = f"providers.embedding.{name}"
        for key, value in _present(shown).items():
            source = (
                project.place(f"{where}.{key}") if f"{where}.{key}" in project.lines else BUILT_IN
            )
            yield f"{where}.{key}", Sourced(value, source)
    kept, server = project.maintenance, project.server
    rest = {
        "maintenance.keep": None if kept is None or kept.keep is None else _span(kept.keep),
        "maintenance.commits": None if kept is None else kept.commits,
        "maintenance.optimize": None if kept is None else "auto" if kept.optimize else "off",
        "server.bind": server.bind,
        "server.graphs": None if server.graphs is None else list(server.graphs),
        "server.policy": _text(server.policy),
        "server.workers": server.workers,
        "policy.file": _text(project.policy),
        "queries": [str(one.path) for one in project.queries] or None,
        "auth.env_file": _text(project.env_file),
    }
    for key, value in _present(rest).items():
        yield key, Sourced(value, _source(project, key))


def _source(project: ProjectFile, key: str) -> str:
    """Where a value stands that may also be the usual one."""
    return project.place(key) if key in project.lines else BUILT_IN


def _span(kept: timedelta) -> str:
    """A time as the file has it."""
    seconds = int(kept.total_seconds())
    return f"{seconds // 86_400}d" if seconds % 86_400 == 0 else f"{seconds}s"


def _alias_values(alias: Alias) -> dict[str, Any]:
    return _present(
        {
            "query": alias.query,
            "name": alias.query_name,
            "args": list(alias.args) or None,
            "params": dict(alias.params) or None,
            "server": alias.server,
            "graph": alias.graph,
            "branch": alias.branch,
            "format": alias.format,
        }
    )


def _present(found: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if value is not None}


def _text(path: object) -> str | None:
    return None if path is None else str(path)
