"""Diagnostics: what is wrong, where, and what to write instead.

Owns their shape, their rendering with the source line and a caret, and the
step from a list of them to one raised error. Never decides what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from omnigraph.errors import LanguageError, ParseError, SchemaError, TypeCheckError
from omnigraph.lang.source import Position, Source, Span

MAX_DIAGNOSTICS = 100
"""A text this broken gets no further messages: more would help nobody."""


MAX_LINE = 200
"""How much of a long source line is shown around a mistake."""
MAX_LISTED = 6
"""How many known names a hint may list when none is near."""

MAX_GUESSED_LENGTH = 100
MAX_GUESSES = 2000
"""Beyond these a misspelled name gets no suggestion: looking for one would take too long."""


class Phase(StrEnum):
    """Which rule book was broken."""

    PARSE = "parse"
    CATALOG = "catalog"
    TYPE = "type"


_ERROR_OF_PHASE: dict[Phase, type[LanguageError]] = {
    Phase.PARSE: ParseError,
    Phase.CATALOG: SchemaError,
    Phase.TYPE: TypeCheckError,
}


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One mistake in one place; ``hint`` says what to do about it."""

    source: Source
    span: Span
    phase: Phase
    message: str
    code: str | None = None
    hint: str | None = None

    @property
    def position(self) -> Position:
        """Line and column of the first offending character."""
        return self.source.position(self.span.start)

    @property
    def summary(self) -> str:
        """The message in one line, with phase and code but without its place."""
        code = f"{self.code}: " if self.code else ""
        return f"{self.phase} error: {code}{self.message}"

    @property
    def stable_code(self) -> str:
        """The code a program may rely on; never empty."""
        return self.code or _ERROR_OF_PHASE[self.phase].default_code

    def render(self) -> str:
        """The message, its place, the source line and a caret under the offending text."""
        return f"error[{self.stable_code}]: {self.message}\n{self.frame()}"

    def frame(self) -> str:
        """The place, the source line and the caret, without the message."""
        line, column = self.position
        # A tab before the caret would shift it by an unknowable width.
        text = self.source.line(line).replace("\t", " ")
        text, before = _excerpt(text, column - 1)
        width = max(1, min(self.span.end - self.span.start, len(text) - before))
        number = str(line)
        gutter = " " * len(number)
        caret = " " * before + "^" * width
        hint = f" {self.hint}" if self.hint else ""
        return (
            f"{gutter}--> {self.source.name}:{line}:{column}\n"
            f"{gutter} |\n"
            f"{number} | {text}\n"
            f"{gutter} | {caret}{hint}"
        )

    def to_json(self) -> dict[str, Any]:
        """The diagnostic as plain data, offsets and all."""
        line, column = self.position
        end = self.source.position(self.span.end)
        return {
            "path": self.source.name,
            "line": line,
            "column": column,
            "end_line": end.line,
            "end_column": end.column,
            "code": self.stable_code,
            "message": self.summary,
            "hint": self.hint,
        }


def _excerpt(text: str, before: int) -> tuple[str, int]:
    """A line as it is shown, cut around the mistake if it is long, and what stands before it."""
    if len(text) <= MAX_LINE:
        return text, before
    start = max(0, min(before - MAX_LINE // 2, len(text) - MAX_LINE))
    shown = text[start : start + MAX_LINE]
    if start > 0:
        shown = f"…{shown[1:]}"
    if start + MAX_LINE < len(text):
        shown = f"{shown[:-1]}…"
    return shown, before - start


def render_all(diagnostics: Iterable[Diagnostic]) -> str:
    """Every diagnostic, a blank line between two."""
    return "\n\n".join(diagnostic.render() for diagnostic in diagnostics)


def as_error(diagnostics: Sequence[Diagnostic]) -> LanguageError:
    """One error that carries all diagnostics; the first decides class and code."""
    first = diagnostics[0]
    return _ERROR_OF_PHASE[first.phase](
        first.summary,
        code=first.stable_code,
        report=render_all(diagnostics),
        details={"diagnostics": [diagnostic.to_json() for diagnostic in diagnostics]},
    )


class Reporter:
    """Collects the diagnostics of one source, in the order they were found."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._found: list[Diagnostic] = []
        self._seen: set[tuple[Span, str]] = set()

    def report(
        self,
        span: Span,
        message: str,
        *,
        phase: Phase,
        code: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Add a diagnostic unless the same one stands already."""
        if (span, message) in self._seen or self.full:
            return
        self._seen.add((span, message))
        self._found.append(Diagnostic(self.source, span, phase, message, code, hint))

    @property
    def full(self) -> bool:
        """Whether the text has used up its share of messages."""
        return len(self._found) >= MAX_DIAGNOSTICS

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What was found, by place."""
        return tuple(sorted(self._found, key=lambda found: found.span))

    def __bool__(self) -> bool:
        return bool(self._found)

    def raise_if_any(self) -> None:
        """Raise one error for all that was found; does nothing for a clean text."""
        if self._found:
            raise as_error(self.diagnostics)


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name a person most likely meant, if one is close enough."""
    # Imported here: only a text with a mistake pays for it.
    from difflib import get_close_matches

    by_folded = {candidate.casefold(): candidate for candidate in sorted(known)}
    # The comparison is quadratic in the length of a name and linear in their number.
    if len(name) > MAX_GUESSED_LENGTH or len(by_folded) > MAX_GUESSES:
        return None
    close = get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str], *, prefix: str = "") -> str | None:
    """A hint that names the nearest known name, or None when nothing is near."""
    nearest = nearest_name(name, known)
    return f"did you mean `{prefix}{nearest}`?" if nearest is not None else None


def name_hint(name: str, known: Iterable[str], *, prefix: str = "") -> str | None:
    """The nearest known name; failing that all of them, when they are few."""
    names = sorted(known)
    if not names:
        return None
    if len(names) <= MAX_LISTED and nearest_name(name, names) is None:
        return f"known here: {', '.join(f'`{prefix}{known_name}`' for known_name in names)}"
    return did_you_mean(name, names, prefix=prefix)
