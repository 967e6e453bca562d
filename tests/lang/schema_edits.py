"""Random edits of a schema, one applied after another, as people would make them.

An edit that does not make a valid schema is not made. Names come from small pools, so that two
sides which edit one base often mean the same thing, or want the same name for two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import strategies as st

from omnigraph.errors import LanguageError
from omnigraph.lang.diagnostics import Reporter
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.schema.merge.model import SchemaVersion
from omnigraph.lang.schema.syntax.format import print_schema
from omnigraph.lang.schema.syntax.parser import parse_schema
from omnigraph.lang.schema.syntax.tree import (
    CONSTRAINT_NAMES,
    Annotation,
    Argument,
    Bounds,
    Cardinality,
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
from omnigraph.lang.source import Name, Source
from omnigraph.lang.types import Scalar, ValueType
from tests.lang.schema_merging import DOMAIN

BASES = (
    "",
    "node A { a: I32 b: String } node B { c: I32? } edge E: A -> B { w: F64? }",
    """
    interface I { x: String @index }
    interface J { x: String @index y: I32? }
    node A implements I { a: I32 @key t: String v: Vector(2)? @embed(t) @range(a, 0..9) }
    node B implements I, J { r: enum(p, q) @default(p) @unique(x, y) }
    edge E: A -> B @card(0..5) { w: I32 @unique(src, w) }
    edge F: B -> B @merge(row)
    """,
    """
    interface I { x: String? t: String v: Vector(2)? @embed(t) }
    node A @description("d") implements I { x: String? k: I32 l: I32 @key(k, l) @check(t, "a") }
    node B { a: I64? @index b: [I32] }
    edge E: A -> A { since: Date? @key(src, dst) }
    """,
)
_TYPES = ("A", "B", "C")
_EDGES = ("E", "F", "e")
_INTERFACES = ("I", "J", "K")
_PROPERTIES = ("a", "b", "x", "t", "src")
_VALUE_TYPES = (
    ValueType(Scalar.I32),
    ValueType(Scalar.I64),
    ValueType(Scalar.F64),
    ValueType(Scalar.STRING),
    ValueType(Scalar.STRING, enum_values=("p", "q")),
    ValueType(Scalar.STRING, enum_values=("p", "r")),
    ValueType(Scalar.STRING, enum_values=("p", "q", "s")),
    ValueType(Scalar.VECTOR, dimension=2),
    ValueType(Scalar.STRING, is_list=True),
)
_NOTES = (
    Annotation("description", Argument("string", "one")),
    Annotation("description", Argument("string", "two")),
    Annotation("default", Argument("integer", "7")),
    Annotation("default", Argument("name", "p")),
    Annotation("unit", Argument("name", "m"), ((Name("per"), Argument("string", "s")),)),
    Annotation("unique"),
    Annotation("index"),
    Annotation("key"),
    Annotation("embed", Argument("name", "t")),
)

Draw = st.DrawFn
Edit = Callable[[Draw, Schema], Schema]


def _pick(draw: Draw, found: list[Declaration]) -> Declaration | None:
    return draw(st.sampled_from(found)) if found else None


def _replaced(tree: Schema, old: Declaration, new: Declaration | None) -> Schema:
    kept = [new if each is old else each for each in tree.declarations]
    return Schema(tuple(each for each in kept if each is not None))


def _members(each: Declaration) -> tuple[Member, ...]:
    return each.properties if isinstance(each, Interface) else each.members


def _with_members(each: Declaration, members: tuple[Member, ...]) -> Declaration:
    if isinstance(each, Interface):
        return replace(each, properties=properties_of(members))
    return replace(each, members=members)


def _property(draw: Draw) -> Property:
    type_ = draw(st.sampled_from(_VALUE_TYPES)).or_null(when=draw(st.booleans()))
    notes = draw(st.lists(st.sampled_from(_NOTES), max_size=1))
    return Property(Name(draw(st.sampled_from(_PROPERTIES))), type_, tuple(notes))


def _names(draw: Draw, pool: tuple[str, ...], most: int) -> tuple[Name, ...]:
    found = draw(st.lists(st.sampled_from(pool), max_size=most, unique=True))
    return tuple(map(Name, found))


# -- edits of whole types --------------------------------------------------------------


def add_type(draw: Draw, tree: Schema) -> Schema:
    kind = draw(st.sampled_from(("interface", "node", "edge")))
    properties = tuple(_property(draw) for _ in range(draw(st.integers(0, 2))))
    new: Declaration
    if kind == "interface":
        new = Interface(Name(draw(st.sampled_from(_INTERFACES))), properties)
    elif kind == "node":
        implements = _names(draw, _INTERFACES, 1)
        new = Node(Name(draw(st.sampled_from(_TYPES))), (), implements, properties)
    else:
        name, start, end = (draw(st.sampled_from(each)) for each in (_EDGES, _TYPES, _TYPES))
        new = Edge(Name(name), Name(start), Name(end), members=properties)
    return Schema((*tree.declarations, new))


def drop_type(draw: Draw, tree: Schema) -> Schema:
    """Drop a type and whatever leads to it or implements it."""
    gone = _pick(draw, list(tree.declarations))
    if gone is None:
        return tree
    kept: list[Declaration] = []
    for each in tree.declarations:
        if each is gone:
            continue
        if isinstance(gone, Node) and isinstance(each, Edge):
            if gone.name in (each.source, each.target):
                continue
        elif isinstance(gone, Interface) and isinstance(each, Node):
            left = tuple(name for name in each.implements if name != gone.name)
            kept.append(replace(each, implements=left))
            continue
        kept.append(each)
    return Schema(tuple(kept))


def rename_type(draw: Draw, tree: Schema) -> Schema:
    found = _pick(draw, [each for each in tree.declarations if not isinstance(each, Interface)])
    if found is None or isinstance(found, Interface):
        return tree
    name = Name(draw(st.sampled_from(_TYPES if isinstance(found, Node) else _EDGES)))
    hint = Annotation("rename_from", Argument("string", found.name.text))
    new = replace(found, name=name, annotations=(*found.annotations, hint))
    kept: list[Declaration] = []
    for each in _replaced(tree, found, new).declarations:
        if isinstance(found, Node) and isinstance(each, Edge):
            source, target = (
                name if end == found.name else end for end in (each.source, each.target)
            )
            kept.append(replace(each, source=source, target=target))
        else:
            kept.append(each)
    return Schema(tuple(kept))


def edit_head(draw: Draw, tree: Schema) -> Schema:
    found = _pick(draw, [each for each in tree.declarations if not isinstance(each, Interface)])
    if isinstance(found, Edge):
        match draw(st.sampled_from(("card", "ends", "note"))):
            case "card":
                card = draw(st.sampled_from((None, Cardinality(0, 3), Cardinality(1, 5))))
                return _replaced(tree, found, replace(found, cardinality=card))
            case "ends":
                end = Name(draw(st.sampled_from(_TYPES)))
                return _replaced(tree, found, replace(found, target=end))
    elif isinstance(found, Node) and draw(st.booleans()):
        new = replace(found, implements=_names(draw, _INTERFACES, 2))
        return _replaced(tree, found, new)
    if found is None or isinstance(found, Interface):
        return tree
    notes = draw(st.lists(st.sampled_from(_NOTES[:2]), max_size=1))
    return _replaced(tree, found, replace(found, annotations=tuple(notes)))


# -- edits of members ------------------------------------------------------------------


def add_property(draw: Draw, tree: Schema) -> Schema:
    found = _pick(draw, list(tree.declarations))
    if found is None:
        return tree
    return _replaced(tree, found, _with_members(found, (*_members(found), _property(draw))))


def drop_member(draw: Draw, tree: Schema) -> Schema:
    """Drop a member; with a property go the constraints over it and vectors made of it."""
    found = _pick(draw, [each for each in tree.declarations if _members(each)])
    if found is None:
        return tree
    gone = draw(st.sampled_from(_members(found)))
    kept = [each for each in _members(found) if each is not gone]
    if isinstance(gone, Property):
        kept = [_without(each, gone.name.text) for each in kept if not _is_over(each, gone)]
    return _replaced(tree, found, _with_members(found, tuple(kept)))


def _is_over(member: Member, gone: Property) -> bool:
    return isinstance(member, Constraint) and any(
        isinstance(each, Argument) and each.text == gone.name.text for each in member.arguments
    )


def _without(member: Member, name: str) -> Member:
    if isinstance(member, Constraint):
        return member
    notes = (
        each
        for each in member.annotations
        if each.name != "embed" or each.value is None or each.value.text != name
    )
    return replace(member, annotations=tuple(notes))


def rename_property(draw: Draw, tree: Schema) -> Schema:
    found = _pick(draw, [each for each in tree.declarations if properties_of(_members(each))])
    if found is None:
        return tree
    old = draw(st.sampled_from(properties_of(_members(found))))
    name = draw(st.sampled_from(_PROPERTIES))
    hint = Annotation("rename_from", Argument("string", old.name.text))
    new = replace(old, name=Name(name), annotations=(*old.annotations, hint))
    members = [
        new if each is old else _renamed(each, old.name.text, name) for each in _members(found)
    ]
    return _replaced(tree, found, _with_members(found, tuple(members)))


def _renamed(member: Member, old: str, new: str) -> Member:
    def argument(each: Argument | Bounds) -> Argument | Bounds:
        is_it = isinstance(each, Argument) and each.kind == "name" and each.text == old
        return Argument("name", new) if is_it else each

    if isinstance(member, Constraint):
        return replace(member, arguments=tuple(map(argument, member.arguments)))
    notes = (
        replace(each, value=Argument("name", new))
        if each.name == "embed" and each.value is not None and each.value.text == old
        else each
        for each in member.annotations
    )
    return replace(member, annotations=tuple(notes))


def edit_property(draw: Draw, tree: Schema) -> Schema:
    found = _pick(draw, [each for each in tree.declarations if properties_of(_members(each))])
    if found is None:
        return tree
    old = draw(st.sampled_from(properties_of(_members(found))))
    match draw(st.sampled_from(("type", "nullable", "note", "notes"))):
        case "type":
            type_ = draw(st.sampled_from(_VALUE_TYPES))
            new = replace(old, type=replace(type_, nullable=old.type.nullable))
        case "nullable":
            new = replace(old, type=replace(old.type, nullable=not old.type.nullable))
        case "note":
            new = replace(old, annotations=(*old.annotations, draw(st.sampled_from(_NOTES))))
        case _:
            kept = [each for each in old.annotations if draw(st.booleans())]
            new = replace(old, annotations=tuple(kept))
    members = tuple(new if each is old else each for each in _members(found))
    return _replaced(tree, found, _with_members(found, members))


def add_constraint(draw: Draw, tree: Schema) -> Schema:
    found = _pick(draw, [each for each in tree.declarations if not isinstance(each, Interface)])
    if found is None or isinstance(found, Interface):
        return tree
    kind = draw(st.sampled_from(CONSTRAINT_NAMES))
    own = [each.name.text for each in properties_of(found.members)]
    pool = [*own, *_PROPERTIES[:3], *(("@src", "@dst") if isinstance(found, Edge) else ())]
    names = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=2, unique=True))
    arguments: tuple[Argument | Bounds, ...] = tuple(Argument("name", name) for name in names)
    match kind:
        case "range":
            low = Argument("integer", draw(st.sampled_from(("0", "1"))))
            arguments = (arguments[0], Bounds(low, None))
        case "check":
            pattern = draw(st.sampled_from(("a", "b")))
            arguments = (arguments[0], Argument("string", pattern))
        case "key" if isinstance(found, Edge):
            ends = tuple(Argument("name", end) for end in ("@src", "@dst"))
            arguments = (*ends, *(each for each in arguments if each not in ends))
    kept = found.members
    if kind in ("key", "range", "check") and draw(st.booleans()):
        kept = tuple(each for each in kept if isinstance(each, Property) or each.name != kind)
    return _replaced(tree, found, _with_members(found, (*kept, Constraint(kind, arguments))))


def move_property(draw: Draw, tree: Schema) -> Schema:
    """Move a property of a node to an interface that it then implements."""
    found = _pick(draw, [each for each in tree.declarations if isinstance(each, Node)])
    if not isinstance(found, Node) or not properties_of(found.members):
        return tree
    moved = draw(st.sampled_from(properties_of(found.members)))
    name = Name(draw(st.sampled_from(_INTERFACES)))
    kept = tuple(each for each in found.members if each is not moved)
    implements = tuple(dict.fromkeys((*found.implements, name)))
    tree = _replaced(tree, found, replace(found, implements=implements, members=kept))
    for each in tree.declarations:
        if isinstance(each, Interface) and each.name == name:
            return _replaced(tree, each, _with_members(each, (*each.properties, moved)))
    return Schema((*tree.declarations, Interface(name, (moved,))))


EDITS: tuple[Edit, ...] = (
    add_type,
    drop_type,
    rename_type,
    edit_head,
    add_property,
    drop_member,
    rename_property,
    edit_property,
    edit_property,
    add_constraint,
    move_property,
)


def _edited(draw: Draw, before: SchemaVersion, first_id: int) -> SchemaVersion:
    """One edit later, or the same if that would be no schema."""
    tree = _without_hints(parse_schema(Source(before.text), Reporter(Source(before.text))))
    text = print_schema(draw(st.sampled_from(EDITS))(draw, tree))
    try:
        return SchemaVersion(text, compile_schema(text, accepted=before.ir, first_id=first_id).ir)
    except LanguageError:
        return before


def _without_hints(tree: Schema) -> Schema:
    found: list[Declaration] = []
    for each in tree.declarations:
        members = tuple(
            replace(member, annotations=_no_hint(member.annotations))
            if isinstance(member, Property)
            else member
            for member in _members(each)
        )
        new = _with_members(each, members)
        if not isinstance(new, Interface):
            new = replace(new, annotations=_no_hint(new.annotations))
        found.append(new)
    return Schema(tuple(found))


def _no_hint(notes: tuple[Annotation, ...]) -> tuple[Annotation, ...]:
    return tuple(note for note in notes if note.name != "rename_from")


@st.composite
def versions(
    draw: Draw, before: SchemaVersion | None = None, first_id: int = 1, most: int = 4
) -> SchemaVersion:
    """A schema some edits after another, or after one of the bases."""
    if before is None:
        text = draw(st.sampled_from(BASES))
        before = SchemaVersion(text, compile_schema(text, domain=DOMAIN).ir)
    for number in range(draw(st.integers(0, most))):
        before = _edited(draw, before, first_id + 100 * number)
    return before
