"""The patterns of `@check`: regular expressions as RE2 reads them, which never backtracks.

Owns what is no such pattern, and the name and place of what RE2 leaves out on purpose. Matches
nothing: the engine itself has the last word, on what only it can know (its sizes, its tables of
Unicode).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn
from unicodedata import category

MAX_PATTERN = 10_000
"""How many characters a pattern may have."""
MAX_REPEAT = 1000
"""The largest count of `{n,m}`."""
ENGINE = "RE2, the engine of `@check`, has none"

_REPEAT = re.compile(r"\{(0|[1-9][0-9]{0,8})(?:(,)(0|[1-9][0-9]{0,8})?)?\}")
_FLAGS = re.compile(r"\(\?([imsU]*)(?:(-)([imsU]*))?([:)])")
_NAMED = re.compile(r"\(\?P?<([^>]*)>")
_POSIX = re.compile(r"\[:\^?([^\]:]*):\]")
_POSIX_NAMES = re.compile(
    "alnum|alpha|ascii|blank|cntrl|digit|graph|lower|print|punct|space|upper|word|xdigit"
)
_UNICODE = re.compile(r"\\[pP](?:\{[^}]+\}|[^{])", re.DOTALL)
_CODE = re.compile(r"\\(?:x\{([0-9A-Fa-f]+)\}|x[0-9A-Fa-f]{2}|[1-7][0-7]{1,2}|0[0-7]{0,2})")
_CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_CLASSES = "dDsSwW"
_WHOLE = "bBAzC"  # stand for themselves, outside of brackets
_NAME_CATEGORIES = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Mn", "Mc", "Nd", "Pc"})

_GROUPS = (
    ("(?=", "look-ahead `(?=…)`"),
    ("(?!", "look-ahead `(?!…)`"),
    ("(?<=", "look-behind `(?<=…)`"),
    ("(?<!", "look-behind `(?<!…)`"),
    ("(?>", "an atomic group `(?>…)`"),
    ("(?(", "a conditional `(?(…)…)`"),
    ("(?P=", "a backreference `(?P=…)`"),
    ("(?P>", "recursion `(?P>…)`"),
    ("(?R", "recursion `(?R)`"),
    ("(?&", "recursion `(?&…)`"),
    ("(?#", "a comment `(?#…)`"),
    ("(?|", "a branch reset `(?|…)`"),
    ("(?'", "a group `(?'…'…)`: write `(?P<name>…)`;"),
)
_ESCAPES = {
    "Z": "`\\Z`: write `\\z` or `$` for the end;",
    "G": "`\\G`, the end of the match before;",
    "K": "`\\K`, which moves the start of a match;",
    "R": "`\\R`: write `\\r?\\n`;",
    "X": "`\\X`, a whole grapheme;",
    "h": "`\\h`: write `[ \\t]`;",
    "N": "`\\N`: write `[^\\n]`;",
    "k": "a backreference `\\k`;",
    "g": "a backreference `\\g`;",
    "u": "`\\u`: write `\\x{…}`;",
}


@dataclass(frozen=True, slots=True)
class PatternMistake:
    """What is wrong with a pattern, and from which character to which."""

    message: str
    start: int
    end: int


class _Mistake(Exception):
    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.found = PatternMistake(message, start, end)


def pattern_mistake(pattern: str) -> PatternMistake | None:
    """The first thing that RE2 would not take, or None."""
    if len(pattern) > MAX_PATTERN:
        message = f"a pattern has at most {MAX_PATTERN:,} characters, this has {len(pattern):,}"
        return PatternMistake(message, 0, len(pattern))
    try:
        _Reader(pattern).read()
    except _Mistake as mistake:
        return mistake.found
    return None


class _Reader:
    """Reads a pattern once, from left to right."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0
        self.open: list[int] = []
        """Where groups began that are not closed."""
        self.repeatable = False
        """Whether something stands before that can be repeated."""
        self.repeated_from: int | None = None
        """Where a repetition began that has just ended."""

    def fail(self, message: str, start: int, end: int | None = None) -> NoReturn:
        raise _Mistake(message, start, len(self.text) if end is None else end)

    def read(self) -> None:
        while self.at < len(self.text):
            letter, repeated = self.text[self.at], self.repeated_from
            self.repeated_from = None
            if letter == "(":
                self._group()
            elif letter == ")":
                self._close()
            elif letter == "|":
                self._step(1, repeatable=False)
            elif letter in "*+?":
                self._repeat(self.at + 1, repeated)
            elif letter == "{" and (counts := _REPEAT.match(self.text, self.at)):
                self._counts(counts)
                self._repeat(counts.end(), repeated)
            elif letter == "[":
                self._brackets()
            elif letter == "\\":
                self._escape()
            else:
                self._step(1)
        if self.open:
            self.fail("this `(` is never closed", self.open[-1], self.open[-1] + 1)

    def _step(self, letters: int, *, repeatable: bool = True) -> None:
        self.at += letters
        self.repeatable = repeatable

    # -- groups ------------------------------------------------------------------------

    def _group(self) -> None:
        start, text = self.at, self.text
        if not text.startswith("(?", start):
            self._enter(1)
            return
        for opening, name in _GROUPS:
            if text.startswith(opening, start):
                self.fail(f"{name} is not possible: {ENGINE}", start, start + len(opening))
        named = _NAMED.match(text, start)
        if named is not None:
            name = named[1]
            if not name or any(category(letter) not in _NAME_CATEGORIES for letter in name):
                self.fail("the name of a group has letters, digits and `_`", start, named.end())
            self._enter(named.end() - start)
            return
        flags = _FLAGS.match(text, start)
        if flags is None or (flags[2] and not flags[3]):
            self.fail("`(?` begins no group here: its flags are i, m, s and U", start, start + 3)
        if flags[4] == ":":
            self._enter(flags.end() - start)
        else:
            self.at = flags.end()

    def _enter(self, letters: int) -> None:
        self.open.append(self.at)
        self._step(letters, repeatable=False)

    def _close(self) -> None:
        if not self.open:
            self.fail("this `)` closes nothing", self.at, self.at + 1)
        self.open.pop()
        self._step(1)

    # -- repetitions -------------------------------------------------------------------

    def _repeat(self, end: int, repeated: int | None) -> None:
        start = self.at
        if repeated is not None:
            if self.text[start] == "+":
                name = f"a possessive repetition `{self.text[repeated:end]}`"
                self.fail(f"{name} is not possible: {ENGINE}", repeated, end)
            self.fail("a repetition is not repeated: put it into a group first", start, end)
        if not self.repeatable:
            self.fail(f"nothing stands before `{self.text[start:end]}` to repeat", start, end)
        self.at = end + self.text.startswith("?", end)
        self.repeated_from = start

    def _counts(self, found: re.Match[str]) -> None:
        least = int(found[1])
        most = int(found[3]) if found[3] else least
        if least > most or max(least, most) > MAX_REPEAT:
            message = f"a count runs from small to large, up to {MAX_REPEAT}"
            self.fail(message, found.start(), found.end())

    # -- brackets ----------------------------------------------------------------------

    def _brackets(self) -> None:
        start, text = self.at, self.text
        self.at += 2 if text.startswith("[^", start) else 1
        first = True
        while first or not text.startswith("]", self.at):
            if self.at >= len(text):
                self.fail("this `[` is never closed", start, start + 1)
            first = False
            if not self._class():
                self._range()
        self._step(1)

    def _class(self) -> bool:
        """Pass a whole class inside brackets, by its name or its letter, if one is here."""
        text, at = self.text, self.at
        if text.startswith("[:", at) and ":]" in text[at + 2 :]:
            found = _POSIX.match(text, at)
            if found is None or _POSIX_NAMES.fullmatch(found[1]) is None:
                self.fail("there is no such class of characters", at, text.index(":]", at + 2) + 2)
            self.at = found.end()
            return True
        if not text.startswith("\\", at) or at + 1 >= len(text):
            return False
        if text[at + 1] in _CLASSES:
            self.at += 2
            return True
        return self._unicode()

    def _range(self) -> None:
        start = self.at
        low = self._character()
        if self.text.startswith("-", self.at) and not self.text.startswith("-]", self.at):
            self.at += 1
            if self.at >= len(self.text):
                return
            high = self._character()
            if high < low:
                self.fail("this range runs backwards", start, self.at)

    def _character(self) -> int:
        letter = self.text[self.at]
        if letter == "\\":
            return self._coded()
        self.at += 1
        return ord(letter)

    # -- escapes -----------------------------------------------------------------------

    def _escape(self) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if following and following in _WHOLE + _CLASSES:
            self._step(2)
        elif following == "Q":
            end = self.text.find("\\E", self.at + 2)
            quoted = self.text[self.at + 2 : end if end >= 0 else None]
            self.at += 2 + len(quoted) + (2 if end >= 0 else 0)
            self.repeatable = self.repeatable or bool(quoted)
        elif self._unicode():
            self.repeatable = True
        else:
            self._coded()
            self.repeatable = True

    def _unicode(self) -> bool:
        if self.text[self.at + 1 : self.at + 2] not in ("p", "P"):
            return False
        found = _UNICODE.match(self.text, self.at)
        if found is None:
            self.fail("`\\p` needs a class of Unicode, such as `\\p{Greek}`", self.at, self.at + 2)
        self.at = found.end()
        return True

    def _coded(self) -> int:
        """Pass an escape that stands for one character, and say which."""
        start = self.at
        following = self.text[start + 1 : start + 2]
        if not following:
            self.fail("a pattern does not end with `\\`", start, start + 1)
        if following.isascii() and not following.isalnum():
            self.at += 2
            return ord(following)
        if following in _CONTROLS:
            self.at += 2
            return ord(_CONTROLS[following])
        code = _CODE.match(self.text, start)
        if code is None or (code[1] and int(code[1], 16) > 0x10FFFF):
            self._bad_escape(following)
        self.at = code.end()
        return _code_point(code)

    def _bad_escape(self, following: str) -> NoReturn:
        start, end = self.at, self.at + 2
        if following.isdigit():
            self.fail(f"a backreference `\\{following}` is not possible: {ENGINE}", start, end)
        if following in _ESCAPES:
            self.fail(f"{_ESCAPES[following]} {ENGINE}", start, end)
        self.fail(f"`\\{following}` is no escape of a pattern", start, end)


def _code_point(code: re.Match[str]) -> int:
    text = code[0][1:]
    if code[1]:
        return int(code[1], 16)
    return int(text[1:], 16) if text.startswith("x") else int(text, 8)
