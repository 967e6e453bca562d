"""Planning a read: access paths, expansions, order and tail, each decided once.

Owns the decisions, and which properties a read uses at all. They follow from the logical plan,
the counts of the snapshot and what is cached; no value of a parameter changes one, and nothing of
the data is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, takewhile

from omnigraph.lang.expressions import parts_of
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.type_sets import TypeSet
from omnigraph.lang.structural import DST, ID, NODE_COLUMNS, SRC, TYPE, spelling
from omnigraph.read.access.entities import Entities
from omnigraph.read.access.entity_sets import EntitySet
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.plan.physical import (
    AccessPath,
    Block,
    ComputeRows,
    EdgeAccess,
    ExpandEdges,
    FilterRows,
    JoinBlocks,
    PhysicalPlan,
    PhysicalStep,
    ScanNodes,
    TailStep,
    WalkWays,
)
from omnigraph.rows.filters import can_filter, columns_of, pushes
from omnigraph.rows.key_predicates import naming
from omnigraph.storage.indexes.table_indexes import is_indexed

# In a table of so many edges, those of a few nodes are looked up rather than all of them read.
MANY_EDGES = 200_000
_END_COLUMNS = {"out": (SRC,), "in": (DST,), "both": (SRC, DST)}


def plan_read(read: plan.ReadPlan, ctx: ReadContext) -> PhysicalPlan:
    """How a read is run on a snapshot."""
    values = (column.value for column in read.columns)
    planner = _Planner(ctx, property_use(read))
    return PhysicalPlan(
        read,
        planner.steps(_in_order(read)),
        tuple(_tail(read)),
        tuple(value.ranking for value in values if isinstance(value, plan.Score)),
        planner.steps(read.late),
        tuple(plan_read(branch, ctx) for branch in read.branches),
    )


def _in_order(read: plan.ReadPlan) -> tuple[plan.Step, ...]:
    """The steps; scans that begin a read stand so that its first rows come first.

    Without `order` rows are cut by the positions of their variables, by name.
    """
    if read.order or read.limit is None or read.rank is not None:
        return read.steps
    leading = takewhile(lambda step: isinstance(step, plan.Scan), read.steps)
    scans = [step for step in leading if isinstance(step, plan.Scan)]
    return (*sorted(scans, key=lambda scan: scan.variable), *read.steps[len(scans) :])


class _Planner:
    def __init__(self, ctx: ReadContext, use: PropertyUse) -> None:
        self.ctx = ctx
        self.use = use

    def steps(self, steps: Sequence[plan.Step]) -> tuple[PhysicalStep, ...]:
        return tuple(self._step(step) for step in steps)

    def _step(self, step: plan.Step) -> PhysicalStep:
        match step:
            case plan.Scan():
                return self._scan(step)
            case plan.Expand():
                each = None if step.each is None else Block(self.steps(step.each.steps))
                return ExpandEdges(step, self._edges(step), each, self.use.traces(step.way))
            case plan.WalkWay():
                return WalkWays(step)
            case plan.Filter():
                return FilterRows(step)
            case plan.Let() | plan.ForEach():
                return ComputeRows(step)
            case _:
                return JoinBlocks(step, tuple(map(self._block, blocks_of(step))))

    def _block(self, steps: Sequence[plan.Step]) -> Block:
        match planned := self.steps(steps):
            case (ExpandEdges(step) as only,) if _is_plain(step):
                return Block(planned, only)
        return Block(planned)

    def _scan(self, scan: plan.Scan) -> ScanNodes:
        nodes = self.ctx.nodes(scan.node_type)
        if not isinstance(nodes, EntitySet):
            return ScanNodes(scan, self._access(scan, nodes))
        # What every type can be asked is; the rest is decided where they are together.
        everywhere = [
            found
            for found in scan.where
            if can_filter(found)
            and all(
                name in part.type.properties or name in NODE_COLUMNS
                for part in nodes.parts
                for name in columns_of((found,))
            )
        ]
        left = tuple(found for found in scan.where if not any(found is one for one in everywhere))
        parts: list[ScanNodes] = []
        for part in nodes.parts:
            step = plan.Scan(scan.variable, part.type.name, tuple(everywhere))
            path = replace(self._access(step, part), fetched=None)
            parts.append(ScanNodes(step, path))
        whole = AccessPath("scan" if nodes.count else "nothing", nodes.count, left=left)
        return ScanNodes(scan, whole, tuple(parts))

    def _access(self, scan: plan.Scan, entities: Entities) -> AccessPath:
        where = scan.where
        if not entities.count:
            return AccessPath("nothing", 0)
        named = naming(entities.type.key, where) if isinstance(entities.type, NodeType) else None
        if named is not None:
            decided = named.predicates
            left = tuple(one for one in where if not any(one is found for found in decided))
            fetched = self.use.fetched(scan.variable, entities.type)
            label = spelling(named.column, entities.type.properties)
            return AccessPath(
                "lookup", entities.count, named, left=left, fetched=fetched, looked_up_by=label
            )
        filtered = tuple(found for found in where if can_filter(found))
        left = tuple(found for found in where if not can_filter(found))
        if not filtered:
            return AccessPath("every row", entities.count, left=left)
        if entities.are_at_hand(columns_of(filtered)):
            return AccessPath("whole columns", entities.count, filtered=filtered, left=left)
        pushed = tuple(compress(filtered, pushes(filtered)))
        return AccessPath("scan", entities.count, None, filtered, pushed, left)

    def _edges(self, step: plan.Expand) -> EdgeAccess:
        wirings = [self.ctx.wiring(self.ctx.catalog.edges[name]) for name in step.edge_types]
        wirings = [wiring for wiring in wirings if wiring.edges.count]
        if not wirings:
            return EdgeAccess(0, "csr")
        count = sum(wiring.edges.count for wiring in wirings)
        is_cached = all(self.ctx.topologies.peek(wiring) is not None for wiring in wirings)
        if self.ctx.expansion != "auto":
            return EdgeAccess(count, self.ctx.expansion, is_cached)
        is_open = not is_cached and all(
            _may_be_looked_up(wiring.edges, step.direction) for wiring in wirings
        )
        return EdgeAccess(count, None if is_open else "csr", is_cached)


def _may_be_looked_up(edges: Entities, way: plan.Direction) -> bool:
    """Whether the edges of a few nodes are found sooner than all of them are read."""
    return edges.count >= MANY_EDGES and all(
        is_indexed(edges.table, column) for column in _END_COLUMNS[way]
    )


def _is_plain(step: plan.Expand) -> bool:
    """Whether every neighbour is one solution."""
    asked = step.closes or step.where or step.edge_where or step.edge_variable
    if step.way is not None or step.each is not None:
        return False
    return not asked and (step.min_hops, step.max_hops) == (1, 1)


def _tail(read: plan.ReadPlan) -> Iterator[TailStep]:
    is_cut = read.limit is not None or read.offset is not None or read.per is not None
    if read.branches:
        yield "union"
        if read.distinct:
            yield "distinct"
        if read.order or is_cut:
            yield "order result"
        return
    if read.rank is not None:
        yield "rank all" if read.distinct else "rank"
        yield "project"
        if read.distinct:
            yield "distinct and cut"
        return
    is_ordered = bool(read.order) or is_cut
    if read.group_by is None and not read.distinct:
        if is_ordered:
            yield "order rows"
        if read.late:
            yield "compute"
        yield "project"
        return
    yield "project" if read.group_by is None else "aggregate"
    if read.distinct:
        yield "distinct"
    if is_ordered:
        yield "order result"


@dataclass(slots=True)
class PropertyUse:
    """The properties that are looked at, by variable.

    Some variables are shown as whole nodes, and some are joined by identity: walked from or
    to, searched or ranked, so that their rows have to be told from all others of their type.
    """

    names: dict[str, dict[str, None]] = field(default_factory=dict)
    shown: set[str] = field(default_factory=set)
    joined: set[str] = field(default_factory=set)

    def fetched(self, variable: str, type_: NodeType | EdgeType) -> tuple[str, ...] | None:
        """What to fetch of a variable with its rows; None when these are joined by identity."""
        if variable in self.joined:
            return None
        names = self.names.get(variable, ())
        return (*names, *(shown_properties(type_) if variable in self.shown else ()))

    def traces(self, way: plan.Way | None) -> bool:
        """Whether more is looked at of ways than how long they are."""
        if way is None:
            return False
        name = way.variable
        looked_at = self.names.get(name, {}).keys() - {"@hops", "@cost"}
        return way.every or name in self.shown or name in self.joined or bool(looked_at)

    def value(self, value: plan.Output) -> None:
        """Count in what an expression looks at."""
        match value:
            case plan.NodeRef(variable):
                self.shown.add(variable)
            case plan.Score(ranking):
                self.ranking(ranking)
            case _:
                self.expression(value)

    def expression(self, expression: plan.Expression) -> None:
        """Count in what an expression looks at; a node in it is told by its position."""
        waiting: list[plan.Expression | plan.NodeRef] = [expression]
        while waiting:
            match found := waiting.pop():
                case plan.Property(variable, name):
                    self.names.setdefault(variable, {})[name] = None
                case plan.TextMatch(subject=subject):
                    self.joined.add(subject.variable)
                case plan.Aggregate(function="collect"):
                    # What is collected stands in the order of ids.
                    for _, value in found.fields:
                        self.value(value)
                    waiting.extend(parts_of(found))
                case _:
                    waiting.extend(parts_of(found))

    def ranking(self, ranking: plan.Ranking) -> None:
        """Count in the variables that a ranking orders."""
        arms = (
            (ranking.primary, ranking.secondary) if isinstance(ranking, plan.Fusion) else (ranking,)
        )
        self.joined.update(arm.variable for arm in arms)

    def predicates(self, predicates: Iterable[plan.Predicate]) -> None:
        """Count in what predicates look at."""
        for predicate in predicates:
            self.expression(predicate)

    def steps(self, steps: Iterable[plan.Step]) -> None:
        """Count in what steps look at."""
        for step in steps:
            match step:
                case plan.Scan(where=where, joins=joins):
                    self.predicates((*where, *joins))
                case plan.Filter(where):
                    self.predicates(where)
                case plan.Expand():
                    ends = (step.source, step.target, step.edge_variable)
                    self.joined.update(name for name in ends if name is not None)
                    self.predicates((*step.where, *step.edge_where))
                    if step.way is not None and step.way.weight is not None:
                        self.value(step.way.weight)
                case plan.WalkWay():
                    self.joined.update((step.way, step.left, step.right))
                case plan.Let(_, value) | plan.ForEach(_, value):
                    self.expression(value)
                case plan.Fold(_, plan.Aggregate() as aggregate):
                    self.expression(aggregate)
            for block in blocks_of(step):
                self.steps(block)


def shown_properties(type_: NodeType | EdgeType | TypeSet) -> list[str]:
    """What is shown of a whole node: its id and every property except blobs and vectors."""
    if isinstance(type_, TypeSet):
        found = {name: type_.properties[name].type for name in type_.shown}
        plain = [name for name, one in found.items() if not (one.is_blob or one.is_vector)]
        return [TYPE, ID, *plain]
    return [ID] + [
        name
        for name, found in type_.properties.items()
        if not (found.type.is_blob or found.type.is_vector)
    ]


def blocks_of(step: plan.Step) -> Iterator[tuple[plan.Step, ...]]:
    """The blocks inside a step."""
    match step:
        case plan.Union(branches):
            yield from branches
        case plan.Expand(each=plan.Each() as each):
            yield each.steps
        case plan.AntiJoin() | plan.SemiJoin() | plan.Fold() | plan.Optional():
            yield step.steps


def property_use(read: plan.ReadPlan) -> PropertyUse:
    """What a read looks at."""
    use = PropertyUse()
    use.steps((*read.steps, *read.late))
    for column in read.columns:
        use.value(column.value)
    keys = [key.by for key in read.order] + list(read.per.keys if read.per is not None else ())
    for by in keys:
        if not isinstance(by, str):
            use.value(by)
    if read.rank is not None:
        use.ranking(read.rank.ranking)
    return use
