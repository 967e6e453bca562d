"""The canonical form of `.pg` files.

Owns which lines a declaration is made of and how they read; where comments go
is layout's. Never changes what a schema means.
"""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.lang.diagnostics import Reporter
from omnigraph.lang.layout import Group, Item, Page, render
from omnigraph.lang.literals import quote
from omnigraph.lang.schema.syntax.parser import parse_schema
from omnigraph.lang.schema.syntax.tree import (
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
)
from omnigraph.lang.source import Source


def format_schema(source: Source) -> str:
    """The file in canonical form, comments kept; raises ParseError when it does not parse."""
    reporter = Reporter(source)
    tree = parse_schema(source, reporter)
    reporter.raise_if_any()
    return _print(tree, Page(source))


def print_schema(tree: Schema) -> str:
    """A tree that has no text, in canonical form."""
    return _print(tree, Page(Source("")))


def declaration_text(declaration: Declaration) -> str:
    """One declaration in canonical form, without its comments."""
    return print_schema(Schema((declaration,))).rstrip("\n")


def head_text(declaration: Declaration) -> str:
    """What stands before the braces of a declaration, in canonical form."""
    match declaration:
        case Interface(name):
            return f"interface {name}"
        case Node(name, annotations, implements):
            head = f"node {name}{_annotations(annotations)}"
            return f"{head} implements {', '.join(map(str, implements))}" if implements else head
        case Edge(name, source, target, cardinality, annotations):
            head = f"edge {name}: {source} -> {target}"
            if cardinality is not None:
                head += f" {cardinality_text(cardinality)}"
            return head + _annotations(annotations)


def member_text(member: Member) -> str:
    """A property or a constraint in canonical form."""
    match member:
        case Property(name, type_, annotations):
            return f"{name}: {type_}{_annotations(annotations)}"
        case Constraint(name, arguments):
            return f"@{name}({', '.join(map(_argument, arguments))})"


def _print(tree: Schema, page: Page) -> str:
    return render([_declaration(declaration, page) for declaration in tree.declarations], page)


def _declaration(declaration: Declaration, page: Page) -> Item:
    if isinstance(declaration, Interface):
        return _body(declaration, head_text(declaration), declaration.properties, page)
    return _body(declaration, head_text(declaration), declaration.members, page)


def _body(declaration: Declaration, head: str, members: Sequence[Member], page: Page) -> Item:
    (region,) = page.regions(declaration.span, "{", 1)
    items = tuple(Item(member.span, member_text(member)) for member in members)
    flat = None
    if not members:
        # Without members only comments need the braces of an edge.
        flat = head if isinstance(declaration, Edge) else f"{head} {{}}"
        if not page.commented(region):
            return Item(declaration.span, flat)
    return Item(declaration.span, flat, (f"{head} {{", Group(items, region), "}"))


def _annotations(annotations: Sequence[Annotation]) -> str:
    return "".join(f" {annotation_text(annotation)}" for annotation in annotations)


def annotation_text(annotation: Annotation) -> str:
    """An annotation in canonical form."""
    if annotation.value is None:
        return f"@{annotation.name}"
    options = (f"{name}={_argument(value)}" for name, value in annotation.options)
    return f"@{annotation.name}({', '.join([_argument(annotation.value), *options])})"


def _argument(argument: Argument | Bounds) -> str:
    if isinstance(argument, Bounds):
        low = "" if argument.low is None else argument.low.text
        high = "" if argument.high is None else argument.high.text
        return f"{low}..{high}"
    return quote(argument.text) if argument.kind == "string" else argument.text


def cardinality_text(cardinality: Cardinality) -> str:
    """A cardinality in canonical form."""
    maximum = "" if cardinality.maximum is None else cardinality.maximum
    return f"@card({cardinality.minimum}..{maximum})"
