"""The context of one run: its snapshot, its parameters, its bounds and its trace.

Owns access to the types of the snapshot. Lives as long as one query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import numpy.typing as npt

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.lang.query import plan
from omnigraph.lang.query.params import ParamValue
from omnigraph.lang.query.values import Values
from omnigraph.lang.schema.catalog import Catalog, EdgeType
from omnigraph.lang.schema.type_sets import TypeSet
from omnigraph.manifest.entries import TableIdentity
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.access.column_cache import ColumnCache, columns
from omnigraph.read.access.entities import Entities, FoundRows
from omnigraph.read.access.entity_sets import EntitySet
from omnigraph.read.access.topology_cache import EdgeTables, Topologies, topologies
from omnigraph.read.access.ways import Ways
from omnigraph.read.execute.bindings import Bindings
from omnigraph.read.execute.trace import Trace
from omnigraph.read.plan.physical import Expansion
from omnigraph.storage.budget import Budget


@dataclass(frozen=True)
class ReadContext:
    """Everything a step may ask for."""

    snapshot: Snapshot
    catalog: Catalog
    params: Mapping[str, ParamValue]
    now: datetime
    budget: Budget = field(default_factory=Budget)
    expansion: Expansion = "auto"
    trace: Trace = field(default_factory=Trace)
    embedding: EmbedderConfig | None = None
    columns: ColumnCache = field(default_factory=lambda: columns)
    topologies: Topologies = field(default_factory=lambda: topologies)
    variables: dict[str, Entities | EntitySet | FoundRows | Ways] = field(default_factory=dict)
    """What each bound variable ranges over."""
    scores: dict[plan.Ranking, Callable[[Bindings], npt.NDArray[np.float64]]] = field(
        default_factory=dict
    )
    """What the rankings of the query say about rows; NaN for nothing."""
    entities_of: Callable[[Entities], Entities] = lambda found: found
    """What of the entities of a table is shown."""
    in_any_order: bool = False
    """Whether it does not matter in which order rows are found."""
    _entities: dict[str, Entities] = field(default_factory=dict)
    _sets: dict[tuple[str, str], EntitySet] = field(default_factory=dict)

    def nodes(self, name: str) -> Entities | EntitySet:
        """The nodes of a type, of an interface, or of several types."""
        type_ = self.catalog.nodes_called(name)
        return self._set(type_) if isinstance(type_, TypeSet) else self.nodes_of(name)

    def nodes_of(self, name: str) -> Entities:
        """The nodes of one type."""
        return self._of(f"node:{name}", name)

    @staticmethod
    def nodes_as(found: Entities | EntitySet | FoundRows | Ways) -> Entities | EntitySet:
        """What the positions of a variable that is walked from are told among."""
        if isinstance(found, FoundRows | Ways):
            raise AssertionError("a node that is walked from was looked up by itself")
        return found

    def edges(self, name: str) -> Entities:
        """The edges of a type."""
        return self._of(f"edge:{name}", name)

    def edges_of(self, names: Sequence[str]) -> Entities | EntitySet:
        """The edges of a type, or of several."""
        type_ = self.catalog.edges_called(names)
        return self._set(type_) if isinstance(type_, TypeSet) else self.edges(names[0])

    def _set(self, type_: TypeSet) -> EntitySet:
        known = self._sets.get((type_.kind, type_.name))
        if known is None:
            of = self.nodes_of if type_.kind == "node" else self.edges
            parts = tuple(of(member) for member in type_.members)
            known = self._sets[type_.kind, type_.name] = EntitySet(type_, parts)
        return known

    def wiring(self, edge: EdgeType) -> EdgeTables:
        """The tables that an edge type connects."""
        return EdgeTables(self.edges(edge.name), self.nodes(edge.source), self.nodes(edge.target))

    def value_of(self, value: plan.Fixed) -> plan.Constant:
        """What a literal, a parameter or `now()` stands for."""
        return Values(self.params, self.now).of(value)

    def _of(self, key: str, name: str) -> Entities:
        known = self._entities.get(key)
        if known is None:
            types = self.catalog.nodes if key.startswith("node:") else self.catalog.edges
            type_ = types[name]
            # A type may be there before its table is.
            identity = TableIdentity(type_.type_id, type_.incarnation)
            found = self.snapshot.by_identity.get(identity)
            pinned = None if found is None else found.pinned
            known = self._entities[key] = self.entities_of(Entities(type_, pinned, self.columns))
        return known
