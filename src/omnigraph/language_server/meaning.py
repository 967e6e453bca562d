"""What the word at a place means: a type, an edge, a property, a variable or a function.

Owns that for both languages, from the tokens around the word, so that it holds in texts that do
not parse. Looks names up in a schema and never says that one is missing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from omnigraph.lang.functions.registry import FUNCTIONS
from omnigraph.lang.functions.signature import Function
from omnigraph.lang.query import terms
from omnigraph.lang.source import Source, Span
from omnigraph.lang.tokens import Kind, Token, Tokens, tokenize
from omnigraph.language_server.declared import DeclaredProperty, DeclaredSchema, DeclaredType

Language = Literal["pg", "gq"]
_DECLARES = ("node", "edge", "interface")
_STATEMENTS = (*terms.INSERTS, "update", "delete")


@dataclass(frozen=True, slots=True)
class Meaning:
    """A word, its place, and what it may stand for."""

    word: Span
    types: tuple[DeclaredType, ...] = ()
    properties: tuple[DeclaredProperty, ...] = ()
    function: Function | None = None
    variable: str | None = None

    def __bool__(self) -> bool:
        return bool(self.types or self.properties or self.function or self.variable)


@dataclass(frozen=True)
class Text:
    """A text of either language beside the schema that it speaks of."""

    source: Source
    language: Language
    schema: DeclaredSchema

    @cached_property
    def lexed(self) -> Tokens:
        """Its tokens and comments."""
        return tokenize(self.source)

    @property
    def tokens(self) -> list[Token]:
        """Its tokens; END is the last."""
        return self.lexed.tokens

    def index_before(self, offset: int) -> int:
        """The last token that begins before an offset; -1 if there is none."""
        return sum(1 for token in self.tokens[:-1] if token.start < offset) - 1

    def at(self, offset: int) -> Meaning | None:
        """What the word at an offset means, if it is one of ours."""
        for index, token in enumerate(self.tokens):
            if token.start <= offset <= token.end and token.kind in (
                Kind.IDENT,
                Kind.TYPE,
                Kind.VARIABLE,
            ):
                found = self._schema_word(index) if self.language == "pg" else self._word(index)
                return found if found is not None and found else None
        return None

    # -- schemas ---------------------------------------------------------------------

    def declaration_around(self, index: int) -> str | None:
        """The name of the declaration that a token of a schema stands in."""
        for place in range(index, 0, -1):
            before = self.tokens[place - 1]
            if self.tokens[place].kind is Kind.TYPE and before.text in _DECLARES:
                return self.tokens[place].text
        return None

    def _schema_word(self, index: int) -> Meaning | None:
        token = self.tokens[index]
        if token.kind is Kind.TYPE:
            return Meaning(token.span, types=self.schema.types(token.text))
        owner = self.declaration_around(index)
        if owner is None:
            return None
        if self._text(index - 1) == "@":
            return None
        return self._property(token, (owner,))

    # -- queries ---------------------------------------------------------------------

    def _word(self, index: int) -> Meaning | None:
        token = self.tokens[index]
        if token.kind is Kind.TYPE:
            return Meaning(token.span, types=self.schema.types(token.text))
        if token.kind is Kind.VARIABLE:
            names = self.variables(index).get(token.text, ())
            types = tuple(one for name in names for one in self.schema.types(name))
            return Meaning(token.span, types=types, variable=token.text)
        owners = self._owners(index)
        if owners is not None:
            return self._property(token, owners)
        if self._text(index + 1) == "(" and token.text in FUNCTIONS:
            return Meaning(token.span, function=FUNCTIONS[token.text])
        edge = self.schema.edge(token.text) if self._is_between_variables(index) else None
        return Meaning(token.span, types=(edge,)) if edge is not None else None

    def _owners(self, index: int) -> tuple[str, ...] | None:
        """The types whose property a word is; None where it is no property."""
        if self._text(index - 1) == "." and self._kind(index - 2) is Kind.VARIABLE:
            return self.variables(index).get(self._text(index - 2), ())
        if self._text(index + 1) == ":" and self._kind(index - 1) is not Kind.VARIABLE:
            return self.type_of_block(index)
        return self.type_of_condition(index)

    def type_of_block(self, index: int) -> tuple[str, ...] | None:
        """The types whose properties stand in the braces around a token."""
        depth = 0
        for place in range(index - 1, -1, -1):
            text = self._text(place)
            if text == "}":
                depth += 1
            elif text == "{":
                if depth == 0:
                    before = place - 2 if self._text(place - 1) == "set" else place - 1
                    return self._types_ending_at(before) or None
                depth -= 1
        return None

    def type_of_condition(self, index: int) -> tuple[str, ...] | None:
        """The type whose properties stand in the `where` of a statement around a token."""
        has_where = False
        for place in range(index - 1, 0, -1):
            text = self._text(place)
            if text == "query":
                return None
            has_where = has_where or text == "where"
            if self._kind(place) is Kind.TYPE and self._text(place - 1) in _STATEMENTS:
                return (self._text(place),) if has_where else None
        return None

    def _types_ending_at(self, index: int) -> tuple[str, ...]:
        names: list[str] = []
        while self._kind(index) is Kind.TYPE:
            names.insert(0, self._text(index))
            if self._text(index - 1) != "|":
                break
            index -= 2
        return tuple(names)

    def _is_between_variables(self, index: int) -> bool:
        """Whether an edge may be named here: after a variable, `<`, `|` or the name of the edge."""
        before = self._text(index - 1)
        return self._kind(index - 1) is Kind.VARIABLE or before in ("<", "|", ":", "every")

    def variables(self, index: int) -> dict[str, tuple[str, ...]]:
        """The types that each variable has in the query around a token."""
        start, end = self._query_around(index)
        known = self._variables_from.get(start)
        if known is None:
            known = self._variables_from[start] = self._variables_between(start, end)
        return known

    @cached_property
    def _variables_from(self) -> dict[int, dict[str, tuple[str, ...]]]:
        """What was found out, by the first token of a query."""
        return {}

    def _variables_between(self, start: int, end: int) -> dict[str, tuple[str, ...]]:
        bound: dict[str, set[str]] = {}
        reached: dict[str, set[str]] = {}
        for place in range(start, end):
            if self._kind(place) is not Kind.VARIABLE:
                continue
            name = self._text(place)
            if self._text(place + 1) == ":":
                for type_ in self._types_from(place + 2):
                    if type_ in self.schema.nodes:
                        bound.setdefault(name, set()).add(type_)
            for variable, types in self._traversed(place, end):
                reached.setdefault(variable, set()).update(types)
        return {name: tuple(sorted(types)) for name, types in (reached | bound).items()}

    @cached_property
    def _query_starts(self) -> list[int]:
        return [
            place
            for place, token in enumerate(self.tokens)
            if token.text == "query" and self._kind(place + 1) is Kind.IDENT
        ]

    def _query_around(self, index: int) -> tuple[int, int]:
        starts = self._query_starts
        number = bisect_right(starts, index)
        start = starts[number - 1] if number else 0
        return start, starts[number] if number < len(starts) else len(self.tokens)

    def _types_from(self, index: int) -> Iterator[str]:
        while self._kind(index) is Kind.TYPE:
            yield self._text(index)
            if self._text(index + 1) != "|":
                return
            index += 2

    def _traversed(self, index: int, end: int) -> Iterator[tuple[str, Sequence[str]]]:
        """What a traversal that begins with this variable says of its variables."""
        place = index + 1
        place += self._text(place) == "every"
        either = self._text(place) == "<"
        place += either
        named = self._text(place) if self._kind(place) is Kind.VARIABLE else None
        if named is not None:
            if self._text(place + 1) != ":":
                return
            place += 2
        edges: list[DeclaredType] = []
        while self._kind(place) is Kind.IDENT:
            edge = self.schema.edge(self._text(place))
            if edge is None:
                return
            edges.append(edge)
            place += 1
            if self._text(place) != "|":
                break
            place += 1
        place += self._text(place) == ">"
        has_hops = self._text(place) == "{"
        if has_hops:
            while place < end and self._text(place) != "}":
                place += 1
            place += 1
        place += self._text(place) == ">"
        if not edges or self._kind(place) is not Kind.VARIABLE:
            return
        for edge in edges:
            source, target = edge.ends
            yield self._text(index), (source, target) if either else (source,)
            yield self._text(place), (source, target) if either else (target,)
            if named is not None and not has_hops:
                yield named, (edge.name,)

    # -- tokens ----------------------------------------------------------------------

    def _text(self, index: int) -> str:
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ""

    def _kind(self, index: int) -> Kind:
        return self.tokens[index].kind if 0 <= index < len(self.tokens) else Kind.END

    def _property(self, token: Token, owners: Sequence[str]) -> Meaning:
        found = self.schema.properties(owners).get(token.text, ())
        return Meaning(token.span, properties=found)
