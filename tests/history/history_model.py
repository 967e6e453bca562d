"""What the contract says about branches and merges, as plainly as it can be said.

Dicts and loops, and no code of the program under test: whole graphs are compared row by row,
and a merged graph is checked as a whole. Slow, small, and meant to be read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal

Row = dict[str, Any]
Rows = dict[str, Row]
State = dict[str, Rows]
"""The rows of a branch by type key and id; an edge's ends are `from` and `to`."""
Side = Literal["source", "target"]
Resolve = str | Mapping[str, str] | None


@dataclass(frozen=True)
class Type:
    """A node type, or with ends an edge type."""

    key: str
    uniques: tuple[tuple[str, ...], ...] = ()
    ends: tuple[str, str] | None = None
    card: tuple[int, int | None] = (0, None)
    merges_rows: bool = False

    @property
    def name(self) -> str:
        return self.key.partition(":")[2]


Schema = Mapping[str, Type]


@dataclass(frozen=True)
class Commit:
    """A commit, and everything it shows."""

    id: str
    created_at: int
    branch: str
    parents: tuple[str, ...]
    state: State


@dataclass(frozen=True)
class Conflict:
    """What two branches disagree on; ``told`` are the values of base, source and target."""

    kind: str
    type_key: str
    id: str
    property: str | None = None
    told: tuple[Any, Any, Any] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.kind} {self.type_key}:{self.id} {self.property or ''}"


@dataclass(frozen=True)
class Crowd:
    """Rows that share a unique value."""

    type_key: str
    property: str
    ids: frozenset[str]


@dataclass(frozen=True)
class Counts:
    """What a merge does to a type."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    combined: int = 0


@dataclass
class Merged:
    """What a merge comes to: rows nobody has settled are as the target has them."""

    outcome: str
    state: State
    base: str | None = None
    standing: set[Conflict] = field(default_factory=set)
    settled: set[tuple[Conflict, Side]] = field(default_factory=set)
    crowds: set[Crowd] = field(default_factory=set)
    counts: dict[str, Counts] = field(default_factory=dict)
    unused: set[tuple[str, str]] = field(default_factory=set)
    open_rules: set[Conflict | Crowd] = field(default_factory=set)
    """Broken rules that hang on how the conflicts that stand will be settled."""
    unsaid: set[Conflict] = field(default_factory=set)
    """Too few edges, but just as one side has it: the contract does not say what holds."""

    @property
    def is_clean(self) -> bool:
        return not self.standing and not self.crowds


def is_valid_write(schema: Schema, before: State, after: State) -> bool:
    """Whether a branch may go from one state to the other in one write."""
    return not (
        any(crowds(schema, after))
        or any(orphans(schema, after))
        or any(
            before[key].get(id_) != after[key].get(id_) and source in after[f"node:{type_.ends[0]}"]
            for key, type_ in schema.items()
            if type_.ends is not None
            for source in miscounted(type_, after)
            for id_ in before[key].keys() | after[key].keys()
            if source in (before[key].get(id_, {}).get("from"), after[key].get(id_, {}).get("from"))
        )
    )


# -- rules of the schema, on whole graphs ---------------------------------------------------


def crowds(schema: Schema, state: State) -> Iterator[Crowd]:
    """Rows that share what must be unique."""
    for key, type_ in schema.items():
        for members in type_.uniques:
            holders: dict[tuple[Any, ...], set[str]] = defaultdict(set)
            for id_, row in state[key].items():
                values = tuple(row[name] for name in members)
                if None not in values:
                    holders[values].add(id_)
            for ids in holders.values():
                if len(ids) > 1:
                    yield Crowd(key, members[0], frozenset(ids))


def orphans(schema: Schema, state: State) -> Iterator[tuple[str, str, str, str, str]]:
    """Edges without an end: type, id, which end, and the node that is not there."""
    for key, type_ in schema.items():
        if type_.ends is None:
            continue
        for column, end in zip(("from", "to"), type_.ends, strict=True):
            for id_, row in state[key].items():
                if row[column] not in state[f"node:{end}"]:
                    yield key, id_, column, f"node:{end}", row[column]


def miscounted(type_: Type, state: State) -> Iterator[str]:
    """Nodes that have too many or too few edges of a type."""
    assert type_.ends is not None
    low, high = type_.card
    for node in state[f"node:{type_.ends[0]}"]:
        count = len(edges_from(type_.key, node, state))
        if count < low or (high is not None and count > high):
            yield node


def edges_from(key: str, node: str, state: State) -> set[str]:
    return {id_ for id_, row in state[key].items() if row["from"] == node}


# -- histories ------------------------------------------------------------------------------


class History:
    """The branches and commits of a graph."""

    def __init__(self, schema: Schema, genesis: str, created_at: int) -> None:
        self.schema = schema
        state: State = {key: {} for key in schema}
        self.commits = {genesis: Commit(genesis, created_at, "main", (), state)}
        self.heads = {"main": genesis}

    def state(self, branch: str) -> State:
        """A copy of what a branch shows."""
        return deepcopy(self.commits[self.heads[branch]].state)

    def commit(
        self, branch: str, id_: str, created_at: int, state: State, merged: str | None = None
    ) -> None:
        parents = (self.heads[branch],) if merged is None else (self.heads[branch], merged)
        self.commits[id_] = Commit(id_, created_at, branch, parents, deepcopy(state))
        self.heads[branch] = id_

    def fork(self, name: str, source: str) -> None:
        self.heads[name] = self.heads[source]

    def drop(self, name: str) -> None:
        """The branch goes, and with it the commits that no other branch descends from."""
        del self.heads[name]
        kept = {id_ for head in self.heads.values() for id_ in self.ancestors(head)}
        self.commits = {id_: c for id_, c in self.commits.items() if id_ in kept}

    # -- ancestry ------------------------------------------------------------------------

    def ancestors(self, id_: str) -> set[str]:
        """A commit and everything it descends from."""
        found: set[str] = set()
        waiting = [id_]
        while waiting:
            one = waiting.pop()
            if one in self.commits and one not in found:
                found.add(one)
                waiting += self.commits[one].parents
        return found

    def base(self, one: str, other: str) -> str:
        """The newest of the common ancestors that no other common ancestor descends from."""
        common = self.ancestors(one) & self.ancestors(other)
        lowest = [
            id_
            for id_ in common
            if not any(id_ in self.ancestors(other) for other in common if other != id_)
        ]
        return max(lowest, key=lambda id_: (self.commits[id_].created_at, id_))

    def lowest_count(self, one: str, other: str) -> int:
        """How many lowest common ancestors there are."""
        common = self.ancestors(one) & self.ancestors(other)
        return sum(
            not any(id_ in self.ancestors(other) for other in common if other != id_)
            for id_ in common
        )

    # -- merging -------------------------------------------------------------------------

    def merge(self, source: str, target: str, resolve: Resolve = None) -> Merged:
        """What a merge of two branches comes to; changes nothing."""
        theirs, ours = self.heads[source], self.heads[target]
        base = self.base(theirs, ours)
        old, new, mine = (self.commits[id_].state for id_ in (base, theirs, ours))
        if base == theirs:
            return Merged("already_up_to_date", mine, base)
        outcome = "fast_forward" if base == ours else "merged"
        choose = _chooser(resolve)
        merge = ThreeWay(self.schema, old, new, mine, choose)
        found = Merged(outcome, merge.run(), base)
        found.standing, found.settled = merge.standing, merge.settled
        found.crowds = set(crowds(self.schema, found.state))
        miscounts = set(merge.miscounted())
        found.unsaid = set(merge.miscounted(as_a_side_has_it=True))
        if found.standing:
            other = ThreeWay(self.schema, old, new, mine, lambda one: choose(one) or "source")
            other.run()
            found.open_rules |= miscounts - set(other.miscounted())
            found.open_rules |= found.crowds - set(crowds(self.schema, other.merged))
        found.standing |= miscounts
        found.counts = merge.counts()
        met = {(c.type_key, c.id) for c in (*found.standing, *(c for c, _ in found.settled))}
        met |= {(crowd.type_key, id_) for crowd in found.crowds for id_ in crowd.ids}
        named = resolve if isinstance(resolve, Mapping) else {}
        entities = {_entity(name, self.schema) for name in named if ":" in name}
        found.unused = entities - met
        return found


def _entity(name: str, schema: Schema) -> tuple[str, str]:
    type_name, _, id_ = name.partition(":")
    return next(key for key in schema if key.endswith(f":{type_name}")), id_


def _chooser(resolve: Resolve) -> Callable[[Conflict], Any]:
    def choose(conflict: Conflict) -> Any:
        if resolve is None or isinstance(resolve, str):
            return resolve
        entity = f"{conflict.type_key.partition(':')[2]}:{conflict.id}"
        return resolve.get(entity) or resolve.get(conflict.kind)

    return choose


@dataclass
class ThreeWay:
    """One merge of three states."""

    schema: Schema
    base: State
    source: State
    target: State
    choose: Callable[[Conflict], Any]
    merged: State = field(default_factory=dict)
    standing: set[Conflict] = field(default_factory=set)
    settled: set[tuple[Conflict, Side]] = field(default_factory=set)

    def run(self) -> State:
        for key in self.schema:
            self.merged[key] = {}
            for id_ in self.base[key].keys() | self.source[key].keys() | self.target[key].keys():
                row = self._row(key, id_)
                if row is not None:
                    self.merged[key][id_] = dict(row)
        while self._settle_orphans():
            pass
        self.standing |= {conflict for conflict, *_ in self._orphans()}
        return self.merged

    def _ask(self, conflict: Conflict) -> Side | None:
        side: Side | None = self.choose(conflict)
        if side is None:
            self.standing.add(conflict)
        else:
            self.settled.add((conflict, side))
        return side

    def _row(self, key: str, id_: str) -> Row | None:
        old, their, mine = (s[key].get(id_) for s in (self.base, self.source, self.target))
        if their == old:
            return mine
        if mine in (old, their):
            return their
        if old is not None and their is not None and mine is not None:
            if not self.schema[key].merges_rows:
                return self._properties(key, id_, old, their, mine)
            kind = "divergent_update"
        else:
            kind = "divergent_insert" if old is None else "delete_vs_update"
        told = (_shown(old), _shown(their), _shown(mine))
        side = self._ask(Conflict(kind, key, id_, None, told))
        return their if side == "source" else mine

    def _properties(self, key: str, id_: str, old: Row, their: Row, mine: Row) -> Row:
        result = dict(mine)
        stands = False
        for name in old:
            if their[name] == old[name]:
                continue
            if mine[name] in (old[name], their[name]):
                result[name] = their[name]
                continue
            told = (old[name], their[name], mine[name])
            side = self._ask(Conflict("divergent_update", key, id_, name, told))
            stands = stands or side is None
            if side == "source":
                result[name] = their[name]
        return mine if stands else result

    def _orphans(self) -> list[tuple[Conflict, Side, str, str]]:
        """The edges without an end, who deleted the node, and the node."""
        found: list[tuple[Conflict, Side, str, str]] = []
        for key, id_, column, nodes, node in orphans(self.schema, self.merged):
            deleted_by: Side = "target" if node in self.source[nodes] else "source"
            told = (
                node,
                None if deleted_by == "source" else node,
                None if deleted_by == "target" else node,
            )
            conflict = Conflict("orphan_edge", key, id_, column, told)
            found.append((conflict, deleted_by, nodes, node))
        return found

    def _settle_orphans(self) -> bool:
        """The side that wins has its way: the edge is as it has it, or the node comes back."""
        asked = False
        for conflict, deleted_by, nodes, node in self._orphans():
            side = self.choose(conflict)
            if side is None:
                continue
            asked = True
            self.settled.add((conflict, side))
            winner = self.source if side == "source" else self.target
            if side != deleted_by:
                self.merged[nodes][node] = dict(winner[nodes][node])
            elif conflict.id in winner[conflict.type_key]:
                row = winner[conflict.type_key][conflict.id]
                self.merged[conflict.type_key][conflict.id] = dict(row)
            else:
                self.merged[conflict.type_key].pop(conflict.id, None)
        return asked

    def miscounted(self, *, as_a_side_has_it: bool = False) -> Iterator[Conflict]:
        """Sources with too many or too few edges.

        A node may have too few on a side when it was deleted and came back without them.
        """
        for key, type_ in self.schema.items():
            if type_.ends is None:
                continue
            for node in miscounted(type_, self.merged):
                now = edges_from(key, node, self.merged)
                as_before = any(
                    node in side[f"node:{type_.ends[0]}"] and now == edges_from(key, node, side)
                    for side in (self.source, self.target)
                )
                if as_before == as_a_side_has_it:
                    yield Conflict("cardinality_violation", key, node, "from")

    def counts(self) -> dict[str, Counts]:
        """How the target changes, type by type."""
        found: dict[str, Counts] = {}
        for key in self.schema:
            old, new = self.target[key], self.merged[key]
            changed = [id_ for id_ in old.keys() & new.keys() if old[id_] != new[id_]]
            counts = Counts(
                len(new.keys() - old.keys()),
                len(changed),
                len(old.keys() - new.keys()),
                sum(new[id_] != self.source[key].get(id_) for id_ in changed),
            )
            if counts != Counts():
                found[key] = counts
        return found


def _shown(row: Row | None) -> Row | None:
    return None if row is None else dict(row)
