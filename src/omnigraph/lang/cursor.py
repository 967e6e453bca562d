"""A cursor over tokens: looking ahead, expecting, failing, and going on after a failure.

Owns the mechanics both parsers share, and the pause of Python's cycle collector while a large
tree grows: it has no cycles, but would be walked again and again. Never knows a grammar: which
token may follow is the parser's business.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import NamedTuple, NoReturn

from omnigraph.lang.diagnostics import Phase, Reporter, did_you_mean, nearest_name
from omnigraph.lang.source import Source, Span
from omnigraph.lang.tokens import Kind, Token, lexical_complaint, scan

MAX_NESTING = 64
"""How deep blocks and calls may nest; deeper text is refused before the stack is at risk."""

_BRACES = {"{": 1, "}": -1}
_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}

_NOUNS = {
    Kind.IDENT: "a name",
    Kind.TYPE: "a type name",
    Kind.VARIABLE: "a variable",
    Kind.INTEGER: "an integer",
    Kind.FLOAT: "a number",
    Kind.STRING: "a string",
}

LARGE_TEXT = 50_000
"""Below this many characters the collector hardly notices the tree."""

_lock = Lock()
_pauses = 0
_was_enabled = False


class SyntaxFailure(Exception):
    """The current construct cannot be parsed; its diagnostic is already reported."""


class NestingFailure(SyntaxFailure):
    """The text nests too deep: nothing after it is worth parsing."""


class Mark(NamedTuple):
    """A point of the text a parser may want to return to the level of."""

    consumed: int
    braces: int


class Cursor:
    """Walks the tokens of one text and reports to one reporter."""

    def __init__(
        self,
        source: Source,
        reporter: Reporter,
        teach: Callable[[Cursor], None] | None = None,
    ) -> None:
        self.reporter = reporter
        self._teach = teach
        self.index = 0
        """How many tokens have been consumed."""
        self.value_names: frozenset[str] = frozenset()
        """Variables that stand for values, for a grammar that has to tell them from others."""
        self._tokens = scan(source)
        self.token = next(self._tokens)
        self._ahead: deque[Token] = deque()
        self._previous_end = 0
        self._braces = 0
        self._depth = 0

    # -- looking ---------------------------------------------------------------

    def peek(self, ahead: int = 1) -> Token:
        """The token so many places after the current one; END past the end."""
        while len(self._ahead) < ahead:
            last = self._ahead[-1] if self._ahead else self.token
            self._ahead.append(last if last.kind is Kind.END else next(self._tokens))
        return self._ahead[ahead - 1]

    def at(self, text: str) -> bool:
        """Whether the current token is this word or punctuation."""
        token = self.token
        return token.text == text and token.kind is not Kind.STRING

    def at_end(self) -> bool:
        """Whether all tokens are used up."""
        return self.token.kind is Kind.END

    def previous_end(self) -> int:
        """Where the last consumed token ended."""
        return self._previous_end

    def span_from(self, start: int) -> Span:
        """From an offset to the end of the last consumed token."""
        return Span(start, max(start, self._previous_end))

    # -- consuming -------------------------------------------------------------

    def advance(self) -> Token:
        """Consume the current token and return it; END is never passed."""
        token = self.token
        if token.kind is not Kind.END:
            self.index += 1
            self._previous_end = token.end
            self.token = self._ahead.popleft() if self._ahead else next(self._tokens)
            if token.kind is Kind.PUNCT:
                self._braces += _BRACES.get(token.text, 0)
        return token

    def accept(self, text: str) -> bool:
        """Consume this word or punctuation if it is next."""
        if self.at(text):
            self.advance()
            return True
        return False

    def expect(self, text: str, *, instead: str | None = None) -> Token:
        """Consume exactly this word or punctuation, or fail."""
        if self.at(text):
            return self.advance()
        self.fail_expected(instead or f"`{text}`", known=(text,))

    def keyword(self, word: str) -> Token:
        """Consume this keyword; a near miss is reported and taken for it, so parsing goes on."""
        token = self.token
        if token.kind is Kind.IDENT and token.text != word and nearest_name(token.text, (word,)):
            self.report(
                token.span,
                f"expected `{word}`, found `{shorten(token.text)}`",
                hint=f"did you mean `{word}`?",
            )
            return self.advance()
        return self.expect(word)

    def expect_kind(self, kind: Kind, noun: str | None = None) -> Token:
        """Consume a token of this kind, or fail saying what belongs here."""
        if self.token.kind is kind:
            return self.advance()
        self.fail_expected(noun or _NOUNS[kind])

    def string(self, noun: str = "a string") -> str:
        """Consume a string literal and decode its escapes."""
        token = self.expect_kind(Kind.STRING, noun)
        return self.decode(token)

    def decode(self, token: Token) -> str:
        """The value of a string token; an unknown escape is reported where it stands."""
        body = token.text[1:-1]
        if "\\" not in body:
            return body
        parts: list[str] = []
        offset = 0
        while (slash := body.find("\\", offset)) >= 0:
            parts.append(body[offset:slash])
            escaped = body[slash + 1]
            decoded = _ESCAPES.get(escaped)
            if decoded is None:
                start = token.start + 1 + slash
                self.report(
                    Span(start, start + 2),
                    f"unsupported escape sequence: \\{shorten(escaped)}",
                    hint='only \\" \\\\ \\n \\r \\t are escapes',
                )
                decoded = escaped
            parts.append(decoded)
            offset = slash + 2
        parts.append(body[offset:])
        return "".join(parts)

    # -- failing ---------------------------------------------------------------

    def report(self, span: Span, message: str, *, hint: str | None = None) -> None:
        """Report a mistake that does not stop the parse."""
        self.reporter.report(span, message, phase=Phase.PARSE, hint=hint)

    def fail(self, span: Span, message: str, *, hint: str | None = None) -> NoReturn:
        """Report a mistake and give the current construct up."""
        self.report(span, message, hint=hint)
        raise SyntaxFailure

    def fail_expected(self, expected: str, *, known: Collection[str] = ()) -> NoReturn:
        """Fail because the current token is not what belongs here."""
        self.teach()
        token = self.token
        if token.kind is Kind.ERROR:
            self.fail(token.span, lexical_complaint(token))
        span = token.span if token.kind is not Kind.END else Span(token.start, token.start)
        found = "the end of the text" if token.kind is Kind.END else f"`{shorten(token.text)}`"
        hint = None
        if token.kind is Kind.IDENT and token.text not in known:
            hint = did_you_mean(token.text, known)
        self.fail(span, f"expected {expected}, found {found}", hint=hint)

    def teach(self) -> None:
        """Fail with a lesson if the current token is of a form that is known from elsewhere."""
        if self._teach is not None:
            self._teach(self)

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Count one level of nesting for the body of the with statement."""
        if self._depth >= MAX_NESTING:
            span = self.token.span
            self.report(span, f"this nests deeper than {MAX_NESTING} levels")
            raise NestingFailure
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    # -- going on --------------------------------------------------------------

    def mark(self) -> Mark:
        """Where a construct begins, for `skip_until` to come back to its level."""
        return Mark(self.index, self._braces)

    def skip_until(self, resumes: Callable[[], bool], *, since: Mark | None = None) -> None:
        """Skip to where parsing can resume, passing over whole `{…}` blocks on the way.

        ``since`` is the mark at which the failed construct began: blocks it opened
        and did not close are left first, and at least one token is passed. Stops
        before a `}` that closes the enclosing block.
        """
        level = self._braces if since is None else min(since.braces, self._braces)
        if since is not None and self.index == since.consumed and not self.at("}"):
            self.advance()
        while not self.at_end():
            if self._braces <= level and (self.at("}") or resumes()):
                return
            self.advance()

    def starts_line(self) -> bool:
        """Whether the current token is the first of its line."""
        between = self.reporter.source.text[self._previous_end : self.token.start]
        return self.index == 0 or "\n" in between or "\r" in between


def shorten(text: str) -> str:
    """A token's text as it may stand in a one-line message."""
    flat = text.replace("\n", " ").replace("\r", " ")
    return flat if len(flat) <= 30 else f"{flat[:27]}…"


@contextmanager
def collection_paused(size: int) -> Iterator[None]:
    """Pause the collector for the body if the text is large; pauses of threads may overlap."""
    if size < LARGE_TEXT:
        yield
        return
    _pause()
    try:
        yield
    finally:
        _resume()


def _pause() -> None:
    global _pauses, _was_enabled  # noqa: PLW0603 - the collector is global, and so is its pause
    with _lock:
        if _pauses == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _pauses += 1


def _resume() -> None:
    global _pauses  # noqa: PLW0603 - as above
    with _lock:
        _pauses -= 1
        if _pauses == 0 and _was_enabled:
            gc.enable()
