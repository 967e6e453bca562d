"""Completion in cells: what Tab offers in a query, and in the options before it.

Owns finding the query in what is being written. The words are those that editors are offered; the
graph is asked at most once between two cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from omnigraph.errors import OmniGraphError
from omnigraph.lang.source import Source
from omnigraph.language_server.completion import Offer, completion
from omnigraph.language_server.declared import DeclaredSchema, declared_in
from omnigraph.language_server.meaning import Text
from omnigraph.manifest.entries import MAIN
from omnigraph.notebook.header import FLAGS, OPTIONS, SHORT, Header, read_header

if TYPE_CHECKING:
    from omnigraph.graph import Session
    from omnigraph.notebook.cells import Cells

_CELL = re.compile(r"\s*%%gq(?!\w)")
_LINE = re.compile(r"\s*(?:\w+\s*=\s*)?%gq(?!\w)")
_PREFIX = re.compile(r"\$?\w*\Z")
_ARGUMENT = re.compile(r"(?:\A|\s)(--?[a-z]+)(?:\s+|=)([\w./~-]*)\Z")
_DASHES = re.compile(r"(?:\A|\s)(--?[a-z]*)\Z")


@dataclass(frozen=True, slots=True)
class Offered:
    """Words that may stand at the cursor, in place of what is written of them."""

    written: str
    words: tuple[Offer, ...]


@dataclass
class CellCompleter:
    """Completes the cells and lines that are queries."""

    cells: Cells
    _schemas: dict[tuple[int, str], DeclaredSchema] = field(default_factory=dict)
    _branches: dict[int, list[str]] = field(default_factory=dict)

    def forget(self) -> None:
        """A cell was run: the graph may be another."""
        self._schemas.clear()
        self._branches.clear()

    def offered(self, text: str, line: int, column: int) -> Offered | None:
        """What may stand at a place of what is being written; None where that is no query."""
        lines = text.split("\n")
        cell = _CELL.match(text)
        if cell is not None:
            first = text.count("\n", 0, cell.end())
            if line > first:
                body = "\n".join(lines[first + 1 :])
                before = sum(len(one) + 1 for one in lines[first + 1 : line]) + column
                return self._in_query(lines[first].partition("%%gq")[2], body, before)
            return self._in_header(lines[line][:column].partition("%%gq")[2])
        magic = _LINE.match(lines[line])
        if magic is None or column < magic.end():
            return None
        rest, written = lines[line][magic.end() :], column - magic.end()
        header = _header(rest[:written])
        if header is None or not header.rest:
            return self._in_header(rest[:written])
        begins = rest.index(header.rest)
        return self._in_query(rest[:begins], rest[begins:], written - begins)

    # -- queries ---------------------------------------------------------------------

    def _in_query(self, options: str, body: str, offset: int) -> Offered:
        header = _header(options) or Header()
        text = Text(Source(body, "<cell>"), "gq", self._schema(header))
        found = _PREFIX.search(body[:offset])
        written = "" if found is None else found.group()
        return _matching(written, completion(text, offset))

    def _schema(self, header: Header) -> DeclaredSchema:
        """The types of the graph that is meant; none where there is none."""
        try:
            graph = self.cells.meant(header.value("--graph"))
            branch = self.cells.branch_of(header)
            key = (id(graph), branch)
            if key not in self._schemas:
                self._schemas[key] = declared_in(Source(_schema_of(graph, branch), "<schema>"))
            return self._schemas[key]
        except OmniGraphError:
            # Without a schema there are still the words of the language.
            return DeclaredSchema(Source(""))

    # -- options ---------------------------------------------------------------------

    def _in_header(self, before: str) -> Offered | None:
        value = _ARGUMENT.search(before)
        if value is not None:
            option = SHORT.get(value.group(1), value.group(1))
            words = self._values(option, before)
            return _matching(value.group(2), (Offer(word, "keyword") for word in words))
        dashes = _DASHES.search(before)
        if dashes is None:
            return None
        known = (OPTIONS | FLAGS).items()
        return _matching(dashes.group(1), (Offer(name, "keyword", about) for name, about in known))

    def _values(self, option: str, before: str) -> Iterable[str]:
        if option == "--graph":
            return sorted(self.cells.graphs())
        if option != "--branch":
            return ()
        header = _header(before.rpartition("-b")[0]) or Header()
        try:
            graph = self.cells.meant(header.value("--graph"))
            if id(graph) not in self._branches:
                self._branches[id(graph)] = graph.branches.list()
            return self._branches[id(graph)]
        except OmniGraphError:
            # What cannot be listed is not offered.
            return ()


def _schema_of(graph: Session, branch: str) -> str:
    return graph.schema if branch == MAIN else graph.schema_at(branch)


def _header(line: str) -> Header | None:
    """The options of a line that is still being written."""
    try:
        return read_header(line)
    except OmniGraphError:
        return None


def _matching(written: str, offers: Iterable[Offer]) -> Offered:
    return Offered(written, tuple(one for one in offers if one.word.startswith(written)))
