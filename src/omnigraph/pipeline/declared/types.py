"""Types of a pipeline: what a document says about a graph, held against its schema.

Owns everything that can be told without data: unknown types, properties and sources, and what
is missing. Never starts Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from omnigraph.lang.diagnostics import name_hint
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.lang.structural import ID, spelling
from omnigraph.pipeline.declared.document import Document, Expression, KeyExpressions, TypeMapping
from omnigraph.pipeline.declared.yaml_node import DocumentErrors
from omnigraph.write.change.change_set import EntityType
from omnigraph.write.load.ndjson.exact import unknown_property

_BESIDE = ("id", "src", "dst")


@dataclass(frozen=True, slots=True)
class KeyedNode:
    """An end by the key of its node, all of whose properties are known."""

    node: NodeType
    members: Mapping[str, Expression]


@dataclass(frozen=True, slots=True)
class Typed:
    """Rows of one source with the type they become."""

    mapped: TypeMapping
    type: EntityType
    texts: Mapping[str, Expression]
    """The expression of every column that is taken as it is."""
    keyed: Mapping[str, KeyedNode] = field(default_factory=dict)


def typed_rows(document: Document, catalog: Catalog, problems: DocumentErrors) -> list[Typed]:
    """What a document maps, as far as it fits the schema."""
    return [
        typed
        for mapped in document.mapped
        if (typed := _Check(document, catalog, problems).typed(mapped)) is not None
    ]


@dataclass(frozen=True, slots=True)
class _Check:
    document: Document
    catalog: Catalog
    problems: DocumentErrors

    def typed(self, mapped: TypeMapping) -> Typed | None:
        if mapped.source not in self.document.sources:
            hint = _hint(mapped.source, self.document.sources)
            self.problems.say(mapped.source_spot, f"there is no source '{mapped.source}'{hint}")
        type_ = self._type(mapped)
        if type_ is None:
            return None
        self._check_values(mapped, type_)
        texts = dict(mapped.values)
        keyed: dict[str, KeyedNode] = {}
        if mapped.id is not None:
            texts[spelling(ID, type_.properties)] = mapped.id
        for end, value in mapped.ends.items():
            column = spelling(f"@{end}", type_.properties)
            if isinstance(value, Expression):
                texts[column] = value
            elif isinstance(type_, EdgeType):
                node = self._keyed(value, type_.source if end == "src" else type_.target)
                if node is not None:
                    keyed[column] = node
        if not mapped.values and not mapped.ends and mapped.id is None:
            self.problems.say(mapped.spot, "no value is given: write `set`")
        return Typed(mapped, type_, texts, keyed)

    def _type(self, mapped: TypeMapping) -> EntityType | None:
        name = mapped.type_name
        found: EntityType | None
        other: EntityType | None
        node, edge = self.catalog.nodes.get(name), self.catalog.find_edge(name)
        found, other = (node, edge) if mapped.kind == "node" else (edge, node)
        if found is not None:
            return found
        if other is not None:
            said = f"{other.name} is {'an edge' if other.kind == 'edge' else 'a node'} type"
            self.problems.say(mapped.spot, f"{said}: write it below `{other.kind}s`")
            return None
        known = self.catalog.nodes if mapped.kind == "node" else self.catalog.edges
        hint = _hint(name, known)
        self.problems.say(mapped.spot, f"unknown {mapped.kind} type '{name}'{hint}")
        return None

    def _check_values(self, mapped: TypeMapping, type_: EntityType) -> None:
        for name, value in mapped.values.items():
            if name in type_.properties:
                continue
            if name in _BESIDE:
                said = f"`{name}` stands beside `set`, not in it"
            else:
                said = unknown_property(type_, name)
            self.problems.say(value.spot, said)
        for name, property_ in type_.properties.items():
            if property_.is_required and property_.embedding is None and name not in mapped.values:
                self.problems.say(
                    mapped.spot, f"{type_.name}.{name} must have a value: write it into `set`"
                )

    def _keyed(self, value: KeyExpressions, wanted: str) -> KeyedNode | None:
        name = value.type_name.removeprefix("node:")
        node = self.catalog.nodes.get(wanted)
        if name != wanted or node is None:
            self.problems.say(value.spot, f"this end is a {wanted}, not a {value.type_name}")
            return None
        if not node.key:
            self.problems.say(
                value.spot, f"{node.name} has no key: write an expression for its id instead"
            )
            return None
        for member, expression in value.members.items():
            if member not in node.key:
                hint = _hint(member, node.key)
                self.problems.say(
                    expression.spot, f"'{member}' is not in the key of {node.name}{hint}"
                )
        missing = [member for member in node.key if member not in value.members]
        if missing:
            listed = ", ".join(missing)
            self.problems.say(value.spot, f"the key of {node.name} needs {listed} as well")
            return None
        return KeyedNode(node, {member: value.members[member] for member in node.key})


def _hint(name: str, known: Iterable[str]) -> str:
    hint = name_hint(name, known)
    return f"; {hint}" if hint else ""
