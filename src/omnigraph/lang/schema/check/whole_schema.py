"""The rules of a whole schema: names, interfaces, endpoints, and who refers to whom.

Owns what needs more than one declaration, and the walk that asks annotations.py
and constraints.py about each. Reports everything it finds; never raises.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from omnigraph.lang.cursor import shorten
from omnigraph.lang.diagnostics import Phase, Reporter, did_you_mean
from omnigraph.lang.schema.check.annotations import Owner, check_header, check_property
from omnigraph.lang.schema.check.constraints import (
    ConstraintScope,
    check_constraint,
    check_default_ranges,
    check_one_key,
)
from omnigraph.lang.schema.check.effective import (
    Declared,
    Effective,
    agree,
    annotation_named,
    canonical_type,
    declared,
    effective_properties,
    implemented,
)
from omnigraph.lang.schema.syntax.parser import Parsed
from omnigraph.lang.schema.syntax.tree import (
    Declaration,
    Edge,
    Interface,
    Node,
    Property,
    constraints_of,
    properties_of,
)
from omnigraph.lang.source import Name, Span

_STORAGE_NAMES = frozenset(
    {
        "_row_created_at_version",
        "_row_last_updated_at_version",
        "_rowaddr",
        "_rowid",
        "_rowoffset",
    }
)


def check_schema(parsed: Parsed, reporter: Reporter, *, stored: bool = False) -> None:
    """Report every broken rule.

    A name that resolves to nothing is not reported when what it names may stand
    where text did not parse. ``stored`` is for a schema that was accepted before and
    must open again.
    """
    declarations = parsed.schema.declarations
    checker = _Checker(declared(parsed.schema), reporter, parsed, stored)
    checker.unique_names(declarations)
    for declaration in declarations:
        if reporter.full:
            return
        match declaration:
            case Interface():
                checker.interface(declaration)
            case Node():
                checker.node(declaration)
            case Edge():
                checker.edge(declaration)


@dataclass(frozen=True)
class _Checker:
    known: Declared
    reporter: Reporter
    parsed: Parsed
    stored: bool

    def parse_error(self, span: Span, message: str, *, hint: str | None = None) -> None:
        self.reporter.report(span, message, phase=Phase.PARSE, hint=hint)

    def catalog_error(self, span: Span, message: str, *, hint: str | None = None) -> None:
        self.reporter.report(span, message, phase=Phase.CATALOG, hint=hint)

    # -- names ---------------------------------------------------------------------

    def unique_names(self, declarations: Iterable[Declaration]) -> None:
        seen: set[tuple[type, str]] = set()
        folded: dict[str, str] = {}
        for declaration in declarations:
            name = declaration.name.text
            key = (type(declaration), name)
            if key in seen:
                kind = _KIND_NOUNS[type(declaration)]
                self.catalog_error(declaration.name.span, f"duplicate {kind} `{shorten(name)}`")
                continue
            seen.add(key)
            if isinstance(declaration, Edge):
                other = folded.setdefault(name.lower(), name)
                if other != name:
                    message = (
                        f"edge name collision after case folding: "
                        f"`{shorten(name)}` and `{shorten(other)}`"
                    )
                    self.catalog_error(declaration.name.span, message)

    def properties(self, properties: Iterable[Property], owner: Owner, type_name: str) -> None:
        """Check properties one by one: their names and their annotations."""
        seen: set[str] = set()
        for property_ in properties:
            name = property_.name
            if name.text in seen:
                message = f"duplicate property `{shorten(name.text)}` on `{shorten(type_name)}`"
                self.catalog_error(name.span, message)
            seen.add(name.text)
            self.reserved_name(name, owner)
            check_property(property_, owner, self.reporter)

    def reserved_name(self, name: Name, owner: Owner) -> None:
        if name.text in _STORAGE_NAMES:
            self.parse_error(name.span, f"`{name}` is a reserved name of the storage")
        elif owner == "edge" and name.text in ("from", "to"):
            message = f"`{name}` names an endpoint of the edge; it cannot be a property"
            self.parse_error(name.span, message)

    # -- declarations ----------------------------------------------------------------

    def interface(self, interface: Interface) -> None:
        self.properties(interface.properties, "interface", interface.name.text)

    def node(self, node: Node) -> None:
        check_header(node.annotations, "node", self.reporter)
        self.properties(properties_of(node.members), "node", node.name.text)
        resolved = self.implements(node)
        effective = effective_properties(node, self.known.interfaces)
        self.contributions(node, effective)
        scope = ConstraintScope(
            "node",
            {name: found.property for name, found in effective.items()},
            complete=resolved and self.whole(node),
            stored=self.stored,
        )
        constraints = constraints_of(node.members)
        for constraint in constraints:
            check_constraint(constraint, scope, self.reporter)
        places = self.injection_places(node, effective)
        self.one_key(node, effective, places)
        self.embed_sources(node, effective, places, scope)
        check_default_ranges(constraints, scope, places, self.reporter)

    def edge(self, edge: Edge) -> None:
        check_header(edge.annotations, "edge", self.reporter)
        properties = properties_of(edge.members)
        self.properties(properties, "edge", edge.name.text)
        for endpoint in (edge.source, edge.target):
            self.endpoint(endpoint)
        card = edge.cardinality
        if card is not None and card.maximum is not None and card.minimum > card.maximum:
            self.parse_error(
                card.span, f"`@card` has a minimum {card.minimum} above its maximum {card.maximum}"
            )
        by_name = {property_.name.text: property_ for property_ in reversed(properties)}
        scope = ConstraintScope("edge", by_name, complete=self.whole(edge), stored=self.stored)
        constraints = constraints_of(edge.members)
        for constraint in constraints:
            check_constraint(constraint, scope, self.reporter)
        keys = [constraint.span for constraint in constraints if constraint.name == "key"]
        check_one_key(keys, "edge", self.reporter)
        shared = [end for end in (edge.source, edge.target) if self._is_interface(end)]
        if keys and shared:
            self.parse_error(
                keys[0],
                f"an edge with a key connects node types, and `{shorten(shared[0].text)}` is an "
                "interface",
            )

    def _is_interface(self, name: Name) -> bool:
        return name.text in self.known.interfaces and name.text not in self.known.nodes

    def endpoint(self, name: Name) -> None:
        if name.text in self.known.nodes or not self.parsed.complete or self.reporter.full:
            return
        if name.text in self.known.interfaces:
            return
        self.catalog_error(
            name.span,
            f"unknown node type `{shorten(name.text)}`",
            hint=did_you_mean(name.text, {*self.known.nodes, *self.known.interfaces}),
        )

    # -- interfaces of a node ----------------------------------------------------------

    def whole(self, declaration: Declaration) -> bool:
        """Whether no member of a declaration, or of its interfaces, is missing."""
        names = [declaration.name]
        if isinstance(declaration, Node):
            names += [found.name for found in implemented(declaration, self.known.interfaces)]
        return self.parsed.broken.isdisjoint(name.span for name in names)

    def implements(self, node: Node) -> bool:
        """Report unknown interfaces; true when all are known."""
        unknown = [name for name in node.implements if name.text not in self.known.interfaces]
        for name in unknown:
            if self.parsed.complete and not self.reporter.full:
                self.parse_error(
                    name.span,
                    f"unknown interface `{shorten(name.text)}`",
                    hint=did_you_mean(name.text, self.known.interfaces),
                )
        return not unknown

    def contributions(self, node: Node, effective: dict[str, Effective]) -> None:
        """Compare what interfaces ask for with what the node, or another of them, says."""
        place = {name.text: name.span for name in reversed(node.implements)}
        for interface in implemented(node, self.known.interfaces):
            for property_ in interface.properties:
                found = effective[property_.name.text]
                if found.direct:
                    self.same_type(found.property, property_, interface)
                elif not agree(found.property, property_) or _hints_differ(
                    found.property, property_
                ):
                    first = found.interfaces[0]
                    name = shorten(property_.name.text)
                    # A node that declares the property settles annotations, never the type.
                    same = canonical_type(found.property.type) == canonical_type(property_.type)
                    self.catalog_error(
                        place[interface.name.text],
                        f"incompatible property semantics: `{shorten(first)}` and "
                        f"`{shorten(interface.name.text)}` disagree about "
                        f"`{name}`",
                        hint=f"declare `{name}` on the node itself" if same else None,
                    )

    def same_type(self, own: Property, asked: Property, interface: Interface) -> None:
        if canonical_type(own.type) != canonical_type(asked.type):
            message = (
                f"`{shorten(own.name.text)}` is {own.type}, but interface "
                f"`{shorten(interface.name.text)}` asks for {asked.type}"
            )
            self.parse_error(own.type_span, message)

    def injection_places(self, node: Node, effective: dict[str, Effective]) -> dict[str, Span]:
        """For every property that comes from an interface: where the node names it."""
        place = {name.text: name.span for name in reversed(node.implements)}
        return {
            name: place[found.interfaces[0]]
            for name, found in effective.items()
            if not found.direct
        }

    def one_key(self, node: Node, effective: dict[str, Effective], places: dict[str, Span]) -> None:
        keys = [c.span for c in constraints_of(node.members) if c.name == "key"]
        for name, found in effective.items():
            annotation = annotation_named(found.property.annotations, "key")
            if annotation is not None:
                keys.append(places.get(name, annotation.span))
        check_one_key(keys, "node", self.reporter)

    def embed_sources(
        self,
        node: Node,
        effective: dict[str, Effective],
        places: dict[str, Span],
        scope: ConstraintScope,
    ) -> None:
        for name, found in effective.items():
            annotation = annotation_named(found.property.annotations, "embed")
            if annotation is None or annotation.value is None or not found.property.type.is_vector:
                continue
            source = annotation.value.text
            origin = effective.get(source)
            span = places.get(name, annotation.value.span)
            if origin is None:
                if scope.complete and source.strip() and not self.reporter.full:
                    self.catalog_error(
                        span,
                        f"unresolved embed source `{shorten(source)}`: "
                        f"`{shorten(node.name.text)}` has no such property",
                        hint=did_you_mean(source, effective),
                    )
            elif not origin.property.type.is_text:
                self.catalog_error(
                    span,
                    f"unresolved embed source `{shorten(source)}`: "
                    f"it is {origin.property.type}, not a String",
                )


_KIND_NOUNS: dict[type, str] = {Interface: "interface", Node: "node type", Edge: "edge type"}


def _hints_differ(left: Property, right: Property) -> bool:
    """Whether two interfaces name different former names for one property."""
    hints = [annotation_named(side.annotations, "rename_from") for side in (left, right)]
    texts = {hint.value.text for hint in hints if hint is not None and hint.value is not None}
    return len(texts) > 1
