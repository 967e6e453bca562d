"""Identity: which declaration is which, across versions of a schema.

Owns stable ids: they are kept by exact name or by `@rename_from`, allocated from
one counter and never reused. Never compares what declarations say (migration.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from omnigraph.errors import SchemaError
from omnigraph.lang.cursor import shorten
from omnigraph.lang.diagnostics import Phase, Reporter, did_you_mean
from omnigraph.lang.schema.check.effective import annotation_named, declared, effective_properties
from omnigraph.lang.schema.ir.document import MAX_ID
from omnigraph.lang.schema.ir.identified import Ids, identified
from omnigraph.lang.schema.ir.ir import (
    IRInterface,
    IRType,
    SchemaIR,
    TypeKind,
    is_domain,
    validate_ir,
)
from omnigraph.lang.schema.ir.shape import (
    EdgeShape,
    InterfaceShape,
    NodeShape,
    PropertyShape,
    Shape,
)
from omnigraph.lang.schema.syntax.tree import Annotation, Schema, properties_of
from omnigraph.lang.source import Span

ReportCode = Literal["inert_initialization_rename_hint", "ignored_exact_match_rename_hint"]


@dataclass(frozen=True, slots=True)
class RenameHint:
    """`@rename_from`; ``inherited`` when an interface wrote it for its nodes."""

    former: str
    span: Span
    inherited: bool = False


@dataclass(frozen=True, slots=True)
class HintReport:
    """A rename hint that changed nothing, and why."""

    code: ReportCode
    entity: str
    former: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Resolution:
    """The schema with identity; ``reports`` are notes, not mistakes."""

    ir: SchemaIR
    reports: tuple[HintReport, ...] = ()


def resolve(
    shape: Shape,
    syntax: Schema,
    accepted: SchemaIR | None,
    *,
    domain: str,
    reporter: Reporter,
    first_id: int | None = None,
) -> Resolution:
    """Give every declaration of a shape its identity; the hints stand in its syntax.

    Without an accepted IR everything is new. New ids are taken from ``first_id`` on, a
    range that the caller has reserved, else from the accepted counter. Hints that do not
    resolve are reported where they stand and raised together; a contradiction in what is
    stored is a SchemaError without a place.
    """
    if not is_domain(domain):
        raise SchemaError(
            f"invalid schema identity domain `{domain[:40]}`: expected an upper-case ULID"
        )
    if accepted is not None:
        validate_ir(accepted)
        if accepted.schema_identity_domain != domain:
            raise SchemaError(
                "invalid schema identity domain: "
                f"the accepted schema belongs to {accepted.schema_identity_domain}, not {domain}"
            )
    resolver = _Resolver(accepted, _hints(syntax), reporter)
    matches = resolver.match_types(shape)
    kept = resolver.match_properties(shape, matches)
    reporter.raise_if_any()
    following = accepted.next_identity_id if accepted is not None else 1
    counter = _Counter(following if first_id is None else first_id)
    start = counter.following
    ids = _allocate(shape, matches, kept, counter)
    if accepted is not None and not identities(accepted).isdisjoint(
        range(start, counter.following)
    ):
        raise SchemaError(f"the ids from {start} on are taken: reserve others for the new schema")
    if counter.following > start:
        following = max(following, counter.following)
    ir = identified(shape, ids, domain=domain, following=following)
    return Resolution(ir, tuple(resolver.reports))


def identities(ir: SchemaIR) -> set[int]:
    """Every id a schema uses: of types, of properties and of incarnations."""
    found: set[int] = set()
    for each in ir.types():
        found.add(each.type_id)
        found.update(property_.property_id for property_ in each.properties)
        if not isinstance(each, IRInterface):
            found.add(each.table_incarnation_id)
    return found


def new_identities(accepted: SchemaIR | None, desired: SchemaIR) -> int:
    """How many ids a schema needs that the accepted one does not have."""
    return len(identities(desired) - (set() if accepted is None else identities(accepted)))


_IDENTITIES = frozenset(
    {"type_id", "property_id", "table_incarnation_id", "owner_type_id", "stable_table_id"}
)


def renumbered(ir: SchemaIR, numbers: Mapping[int, int]) -> SchemaIR:
    """A schema in which some identities are others; nothing else is changed."""
    if not numbers:
        return ir

    def change(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                name: numbers.get(inside, inside) if name in _IDENTITIES else change(inside)
                for name, inside in value.items()
            }
        return [change(inside) for inside in value] if isinstance(value, list | tuple) else value

    return msgspec.convert(change(msgspec.to_builtins(ir)), SchemaIR)


def table_path(kind: Literal["node", "edge"], type_id: int, incarnation: int) -> str:
    """The directory of a table: named by identity, so that a rename moves nothing."""
    return f"{kind}s/{type_id:016x}-{incarnation:016x}"


# -- hints --------------------------------------------------------------------------

_Hints = dict[tuple[str, ...], RenameHint]
"""By kind and name of a type, or by kind, type and name of a property."""


def _hints(schema: Schema) -> _Hints:
    known = declared(schema)
    found: _Hints = {}

    def collect(
        key: tuple[str, ...], annotations: tuple[Annotation, ...], *, inherited: bool = False
    ) -> None:
        written = annotation_named(annotations, "rename_from")
        if written is not None and written.value is not None:
            found[key] = RenameHint(written.value.text, written.span, inherited)

    for name, interface in known.interfaces.items():
        for property_ in interface.properties:
            collect(("interface", name, property_.name.text), property_.annotations)
    for name, node in known.nodes.items():
        collect(("node", name), node.annotations)
        for member, effective in effective_properties(node, known.interfaces).items():
            inherited = not effective.direct
            collect(("node", name, member), effective.property.annotations, inherited=inherited)
    for name, edge in known.edges.items():
        collect(("edge", name), edge.annotations)
        for property_ in properties_of(edge.members):
            collect(("edge", name, property_.name.text), property_.annotations)
    return found


# -- matching -----------------------------------------------------------------------

_TypeShape = InterfaceShape | NodeShape | EdgeShape
_TypeKey = tuple[TypeKind, str]
_Matches = dict[_TypeKey, IRType]
_Kept = dict[tuple[TypeKind, str, str], int]


def _each_type(shape: Shape) -> Iterator[tuple[TypeKind, _TypeShape]]:
    """Every type in allocation order: interfaces, nodes, edges, each by name."""
    for interface in shape.interfaces:
        yield "interface", interface
    for node in shape.nodes:
        yield "node", node
    for edge in shape.edges:
        yield "edge", edge


class _Resolver:
    def __init__(self, accepted: SchemaIR | None, hints: _Hints, reporter: Reporter) -> None:
        self.initial = accepted is None
        self.hints = hints
        self.reporter = reporter
        self.reports: list[HintReport] = []
        types = () if accepted is None else tuple(accepted.types())
        self.types: dict[_TypeKey, IRType] = {(found.kind, found.name): found for found in types}
        self.kinds_of: dict[str, set[TypeKind]] = {}
        self.owners_of: dict[str, list[str]] = {}
        for found in types:
            self.kinds_of.setdefault(found.name, set()).add(found.kind)
            for property_ in found.properties:
                self.owners_of.setdefault(property_.name, []).append(found.name)

    def error(self, hint: RenameHint, problem: str, *, near: Iterator[str] | None = None) -> None:
        if self.reporter.full:
            return
        self.reporter.report(
            hint.span,
            f'`@rename_from("{shorten(hint.former)}")` {problem}',
            phase=Phase.CATALOG,
            hint=None if near is None else did_you_mean(hint.former, near),
        )

    def note(self, code: ReportCode, entity: str, hint: RenameHint) -> None:
        if not hint.inherited:
            self.reports.append(HintReport(code, entity, hint.former, hint.span))

    def match_types(self, shape: Shape) -> _Matches:
        matches: _Matches = {}
        desired = {(kind, found.name) for kind, found in _each_type(shape)}
        claimed: set[_TypeKey] = set()
        for kind, found in _each_type(shape):
            hint = self.hints.get((kind, found.name))
            entity = f"{kind}:{found.name}"
            exact = self.types.get((kind, found.name))
            if exact is not None:
                matches[kind, found.name] = exact
                if hint is not None:
                    self.note("ignored_exact_match_rename_hint", entity, hint)
            elif hint is not None and self.initial:
                self.note("inert_initialization_rename_hint", entity, hint)
            elif hint is not None:
                former = (kind, hint.former)
                if former not in self.types:
                    self.unknown_type(kind, hint)
                elif former in desired or former in claimed:
                    self.error(
                        hint, f"claims the {kind} type `{shorten(hint.former)}`, which is taken"
                    )
                else:
                    claimed.add(former)
                    matches[kind, found.name] = self.types[former]
        return matches

    def unknown_type(self, kind: TypeKind, hint: RenameHint) -> None:
        others = sorted(self.kinds_of.get(hint.former, ()))
        if others:
            self.error(hint, f"crosses kinds, from {others[0]} to {kind}")
            return
        near = (name for known, name in self.types if known == kind)
        self.error(hint, f"names no accepted {kind} type", near=near)

    def match_properties(self, shape: Shape, matches: _Matches) -> _Kept:
        kept: _Kept = {}
        for kind, found in _each_type(shape):
            owner = matches.get((kind, found.name))
            known = {} if owner is None else {p.name: p.property_id for p in owner.properties}
            taken = {property_.name for property_ in found.properties}
            for property_ in found.properties:
                entity = f"{kind}:{found.name}.{property_.name}"
                former = property_.name
                hint = self.hints.get((kind, found.name, former))
                if hint is not None and former not in known:
                    former = self.former_name(entity, hint, owner, known, taken)
                elif hint is not None:
                    self.note("ignored_exact_match_rename_hint", entity, hint)
                if former in known:
                    kept[kind, found.name, property_.name] = known[former]
        return kept

    def former_name(
        self,
        entity: str,
        hint: RenameHint,
        owner: IRType | None,
        known: Mapping[str, int],
        taken: set[str],
    ) -> str:
        """The accepted name a property hint leads to, or the empty string."""
        if hint.former in known and hint.former not in taken:
            taken.add(hint.former)
            return hint.former
        if hint.inherited:
            # An interface speaks for all its nodes; where it does not apply it says nothing.
            return ""
        if self.initial:
            self.note("inert_initialization_rename_hint", entity, hint)
        elif hint.former in known:
            self.error(hint, f"claims the property `{shorten(hint.former)}`, which is taken")
        elif owner is None:
            self.error(hint, "stands on a property of a new type, which has no former names")
        elif hint.former in self.owners_of:
            other = self.owners_of[hint.former][0]
            self.error(hint, f"names a property of `{shorten(other)}`: properties cannot move")
        else:
            self.error(hint, "names no accepted property of this type", near=iter(known))
        return ""


# -- allocation ---------------------------------------------------------------------


class _Counter:
    def __init__(self, following: int) -> None:
        if following < 1:
            raise SchemaError("an identity is never zero")
        self.following = following

    def take(self) -> int:
        identity = self.following
        # The successor must be storable too, so the largest id is never handed out.
        if identity >= MAX_ID:
            raise SchemaError("the schema identity allocator is exhausted")
        self.following += 1
        return identity


def _allocate(shape: Shape, matches: _Matches, kept: _Kept, counter: _Counter) -> Ids:
    types: dict[_TypeKey, int] = {}
    owners: list[tuple[int, TypeKind, str, tuple[PropertyShape, ...]]] = []
    for kind, found in _each_type(shape):
        match = matches.get((kind, found.name))
        type_id = match.type_id if match is not None else counter.take()
        types[kind, found.name] = type_id
        owners.append((type_id, kind, found.name, found.properties))
    owners.sort(key=lambda owner: owner[0])
    properties = dict(kept)
    for _, kind, name, shapes in owners:
        for property_ in shapes:
            key = (kind, name, property_.name)
            if key not in properties:
                properties[key] = counter.take()
    incarnations: dict[_TypeKey, int] = {}
    for _, kind, name, _ in owners:
        match = matches.get((kind, name))
        if match is not None and not isinstance(match, IRInterface):
            incarnations[kind, name] = match.table_incarnation_id
        elif kind != "interface":
            incarnations[kind, name] = counter.take()
    return Ids(types, properties, incarnations)
