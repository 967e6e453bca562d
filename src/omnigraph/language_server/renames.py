"""Renames: another name for a type or a property, in the schema and in all queries of it.

Owns which places change. They come from the parsed texts, never from a search, and what would come
out is compiled: a rename that is not whole is refused. Writes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass

from omnigraph.errors import BadRequest
from omnigraph.lang.diagnostics import Reporter
from omnigraph.lang.query import syntax as gq
from omnigraph.lang.query import terms
from omnigraph.lang.query.lint import lint_queries
from omnigraph.lang.query.parsing.parser import parse_queries
from omnigraph.lang.schema.compile import lint_schema
from omnigraph.lang.schema.syntax import tree as pg
from omnigraph.lang.schema.syntax.parser import parse_schema
from omnigraph.lang.source import Name, Source, Span
from omnigraph.language_server.declared import DeclaredProperty, DeclaredSchema, DeclaredType
from omnigraph.language_server.meaning import Meaning, Text

Edits = Mapping[str, Sequence[tuple[Span, str]]]
"""What is written where, by the names of the sources."""


@dataclass(frozen=True, slots=True)
class _Use:
    """A place where a type or, with ``owners``, a property of some types is named."""

    span: Span
    name: str
    owners: tuple[str, ...] | None = None


def renamable(text: Text, offset: int) -> Meaning | None:
    """The type or property whose name stands at an offset."""
    meaning = text.at(offset)
    if meaning is None or meaning.variable is not None or meaning.function is not None:
        return None
    return meaning


def rename(text: Text, offset: int, name: str, queries: Sequence[Source]) -> Edits:
    """The edits that give what stands at an offset another name; BadRequest says why not."""
    meaning = renamable(text, offset)
    if meaning is None:
        raise BadRequest("only types and properties of the schema can be renamed")
    schema = text.schema
    _require_sound([schema.source, *queries], "before this can be renamed: correct it first")
    if meaning.types:
        edits = _rename_type(schema, meaning.types, name, queries)
    else:
        edits = _rename_property(schema, meaning.properties, name, queries)
    after = [
        Source(edited(one, edits.get(one.name, ())), one.name) for one in (schema.source, *queries)
    ]
    _require_sound(after, f"if this is called {name}")
    return edits


def edited(source: Source, edits: Iterable[tuple[Span, str]]) -> str:
    """A text with its edits."""
    text = source.text
    for span, written in sorted(edits, reverse=True):
        text = f"{text[: span.start]}{written}{text[span.end :]}"
    return text


def _require_sound(sources: Sequence[Source], when: str) -> None:
    schema, *queries = sources
    catalog, report = lint_schema(schema)
    reports = [report]
    if catalog is not None:
        reports += [lint_queries(one, catalog) for one in queries]
    for report in reports:
        for found in report.diagnostics:
            line, column = found.position
            place = f"{found.source.name}:{line}:{column}"
            raise BadRequest(f"{place} has a mistake {when}: {found.message}")


# -- types -------------------------------------------------------------------------------


def _rename_type(
    schema: DeclaredSchema, types: Sequence[DeclaredType], name: str, queries: Sequence[Source]
) -> Edits:
    if len(types) != 1:
        raise BadRequest(f"{types[0].name} is a node type and an edge type: rename it by hand")
    (declared,) = types
    if not re.fullmatch(r"[A-Z][A-Za-z0-9_]*", name):
        raise BadRequest(f"{name!r} is no name of a type: it begins with a capital letter")
    if schema.types(name) and schema.types(name) != (declared,):
        raise BadRequest(f"there is a type {name} already")
    found: dict[str, list[tuple[Span, str]]] = {}
    for source, uses in _all_uses(schema, queries):
        for use in uses:
            if use.owners is not None:
                continue
            is_edge = declared.kind == "edge" and use.name.casefold() == declared.name.casefold()
            if use.name == declared.name or is_edge:
                # Queries may begin the name of an edge with a small letter.
                written = name if use.name[0].isupper() else name[0].lower() + name[1:]
                found.setdefault(source.name, []).append((use.span, written))
    return found


# -- properties --------------------------------------------------------------------------


def _rename_property(
    schema: DeclaredSchema,
    properties: Sequence[DeclaredProperty],
    name: str,
    queries: Sequence[Source],
) -> Edits:
    if not re.fullmatch(r"[a-z_][A-Za-z0-9_]*", name):
        raise BadRequest(f"{name!r} is no name of a property: it begins with a small letter")
    meant = _one_property(schema, properties)
    former = properties[0].name
    for owner in sorted({one.owner for one in meant}):
        if name != former and name in schema.properties((owner,)):
            raise BadRequest(f"{owner} has a property {name} already")
    found: dict[str, list[tuple[Span, str]]] = {}
    for source, uses in _all_uses(schema, queries):
        for use in uses:
            if use.owners is None or use.name != former:
                continue
            named = set(schema.properties(use.owners).get(former, ()))
            if named & meant and not named <= meant:
                others = ", ".join(sorted({one.owner for one in named - meant}))
                line = source.position(use.span.start).line
                raise BadRequest(
                    f"{source.name}:{line} means the property {former} of {others}, too"
                )
            if named & meant:
                found.setdefault(source.name, []).append((use.span, name))
    return found


def _one_property(
    schema: DeclaredSchema, properties: Iterable[DeclaredProperty]
) -> set[DeclaredProperty]:
    """A property of a type, of the interfaces that ask for it, and of what implements these."""
    meant = set(properties)
    waiting = list(meant)
    while waiting:
        one = waiting.pop()
        for declared in schema.types(one.owner):
            around = [schema.nodes[name] for name in declared.implements if name in schema.nodes]
            if declared.kind == "interface":
                around += schema.implementers(declared.name)
            for other in (own for type_ in around for own in type_.own):
                if other.name == one.name and other not in meant:
                    meant.add(other)
                    waiting.append(other)
    return meant


# -- uses --------------------------------------------------------------------------------


def _all_uses(
    schema: DeclaredSchema, queries: Sequence[Source]
) -> Iterator[tuple[Source, set[_Use]]]:
    yield schema.source, set(_uses_in_schema(schema.source))
    for source in queries:
        yield source, set(_uses_in_queries(Text(source, "gq", schema)))


def _uses_in_schema(source: Source) -> Iterator[_Use]:
    for declaration in parse_schema(source, Reporter(source)).declarations:
        yield _of_type(declaration.name)
        owner = (declaration.name.text,)
        if isinstance(declaration, pg.Interface):
            members: Sequence[pg.Member] = declaration.properties
        else:
            members = declaration.members
        if isinstance(declaration, pg.Node):
            yield from map(_of_type, declaration.implements)
        elif isinstance(declaration, pg.Edge):
            yield from map(_of_type, (declaration.source, declaration.target))
        for member in members:
            if isinstance(member, pg.Property):
                yield _Use(member.name.span, member.name.text, owner)
                for note in member.annotations:
                    if note.name == "embed" and note.value is not None:
                        yield _of_argument(note.value, owner)
            else:
                yield from (
                    _of_argument(one, owner)
                    for one in member.arguments
                    if isinstance(one, pg.Argument) and one.kind == "name"
                )


def _of_type(name: Name) -> _Use:
    return _Use(name.span, name.text)


def _of_argument(argument: pg.Argument, owner: tuple[str, ...]) -> _Use:
    quotes = argument.kind == "string"
    return _Use(
        Span(argument.span.start + quotes, argument.span.end - quotes), argument.text, owner
    )


def _uses_in_queries(text: Text) -> Iterator[_Use]:
    index_at = {token.start: index for index, token in enumerate(text.tokens)}
    for node in _within(parse_queries(text.source, Reporter(text.source))):
        match node:
            case gq.Binding(_, type_name, matches):
                yield _of_type(type_name)
                owners = (type_name.text,)
                yield from (_Use(one.property.span, one.property.text, owners) for one in matches)
            case gq.Traversal(edge=edge, others=others):
                yield from (_of_type(one) for one in (edge, *others))
            case gq.Insert(_, type_name, assignments) | gq.Update(type_name, assignments):
                yield _of_type(type_name)
                owners = (type_name.text,)
                yield from (
                    _Use(one.property.span, one.property.text, owners) for one in assignments
                )
            case gq.UpdateMatched(variable, assignments):
                types = text.variables(index_at[variable.span.start])
                named = types.get(f"${variable.name}", ())
                yield from (
                    _Use(one.property.span, one.property.text, named) for one in assignments
                )
                yield from _own_names((one.value for one in assignments), named)
            case terms.NodeKey(type_name):
                yield _of_type(type_name)
            case terms.Access(variable, property_):
                types = text.variables(index_at[variable.span.start])
                named = types.get(f"${variable.name}", ())
                yield _Use(property_.span, property_.text, named)
            case terms.Comparison(left, _, right) | terms.Membership(left, right):
                yield from _type_texts(left, right)
        if isinstance(node, gq.Update | gq.Delete):
            yield _of_type(node.type_name)
            assigned = node.assignments if isinstance(node, gq.Update) else ()
            values = (node.where, *(one.value for one in assigned))
            yield from _own_names(values, (node.type_name.text,))


def _own_names(values: Iterable[terms.Expr], owners: tuple[str, ...]) -> Iterator[_Use]:
    """The names that rows of a statement have for their own values."""
    for value in values:
        for part in terms.within(value):
            if isinstance(part, terms.Alias) and not part.name.startswith("@"):
                yield _Use(part.span, part.name, owners)


def _type_texts(*sides: terms.Expr) -> Iterator[_Use]:
    """The names of types as texts that `type($x)` is compared with."""
    if not any(isinstance(one, terms.Call) and one.name.text == "type" for one in sides):
        return
    for side in sides:
        for one in side.items if isinstance(side, terms.ListLiteral) else (side,):
            if isinstance(one, terms.Literal) and isinstance(one.value, str):
                yield _Use(Span(one.span.start + 1, one.span.end - 1), one.value)


def _within(tree: object) -> Iterator[object]:
    """Everything that a tree is made of."""
    waiting = [tree]
    while waiting:
        found = waiting.pop()
        if isinstance(found, tuple):
            waiting.extend(found)
        elif is_dataclass(found) and not isinstance(found, type):
            yield found
            waiting.extend(getattr(found, one.name) for one in fields(found))
