"""Where a statement ends: the text of a terminal, a pipe or a file cut into what is run at once.

Owns that decision. Runs nothing, and leaves what does not parse to the language to refuse.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from omnigraph.lang.query.terms import INSERTS
from omnigraph.lang.query.unnamed import BODIES
from omnigraph.lang.source import Source
from omnigraph.lang.tokens import Kind, Token, scan

EXPLAIN = ".explain"
_OPENS, _CLOSES = "{[(", "}])"
_UNTIL_WHERE = frozenset({"update", "delete"})
_GOES_ON = frozenset({"where", "and", "or", "not", "in", "is", "=", "<", ">", "<=", ">=", "!="})


def is_command(text: str) -> bool:
    """Whether it is for the shell itself."""
    return text.lstrip().startswith(".")


def is_whole(text: str) -> bool:
    """Whether Enter sends a text: it lacks nothing, or the person has said that it is all."""
    if not text.strip():
        return True
    if is_command(text):
        name, _, query = text.strip().partition(" ")
        return name != EXPLAIN or not query.strip() or is_whole(query)
    tokens, depths = _read(text)
    if not tokens:
        return True
    if depths[-1] > 0 or _is_open(tokens[-1]):
        return False
    lines = text.split("\n")
    is_said = tokens[-1].text == ";" or (len(lines) > 1 and not lines[-1].strip())
    return is_said or _lacks_nothing(tokens, depths)


@dataclass
class StatementReader:
    """Lines on their way to statements.

    One ends with `;`, with a blank line, or where the next begins.
    """

    _lines: list[str] = field(default_factory=list)

    def feed(self, line: str) -> Iterator[str]:
        """What is whole once a line is read."""
        line = line.rstrip("\r\n")
        tokens, depths = _read(self._text)
        is_outside = not tokens or (depths[-1] <= 0 and not _is_open(tokens[-1]))
        if is_outside and (not line.strip() or _begins_another(line, tokens, depths)):
            yield from self.end()
        if is_outside and is_command(line) and not line.lstrip().startswith(EXPLAIN):
            yield line.strip()
            return
        self._lines.append(line)
        if ";" in line:
            *whole, rest = _cut(self._text)
            self._lines = [rest] if rest.strip() else []
            yield from filter(None, map(str.strip, whole))

    def end(self) -> Iterator[str]:
        """What is left when no line follows."""
        text, self._lines = self._text.strip(), []
        if is_command(text) or _read(text)[0]:
            yield text

    @property
    def _text(self) -> str:
        return "\n".join(self._lines)


def statements_of(text: str) -> Iterator[str]:
    """The statements of a text."""
    reader = StatementReader()
    for line in text.splitlines():
        yield from reader.feed(line)
    yield from reader.end()


# -- tokens ------------------------------------------------------------------------------


def _read(text: str) -> tuple[list[Token], list[int]]:
    """The tokens, and how many braces are open behind each of them."""
    tokens = [token for token in scan(Source(text, "<shell>")) if token.kind is not Kind.END]
    depths, depth = [], 0
    for token in tokens:
        if token.kind is Kind.PUNCT:
            depth += (token.text in _OPENS) - (token.text in _CLOSES)
        depths.append(depth)
    return tokens, depths


def _is_open(token: Token) -> bool:
    """Whether it is a string or a comment that goes on."""
    return token.kind is Kind.ERROR and token.text.startswith(('"', "/*"))


def _outside(tokens: Sequence[Token], depths: Sequence[int]) -> list[str]:
    """The words that stand in no braces."""
    pairs = zip(tokens, depths, strict=True)
    return [token.text for token, depth in pairs if depth <= 0 and token.kind is Kind.IDENT]


def _lacks_nothing(tokens: Sequence[Token], depths: Sequence[int]) -> bool:
    first, last = tokens[0].text, tokens[-1].text
    words = _outside(tokens, depths)
    if first in _UNTIL_WHERE:
        return "where" in words and last not in _GOES_ON
    if first == "match":
        return last == "}" and not {"return", *INSERTS, *_UNTIL_WHERE}.isdisjoint(words)
    if first == "query" or first in BODIES:
        return last == "}"
    return True


def _begins_another(line: str, tokens: Sequence[Token], depths: Sequence[int]) -> bool:
    """Whether a line outside of braces is not the next one of what is read already."""
    first = next(scan(Source(line, "<shell>"))).text
    if is_command(line) or first == "query":
        return True
    words = _outside(tokens, depths)
    return first == "match" and "return" in words and words[-1] not in ("union", "all")


def _cut(text: str) -> list[str]:
    """The text between those `;` that stand in no braces."""
    parts, begin = [], 0
    tokens, depths = _read(text)
    for token, depth in zip(tokens, depths, strict=True):
        if token.text == ";" and depth <= 0:
            parts.append(text[begin : token.start])
            begin = token.end
    return [*parts, text[begin:]]
