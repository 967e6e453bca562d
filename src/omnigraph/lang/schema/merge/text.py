"""The source text of a merged schema: the target's, with the changes of the source in it.

Owns which text stands: a side's own, byte for byte, where the merge is what that side has; else
the target's text, in which what changed is written anew and everything else stays as it is,
comments included. Comments go with what they stand before or behind. Never changes what is meant.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from omnigraph.errors import LanguageError
from omnigraph.lang.layout import INDENT, Page
from omnigraph.lang.schema.check.constraints import bound_value
from omnigraph.lang.schema.check.effective import agree
from omnigraph.lang.schema.compile import shape_of_source
from omnigraph.lang.schema.ir.shape import Shape
from omnigraph.lang.schema.merge.merging import Merging
from omnigraph.lang.schema.merge.model import (
    Aspect,
    DeclaredType,
    Model,
    constraint_aspect,
)
from omnigraph.lang.schema.merge.result import Sealed
from omnigraph.lang.schema.merge.tree import Written
from omnigraph.lang.schema.syntax.format import declaration_text, head_text, member_text
from omnigraph.lang.schema.syntax.tree import (
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
)
from omnigraph.lang.source import NOWHERE, Name, Source, Span
from omnigraph.lang.structural import spelling
from omnigraph.lang.types import Scalar, ValueType

_LINE_END = re.compile(r"[ \t]*(?:\r\n|\r|\n)?")
_DEFAULT_CARD = Cardinality(0, None)
_ANY = ValueType(Scalar.STRING)


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Something in a text, what stands before it, and what ends its line."""

    lead: str
    span: Span
    trail: str


def merged_text(merging: Merging, sealed: Sealed) -> str:
    """The source text to store with a merged schema."""
    for model in (merging.target, merging.source):
        if _means(model.source.text, sealed.shape):
            return model.source.text
    text = _assembled(merging, sealed)
    # Where a layout is stranger than foreseen, the canonical form says the same.
    return text if _means(text, sealed.shape) else sealed.text


def _means(text: str, shape: Shape) -> bool:
    try:
        return shape_of_source(text, stored=True) == shape
    except LanguageError:
        return False


def _assembled(merging: Merging, sealed: Sealed) -> str:
    by_id = {each.type_id: each for each in sealed.declarations}
    found: list[str] = []
    chunks, tail = _file_chunks(merging.target)
    page = Page(merging.target.source)
    for each, chunk in chunks:
        wanted = by_id.pop(each.id, None)
        if wanted is None:
            found.append(_apart(chunk.lead))
        else:
            found += [chunk.lead, _declaration(page, each, wanted), chunk.trail]
    text = "".join([*found, tail])
    page = Page(merging.source.source)
    for each, chunk in _file_chunks(merging.source)[0]:
        wanted = by_id.pop(each.id, None)
        if wanted is not None:
            comments = chunk.lead.removeprefix(_apart(chunk.lead)).strip("\r\n")
            new = f"{comments}\n" if comments else ""
            new += f"{_declaration(page, each, wanted)}{chunk.trail}".rstrip("\r\n")
            text = f"{text.rstrip()}\n\n{new}\n" if text.strip() else f"{new}\n"
    return text


def _file_chunks(model: Model) -> tuple[list[tuple[DeclaredType, _Chunk]], str]:
    types = list(model.types.values())
    spans = [each.syntax.span for each in types]
    chunks, tail = _chunks(Page(model.source), spans, Span(0, len(model.source.text)))
    return list(zip(types, chunks, strict=True)), tail


def _chunks(page: Page, spans: Sequence[Span], region: Span) -> tuple[list[_Chunk], str]:
    """A region cut into the things in it and what is left at its end.

    A comment on the line on which a thing ends belongs to it, unless the next begins there.
    """
    found = []
    start = region.start
    for number, span in enumerate(spans):
        following = spans[number + 1].start if number + 1 < len(spans) else region.end
        end = span.end
        if number + 1 == len(spans) or not page.same_line(end, following):
            for comment in page.comments(end, following):
                if not page.same_line(end, comment.start):
                    break
                end = comment.end
            line = _LINE_END.match(page.text, end, following)
            end = end if line is None else line.end()
        found.append(_Chunk(page.text[start : span.start], span, page.text[span.end : end]))
        start = end
    return found, page.text[start : region.end]


def _apart(lead: str) -> str:
    """The comments before a thing that an empty line separates from it."""
    page = Page(Source(lead))
    end = len(lead)
    for comment in reversed(page.comments(0, len(lead))):
        if page.has_blank_line(comment.end, end):
            line = _LINE_END.match(lead, comment.end)
            return lead[: comment.end if line is None else line.end()]
        end = comment.start
    return ""


# -- one declaration -----------------------------------------------------------------------


def _declaration(page: Page, each: DeclaredType, wanted: Written) -> str:
    """A declaration of a text as it is to be: written anew only where it says something else."""
    syntax = each.syntax
    (region,) = page.regions(syntax.span, "{", 1)
    edits = _edits(each, wanted)
    head_stays = _same_head(syntax, wanted.declaration)
    if head_stays and edits.is_empty:
        return page.text[syntax.span.start : syntax.span.end]
    if region == NOWHERE or page.same_line(region.start, region.end):
        return declaration_text(wanted.declaration)
    head = page.text[syntax.span.start : region.start]
    if not head_stays:
        head = f"{head_text(wanted.declaration)} {{"
    # What stands behind the brace on its line belongs to the head.
    spans = [Span(region.start, region.start), *(member.span for member in _members(syntax))]
    (opening, *chunks), tail = _chunks(page, spans, region)
    body: list[str] = [opening.trail]
    indent = INDENT
    for number, chunk in enumerate(chunks):
        if number in edits.gone:
            body.append(_apart(chunk.lead))
            continue
        last = re.split(r"[\r\n]", chunk.lead)[-1]
        indent = last if last and not last.strip() else indent
        text = page.text[chunk.span.start : chunk.span.end]
        if number in edits.changed:
            text = member_text(edits.changed[number])
        body += [chunk.lead, text, chunk.trail]
    if edits.added:
        before = "".join(body)
        body = [before if before.endswith(("\n", "\r")) else f"{before.rstrip()}\n"]
        body += [f"{indent}{member_text(member)}\n" for member in edits.added]
    return f"{head}{''.join(body)}{tail}{page.text[region.end : syntax.span.end]}"


@dataclass(frozen=True, slots=True)
class _Edits:
    """What becomes of the members of a body, by their number."""

    gone: frozenset[int]
    changed: Mapping[int, Member]
    added: tuple[Member, ...]

    @property
    def is_empty(self) -> bool:
        return not (self.gone or self.changed or self.added)


def _edits(each: DeclaredType, wanted: Written) -> _Edits:
    ids = {found.name: found.id for found in each.properties.values()}
    names = {found.name.text for _, found in wanted.members if isinstance(found, Property)}
    left: dict[int | Aspect, list[Member]] = {}
    for said, member in wanted.members:
        left.setdefault(said, []).append(member)
    gone: set[int] = set()
    changed: dict[int, Member] = {}
    for number, member in enumerate(_members(each.syntax)):
        if isinstance(member, Property):
            what: int | Aspect = ids[member.name.text]
        else:
            what = constraint_aspect(member, ids)
        candidates = left.get(what, [])
        if not candidates:
            gone.add(number)
            continue
        same = [found for found in candidates if _same_member(member, found, names)]
        new = same[0] if same else candidates[0]
        candidates.remove(new)
        if not same:
            changed[number] = new
    added = tuple(member for members in left.values() for member in members)
    return _Edits(frozenset(gone), changed, added)


def _members(declaration: Declaration) -> tuple[Member, ...]:
    if isinstance(declaration, Interface):
        return declaration.properties
    return declaration.members


# -- what says the same ----------------------------------------------------------------------


def _same_head(left: Declaration, right: Declaration) -> bool:
    if left.name != right.name:
        return False
    match left, right:
        case (Node(), Node()):
            implements = [set(each.implements) for each in (left, right)]
            return implements[0] == implements[1] and _same_notes(left, right)
        case (Edge(), Edge()):
            same = (left.source, left.target) == (right.source, right.target)
            cards = [each.cardinality or _DEFAULT_CARD for each in (left, right)]
            return same and cards[0] == cards[1] and _same_notes(left, right)
    return True


def _same_notes(left: Node | Edge, right: Node | Edge) -> bool:
    """Whether two heads have the same annotations, compared as those of properties are."""
    return agree(*(Property(Name(""), _ANY, each.annotations) for each in (left, right)))


def _same_member(left: Member, right: Member, names: Container[str]) -> bool:
    match left, right:
        case (Property(), Property()):
            return left.name == right.name and agree(left, right)
        case (Constraint(), Constraint()):
            return left.name == right.name and _said(left, names) == _said(right, names)
    return False


def _said(constraint: Constraint, names: Container[str]) -> tuple[set[str], list[object]]:
    """The members of a constraint in any order, then bounds and patterns.

    ``names`` are those of properties, which an end is told apart from.
    """
    members: set[str] = set()
    rest: list[object] = []
    for each in constraint.arguments:
        if isinstance(each, Argument) and each.kind == "name":
            members.add(spelling(each.text, names))
        elif isinstance(each, Bounds):
            ends = (each.low, each.high)
            rest += [None if end is None else repr(bound_value(end)) for end in ends]
        else:
            rest.append(each.text)
    return members, rest
