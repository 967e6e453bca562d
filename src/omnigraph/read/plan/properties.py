"""What a read looks at: the properties of each variable, and whose identity matters.

Owns telling the variables that are only shown, tested and ordered by: their rows can be
fetched whole by whoever finds them. Reads nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import EdgeType, NodeType


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

    def value(self, value: plan.Output) -> None:
        """Count in what an expression looks at."""
        match value:
            case plan.Property(variable, name):
                self.names.setdefault(variable, {})[name] = None
            case plan.NodeRef(variable):
                self.shown.add(variable)
            case plan.Aggregate(_, plan.NodeRef()):
                pass  # nodes are counted by their positions
            case plan.Aggregate(_, argument):
                self.value(argument)
            case plan.Score(ranking):
                self.ranking(ranking)
            case _:
                pass

    def ranking(self, ranking: plan.Ranking) -> None:
        """Count in the variables that a ranking orders."""
        arms = (
            (ranking.primary, ranking.secondary) if isinstance(ranking, plan.Fusion) else (ranking,)
        )
        self.joined.update(arm.variable for arm in arms)

    def predicates(self, predicates: Iterable[plan.Predicate]) -> None:
        """Count in what predicates look at."""
        for predicate in predicates:
            match predicate:
                case plan.TextMatch(subject=subject):
                    self.joined.add(subject.variable)
                case plan.Either(groups):
                    for group in groups:
                        self.predicates(group)
                case plan.IsNull(plan.NodeRef(), _):
                    pass  # told by the position
                case plan.IsNull(operand, _):
                    self.value(operand)
                case plan.InList(operand, choices):
                    self.value(operand)
                    self.value(choices)
                case _:
                    self.value(predicate.left)
                    self.value(predicate.right)

    def steps(self, steps: Iterable[plan.Step]) -> None:
        """Count in what steps look at."""
        for step in steps:
            match step:
                case plan.Scan(where=where) | plan.Filter(where):
                    self.predicates(where)
                case plan.Expand():
                    ends = (step.source, step.target, step.edge_variable)
                    self.joined.update(name for name in ends if name is not None)
                    self.predicates((*step.where, *step.edge_where))
                case plan.CountJoin(argument=argument):
                    self.value(step.value)
                    if argument is not None:
                        self.value(argument)
            for block in blocks_of(step):
                self.steps(block)


def shown_properties(type_: NodeType | EdgeType) -> list[str]:
    """What is shown of a whole node: its id and every property except blobs and vectors."""
    return ["@id"] + [
        name
        for name, found in type_.properties.items()
        if not (found.type.is_blob or found.type.is_vector)
    ]


def blocks_of(step: plan.Step) -> Iterator[tuple[plan.Step, ...]]:
    """The blocks inside a step."""
    match step:
        case plan.Union(branches):
            yield from branches
        case plan.AntiJoin() | plan.SemiJoin() | plan.CountJoin() | plan.Optional():
            yield step.steps


def property_use(read: plan.ReadPlan) -> PropertyUse:
    """What a read looks at."""
    use = PropertyUse()
    use.steps(read.steps)
    for column in read.columns:
        use.value(column.value)
    for key in read.order:
        if not isinstance(key.by, str):
            use.value(key.by)
    if read.rank is not None:
        use.ranking(read.rank.ranking)
    return use
