"""Hover: what is shown of the word at a place, as Markdown.

Owns how types, properties, variables and functions are described to whoever points at them.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.lang.functions.signature import Function
from omnigraph.lang.source import Span
from omnigraph.language_server.declared import DeclaredProperty, DeclaredType
from omnigraph.language_server.meaning import Text


def hover(text: Text, offset: int) -> tuple[Span, str] | None:
    """What is shown at an offset, and the word that it is about."""
    meaning = text.at(offset)
    if meaning is None:
        return None
    parts: list[str] = []
    if meaning.variable is not None:
        names = "|".join(one.name for one in meaning.types)
        parts.append(_fenced("gq", f"{meaning.variable}: {names}" if names else meaning.variable))
    parts += (part for one in meaning.types for part in described_type(one))
    parts += (part for one in meaning.properties for part in described_property(one))
    if meaning.function is not None:
        parts += described_function(meaning.function)
    return meaning.word, "\n\n".join(parts)


def described_type(declared: DeclaredType) -> Iterator[str]:
    """A type: its text in the schema, and what is said of it there."""
    yield _fenced("pg", declared.text)
    yield from declared.notes


def described_property(declared: DeclaredProperty) -> Iterator[str]:
    """A property: whose it is, its text, and what is said of it."""
    yield _fenced("pg", declared.text)
    yield f"of `{declared.owner}`"
    yield from declared.notes


def described_function(function: Function) -> Iterator[str]:
    """A function: how it is called, what it does, and an example."""
    yield _fenced("gq", function.signature)
    yield function.description
    yield f"`{function.example}` gives `{function.gives}`"


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"
