"""The parser of `.pg`: text to a syntax tree, every independent mistake reported.

Owns declarations, bodies and where to go on after a mistake (pieces.py owns
what stands inside them). Never raises and never resolves a name.
"""

from __future__ import annotations

from typing import NamedTuple

from omnigraph.lang.cursor import Cursor, SyntaxFailure, collection_paused, shorten
from omnigraph.lang.diagnostics import Phase, Reporter, nearest_name
from omnigraph.lang.schema.syntax.pieces import (
    at_cardinality,
    at_constraint,
    parse_annotation,
    parse_cardinality,
    parse_constraint,
    parse_type,
)
from omnigraph.lang.schema.syntax.tree import (
    Annotation,
    Cardinality,
    Declaration,
    Edge,
    Interface,
    Member,
    Node,
    Property,
    Schema,
)
from omnigraph.lang.source import Name, Source, Span
from omnigraph.lang.tokens import Kind, Token

KEYWORDS = ("interface", "node", "edge")

# What people coming from elsewhere write first.
_KEYWORD_ALIASES = {
    "class": "node",
    "entity": "node",
    "link": "edge",
    "relation": "edge",
    "relationship": "edge",
    "table": "node",
    "trait": "interface",
    "type": "node",
    "vertex": "node",
}


class Parsed(NamedTuple):
    """A syntax tree and its holes, where text was skipped to go on after a mistake.

    Without ``complete`` a whole declaration may be missing; ``broken`` names the
    declarations (by the place of their name) of which a member is missing.
    """

    schema: Schema
    complete: bool = True
    broken: frozenset[Span] = frozenset()


def parse_schema(source: Source, reporter: Reporter) -> Schema:
    """The syntax tree of everything that parses; mistakes go to the reporter."""
    return parse(source, reporter).schema


def parse(source: Source, reporter: Reporter) -> Parsed:
    """Like parse_schema, and says where the tree has holes."""
    try:
        source.text.encode()
    except UnicodeEncodeError as error:
        # Such text cannot be stored or hashed, whatever it says.
        span = Span(error.start, error.start + 1)
        reporter.report(span, "the text is not valid Unicode here", phase=Phase.PARSE)
        return Parsed(Schema(), complete=False)
    with collection_paused(len(source.text)):
        parser = _Parser(Cursor(source, reporter))
        return Parsed(parser.schema(), parser.complete, frozenset(parser.broken))


class _Parser:
    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.complete = True
        self.broken: set[Span] = set()

    # -- declarations ------------------------------------------------------------

    def schema(self) -> Schema:
        cursor = self.cursor
        declarations: list[Declaration] = []
        while not cursor.at_end() and not cursor.reporter.full:
            if cursor.at("}"):
                cursor.report(cursor.advance().span, "this `}` closes nothing")
                continue
            before = cursor.index
            try:
                declarations.append(self.declaration())
            except SyntaxFailure:
                self.complete = False
                if cursor.index == before:
                    cursor.advance()
                self.skip_to_declaration()
        return Schema(tuple(declarations))

    def declaration(self) -> Declaration:
        start = self.cursor.token.start
        keyword = self.keyword()
        if keyword == "interface":
            return self.interface(start)
        return self.node(start) if keyword == "node" else self.edge(start)

    def keyword(self) -> str:
        """The word that opens a declaration; an evident misspelling is reported and read on."""
        cursor = self.cursor
        token = cursor.token
        if token.kind is not Kind.IDENT and token.text.lower() not in KEYWORDS:
            cursor.fail_expected("`interface`, `node` or `edge`")
        if token.text in KEYWORDS:
            return cursor.advance().text
        message = f"expected `interface`, `node` or `edge`, found `{shorten(token.text)}`"
        for keyword in KEYWORDS:
            rest = token.text.removeprefix(keyword)
            if rest != token.text and rest[:1].isupper():
                cursor.fail(token.span, message, hint=f"write `{keyword} {shorten(rest)}`")
        if token.text == "enum":
            where = "an enum is written where it is used: `status: enum(a, b)`"
            cursor.fail(token.span, message, hint=where)
        meant = _KEYWORD_ALIASES.get(token.text) or nearest_name(token.text, KEYWORDS)
        hint = f"did you mean `{meant}`?" if meant else None
        if meant is None or cursor.peek().kind is not Kind.TYPE:
            cursor.fail(token.span, message, hint=hint)
        cursor.report(token.span, message, hint=hint)
        cursor.advance()
        return meant

    def interface(self, start: int) -> Interface:
        cursor = self.cursor
        name = self.type_name("the name of the interface")
        self.refuse_annotations("interfaces take no annotations")
        if cursor.at("implements"):
            cursor.fail(cursor.token.span, "only nodes implement interfaces")
        members = self.body("interface", name)
        return Interface(
            name,
            tuple(member for member in members if isinstance(member, Property)),
            span=cursor.span_from(start),
        )

    def node(self, start: int) -> Node:
        cursor = self.cursor
        name = self.type_name("the name of the node type")
        annotations = self.header_annotations("a node")
        implements: list[Name] = []
        if self.at_implements():
            cursor.keyword("implements")
            implements.append(self.type_name("the name of an interface"))
            while cursor.accept(","):
                implements.append(self.type_name("the name of an interface"))
        self.refuse_annotations("annotations come before `implements`")
        members = self.body("node", name)
        return Node(name, annotations, tuple(implements), members, span=cursor.span_from(start))

    def at_implements(self) -> bool:
        """Whether `implements`, or a misspelling of it before a name, is next."""
        cursor = self.cursor
        if cursor.token.kind is not Kind.IDENT or cursor.at("implements"):
            return cursor.at("implements")
        following = cursor.peek().kind is Kind.TYPE
        return following and nearest_name(cursor.token.text, ("implements",)) is not None

    def edge(self, start: int) -> Edge:
        cursor = self.cursor
        name = self.type_name("the name of the edge type")
        cursor.expect(":", instead="`:` and the endpoints of the edge")
        source = self.type_name("the node type the edge starts at")
        cursor.expect("->")
        target = self.type_name("the node type the edge ends at")
        cardinality = parse_cardinality(cursor) if at_cardinality(cursor) else None
        annotations = self.header_annotations("an edge", cardinality, edge=True)
        members = self.body("edge", name) if cursor.at("{") else ()
        span = cursor.span_from(start)
        return Edge(name, source, target, cardinality, annotations, members, span=span)

    def type_name(self, noun: str) -> Name:
        cursor = self.cursor
        token = cursor.token
        if token.kind is Kind.IDENT and token.text not in ("implements", *KEYWORDS):
            better = token.text.lstrip("_")[:1].upper() + token.text.lstrip("_")[1:]
            hint = f"write `{shorten(better)}`" if better[:1].isalpha() else None
            cursor.report(token.span, "type names start with an upper-case letter", hint=hint)
            self.complete = False
            cursor.advance()
        else:
            cursor.expect_kind(Kind.TYPE, noun)
        return Name(token.text, span=token.span)

    # -- annotations of headers ----------------------------------------------------

    def header_annotations(
        self, owner: str, cardinality: Cardinality | None = None, *, edge: bool = False
    ) -> tuple[Annotation, ...]:
        cursor = self.cursor
        annotations: list[Annotation] = []
        while cursor.at("@"):
            start = cursor.token.start
            if at_constraint(cursor):
                found = parse_constraint(cursor)
                message = f"`@{found.name}(…)` belongs between the braces, not on the header"
                cursor.report(found.span, message)
            elif not at_cardinality(cursor):
                annotations.append(parse_annotation(cursor))
            elif not edge:
                self.misplaced_cardinality(f"`@card` belongs on the header of an edge, not {owner}")
            elif cardinality is not None:
                parse_cardinality(cursor)
                cursor.report(cursor.span_from(start), "an edge has one `@card`")
            else:
                cardinality = parse_cardinality(cursor)
                message = "`@card` comes first, before the other annotations of the edge"
                cursor.report(cursor.span_from(start), message)
        return tuple(annotations)

    def refuse_annotations(self, message: str) -> None:
        cursor = self.cursor
        while cursor.at("@"):
            start = cursor.token.start
            if at_constraint(cursor):
                parse_constraint(cursor)
            elif at_cardinality(cursor):
                parse_cardinality(cursor)
            else:
                parse_annotation(cursor)
            cursor.report(cursor.span_from(start), message)

    def misplaced_cardinality(self, message: str) -> None:
        start = self.cursor.token.start
        parse_cardinality(self.cursor)
        self.cursor.report(self.cursor.span_from(start), message)

    # -- bodies ------------------------------------------------------------------

    def body(self, owner: str, name: Name) -> tuple[Member, ...]:
        cursor = self.cursor
        cursor.expect("{")
        members: list[Member] = []
        while not cursor.accept("}"):
            if cursor.reporter.full:
                raise SyntaxFailure
            if cursor.at_end() or self.at_declaration():
                token = cursor.token
                found = "the end of the text" if cursor.at_end() else f"`{token.text}`"
                message = f"expected `}}` to close `{shorten(name.text)}`, found {found}"
                cursor.report(token.span, message)
                break
            before = cursor.index
            try:
                members.append(self.member(owner, name))
            except SyntaxFailure:
                self.broken.add(name.span)
                if cursor.index == before:
                    cursor.advance()
                cursor.skip_until(self.at_member)
        return tuple(members)

    def member(self, owner: str, name: Name) -> Member:
        cursor = self.cursor
        if at_constraint(cursor):
            constraint = parse_constraint(cursor)
            if owner == "interface":
                # Dropped from the tree, yet nothing else depends on it.
                message = f"interfaces take no constraints like `@{constraint.name}(…)`"
                cursor.report(constraint.span, message)
            return constraint
        if cursor.at("@"):
            self.stray_annotation()
        return self.property(name)

    def stray_annotation(self) -> None:
        """Refuse an annotation that follows no property."""
        cursor = self.cursor
        start = cursor.token.start
        if at_cardinality(cursor):
            parse_cardinality(cursor)
            cursor.fail(cursor.span_from(start), "`@card` belongs on the header of an edge")
        annotation = parse_annotation(cursor)
        name = shorten(annotation.name)
        cursor.fail(
            annotation.span,
            f"`@{name}` stands after no property",
            hint=f"name its properties: `@{name}(…)`"
            if annotation.name in ("key", "unique", "index")
            else "annotations of a type stand before its `{`",
        )

    def property(self, owner: Name) -> Property:
        cursor = self.cursor
        token = cursor.token
        if token.kind is Kind.TYPE and cursor.peek().text == ":":
            better = token.text[0].lower() + token.text[1:]
            message = "property names start with a lower-case letter or `_`"
            cursor.report(token.span, message, hint=f"write `{shorten(better)}`")
            self.broken.add(owner.span)
            cursor.advance()
        else:
            cursor.expect_kind(Kind.IDENT, "a property, a constraint or `}`")
        cursor.expect(":", instead=f"`:` and the type of `{shorten(token.text)}`")
        type_start = cursor.token.start
        value_type = parse_type(cursor)
        type_span = cursor.span_from(type_start)
        annotations: list[Annotation] = []
        while cursor.at("@") and not at_constraint(cursor):
            if at_cardinality(cursor):
                self.misplaced_cardinality("`@card` belongs on the header of an edge")
            else:
                annotations.append(parse_annotation(cursor))
        return Property(
            Name(token.text, span=token.span),
            value_type,
            tuple(annotations),
            type_span,
            span=cursor.span_from(token.start),
        )

    # -- going on ------------------------------------------------------------------

    def at_declaration(self) -> bool:
        """Whether a declaration seems to begin here: a keyword and then a name."""
        token = self.cursor.token
        if token.kind is not Kind.IDENT or token.text not in KEYWORDS:
            return False
        following = self.cursor.peek()
        return following.kind is Kind.TYPE or (
            following.kind is Kind.IDENT and self.cursor.starts_line()
        )

    def at_member(self) -> bool:
        """Whether a member of a body, or the next declaration, seems to begin here."""
        cursor = self.cursor
        token: Token = cursor.token
        if token.kind in (Kind.IDENT, Kind.TYPE):
            following = cursor.peek()
            is_property = following.kind is Kind.PUNCT and following.text == ":"
            return (is_property and cursor.starts_line()) or self.at_declaration()
        return cursor.at("@") and cursor.starts_line()

    def skip_to_declaration(self) -> None:
        """Skip to the next declaration: past whole bodies, or a keyword that begins a line."""
        cursor = self.cursor
        depth = 0
        while not cursor.at_end():
            if self.at_declaration() and (depth == 0 or cursor.starts_line()):
                return
            if cursor.at("{"):
                depth += 1
            elif cursor.at("}"):
                depth = max(0, depth - 1)
            cursor.advance()
