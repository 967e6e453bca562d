"""Narrowed schemas: a schema as it would be without some of its types and properties.

Owns what goes with them: edges to a type that is gone, constraints over a property that is gone,
interfaces that promise it, and all comments. Must not leave a name of what is gone behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from omnigraph.errors import PolicyDenied
from omnigraph.lang.schema.compile import CompiledSchema, compile_schema
from omnigraph.lang.schema.ir.ir import SchemaIR
from omnigraph.lang.schema.syntax.format import print_schema
from omnigraph.lang.schema.syntax.tree import (
    Annotation,
    Argument,
    Constraint,
    Declaration,
    Edge,
    Interface,
    Member,
    Node,
    Property,
    Schema,
    properties_of,
)

Shows = Callable[[str, str], bool]
"""Whether a type is there, by its kind and name."""
Hidden = Callable[[str, str], frozenset[str]]
"""The properties of a type that are not."""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What of a schema stays."""

    shows: Shows
    hidden: Hidden

    def of(self, syntax: Schema, accepted: SchemaIR) -> CompiledSchema:
        """The narrowed schema, under the identities of the accepted one."""
        tree = Schema(tuple(self._declarations(syntax)))
        return compile_schema(print_schema(tree), accepted=accepted)

    def _declarations(self, syntax: Schema) -> Iterator[Declaration]:
        interfaces = {
            str(found.name): found for found in syntax.declarations if isinstance(found, Interface)
        }
        nodes = {
            str(found.name): found
            for found in syntax.declarations
            if isinstance(found, Node) and self.shows("node", str(found.name))
        }
        kept = {name: found for name, found in interfaces.items() if self._keeps(found, nodes)}
        # An edge may lead to any node that has the interface: those who see it see them all.
        hidden_by = {
            str(name)
            for found in syntax.declarations
            if isinstance(found, Node) and str(found.name) not in nodes
            for name in found.implements
        }
        whole = kept.keys() - hidden_by
        for found in syntax.declarations:
            match found:
                case Interface(name) if str(name) in kept:
                    yield replace(found, properties=tuple(map(_plain, found.properties)))
                case Node(name) if str(name) in nodes:
                    yield self._node(found, interfaces, kept)
                case Edge(name, source, target) if {str(source), str(target)} <= {
                    *nodes,
                    *whole,
                } and self.shows("edge", str(name)):
                    hidden = self.hidden("edge", str(name))
                    yield replace(
                        found,
                        members=_members(found.members, hidden, str(name)),
                        annotations=_annotations(found.annotations),
                    )

    def _keeps(self, interface: Interface, nodes: Mapping[str, Node]) -> bool:
        """Whether an interface stays: some type has it, and none hides what it promises."""
        promised = {str(found.name) for found in interface.properties}
        having = [
            name for name, node in nodes.items() if str(interface.name) in map(str, node.implements)
        ]
        return bool(having) and all(
            promised.isdisjoint(self.hidden("node", name)) for name in having
        )

    def _node(
        self, node: Node, interfaces: Mapping[str, Interface], kept: Mapping[str, Interface]
    ) -> Node:
        hidden = self.hidden("node", str(node.name))
        own = {str(found.name) for found in properties_of(node.members)}
        inherited: dict[str, Property] = {}
        for name in map(str, node.implements):
            if name not in kept:
                for found in interfaces[name].properties:
                    if str(found.name) not in own:
                        inherited.setdefault(str(found.name), found)
        members = (*inherited.values(), *node.members)
        return replace(
            node,
            members=_members(members, hidden, str(node.name)),
            annotations=_annotations(node.annotations),
            implements=tuple(name for name in node.implements if str(name) in kept),
        )


def _members(members: tuple[Member, ...], hidden: frozenset[str], owner: str) -> tuple[Member, ...]:
    found: list[Member] = []
    for member in members:
        if isinstance(member, Property):
            if str(member.name) in hidden:
                _require_no_key(str(member.name), owner, [one.name for one in member.annotations])
                continue
            found.append(_without_source(_plain(member), hidden))
        elif hidden.isdisjoint(_named(member)):
            found.append(member)
        else:
            _require_no_key(
                ", ".join(sorted(hidden.intersection(_named(member)))), owner, [member.name]
            )
    return tuple(found)


def _named(constraint: Constraint) -> set[str]:
    return {
        found.text
        for found in constraint.arguments
        if isinstance(found, Argument) and found.kind == "name"
    }


def _require_no_key(name: str, owner: str, said: list[str]) -> None:
    if "key" in said:
        raise PolicyDenied(
            f"the policy hides {owner}.{name}, which is of its key: every id would tell it, so "
            "nothing is shown; hide the type, or let the key be seen"
        )


def _without_source(property_: Property, hidden: frozenset[str]) -> Property:
    """A vector that is made from a hidden text says no more from which."""
    kept = tuple(
        one
        for one in property_.annotations
        if one.name != "embed" or one.value is None or one.value.text not in hidden
    )
    return replace(property_, annotations=kept)


def _plain(property_: Property) -> Property:
    return replace(property_, annotations=_annotations(property_.annotations))


def _annotations(annotations: tuple[Annotation, ...]) -> tuple[Annotation, ...]:
    """Without what things were called before."""
    return tuple(one for one in annotations if one.name != "rename_from")
