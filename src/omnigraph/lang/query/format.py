"""The canonical form of `.gq` files.

Owns which lines a query is made of and how they read; where comments go is
layout's. Never changes what a query means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeGuard

from omnigraph.lang.diagnostics import Reporter
from omnigraph.lang.layout import WIDTH, Group, Item, Page, render
from omnigraph.lang.literals import quote
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query import terms
from omnigraph.lang.query.parsing.parser import parse_queries
from omnigraph.lang.query.spelling import (
    blocks_in,
    spell,
    spell_inside,
    spell_ordering,
    spell_projection,
)
from omnigraph.lang.source import Source, Span

Simple = ast.Binding | ast.Traversal | ast.WayStep | ast.Where | ast.Let | ast.For
"""A clause without clauses inside."""


def format_queries(source: Source) -> str:
    """The file in canonical form, comments kept; raises ParseError when it does not parse."""
    reporter = Reporter(source)
    tree = parse_queries(source, reporter)
    reporter.raise_if_any()
    return _print(tree, Page(source))


def print_queries(tree: ast.QueryFile) -> str:
    """A tree that has no text, in canonical form."""
    return _print(tree, Page(Source("")))


def _print(tree: ast.QueryFile, page: Page) -> str:
    return render([_query(query, page) for query in tree.queries], page)


# -- queries ---------------------------------------------------------------------


def _query(query: ast.Query, page: Page) -> Item:
    (params,) = page.regions(query.span, "(", 1)
    (body,) = page.regions(query.span, "{", 1)
    start = f"query {query.name.text}("
    end = f"){_notes(query)} {{"
    written = [spell_param(param) for param in query.params]
    line = f"{start}{', '.join(written)}{end}"
    header: tuple[str | Group, ...] = (line,)
    if query.params and (len(line) > WIDTH or page.commented(params)):
        leaves = map(Item, (param.span for param in query.params), written)
        header = (start, Group(tuple(leaves), params, ","), end)
    items = (
        _read(query.body, body, page)
        if isinstance(query.body, ast.Read)
        else _mutation(query.body, body, page)
    )
    return Item(query.span, None, (*header, Group(items, body), "}"))


def _notes(query: ast.Query) -> str:
    written = ""
    if query.description is not None:
        written += f" @description({quote(query.description)})"
    if query.instruction is not None:
        written += f" @instruction({quote(query.instruction)})"
    return written


def _entries(entries: Sequence[ast.PropertyMatch | ast.Assignment]) -> tuple[Item, ...]:
    return tuple(
        Item(entry.property.span.to(entry.value.span), spell_entry(entry)) for entry in entries
    )


# -- reads -----------------------------------------------------------------------


def _read(read: ast.Read, body: Span, page: Page) -> tuple[Item, ...]:
    blocks = 2 + 2 * len(read.branches) + bool(read.ordering) + (read.per is not None)
    regions = page.regions(body, "{", blocks)
    # A block begins right after the one before it and ends with its closing brace.
    starts = [body.start, *(region.end + 1 for region in regions)]
    spans = [
        page.trimmed(Span(start, region.end + 1))
        for start, region in zip(starts, regions, strict=False)
    ]
    places = iter(zip(regions, spans, strict=True))
    items = list(_match("", read, places, page))
    for branch in read.branches:
        word = "union all " if branch.keeps_equal else "union "
        items.extend(_match(word, branch, places, page))
    if read.ordering:
        region, span = next(places)
        written = [spell_ordering(ordering) for ordering in read.ordering]
        leaves = tuple(
            _spread(one.span, one.expr, spell_ordering(one), page) for one in read.ordering
        )
        items.append(_listing("order", written, Group(leaves, region, ","), span))
    if read.per is not None:
        region, span = next(places)
        leaves = tuple(_spread(key.span, key, spell(key), page) for key in read.per.keys)
        head = f"limit {spell(read.per.count)} per"
        items.append(
            _listing(head, list(map(spell, read.per.keys)), Group(leaves, region, ","), span)
        )
    if read.limit is not None:
        offset = f" offset {spell(read.offset)}" if read.offset is not None else ""
        span = page.trimmed(Span(starts[-1], body.end))
        items.append(Item(span, f"limit {spell(read.limit)}{offset}"))
    return tuple(items)


def _mutation(mutation: ast.Mutation, body: Span, page: Page) -> tuple[Item, ...]:
    """`match { … }`, the statements, and `return { … }`."""
    items: list[Item] = []
    if mutation.clauses is not None:
        (region,) = page.regions(body, "{", 1)
        clauses = tuple(_clause(clause, page) for clause in mutation.clauses)
        span = page.trimmed(Span(body.start, region.end + 1))
        items.append(Item(span, None, ("match {", Group(clauses, region), "}")))
    items.extend(_statement(statement, page) for statement in mutation.statements)
    if mutation.projections:
        end = mutation.statements[-1].span.end if mutation.statements else body.start
        rest = Span(end, body.end)
        (region,) = page.regions(rest, "{", 1)
        columns = mutation.projections
        leaves = tuple(_spread(one.span, one.expr, spell_projection(one), page) for one in columns)
        written = list(map(spell_projection, columns))
        group = Group(leaves, region, ",")
        items.append(_listing("return", written, group, page.trimmed(rest)))
    return tuple(items)


def _match(
    word: str, read: ast.Read | ast.Branch, places: Iterator[tuple[Span, Span]], page: Page
) -> Iterator[Item]:
    """`match { … }` and `return { … }`."""
    region, span = next(places)
    clauses = tuple(_clause(clause, page) for clause in read.clauses)
    yield Item(span, None, (f"{word}match {{", Group(clauses, region), "}"))
    region, span = next(places)
    columns = read.projections
    leaves = tuple(_spread(one.span, one.expr, spell_projection(one), page) for one in columns)
    head = "return distinct" if read.distinct else "return"
    yield _listing(head, list(map(spell_projection, columns)), Group(leaves, region, ","), span)


def _listing(head: str, written: Sequence[str], group: Group, span: Span) -> Item:
    """`head { a, b }` on one line, or one element per line."""
    fits = all(item.flat is not None for item in group.items)
    flat = f"{head} {spell_braced(written)}" if fits else None
    return Item(span, flat, (f"{head} {{", group, "}"))


# -- clauses ---------------------------------------------------------------------


def _clause(clause: ast.Clause, page: Page) -> Item:
    match clause:
        case ast.Binding(variable, type_name, matches) if matches:
            (region,) = page.regions(clause.span, "{", 1)
            head = f"{spell(variable)}: {type_name.text}"
            written = [spell_entry(entry) for entry in matches]
            return _listing(head, written, Group(_entries(matches), region, ","), clause.span)
        case ast.Traversal(each=ast.Each(clauses=clauses) as each) if clauses is not None:
            head, foot = _spell_traversal_head(clause), _spell_weight(clause)
            return _blocks(clause.span, head, [clauses], foot, page, bracketed=each.span)
        case ast.Not(clauses):
            return _blocks(clause.span, "not", [clauses], "", page)
        case ast.Exists(clauses):
            return _blocks(clause.span, "exists", [clauses], "", page)
        case ast.Optional(clauses):
            return _blocks(clause.span, "optional", [clauses], "", page)
        case ast.AnyOf(groups):
            return _blocks(clause.span, "any", groups, "", page)
        case ast.Where() | ast.Let() | ast.For():
            return _spread(clause.span, _value_of(clause), spell_clause(clause), page)
        case _:
            return Item(clause.span, spell_clause(clause))


def _blocks(
    span: Span,
    head: str,
    blocks: Sequence[tuple[ast.Clause, ...]],
    foot: str,
    page: Page,
    *,
    bracketed: Span | None = None,
) -> Item:
    """`head { … } or { … } foot`; on one line only when every block is one simple clause."""
    parts: list[str | Group] = [f"{head} {{"]
    for number, (block, region) in enumerate(
        zip(blocks, page.regions(bracketed or span, "{", len(blocks)), strict=True)
    ):
        if number:
            parts.append("} or {")
        parts.append(Group(tuple(_clause(clause, page) for clause in block), region))
    parts.append(f"}}{foot}")
    simple = [block[0] for block in blocks if len(block) == 1 and _is_simple(block[0])]
    flat = None
    if len(simple) == len(blocks):
        inside = " } or { ".join(spell_clause(clause) for clause in simple)
        flat = f"{head} {{ {inside} }}{foot}"
    return Item(span, flat, tuple(parts))


def _value_of(clause: ast.Where | ast.Let | ast.For) -> terms.Expr:
    match clause:
        case ast.Where(condition):
            return condition
        case ast.Let(_, value):
            return value
        case ast.For(_, items):
            return items


def _spread(span: Span, expr: terms.Expr, flat: str, page: Page) -> Item:
    """Something with an expression in it; its blocks are broken where it is too long for a line."""
    parts: list[str | Group] = []
    line, done = "", 0
    for block in blocks_in(expr):
        inside = spell_inside(block)
        start = flat.index(inside, done)
        (region,) = page.regions(block.span, "{", 1)
        parts.append(f"{line}{flat[done:start]}{{")
        parts.append(Group(tuple(_clause(clause, page) for clause in block.clauses), region))
        line, done = "}", start + len(inside)
    if parts:
        parts.append(line + flat[done:])
    # As with other blocks, more than one clause makes several lines.
    is_simple = all(_is_one_line(block.clauses) for block in blocks_in(expr))
    return Item(span, flat if is_simple else None, tuple(parts))


def _is_one_line(clauses: Sequence[ast.Clause]) -> bool:
    return len(clauses) == 1 and _is_simple(clauses[0])


# -- statements ------------------------------------------------------------------


def _statement(statement: ast.Statement, page: Page) -> Item:
    match statement:
        case ast.Insert(verb, type_name, assignments, variable):
            named = "" if variable is None else f"{spell(variable)}: "
            head = f"{verb} {named}{type_name.text}"
            return _assigning(head, assignments, "", statement.span, page)
        case ast.Update(type_name, assignments, where):
            head = f"update {type_name.text} set"
            foot = f" where {spell(where)}"
            return _assigning(head, assignments, foot, statement.span, page)
        case ast.UpdateMatched(variable, assignments):
            return _assigning(
                f"update {spell(variable)} set", assignments, "", statement.span, page
            )
        case ast.Delete(type_name, where):
            return Item(statement.span, f"delete {type_name.text} where {spell(where)}")
        case ast.DeleteMatched(variable):
            return Item(statement.span, f"delete {spell(variable)}")
        case ast.ForEach(variable, over, statements):
            (region,) = page.regions(statement.span, "{", 1)
            inner = tuple(_statement(one, page) for one in statements)
            head = f"for {spell(variable)} in {spell(over)} {{"
            return Item(statement.span, None, (head, Group(inner, region), "}"))


def _assigning(
    head: str, assignments: Sequence[ast.Assignment], foot: str, span: Span, page: Page
) -> Item:
    (region,) = page.regions(span, "{", 1)
    written = [spell_entry(assignment) for assignment in assignments]
    flat = f"{head} {spell_braced(written)}{foot}"
    if not assignments and not page.commented(region):
        return Item(span, flat)
    group = Group(_entries(assignments), region, ",")
    return Item(span, flat, (f"{head} {{", group, f"}}{foot}"))


def _is_simple(clause: ast.Clause) -> TypeGuard[Simple]:
    if isinstance(clause, ast.Traversal):
        return clause.each is None or clause.each.clauses is None
    if isinstance(clause, ast.Where | ast.Let | ast.For):
        return all(_is_one_line(block.clauses) for block in blocks_in(_value_of(clause)))
    return isinstance(clause, Simple)


def spell_clause(clause: Simple) -> str:
    """A clause without nested clauses, on one line."""
    match clause:
        case ast.Binding(variable, type_name, matches):
            head = f"{spell(variable)}: {type_name.text}"
            return f"{head} {spell_braced(map(spell_entry, matches))}" if matches else head
        case ast.Traversal():
            return _spell_traversal(clause)
        case ast.WayStep(left, way, right, undirected):
            spelt = f"<{spell(way)}>" if undirected else spell(way)
            return f"{spell(left)} {spelt} {spell(right)}"
        case ast.Where(condition):
            return spell(condition)
        case ast.Let(variable, value):
            return f"let {spell(variable)} = {spell(value)}"
        case ast.For(variable, items):
            return f"for {spell(variable)} in {spell(items)}"


def spell_clauses(clauses: Iterable[ast.Clause]) -> str:
    """`{ clause  clause }` on one line."""
    return f"{{ {'  '.join(map(_spell_any, clauses))} }}"


def _spell_any(clause: ast.Clause) -> str:
    match clause:
        case ast.Not(inner):
            return f"not {spell_clauses(inner)}"
        case ast.Exists(inner):
            return f"exists {spell_clauses(inner)}"
        case ast.Optional(inner):
            return f"optional {spell_clauses(inner)}"
        case ast.AnyOf(groups):
            return f"any {' or '.join(map(spell_clauses, groups))}"
        case _:
            return spell_clause(clause)


def spell_entry(entry: ast.PropertyMatch | ast.Assignment) -> str:
    """`property: value`."""
    return f"{entry.property.text}: {spell(entry.value)}"


def spell_param(param: ast.Param) -> str:
    """`$name: Type`."""
    type_ = param.type.text if isinstance(param.type, terms.Name) else str(param.type)
    return f"${param.name}: {type_}"


def spell_braced(items: Iterable[str]) -> str:
    """`{ a, b }`, or `{}` for nothing."""
    inside = ", ".join(items)
    return f"{{ {inside} }}" if inside else "{}"


def _spell_traversal(clause: ast.Traversal) -> str:
    return f"{_spell_traversal_head(clause)}{_spell_weight(clause)}"


def _spell_traversal_head(clause: ast.Traversal) -> str:
    """All up to the block of `each`."""
    edge = "|".join(name.text for name in (clause.edge, *clause.others))
    if clause.undirected:
        edge = f"<{edge}>"
    if clause.edge_variable is not None:
        edge = f"{spell(clause.edge_variable)}:{edge}"
    every = "every " if clause.every else ""
    walked = f"{every}{edge}{_spell_hops(clause.hops)}"
    head = f"{spell(clause.left)} {walked} {spell(clause.right)}"
    if clause.each is None:
        return head
    return f"{head} each {spell(clause.each.edge)}, {spell(clause.each.node)}"


def _spell_weight(clause: ast.Traversal) -> str:
    return "" if clause.weight is None else f" by {spell(clause.weight)}"


def _spell_hops(hops: ast.HopRange | None) -> str:
    if hops is None:
        return ""
    return f"{{{hops.minimum},{'' if hops.maximum is None else hops.maximum}}}"
