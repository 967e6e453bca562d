"""The canonical form of `.gq` files.

Owns which lines a query is made of and how they read; where comments go is
layout's. Never changes what a query means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeGuard, TypeVar

from omnigraph.lang.diagnostics import Reporter
from omnigraph.lang.layout import WIDTH, Group, Item, Page, render
from omnigraph.lang.literals import quote
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query import terms
from omnigraph.lang.query.parser import parse_queries
from omnigraph.lang.query.spelling import spell, spell_null_test
from omnigraph.lang.source import Source, Span

_Part = TypeVar("_Part", ast.Projection, ast.Ordering)

Simple = ast.Binding | ast.Traversal | ast.WayStep | ast.Where
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
        else tuple(_statement(statement, page) for statement in query.body.statements)
    )
    return Item(query.span, None, (*header, Group(items, body), "}"))


def _notes(query: ast.Query) -> str:
    written = ""
    if query.description is not None:
        written += f" @description({quote(query.description)})"
    if query.instruction is not None:
        written += f" @instruction({quote(query.instruction)})"
    return written


def _leaves(parts: Sequence[_Part], spelling: Callable[[_Part], str]) -> tuple[Item, ...]:
    return tuple(Item(part.span, spelling(part)) for part in parts)


def _entries(entries: Sequence[ast.PropertyMatch | ast.Assignment]) -> tuple[Item, ...]:
    return tuple(
        Item(entry.property.span.to(entry.value.span), spell_entry(entry)) for entry in entries
    )


# -- reads -----------------------------------------------------------------------


def _read(read: ast.Read, body: Span, page: Page) -> tuple[Item, ...]:
    regions = page.regions(body, "{", 3 if read.ordering else 2)
    # A block begins right after the one before it and ends with its closing brace.
    starts = [body.start, *(region.end + 1 for region in regions)]
    spans = [
        page.trimmed(Span(start, region.end + 1))
        for start, region in zip(starts, regions, strict=False)
    ]
    clauses = tuple(_clause(clause, page) for clause in read.clauses)
    items = [
        Item(spans[0], None, ("match {", Group(clauses, regions[0]), "}")),
        _listing(
            "return distinct" if read.distinct else "return",
            [spell_projection(projection) for projection in read.projections],
            Group(_leaves(read.projections, spell_projection), regions[1], ","),
            spans[1],
        ),
    ]
    if read.ordering:
        items.append(
            _listing(
                "order",
                [spell_ordering(ordering) for ordering in read.ordering],
                Group(_leaves(read.ordering, spell_ordering), regions[2], ","),
                spans[2],
            )
        )
    if read.limit is not None:
        offset = f" offset {spell(read.offset)}" if read.offset is not None else ""
        span = page.trimmed(Span(starts[-1], body.end))
        items.append(Item(span, f"limit {spell(read.limit)}{offset}"))
    return tuple(items)


def _listing(head: str, written: Sequence[str], group: Group, span: Span) -> Item:
    """`head { a, b }` on one line, or one element per line."""
    return Item(span, f"{head} {spell_braced(written)}", (f"{head} {{", group, "}"))


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
        case ast.Counted(aggregate, argument, clauses, op, value):
            head = aggregate if argument is None else f"{aggregate}({spell(argument)})"
            return _blocks(clause.span, head, [clauses], f" {op} {spell(value)}", page)
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


# -- statements ------------------------------------------------------------------


def _statement(statement: ast.Statement, page: Page) -> Item:
    match statement:
        case ast.Insert(verb, type_name, assignments):
            return _assigning(f"{verb} {type_name.text}", assignments, "", statement.span, page)
        case ast.Update(type_name, assignments, where):
            head = f"update {type_name.text} set"
            foot = f" {spell_where(where)}"
            return _assigning(head, assignments, foot, statement.span, page)
        case ast.Delete(type_name, where):
            return Item(statement.span, f"delete {type_name.text} {spell_where(where)}")


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


def spell_entry(entry: ast.PropertyMatch | ast.Assignment) -> str:
    """`property: value`."""
    return f"{entry.property.text}: {spell_assigned(entry.value)}"


def spell_assigned(value: terms.Expr | terms.NodeKey) -> str:
    """A value, or a node by its key."""
    if isinstance(value, terms.NodeKey):
        return f"{value.type_name.text}({', '.join(map(spell, value.members))})"
    return spell(value)


def spell_projection(projection: ast.Projection) -> str:
    """`expr as alias`."""
    text = spell(projection.expr)
    return text if projection.alias is None else f"{text} as {projection.alias.text}"


def spell_ordering(ordering: ast.Ordering) -> str:
    """`expr` or `expr desc`; ascending is what no direction means."""
    text = spell(ordering.expr)
    return f"{text} desc" if ordering.descending else text


def spell_where(atoms: Iterable[ast.Atom]) -> str:
    """`where a = 1 and b is null`."""
    return f"where {' and '.join(map(_spell_atom, atoms))}"


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


def _spell_atom(atom: ast.Atom) -> str:
    name = atom.property.text
    match atom:
        case ast.Compare(op=op, value=value):
            return f"{name} {op} {spell_assigned(value)}"
        case ast.IsNull(negated=negated):
            return f"{name} {spell_null_test(negated=negated)}"
        case ast.IsIn(choices=choices):
            return f"{name} in {spell(choices)}"
