"""The commands of the shell itself: a dot, a word, and what it is about.

Owns their list, help and arguments. What they show is the graph's, as the verbs show it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from omnigraph.cli.options.query_source import read_source
from omnigraph.cli.render.formats import FORMATS
from omnigraph.cli.render.output import write_note
from omnigraph.cli.shell.output import save_result, show_text
from omnigraph.cli.shell.session import ShellSession
from omnigraph.cli.verbs.history.diff import write_diff
from omnigraph.cli.verbs.history.log import history_of, listed
from omnigraph.errors import BadRequest
from omnigraph.lang.diagnostics import name_hint


class Leave(Exception):
    """The shell is to end."""


class Shell(NamedTuple):
    """What a command works on: the session, and the way to run further statements."""

    session: ShellSession
    run_text: Callable[[str], None]


class Command(NamedTuple):
    """One command: what it takes, what it does in a line, and how."""

    takes: str
    help: str
    run: Callable[[Shell, str], None]


def run_command(shell: Shell, text: str) -> None:
    """Run a line that begins with a dot."""
    word, *rest = text.strip().rstrip(";").split(None, 1)
    command = COMMANDS.get(word)
    if command is None:
        hint = name_hint(word, COMMANDS) or "see .help"
        raise BadRequest(f"there is no command {word!r}: {hint}")
    command.run(shell, rest[0].strip() if rest else "")


def _words(command: str, text: str, count: int) -> list[str]:
    """Exactly so many words, which may be quoted."""
    try:
        found = shlex.split(text)
    except ValueError as error:
        raise BadRequest(f"{command}: {error}") from None
    if len(found) != count:
        raise BadRequest(f"it is written `{command} {COMMANDS[command].takes}`".replace(" `", "`"))
    return found


def _help(_: Shell, __: str) -> None:
    width = max(len(f"{word} {command.takes}") for word, command in COMMANDS.items())
    lines = [
        f"{f'{word} {command.takes}':{width}}  {command.help}" for word, command in COMMANDS.items()
    ]
    show_text("\n".join([_BEGINNING, "", *lines]))


_BEGINNING = """\
A query or a mutation is sent by Enter once it is whole, by a blank line, or by `;`.
Tab completes, Alt-Enter makes a new line, Ctrl-C stops a query, Ctrl-D leaves."""


def _schema(shell: Shell, _: str) -> None:
    show_text(shell.session.schema.removesuffix("\n"))


def _branches(shell: Shell, _: str) -> None:
    names, current = shell.session.graph.branches.list(), shell.session.branch
    show_text("\n".join(f"{'*' if name == current else ' '} {name}" for name in names))


def _switch(shell: Shell, text: str) -> None:
    (branch,) = _words(".switch", text, 1)
    shell.session.switch(branch)


def _log(shell: Shell, _: str) -> None:
    history = history_of(shell.session.graph, shell.session.branch, {})
    show_text("\n".join(listed(commit, history) for commit in history.commits))


def _diff(shell: Shell, text: str) -> None:
    before, after = _words(".diff", text, 2)
    write_diff(shell.session.graph.diff(before, after), stat=False)


def _explain(shell: Shell, text: str) -> None:
    if not text:
        raise BadRequest("explain what? .explain QUERY")
    show_text(shell.session.explain(text))


def _format(shell: Shell, text: str) -> None:
    (name,) = _words(".format", text, 1)
    if name not in FORMATS:
        hint = name_hint(name, FORMATS) or f"there are {', '.join(FORMATS)}"
        raise BadRequest(f"there is no format {name!r}: {hint}")
    shell.session.format = name


def _timing(shell: Shell, text: str) -> None:
    (word,) = _words(".timing", text, 1)
    if word not in ("on", "off"):
        raise BadRequest(f".timing is on or off, not {word!r}")
    shell.session.has_timing = word == "on"


def _read(shell: Shell, text: str) -> None:
    (name,) = _words(".read", text, 1)
    shell.run_text(read_source(Path(name).expanduser()).text)


def _save(shell: Shell, text: str) -> None:
    (name,) = _words(".save", text, 1)
    result = shell.session.result
    if result is None:
        raise BadRequest("there is nothing to save: no query has returned anything yet")
    save_result(result, Path(name).expanduser())
    write_note(f"wrote {name}")


def _quit(_: Shell, __: str) -> None:
    raise Leave


COMMANDS: Mapping[str, Command] = {
    ".help": Command("", "what there is", _help),
    ".schema": Command("", "the schema of the branch", _schema),
    ".branches": Command("", "the branches", _branches),
    ".switch": Command("B", "go on with another branch", _switch),
    ".log": Command("", "the commits of the branch", _log),
    ".diff": Command("A B", "what is different between two branches or commits", _diff),
    ".explain": Command("QUERY", "how a query would be run", _explain),
    ".format": Command("|".join(FORMATS), "how rows are printed", _format),
    ".timing": Command("on|off", "say how long each statement took", _timing),
    ".read": Command("FILE", "run the statements of a file", _read),
    ".save": Command("FILE", "write the last result: .csv, .jsonl, .json or .parquet", _save),
    ".quit": Command("", "leave", _quit),
}
