"""Completion: what may be written at a place.

Owns which names are offered where, from the tokens before the place: the text around it need not
parse. Offers names of the schema and words of the languages, and never checks them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from omnigraph.lang.functions.registry import FUNCTIONS
from omnigraph.lang.query import words as gq
from omnigraph.lang.schema import words as pg
from omnigraph.lang.schema.syntax.tree import CONSTRAINT_NAMES
from omnigraph.lang.structural import EDGE_COLUMNS
from omnigraph.lang.tokens import Kind
from omnigraph.language_server.declared import DeclaredType
from omnigraph.language_server.hover import (
    described_function,
    described_property,
    described_type,
)
from omnigraph.language_server.meaning import Text

Sort = Literal["keyword", "type", "edge", "property", "function", "variable", "annotation"]


@dataclass(frozen=True, slots=True)
class Offer:
    """A word that may stand here; ``detail`` is shown beside it and ``about`` in full."""

    word: str
    sort: Sort
    detail: str = ""
    about: str = ""


def completion(text: Text, offset: int) -> list[Offer]:
    """What may be written at an offset; editors leave out what does not begin as written."""
    index = text.index_before(offset)
    token = text.tokens[index] if index >= 0 else None
    if _is_inside_text(text, offset):
        return []
    # The word that is being written says nothing yet.
    if token is not None and token.end >= offset and token.text[:1] not in "{}()[],:.@<>=|-":
        index -= 1
    offers = _of_schema(text, index) if text.language == "pg" else _of_query(text, index)
    unique: dict[str, Offer] = {}
    for offer in offers:
        unique.setdefault(offer.word, offer)
    return list(unique.values())


def _is_inside_text(text: Text, offset: int) -> bool:
    """Whether a string or a comment goes on here."""
    for comment in text.lexed.comments:
        goes_on = comment.text.startswith("//")
        if comment.start < offset < comment.end + goes_on:
            return True
    index = text.index_before(offset)
    if index < 0:
        return False
    token = text.tokens[index]
    if token.kind is Kind.STRING:
        return offset < token.end
    return token.text.startswith(('"', "/*"))


# -- schemas -----------------------------------------------------------------------------


def _of_schema(text: Text, index: int) -> Iterator[Offer]:
    before = _texts(text, index)
    if before[-1] == "@":
        yield from (Offer(name, "annotation") for name in pg.ANNOTATIONS)
    elif before[-1] == "->" or (before[-1] == ":" and before[-3] == "edge"):
        yield from _types(text.schema.nodes.values())
    elif before[-1] in ("implements", ",") and "implements" in before[-8:]:
        yield from _types(one for one in text.schema.nodes.values() if one.kind == "interface")
    elif before[-1] in (":", "["):
        yield from (Offer(name, "type") for name in (*pg.TYPES, "enum"))
    elif before[-1] in ("(", ",") and _is_in_constraint(before):
        owner = text.declaration_around(index)
        yield from _properties(text, () if owner is None else (owner,))
    else:
        yield from (Offer(word, "keyword") for word in pg.KEYWORDS)


def _is_in_constraint(before: list[str]) -> bool:
    opened = len(before) - 1 - before[::-1].index("(") if "(" in before else 0
    return opened >= 2 and before[opened - 2] == "@" and before[opened - 1] in CONSTRAINT_NAMES


# -- queries -----------------------------------------------------------------------------


def _of_query(text: Text, index: int) -> Iterator[Offer]:
    before = _texts(text, index)
    kinds = [Kind.END] * 4 + [token.kind for token in text.tokens[: index + 1]]
    if before[-1] == "." and kinds[-2] is Kind.VARIABLE:
        yield from _properties(text, text.variables(index).get(before[-2], ()))
    elif before[-1] == "@" and before[-2] == ".":
        yield from (Offer(name.removeprefix("@"), "property") for name in EDGE_COLUMNS)
    elif before[-1] == "@":
        yield from (Offer(name, "annotation") for name in gq.ANNOTATIONS)
    elif before[-1] == ":" and _is_parameter(before):
        yield from (Offer(name, "type") for name in gq.TYPES)
    elif (before[-1] == ":" and kinds[-2] is Kind.VARIABLE) or before[-1] == "|":
        yield from _types(text.schema.nodes.values())
        yield from _edges(text)
    elif before[-1] in gq.STATEMENTS[:-2]:
        yield from _types((*text.schema.nodes.values(), *text.schema.edges.values()))
    else:
        if kinds[-1] is Kind.VARIABLE or (before[-1] == "<" and kinds[-2] is Kind.VARIABLE):
            yield from _edges(text)
        if before[-1] in ("{", ",", "where", "and"):
            owners = text.type_of_block(index + 1) or text.type_of_condition(index + 1)
            yield from _properties(text, owners or ())
        variables = text.variables(max(index, 0))
        yield from (
            Offer(name, "variable", "|".join(types)) for name, types in sorted(variables.items())
        )
        yield from _functions()
        yield from (Offer(word, "keyword") for word in (*gq.KEYWORDS, *gq.WORD_OPERATORS))
        yield from (Offer(word, "keyword") for word in gq.CONSTANTS)


def _is_parameter(before: list[str]) -> bool:
    """Whether the last token stands between the brackets after the name of a query."""
    for place in range(len(before) - 1, 1, -1):
        if before[place] in (")", "{", "}"):
            return False
        if before[place] == "(":
            return before[place - 2] == "query"
    return False


def _functions() -> Iterator[Offer]:
    for name in gq.CALLS:
        function = FUNCTIONS.get(name)
        if function is None:
            yield Offer(name, "function")
        else:
            about = "\n\n".join(described_function(function))
            yield Offer(name, "function", function.signature, about)


# -- names -------------------------------------------------------------------------------


def _texts(text: Text, index: int) -> list[str]:
    """The tokens up to one, with room before the first."""
    return ["", "", "", "", *(token.text for token in text.tokens[: index + 1])]


def _types(types: Iterable[DeclaredType]) -> Iterator[Offer]:
    for one in types:
        yield Offer(one.name, "type", one.kind, "\n\n".join(described_type(one)))


def _edges(text: Text) -> Iterator[Offer]:
    """Edge types as queries spell them."""
    for one in text.schema.edges.values():
        name = one.name[0].lower() + one.name[1:]
        yield Offer(name, "edge", " -> ".join(one.ends), "\n\n".join(described_type(one)))


def _properties(text: Text, owners: Iterable[str]) -> Iterator[Offer]:
    for name, declared in text.schema.properties(owners).items():
        about = "\n\n".join(part for one in declared for part in described_property(one))
        yield Offer(name, "property", declared[0].type, about)
