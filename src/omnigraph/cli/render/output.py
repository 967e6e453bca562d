"""Where the command line writes: results on stdout, everything else on stderr.

Owns the two streams and the decision to use colour. Must never
import a renderer at module level: most runs print plain text.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TextIO

import click

from omnigraph.errors import OmniGraphError

if TYPE_CHECKING:
    from omnigraph.manifest.entries import Commit
    from omnigraph.wire.body import Body

Severity = Literal["error", "warning", "note"]

DONE_BEFORE = "this run was done before: nothing was changed, and this is what it did then"
"""What is said when a run id is used again."""

_COLOURS: dict[Severity, str] = {"error": "red", "warning": "yellow", "note": "cyan"}


class OutputLost(Exception):
    """A command made a commit, and could not tell so on stdout."""

    def __init__(self, commit_id: str, reason: Exception) -> None:
        super().__init__(
            f"committed as {commit_id}, but the result could not be written ({reason}): "
            "do not run it again"
        )


@dataclass
class _Output:
    """What became of stdout in one command line."""

    has_begun: bool = False


_output = _Output()


def begin_output() -> None:
    """A command line begins, which has printed nothing yet."""
    _output.has_begun = False


def write_failure(error: BaseException, message: str) -> None:
    """Print an error for programs that read the result.

    Nothing is printed behind what has been printed: half a result is none already.
    """
    if _output.has_begun:
        return
    from omnigraph.wire.errors import ErrorBody

    if isinstance(error, OmniGraphError):
        body = ErrorBody.of(error)
    else:
        is_asked_wrong = isinstance(error, click.ClickException)
        body = ErrorBody(message, "bad_request" if is_asked_wrong else "internal")
    with suppress(OSError):  # the exit code and stderr say it as well
        write_json(body)


@contextmanager
def result_of(commit_id: str | None) -> Iterator[None]:
    """Within the block, write the result of a command that made this commit, if it made one.

    The commit is not undone by an output that cannot be written: then it is OutputLost, and
    without a commit the error that it is.
    """
    try:
        yield
    except (OSError, UnicodeError) as error:
        if commit_id is None:
            raise
        raise OutputLost(commit_id, error) from error


def author_lines(actor: str | None, commit: Commit | None) -> Iterator[str]:
    """Who made a commit, if anybody is known and if there is one."""
    if actor is not None:
        yield f"actor_id: {actor}"
    if commit is not None:
        yield f"commit: {commit.id}"


def write_text(text: str) -> None:
    """Print a result for people."""
    _require_stdout()
    click.echo(text, color=use_colour(sys.stdout))


def write_data(text: str) -> None:
    """Print a result for programs, every character as it is."""
    _require_stdout()
    # Of a text, click takes away what a terminal would obey.
    click.echo(text.encode())


def write_piece(piece: str | bytes) -> None:
    """Print a part of a result as it is."""
    _require_stdout()
    click.echo(piece, nl=False, color=False)


def write_json(body: Body) -> None:
    """Print a result for programs: two-space indented JSON."""
    from omnigraph.wire.body import pretty

    _require_stdout()
    click.echo(pretty(body), color=False)


def diagnose(severity: Severity, message: str) -> None:
    """Tell the user something on stderr, marked with how serious it is."""
    label = click.style(f"{severity}:", fg=_COLOURS[severity], bold=True)
    click.echo(f"{label} {message}", err=True, color=use_colour(sys.stderr))


def write_note(text: str) -> None:
    """Print plain text on stderr."""
    click.echo(text, err=True, color=use_colour(sys.stderr))


def use_colour(stream: TextIO | None) -> bool:
    """Colour is for terminals, unless NO_COLOR is set to anything."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def is_terminal(stream: TextIO | None) -> bool:
    """Whether somebody looks; a process may have been started without a stream."""
    return stream is not None and stream.isatty()


def abandon_stdout() -> None:
    """Give up what is not written yet: the end of the process would try, and fail, once more."""
    with suppress(OSError, AttributeError):
        stdout = sys.stdout.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stdout)
        os.close(nowhere)


def _require_stdout() -> None:
    """Python has no stdout at all in a process that was started with a closed one."""
    _output.has_begun = True
    if sys.stdout is None:
        raise OSError(errno.EBADF, "stdout is closed")
