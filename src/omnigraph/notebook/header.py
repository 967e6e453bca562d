"""The options of a magic: what stands before the query on its first line.

Owns their names and how values are written: JSON where it is some, text otherwise, and `{…}` an
expression of the notebook. Evaluates nothing.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from typing import Any

from omnigraph.errors import BadRequest
from omnigraph.lang.diagnostics import did_you_mean

OPTIONS = {
    "--graph": "the variable that holds the graph",
    "--branch": "the branch to ask or to change",
    "--snapshot": "a commit to ask instead of a branch",
    "--param": "a parameter, as name=value",
    "--params": "all parameters, as an expression in braces",
    "--name": "which of several queries",
    "--out": "the variable that gets the result",
    "--message": "what to say about the commit of a mutation",
}
FLAGS = {"--explain": "show how the query would be run"}
SHORT = {
    "-g": "--graph",
    "-b": "--branch",
    "-s": "--snapshot",
    "-p": "--param",
    "-n": "--name",
    "-o": "--out",
    "-m": "--message",
}
_WORD = re.compile(r"""\s*((?:\{[^}]*\}|"[^"]*"|'[^']*'|[^\s"'{])+)""")
_IS_OPTION = re.compile(r"\s*--?[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Expression:
    """Python of the notebook, to be evaluated there."""

    text: str


@dataclass
class Header:
    """What the first line says; ``rest`` is what follows the options."""

    values: dict[str, str] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    all_params: Expression | None = None
    is_explaining: bool = False
    rest: str = ""

    def value(self, option: str) -> str | None:
        """What an option says, by its long name."""
        return self.values.get(option)


def read_header(line: str) -> Header:
    """The options that a line begins with."""
    found = Header()
    at = 0
    while _IS_OPTION.match(line, at):
        option, at = _word(line, at)
        name, equals, given = option.partition("=")
        name = SHORT.get(name, name)
        if name in FLAGS and not equals:
            found.is_explaining = True
            continue
        if name not in OPTIONS:
            hint = did_you_mean(name, [*OPTIONS, *FLAGS]) or f"there are {', '.join(OPTIONS)}"
            raise BadRequest(f"%gq has no option {name}: {hint}")
        if not equals:
            given, at = _word(line, at)
        _note(found, name, given)
    found.rest = line[at:].strip()
    return found


def _word(line: str, at: int) -> tuple[str, int]:
    found = _WORD.match(line, at)
    if found is None:
        raise BadRequest(f"a value is missing, or its quote is not closed: {line.strip()}")
    return found.group(1), found.end()


def _note(found: Header, name: str, given: str) -> None:
    if name == "--params":
        if not _is_expression(given):
            raise BadRequest(f"--params takes an expression in braces, as {{values}}: not {given}")
        found.all_params = Expression(given[1:-1])
    elif name == "--param":
        given = _bare(given) if given[0] in "\"'" else given
        param, equals, value = given.partition("=")
        if not equals or not param.removeprefix("$").isidentifier():
            raise BadRequest(f"a parameter is written name=value: not {given}")
        found.params[param.removeprefix("$")] = _value(value)
    else:
        found.values[name] = _bare(given)


def _is_expression(text: str) -> bool:
    return text.startswith("{") and text.endswith("}")


def _value(text: str) -> Any:
    if _is_expression(text):
        return Expression(text[1:-1])
    bare = _bare(text)
    try:
        return json.loads(bare)
    except ValueError:
        return bare


def _bare(text: str) -> str:
    """A word without its quotes."""
    return "".join(shlex.split(text)) if text[:1] in ("'", '"') else text
