"""Layout: items become lines, and every comment finds its place among them.

Owns indentation, line width, blank lines and where a comment goes. Never
knows a grammar: the formatters say what the items are and how they read.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from omnigraph.lang.source import NOWHERE, Source, Span
from omnigraph.lang.tokens import Comment, Kind, Token, tokenize

INDENT = "    "
WIDTH = 100

_CLOSER = {"{": "}", "(": ")", "[": "]"}
_LINE_END = re.compile(r"[\r\n]")
# The line end is atomic: backing into the middle of CR LF would find a blank line there.
_BLANK_LINE = re.compile(r"(?>\r\n|\r|\n)[ \t]*[\r\n]")


@dataclass(frozen=True, slots=True)
class Group:
    """Items between two brackets, one per line; ``region`` is the source between the brackets."""

    items: tuple[Item, ...]
    region: Span = NOWHERE
    separator: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """Something that starts a line of its own.

    ``flat`` is its text on one line. Where it has none, or where that is too
    long or would swallow a comment, ``parts`` are written instead: strings
    continue the line, a group breaks it. Comments in ``span`` but in no group
    go before the item.
    """

    span: Span
    flat: str | None
    parts: tuple[str | Group, ...] = ()

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups among the parts."""
        return tuple(part for part in self.parts if isinstance(part, Group))


class Page:
    """A text as layout sees it: comments, brackets and blank lines."""

    def __init__(self, source: Source) -> None:
        self.text = source.text
        self._tokens, self._comments = tokenize(source)
        self._token_starts = [token.start for token in self._tokens]
        self._comment_starts = [comment.start for comment in self._comments]
        self._partner = _partners(self._tokens)

    def comments(self, start: int, end: int) -> list[Comment]:
        """The comments that begin in a range."""
        starts = self._comment_starts
        return self._comments[bisect_left(starts, start) : bisect_left(starts, end)]

    def commented(self, region: Span) -> bool:
        """Whether a comment begins in the region."""
        starts = self._comment_starts
        return bisect_left(starts, region.start) < bisect_left(starts, region.end)

    def regions(self, span: Span, opener: str, count: int) -> list[Span]:
        """What the first so many outermost brackets of a kind enclose inside a span.

        Filled up with NOWHERE: syntax that was built, not parsed, has no brackets anywhere.
        """
        found: list[Span] = []
        index = bisect_left(self._token_starts, span.start)
        while len(found) < count and index < len(self._tokens):
            token = self._tokens[index]
            if token.kind is Kind.END or token.start >= span.end:
                break
            partner = self._partner.get(index)
            if partner is not None:
                if token.text == opener:
                    found.append(Span(token.end, self._tokens[partner].start))
                index = partner
            index += 1
        return found + [NOWHERE] * (count - len(found))

    def trimmed(self, span: Span) -> Span:
        """The span from the first token that begins in it to the end of the last one."""
        first = bisect_left(self._token_starts, span.start)
        last = bisect_left(self._token_starts, span.end) - 1
        if first > last:
            return Span(span.start, span.start)
        return Span(self._tokens[first].start, self._tokens[last].end)

    def same_line(self, start: int, end: int) -> bool:
        """Whether no line ends between two offsets."""
        return _LINE_END.search(self.text, start, end) is None

    def has_blank_line(self, start: int, end: int) -> bool:
        """Whether an empty line stands between two offsets."""
        return _BLANK_LINE.search(self.text, start, end) is not None


def render(items: Sequence[Item], page: Page) -> str:
    """The whole text: top-level items with one blank line between two."""
    writer = _Writer(page)
    writer.write_file(tuple(items))
    return "".join(f"{line}\n" for line in writer.lines)


@dataclass(slots=True)
class _Writer:
    page: Page
    lines: list[str] = field(default_factory=list)

    def write_file(self, items: tuple[Item, ...]) -> None:
        whole = Span(0, len(self.page.text))
        self._write_items(Group(items, whole), "", in_brackets=False)

    def _write_items(self, group: Group, indent: str, *, in_brackets: bool) -> None:
        """Write the items of a group and the comments around them."""
        end = group.region.start
        fresh = True
        for number, item in enumerate(group.items):
            start = item.span.start
            comments = self.page.comments(end, start)
            # Before a file's first item there is nothing that a comment could trail.
            trailing = (
                self._count_trailing(comments, end, start) if in_brackets or number > 0 else 0
            )
            end = self._trail(comments[:trailing], end)
            apart = not in_brackets and number > 0
            for comment in comments[trailing:]:
                self._separate(fresh=fresh, apart=apart, start=end, end=comment.start)
                self._write_comment(comment, indent)
                fresh, apart, end = False, False, comment.end
            self._separate(fresh=fresh, apart=apart, start=end, end=start)
            fresh = False
            last = number == len(group.items) - 1
            self._write_item(item, indent, "" if last else group.separator)
            end = item.span.end
        self._write_last_comments(group, end, indent, in_brackets=in_brackets)

    def _write_last_comments(
        self, group: Group, end: int, indent: str, *, in_brackets: bool
    ) -> None:
        """Write the comments between the last item and the closing bracket or end of text."""
        comments = self.page.comments(end, group.region.end)
        fresh = not group.items
        if group.items:
            trailing = self._count_trailing(comments, end, None)
        elif in_brackets:
            trailing = self._count_trailing(comments, end, group.region.end)
        else:
            trailing = 0
        end = self._trail(comments[:trailing], end)
        for comment in comments[trailing:]:
            self._separate(fresh=fresh, apart=False, start=end, end=comment.start)
            self._write_comment(comment, indent)
            fresh, end = False, comment.end

    def _write_item(self, item: Item, indent: str, suffix: str) -> None:
        for comment in self._own_comments(item):
            self._write_comment(comment, indent)
        if item.flat is not None:
            line = f"{indent}{item.flat}{suffix}"
            if not item.parts or (len(line) <= WIDTH and not self._commented(item)):
                self.lines.append(line)
                return
        line = indent
        for part in item.parts:
            if isinstance(part, str):
                line += part
                continue
            self.lines.append(line)
            self._write_items(part, indent + INDENT, in_brackets=True)
            line = indent
        self.lines.append(line + suffix)

    def _commented(self, item: Item) -> bool:
        return any(self.page.commented(group.region) for group in item.groups)

    def _own_comments(self, item: Item) -> list[Comment]:
        """The comments inside an item that are in none of its groups."""
        found: list[Comment] = []
        start = item.span.start
        for group in item.groups:
            found += self.page.comments(start, group.region.start)
            start = group.region.end
        return found + self.page.comments(start, item.span.end)

    def _count_trailing(self, comments: list[Comment], end: int, attractor: int | None) -> int:
        """How many of the comments belong to what ended before them.

        They begin on its line, unless they stand right before what comes next
        (at ``attractor``) on that line.
        """
        count = 0
        for comment in comments:
            if not self.page.same_line(end, comment.start):
                break
            end = comment.end
            count += 1
        if attractor is None or count < len(comments):
            return count
        while count > 0:
            comment = comments[count - 1]
            between = self.page.text[comment.end : attractor]
            if between.strip(" \t"):
                break
            attractor = comment.start
            count -= 1
        return count

    def _trail(self, comments: Sequence[Comment], end: int) -> int:
        """Append comments to the last line; returns where the last of them ended."""
        if not comments:
            return end
        self.lines[-1] = "  ".join([self.lines[-1], *map(_comment_text, comments)])
        return comments[-1].end

    def _separate(self, *, fresh: bool, apart: bool, start: int, end: int) -> None:
        if not fresh and (apart or self.page.has_blank_line(start, end)):
            self.lines.append("")

    def _write_comment(self, comment: Comment, indent: str) -> None:
        self.lines.append(f"{indent}{_comment_text(comment)}")


def _comment_text(comment: Comment) -> str:
    """The comment as written, but for line ends and blanks at the end of its lines."""
    text = comment.text.replace("\r\n", "\n").replace("\r", "\n")
    return "\n".join(line.rstrip(" \t") for line in text.split("\n"))


def _partners(tokens: Sequence[Token]) -> dict[int, int]:
    """The index of the closing bracket for the index of every opening one."""
    partner: dict[int, int] = {}
    waiting: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind is not Kind.PUNCT:
            continue
        if token.text in _CLOSER:
            waiting.append(index)
        elif waiting and token.text == _CLOSER[tokens[waiting[-1]].text]:
            partner[waiting.pop()] = index
    return partner
