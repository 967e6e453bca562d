"""Limited mutations: what a mutation may do for an actor who does not see all of a graph.

Owns that it finds no rows but those that are shown, leaves none that would not be, and is refused
where its success or its failure would tell of what is hidden. A refusal depends on the policy and
on the schema, never on a row that is not shown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

from omnigraph.errors import PolicyDenied
from omnigraph.lang.query import plan
from omnigraph.lang.query.row_conditions import Predicates, condition_groups, together
from omnigraph.lang.query.values import Values
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.lang.structural import DST, SRC
from omnigraph.manifest.limits import ReadLimits
from omnigraph.manifest.narrowed_contract import narrowed_contract
from omnigraph.manifest.snapshot import catalog_of
from omnigraph.rows.filters import row_filter
from omnigraph.write.change.change_set import ChangeSet
from omnigraph.write.publish.base import Base

Statement = plan.Statement


@dataclass(frozen=True)
class WriteLimits:
    """What is shown of the base of a mutation."""

    limits: ReadLimits
    whole: Catalog
    shown: Catalog

    @classmethod
    def of(cls, limits: ReadLimits, base: Base) -> WriteLimits:
        """What an actor sees of a base."""
        contract = base.snapshot.schema
        return cls(limits, catalog_of(contract), catalog_of(narrowed_contract(contract, limits)))

    # -- statements ------------------------------------------------------------------

    def limited(self, mutation: plan.MutationPlan) -> plan.MutationPlan:
        """The same statements, on the rows that are shown; refuses what would tell of others."""
        return replace(mutation, steps=tuple(map(self._statement, mutation.statements)))

    def _statement(self, one: Statement) -> Statement:
        # What is shown is asked first: a condition that cannot be computed of other rows tells
        # nothing of them.
        match one:
            case plan.InsertNode():
                self._require_insertable(self.whole.nodes[one.node_type])
                return one
            case plan.InsertEdge():
                self._require_insertable(self.whole.edges[one.edge_type])
                return one
            case plan.UpdateNodes():
                node = self.whole.nodes[one.node_type]
                self._require_updatable(node, {found.property for found in one.assignments})
                return replace(one, where=(*self._condition(node), *one.where))
            case plan.UpdateEdges():
                edge = self.whole.edges[one.edge_type]
                self._require_updatable(edge, {found.property for found in one.assignments})
                return replace(one, where=(*self._condition(edge), *one.where))
            case plan.DeleteNodes():
                node = self.whole.nodes[one.node_type]
                self._require_deletable(node)
                return replace(one, where=(*self._condition(node), *one.where))
            case plan.DeleteEdges():
                edge = self.whole.edges[one.edge_type]
                self._require_deletable(edge)
                return replace(one, where=(*self._condition(edge), *one.where))
            case plan.UpdateMatched(entity, assignments):
                # What the match finds is shown.
                for type_ in self._limited_types(entity):
                    self._require_updatable(type_, {found.property for found in assignments})
                return one
            case plan.DeleteMatched(entity):
                for type_ in self._limited_types(entity):
                    self._require_deletable(type_)
                return one

    def _require_deletable(self, type_: NodeType | EdgeType) -> None:
        """Whether nothing that is hidden goes with it, or is counted beside it."""
        if isinstance(type_, NodeType):
            if not all(map(self._shows_every_row, self.whole.incident_edges(type_.name))):
                self._deny(f"delete nodes of type {type_.name}")
        elif self._has_limited_ends(type_) or (type_.is_bounded and self._condition(type_)):
            self._deny(f"delete edges of type {type_.name}")

    def _limited_types(self, entity: plan.BoundEntity) -> list[NodeType | EdgeType]:
        if entity.kind == "node":
            return [self.whole.nodes[name] for name in entity.types]
        return [self.whole.edges[name] for name in entity.types]

    def _require_insertable(self, type_: NodeType | EdgeType) -> None:
        """Whether hidden rows and properties make no difference to a new row."""
        is_open = not self.limits.hidden(type_.kind, type_.name)
        if self._condition(type_):
            # An id or a value that nobody may have twice would tell whether it is there.
            is_open = is_open and not (type_.key or type_.uniques)
        if isinstance(type_, EdgeType):
            is_open = is_open and not self._has_limited_ends(type_)
            is_open = is_open and not (type_.is_bounded and self._condition(type_))
        else:
            is_open = is_open and not any(
                edge.min_out
                and type_ in self.whole.nodes_at(edge, SRC)
                and edge.name not in self.shown.edges
                for edge in self.whole.incident_edges(type_.name)
            )
        if not is_open:
            self._deny(f"insert into {type_.name}")

    def _require_updatable(self, type_: NodeType | EdgeType, given: set[str]) -> None:
        """Whether no value is given that hidden rows or properties may clash with."""
        hidden = self.limits.hidden(type_.kind, type_.name)
        clashing = {
            name
            for members in type_.uniques
            if self._condition(type_) or not hidden.isdisjoint(members)
            for name in members
        }
        if not clashing.isdisjoint(given):
            self._deny(f"change {', '.join(sorted(clashing & given))} of {type_.name}")
        if isinstance(type_, EdgeType) and self._has_limited_ends(type_):
            self._deny(f"update {type_.name}")

    def _shows_every_row(self, edge: EdgeType) -> bool:
        return (
            edge.name in self.shown.edges
            and not self._condition(edge)
            and not self._has_limited_ends(edge)
        )

    def _has_limited_ends(self, edge: EdgeType) -> bool:
        """Whether an edge may be hidden because an end of it is."""
        return any(
            self._condition(node) or (column in edge.shared and node.name not in self.shown.nodes)
            for column in (SRC, DST)
            for node in self.whole.nodes_at(edge, column)
        )

    def _condition(self, type_: NodeType | EdgeType) -> Predicates:
        """What a row of a type has to pass to be shown; nothing where all are."""
        conditions = self.limits.conditions(type_.kind, type_.name)
        groups = condition_groups(conditions, type_, self.whole, self.limits.actor)
        return together(groups) if groups else ()

    # -- rows ------------------------------------------------------------------------

    def check(self, changes: ChangeSet, values: Values) -> None:
        """Refuse rows that their author would not be shown."""
        for change in changes.types.values():
            condition = self._condition(change.type)
            if condition and change.rows.num_rows:
                passing = row_filter(condition, values.of).select(change.rows)
                if passing.num_rows < change.rows.num_rows:
                    self._deny("write rows that it would not be shown")

    def _deny(self, what: str) -> NoReturn:
        raise PolicyDenied(
            f"policy denied action 'change' for actor '{self.limits.actor}', from whom types, "
            f"properties or rows are hidden: it cannot {what}"
        )
