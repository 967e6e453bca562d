"""Generated limits, and the graph from which what they hide was deleted.

Says once more, in plain Python, what limits mean: shares nothing with the product.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from omnigraph.manifest.limits import Grant
from omnigraph.policy import CompiledPolicy
from omnigraph.policy.rules import PolicyFile, Rule
from tests.read.model import Data, EdgeType, NodeType, Row, Schema

ACTOR = "ann"


@dataclass(frozen=True)
class Condition:
    """A condition on one row, as text and as what it means."""

    text: str
    name: str
    kind: str
    value: str = ""

    def holds(self, id_: str, row: Row) -> bool:
        """Whether a row passes."""
        match self.kind:
            case "known":
                return row[self.name] is not None
            case "unknown":
                return row[self.name] is None
            case "not id":
                return id_ != self.value
            case "actor":
                return bool(row[self.name] == ACTOR)
            case "starts":
                return str(row[self.name] or "").startswith(self.value)
        raise AssertionError(self.kind)


@dataclass
class Drawn:
    """What one rule shows."""

    types: set[str] | None = None
    hide: dict[str, set[str]] = field(default_factory=dict)
    rows: dict[str, Condition] = field(default_factory=dict)

    @property
    def grant(self) -> Grant:
        """The same as the product says it."""
        return Grant(
            None if self.types is None else frozenset(self.types),
            tuple(sorted((name, frozenset(hidden)) for name, hidden in self.hide.items())),
            tuple(sorted((name, one.text) for name, one in self.rows.items())),
        )

    def shows(self, name: str) -> bool:
        """Whether it shows a type."""
        return self.types is None or name in self.types


def draw_limits(rng: Random, schema: Schema, data: Data) -> list[Drawn]:
    """One rule or two; the first type is always shown."""
    return [_draw(rng, schema, data) for _ in range(rng.choice((1, 1, 2)))]


def _draw(rng: Random, schema: Schema, data: Data) -> Drawn:
    found = Drawn()
    types: list[NodeType | EdgeType] = [*schema.nodes.values(), *schema.edges.values()]
    if rng.random() < 0.5:
        found.types = {"Thing"} | {one.name for one in types if rng.random() < 0.7}
    for one in types:
        if not found.shows(one.name):
            continue
        key = one.key if isinstance(one, NodeType) else None
        if rng.random() < 0.4:
            found.hide[one.name] = {
                name for name in one.props if name != key and rng.random() < 0.5
            }
        if rng.random() < 0.5:
            every = data.nodes if isinstance(one, NodeType) else data.edges
            found.rows[one.name] = _condition(rng, one, sorted(every[one.name]))
    return found


# Words of the language are properties, too: the conditions leave them alone.
_PLAIN = ("fullName", "fullname", "size", "x", "y", "name")


def _condition(rng: Random, one: NodeType | EdgeType, ids: list[str]) -> Condition:
    names = [name for name in one.props if name in _PLAIN]
    texts = [
        name for name in names if one.props[name].base == "String" and not one.props[name].is_list
    ]
    if texts and rng.random() < 0.6:
        name = rng.choice(texts)
        if rng.random() < 0.3:
            return Condition(f"{name} = $actor", name, "actor")
        return Condition(f'{name} starts_with "a"', name, "starts", "a")
    if names and rng.random() < 0.7:
        name = rng.choice(names)
        if rng.random() < 0.5 or not one.props[name].nullable:
            return Condition(f"{name} is not null", name, "known")
        return Condition(f"{name} is null", name, "unknown")
    plain = [id_ for id_ in ids if id_.isalnum() and id_.isascii()]
    id_ = rng.choice(plain) if plain else "nobody"
    return Condition(f'@id != "{id_}"', "@id", "not id", id_)


def policy_of(limits: list[Drawn]) -> CompiledPolicy:
    """A policy whose rules show this to one actor, who may do everything else."""
    rules = [
        Rule(f"r{number}", "readers", ("read", "export", "change"), grant=one.grant)
        for number, one in enumerate(limits)
    ]
    return CompiledPolicy.of(
        PolicyFile("generated", {"readers": (ACTOR,)}, frozenset(), tuple(rules))
    )


def deleted(schema: Schema, data: Data, limits: list[Drawn]) -> tuple[Schema, Data]:
    """The graph without what is hidden."""

    def rules(name: str) -> list[Drawn]:
        return [one for one in limits if one.shows(name)]

    def props(one: NodeType | EdgeType) -> dict[str, Any]:
        hidden = set.intersection(*(rule.hide.get(one.name, set()) for rule in rules(one.name)))
        return {name: type_ for name, type_ in one.props.items() if name not in hidden}

    nodes = {
        one.name: NodeType(one.name, one.key, props(one))
        for one in schema.nodes.values()
        if rules(one.name)
    }
    edges = {
        one.name: EdgeType(one.name, one.source, one.target, props(one))
        for one in schema.edges.values()
        if rules(one.name) and one.source in nodes and one.target in nodes
    }

    def passes(name: str, id_: str, row: Row) -> bool:
        return any(name not in rule.rows or rule.rows[name].holds(id_, row) for rule in rules(name))

    def shown(one: NodeType | EdgeType, row: Row) -> Row:
        return {name: value for name, value in row.items() if name in one.props or name[0] == "@"}

    kept_nodes = {
        name: {
            id_: shown(one, row) for id_, row in data.nodes[name].items() if passes(name, id_, row)
        }
        for name, one in nodes.items()
    }
    kept_edges = {
        name: {
            id_: shown(one, row)
            for id_, row in data.edges[name].items()
            if passes(name, id_, row)
            and row["@src"] in kept_nodes[one.source]
            and row["@dst"] in kept_nodes[one.target]
        }
        for name, one in edges.items()
    }
    return Schema(nodes, edges), Data(kept_nodes, kept_edges)
