"""Cross products that a plan makes: variables that nothing connects with what is bound before.

Owns telling them from scans that find one row, and from joins by value. Estimates nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.structural import ID


def unconnected(read: plan.ReadPlan, catalog: Catalog) -> list[str]:
    """The variables of a read that are paired with every row, unless a limit bounds that."""
    is_bounded = read.limit is not None and not (read.order or read.distinct)
    if is_bounded and read.group_by is None and read.rank is None:
        return []
    return [*dict.fromkeys(_found(read.steps, catalog, are_many=False))]


def _found(steps: Sequence[plan.Step], catalog: Catalog, *, are_many: bool) -> Iterator[str]:
    for step in steps:
        match step:
            case plan.Scan():
                if _is_named(step, catalog):
                    continue
                if are_many and not step.joins:
                    yield step.variable
                are_many = True
            case plan.Expand() | plan.WalkWay():
                are_many = True
            case plan.Union(branches):
                for branch in branches:
                    yield from _found(branch, catalog, are_many=are_many)
            case plan.Filter() | plan.Let():
                pass
            case plan.ForEach():
                are_many = True
            case plan.Fold(is_correlated=False):
                yield from _found(step.steps, catalog, are_many=False)
            case plan.Optional(inner):
                yield from _found(inner, catalog, are_many=are_many)
                are_many = True
            case _:
                yield from _found(step.steps, catalog, are_many=are_many)


def _is_named(scan: plan.Scan, catalog: Catalog) -> bool:
    """Whether a key names the one node that a scan finds."""
    key = catalog.nodes_called(scan.node_type).key
    equal = set[str]()
    for one in scan.where:
        match one:
            case plan.Comparison(plan.Property(_, name), "=", plan.Const() | plan.ParamRef()):
                equal.add(name)
    return ID in equal or (bool(key) and equal.issuperset(key))
