"""The physical plan: how each step of a read finds its rows, and what follows, as plain data.

Owns its shape, and the one rule about what is left open until the number of rows is known.
Printed by `explain` and executed as printed. Reads nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from omnigraph.lang.query import plan
from omnigraph.lang.query.plan_text import spell_predicate
from omnigraph.rows.key_predicates import Naming

Access = Literal["nothing", "lookup", "every row", "whole columns", "scan"]
Expansion = Literal["auto", "csr", "indexed"]
Strategy = Literal["csr", "indexed"]
# From so few nodes, edges are looked up where that is left open.
FEW_NODES = 256


@dataclass(frozen=True, slots=True)
class AccessPath:
    """How the rows of a type that pass some predicates are found."""

    access: Access
    entities: int
    """How many rows the type has."""
    naming: Naming | None = None
    """What names the rows of a lookup."""
    filtered: tuple[plan.Predicate, ...] = ()
    """What is decided while rows are found, by storage or on whole columns."""
    pushed: tuple[plan.Predicate, ...] = ()
    """Those of them that storage decides."""
    left: tuple[plan.Predicate, ...] = ()
    """What is decided about the rows that were found."""
    fetched: tuple[str, ...] | None = None
    """What a lookup brings along; None if its rows have to be told from others of the type."""
    looked_up_by: str = ""
    """What people call that which a lookup goes by."""


@dataclass(frozen=True, slots=True)
class EdgeAccess:
    """How the edges of some nodes are found: through the topology, or in the edge table."""

    edges: int
    strategy: Strategy | None = None
    """None when that is open until it is known how many nodes there are."""
    is_cached: bool = False
    """Whether the topology was at hand when the plan was made."""

    def from_(self, nodes: int, *, at_hand: bool = False) -> Strategy:
        """How a hop from so many nodes is made; a topology that is there by then is used."""
        if self.strategy is not None:
            return self.strategy
        return "indexed" if nodes <= FEW_NODES and not at_hand else "csr"

    def foreseen(self, nodes: int) -> dict[str, Any]:
        """The choice from about so many nodes, and the rule where it is open."""
        if not self.edges:
            return {"expansion": "nothing"}
        strategy = self.from_(nodes)
        if strategy == "csr":
            found = "csr (cached)" if self.is_cached else "csr (to build)"
            return {"expansion": found} | self._rule
        return {"expansion": strategy} | self._rule

    @property
    def _rule(self) -> dict[str, Any]:
        if self.strategy is not None:
            return {}
        return {"expansion_rule": f"indexed from up to {FEW_NODES} nodes, csr from more"}


@dataclass(frozen=True, slots=True)
class ScanNodes:
    """Bind a variable to nodes."""

    step: plan.Scan
    path: AccessPath
    parts: tuple[ScanNodes, ...] | None = None
    """The scans of its types, where nodes may be of several."""

    @property
    def notes(self) -> dict[str, Any]:
        """The way in, and which predicates storage decides and which are decided in memory."""
        if self.parts is not None:
            return self._joint_notes(self.parts)
        path, named = self.path, self.path.naming
        in_memory = [
            found
            for found in self.step.where
            if path.entities and found not in path.pushed
            if named is None or not any(found is one for one in named.predicates)
        ]
        return {
            "entities": path.entities,
            "access": path.access if named is None else f"lookup by {path.looked_up_by}",
            "pushed": [spell_predicate(found) for found in path.pushed],
            "in_memory": [spell_predicate(found) for found in in_memory],
        }

    def _joint_notes(self, parts: Sequence[ScanNodes]) -> dict[str, Any]:
        """The ways in to each type; storage has decided what it decides of any of them."""
        each = {part.step.node_type: part.notes for part in parts}
        ways = {name: str(notes["access"]) for name, notes in each.items()}
        same = len(set(ways.values())) == 1
        pushed = [*dict.fromkeys(one for notes in each.values() for one in notes["pushed"])]
        left = (*(spell_predicate(found) for found in self.path.left),)
        among = (one for notes in each.values() for one in notes["in_memory"])
        return {
            "entities": self.path.entities,
            "access": next(iter(ways.values()))
            if same
            else ", ".join(f"{name}: {way}" for name, way in ways.items()) or "nothing",
            "pushed": pushed,
            "in_memory": [*dict.fromkeys((*among, *left))],
        }


@dataclass(frozen=True, slots=True)
class ExpandEdges:
    """Follow edges from a bound variable."""

    step: plan.Expand
    path: EdgeAccess
    each: Block | None = None
    """What holds of every step that is walked."""
    is_traced: bool = False
    """Whether the nodes and edges of ways are looked at, rather than how long they are."""

    @property
    def notes(self) -> dict[str, Any]:
        """How many edges there are, and what is decided about those that were found."""
        where = (*self.step.where, *self.step.edge_where)
        return {"edges": self.path.edges, "in_memory": [spell_predicate(found) for found in where]}


@dataclass(frozen=True, slots=True)
class WalkWays:
    """Bind variables to the nodes of the steps of ways."""

    step: plan.WalkWay


@dataclass(frozen=True, slots=True)
class FilterRows:
    """Keep some of the rows."""

    step: plan.Filter


@dataclass(frozen=True, slots=True)
class ComputeRows:
    """Give rows values with names."""

    step: plan.Let | plan.ForEach


@dataclass(frozen=True, slots=True)
class Block:
    """Steps that are run for every row."""

    steps: tuple[PhysicalStep, ...]
    counted: ExpandEdges | None = None
    """Its one step, where its solutions are the neighbours of a node and only counted."""


@dataclass(frozen=True, slots=True)
class JoinBlocks:
    """Keep or widen rows by what blocks find for them."""

    step: plan.AntiJoin | plan.SemiJoin | plan.Union | plan.Fold | plan.Optional
    blocks: tuple[Block, ...]


PhysicalStep = ScanNodes | ExpandEdges | WalkWays | FilterRows | ComputeRows | JoinBlocks


def bound_variables(steps: Sequence[PhysicalStep]) -> Iterator[str]:
    """The variables that steps bind; those of blocks are their own, unless these are optional."""
    for planned in steps:
        match planned.step:
            case plan.Scan(variable):
                yield variable
            case plan.Expand() as step:
                yield step.target
                if step.edge_variable is not None:
                    yield step.edge_variable
                if step.way is not None:
                    yield step.way.variable
            case plan.WalkWay() as step:
                yield step.left
                yield step.right
            case plan.Optional(_, introduces):
                yield from introduces


def comes_as_found(steps: Sequence[PhysicalStep]) -> bool:
    """Whether rows are found piece by piece, by searches whose order is that of their starts.

    Without `order` the first rows are the first that are found then: nobody looks for the rest.
    """
    return any(isinstance(step, ExpandEdges) and is_open_ended(step.step) for step in steps)


def order_is_settled(planned: PhysicalPlan) -> bool:
    """Whether rows come in the same order in the end, in whatever order they were found."""
    read = planned.read
    if planned.is_ranked or read.distinct or read.branches or comes_as_found(planned.steps):
        return False
    # Groups stay as they were found, but for the columns that they are ordered by.
    return read.group_by is None or {key.by for key in read.order} >= set(read.group_by)


def is_open_ended(step: plan.Expand) -> bool:
    """Whether a step may find far more than anybody wants: ways, and nodes however far away."""
    return step.way is not None or step.max_hops is None


TailStep = Literal[
    "union",
    "compute",
    "rank",
    "rank all",
    "order rows",
    "project",
    "aggregate",
    "distinct",
    "distinct and cut",
    "order result",
]
"""What happens to rows that are bound: ranking and ordering cut them, unless others must first
be folded."""


@dataclass(frozen=True, slots=True)
class PhysicalPlan:
    """One read: the steps that bind its rows, and what makes a result of them."""

    read: plan.ReadPlan
    steps: tuple[PhysicalStep, ...]
    tail: tuple[TailStep, ...]
    scores: tuple[plan.Ranking, ...] = ()
    """The rankings whose scores are returned."""
    late: tuple[PhysicalStep, ...] = ()
    """What is computed for the rows that are left in the end."""
    branches: tuple[PhysicalPlan, ...] = ()
    """The parts of a union."""

    @property
    def is_ranked(self) -> bool:
        """Whether anything is ranked at all."""
        return self.read.rank is not None or bool(self.scores)
