"""The whole way of a schema: text to syntax, shape, IR and catalog.

Owns the order of the steps and when to stop, the seal over the accepted schema that ties
source, shape and IR together, and the decoding of stored annotations into typed facts:
defaults, embeddings, descriptions, merge behaviour. Raises one error that carries every
mistake; never anything untyped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from omnigraph.errors import SchemaError
from omnigraph.lang.cache import Cache
from omnigraph.lang.diagnostics import Diagnostic, Reporter
from omnigraph.lang.lint_report import Finding, LintReport
from omnigraph.lang.schema import catalog
from omnigraph.lang.schema.catalog import Catalog, EdgeType, Embedding, NodeType, PropertyDef
from omnigraph.lang.schema.check.defaults import decode_default
from omnigraph.lang.schema.check.whole_schema import check_schema
from omnigraph.lang.schema.ir.document import (
    Bound,
    Document,
    PropertyConstraint,
    Text,
    note_value,
    read_document,
)
from omnigraph.lang.schema.ir.identity import HintReport, resolve
from omnigraph.lang.schema.ir.ir import (
    IR_VERSION,
    CheckConstraint,
    IRConstraint,
    IREdge,
    IRInterface,
    IRNode,
    IRProperty,
    MemberConstraint,
    PropertyField,
    RangeConstraint,
    SchemaIR,
    SystemField,
)
from omnigraph.lang.schema.ir.shape import Shape, build_shape
from omnigraph.lang.schema.syntax.parser import parse
from omnigraph.lang.schema.syntax.tree import Schema
from omnigraph.lang.schema.type_sets import InterfaceType
from omnigraph.lang.source import Source
from omnigraph.lang.structural import DST, ENDPOINTS, SRC

FORMAT_VERSION: Literal[2] = 2
_CHOICES = {
    "format_version": f"expected version {FORMAT_VERSION}",
    "schema_identity_version": f"expected version {IR_VERSION}",
}

PLACEHOLDER_DOMAIN = "0" * 26
"""The identity domain of a schema that no graph has accepted."""


class SchemaState(Document, frozen=True):
    """The hashes of the accepted schema and the domain its ids live in."""

    format_version: Literal[2]
    schema_shape_hash: Text
    schema_ir_hash: Text
    schema_identity_version: Literal[2]
    schema_identity_domain: Text


def sealed(shape_hash: str, ir_hash: str, domain: str) -> SchemaState:
    """The state of a schema with these hashes and this domain."""
    return SchemaState(FORMAT_VERSION, shape_hash, ir_hash, IR_VERSION, domain)


def state_from_json(text: str | bytes) -> SchemaState:
    """The state a stored text holds; SchemaError says what is wrong with any other text."""
    return read_document(text, SchemaState, "schema state", _CHOICES)


def check_state(state: SchemaState, ir: SchemaIR, shape: Shape) -> None:
    """Refuse a state that does not seal this IR and the shape of this source."""
    if state.schema_identity_domain != ir.schema_identity_domain:
        raise SchemaError("the schema state names another identity domain than the schema IR")
    if state.schema_ir_hash != ir.schema_ir_hash:
        raise SchemaError("the schema IR was changed since it was accepted")
    if state.schema_shape_hash != shape.schema_shape_hash:
        raise SchemaError(
            "the schema source was changed since it was accepted: apply it as a schema change"
        )


@dataclass(frozen=True, slots=True)
class CompiledSchema:
    """A schema at every stage."""

    source: Source
    syntax: Schema
    shape: Shape
    ir: SchemaIR
    catalog: Catalog
    reports: tuple[HintReport, ...]


_parsed: Cache[tuple[str, bool], Schema] = Cache(16)


def compile_schema(
    source: Source | str,
    *,
    accepted: SchemaIR | None = None,
    domain: str | None = None,
    first_id: int | None = None,
) -> CompiledSchema:
    """Compile a schema, keeping the identities of the accepted one.

    Without an accepted IR and a domain the ids are those of a fresh graph in a
    placeholder domain, which is all that offline checks need. ``first_id`` begins a
    range of ids reserved for what is new: `new_identities` says how many it takes.
    """
    source = _as_source(source)
    reporter = Reporter(source)
    syntax = _sound(source)
    shape = build_shape(syntax)
    if domain is None:
        domain = PLACEHOLDER_DOMAIN if accepted is None else accepted.schema_identity_domain
    resolution = resolve(
        shape, syntax, accepted, domain=domain, reporter=reporter, first_id=first_id
    )
    catalog = catalog_from_ir(resolution.ir)
    return CompiledSchema(source, syntax, shape, resolution.ir, catalog, resolution.reports)


def shape_of_source(source: Source | str, *, stored: bool = False) -> Shape:
    """The shape of a schema alone; ``stored`` opens what was accepted before rules tightened."""
    return build_shape(_sound(_as_source(source), stored=stored))


def check_schema_source(source: Source | str) -> tuple[Diagnostic, ...]:
    """Every mistake in a schema, by place; never raises."""
    source = _as_source(source)
    reporter = Reporter(source)
    _checked(source, reporter)
    return reporter.diagnostics


def lint_schema(source: Source) -> tuple[Catalog | None, LintReport]:
    """The catalog of a sound schema, and the report in any case."""
    diagnostics = check_schema_source(source)
    findings = tuple(Finding("error", found.stable_code, found.summary) for found in diagnostics)
    catalog = compile_schema(source).catalog if not diagnostics else None
    return catalog, LintReport((), findings, diagnostics)


def _sound(source: Source, *, stored: bool = False) -> Schema:
    """The syntax of a schema without mistakes; a change of it is compiled several times."""

    def checked() -> Schema:
        reporter = Reporter(source)
        syntax = _checked(source, reporter, stored=stored)
        reporter.raise_if_any()
        return syntax

    return _parsed.get((source.text, stored), checked)


def _checked(source: Source, reporter: Reporter, *, stored: bool = False) -> Schema:
    parsed = parse(source, reporter)
    check_schema(parsed, reporter, stored=stored)
    return parsed.schema


def _as_source(source: Source | str) -> Source:
    return Source(source) if isinstance(source, str) else source


def catalog_from_ir(ir: SchemaIR) -> Catalog:
    """The typed view of a schema; its hash is the hash of the IR."""
    interfaces = {
        interface.type_id: tuple(
            (node.type_id, node.name)
            for node in ir.nodes
            if any(found.type_id == interface.type_id for found in node.implements)
        )
        for interface in ir.interfaces
    }
    return Catalog(
        ir.schema_ir_hash,
        {node.name: _node(node) for node in ir.nodes},
        {edge.name: _edge(edge, interfaces) for edge in ir.edges},
        {interface.name: _interface(interface, ir.nodes) for interface in ir.interfaces},
    )


def _interface(interface: IRInterface, nodes: Iterable[IRNode]) -> InterfaceType:
    implementers = (
        node.name
        for node in nodes
        if any(found.type_id == interface.type_id for found in node.implements)
    )
    return InterfaceType(
        interface.name,
        interface.type_id,
        _properties(interface.properties, interface.name),
        tuple(sorted(implementers)),
        tuple(found.name for found in interface.properties if "key" in found.property_constraints),
    )


def _node(node: IRNode) -> NodeType:
    key = _key(node)
    return NodeType(
        node.name,
        node.type_id,
        node.table_incarnation_id,
        _properties(node.properties, node.name),
        key,
        _members(node.constraints, "unique"),
        _indexes(key, _members(node.constraints, "index")),
        tuple(
            catalog.RangeRule(found.field.name, _number(found.minimum), _number(found.maximum))
            for found in node.constraints
            if isinstance(found, RangeConstraint)
        ),
        tuple(
            catalog.CheckRule(found.field.name, found.pattern)
            for found in node.constraints
            if isinstance(found, CheckConstraint)
        ),
        tuple(sorted(found.type_name for found in node.implements)),
        note_value(node.annotations, "merge") == "row",
        note_value(node.annotations, "description"),
        note_value(node.annotations, "instruction"),
    )


def _edge(edge: IREdge, interfaces: Mapping[int, tuple[tuple[int, str], ...]]) -> EdgeType:
    ends = (edge.from_type.type_id, edge.to_type.type_id)
    return EdgeType(
        edge.name,
        edge.type_id,
        edge.table_incarnation_id,
        edge.from_type.type_name,
        edge.to_type.type_name,
        _properties(edge.properties, edge.name),
        edge.cardinality.minimum,
        edge.cardinality.maximum,
        _members(edge.constraints, "unique"),
        _members(edge.constraints, "index"),
        note_value(edge.annotations, "merge") == "row",
        note_value(edge.annotations, "description"),
        note_value(edge.annotations, "instruction"),
        _key(edge),
        tuple(
            column
            for column, end in ((SRC, edge.from_type), (DST, edge.to_type))
            if end.type_id in interfaces
        ),
        tuple(sorted({pair for end in ends for pair in interfaces.get(end, ())})),
    )


def _key(table: IRNode | IREdge) -> tuple[str, ...]:
    """The key of a table: both ends of an edge, then properties by stable id."""
    fields = next((found.fields for found in table.constraints if found.kind == "key"), ())
    ends = {found.name for found in fields if isinstance(found, SystemField)}
    properties = (found for found in fields if isinstance(found, PropertyField))
    members = sorted(properties, key=lambda member: member.property_id)
    return (*(end for end in ENDPOINTS if end in ends), *(found.name for found in members))


def _members(
    constraints: Iterable[IRConstraint], kind: PropertyConstraint
) -> tuple[tuple[str, ...], ...]:
    return tuple(
        tuple(field.name for field in found.fields)
        for found in constraints
        if isinstance(found, MemberConstraint) and found.kind == kind
    )


def _indexes(
    key: tuple[str, ...], declared: tuple[tuple[str, ...], ...]
) -> tuple[tuple[str, ...], ...]:
    """A key implies an index over its members, unless the same one is declared."""
    if not key or any(sorted(members) == sorted(key) for members in declared):
        return declared
    return (key, *declared)


def _number(bound: Bound | None) -> int | float | None:
    return None if bound is None else bound.value


def _properties(properties: Iterable[IRProperty], owner: str) -> dict[str, PropertyDef]:
    return {property_.name: _property(property_, owner) for property_ in properties}


def _property(property_: IRProperty, owner: str) -> PropertyDef:
    written = note_value(property_.annotations, "default")
    try:
        default = None if written is None else decode_default(written, property_.type)
    except ValueError as error:
        raise SchemaError(
            f"invalid schema IR: the default of {owner}.{property_.name}: {error}"
        ) from None
    embed = property_.embed_source
    return PropertyDef(
        property_.name,
        property_.property_id,
        property_.type,
        default,
        None if embed is None else Embedding(embed.source.property_name, embed.model),
        note_value(property_.annotations, "description"),
    )
