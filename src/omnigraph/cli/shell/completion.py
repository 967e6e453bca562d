"""What Tab offers in the shell: words of the language, names of the schema, branches, files.

Owns the choice by what stands before the cursor. Asks the graph at most once between two prompts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from omnigraph.cli.render.formats import FORMATS
from omnigraph.cli.shell.commands import COMMANDS
from omnigraph.cli.shell.session import ShellSession
from omnigraph.cli.shell.statements import EXPLAIN
from omnigraph.errors import OmniGraphError
from omnigraph.lang.query import words
from omnigraph.lang.schema.catalog import Catalog

_WORDS = sorted({*words.KEYWORDS, *words.CALLS, *words.WORD_OPERATORS, *words.CONSTANTS})
_LAST = re.compile(r"[\w$]*\Z")
_OWNER = re.compile(r"(\$\w+)\.\w*\Z")
_BLOCK = re.compile(r"\b([A-Z]\w*)\s*\{[^{}]*\Z")


@dataclass(frozen=True, slots=True)
class Names:
    """What a schema calls things."""

    types: tuple[str, ...] = ()
    edges: tuple[str, ...] = ()
    """Edges as queries write them between two variables."""
    properties: Mapping[str, tuple[str, ...]] | None = None

    @classmethod
    def of(cls, catalog: Catalog) -> Names:
        """The names of a catalog."""
        properties = {
            **{name: tuple(type_.properties) for name, type_ in catalog.interfaces.items()},
            **{name: tuple(type_.properties) for name, type_ in catalog.edges.items()},
            **{name: tuple(type_.properties) for name, type_ in catalog.nodes.items()},
        }
        edges = tuple(name[0].lower() + name[1:] for name in catalog.edges)
        return cls((*properties, *words.TYPES), edges, properties)

    def of_owner(self, owner: str | None) -> Iterable[str]:
        """The properties of a type, or of all types where it is not known."""
        known = self.properties or {}
        if owner is not None and owner in known:
            return known[owner]
        return {name for several in known.values() for name in several}


class ShellCompleter(Completer):
    """Completes dot commands and queries."""

    def __init__(self, session: ShellSession) -> None:
        self._session = session
        self._paths = PathCompleter(expanduser=True)
        self._names: Names | None = None
        self._branches: list[str] | None = None

    def forget(self) -> None:
        """The graph may have been changed since."""
        self._names = self._branches = None

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        """What could stand at the cursor."""
        text = document.text_before_cursor
        command, space, rest = text.lstrip().partition(" ")
        if command.startswith(".") and not space:
            yield from _matching(command, COMMANDS)
        elif command in (".read", ".save"):
            yield from self._paths.get_completions(Document(rest, len(rest)), event)
        elif command.startswith(".") and command != EXPLAIN:
            yield from _matching(rest.rpartition(" ")[2], self._arguments(command))
        else:
            last = _LAST.search(text)
            prefix = "" if last is None else last.group()
            yield from _matching(prefix, self._in_query(text, prefix))

    def _arguments(self, command: str) -> Iterable[str]:
        match command:
            case ".switch" | ".diff":
                if self._branches is None:
                    self._branches = self._asked_branches()
                return self._branches
            case ".format":
                return FORMATS
            case ".timing":
                return ("on", "off")
        return ()

    def _in_query(self, text: str, prefix: str) -> Iterable[str]:
        names = self._known()
        if owner := _OWNER.search(text):
            return names.of_owner(_type_of(owner.group(1), text))
        if prefix.startswith("$"):
            return sorted(set(re.findall(r"\$\w+", text[: -len(prefix)])))
        if prefix[:1].isupper():
            return names.types
        inside = _BLOCK.search(text)
        own = names.of_owner(inside.group(1)) if inside is not None else ()
        return [*own, *names.edges, *_WORDS, *([] if prefix else names.types)]

    def _known(self) -> Names:
        if self._names is None:
            try:
                self._names = Names.of(self._session.catalog())
            except OmniGraphError:
                # Whoever may not see the schema is offered the words of the language.
                self._names = Names()
        return self._names

    def _asked_branches(self) -> list[str]:
        try:
            return self._session.graph.branches.list()
        except OmniGraphError:
            return []


def _type_of(variable: str, text: str) -> str | None:
    """The type that a text gives a variable."""
    found = re.search(rf"{re.escape(variable)}\s*:\s*([A-Z]\w*)", text)
    return None if found is None else found.group(1)


def _matching(prefix: str, offered: Iterable[str]) -> Iterator[Completion]:
    for word in dict.fromkeys(offered):
        if word.startswith(prefix):
            yield Completion(word, start_position=-len(prefix))
