"""The loops of the shell: statements as they come, and a mistake that ends none of them.

Owns what is said of errors. The terminal is prompt.py.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from omnigraph.cli.render.output import diagnose, write_note
from omnigraph.cli.render.unforeseen import unforeseen
from omnigraph.cli.shell.commands import Leave, Shell, run_command
from omnigraph.cli.shell.session import ShellSession
from omnigraph.cli.shell.statements import StatementReader, is_command, statements_of
from omnigraph.errors import BadRequest, LanguageError, OmniGraphError, SchemaChangeRefused

DEEPEST = 16
"""So many files may read each other."""


class Runner:
    """Runs statements one after the other, and knows whether all of them went well."""

    def __init__(self, session: ShellSession) -> None:
        self.session = session
        self.failed = 0
        self._shell = Shell(session, self._run_text)
        self._depth = 0

    def run(self, statement: str) -> None:
        """Run one; an error is shown, and counted."""
        try:
            if is_command(statement):
                run_command(self._shell, statement)
            else:
                self.session.run(statement)
        except (Leave, BrokenPipeError):
            raise
        except (LanguageError, SchemaChangeRefused) as error:
            self._fail()
            write_note(error.report)
        except (OmniGraphError, OSError) as error:
            self._fail()
            diagnose("error", str(error))
        except click.ClickException as error:
            self._fail()
            diagnose("error", error.format_message())
        except Exception as error:  # noqa: BLE001 - nothing that a statement does ends the shell
            self._fail()
            diagnose("error", unforeseen(error))

    def _fail(self) -> None:
        self.failed += 1

    def _run_text(self, text: str) -> None:
        if self._depth >= DEEPEST:
            raise BadRequest(f"files read each other {DEEPEST} deep: one of them reads itself")
        self._depth += 1
        try:
            for statement in statements_of(text):
                self.run(statement)
                if self.session.was_interrupted:
                    return
        finally:
            self._depth -= 1


def run_lines(session: ShellSession, lines: Iterable[str]) -> int:
    """Run what a pipe says; the exit code says whether something failed."""
    runner = Runner(session)
    try:
        for statement in _statements(lines):
            runner.run(statement)
            if session.was_interrupted:
                raise KeyboardInterrupt
    except Leave:
        pass
    except UnicodeDecodeError as error:
        raise BadRequest(f"what was piped in is not UTF-8 text (byte {error.start})") from error
    return 1 if runner.failed else 0


def _statements(lines: Iterable[str]) -> Iterator[str]:
    reader = StatementReader()
    for line in lines:
        yield from reader.feed(line)
    yield from reader.end()


def run_terminal(session: ShellSession, history: Path) -> int:
    """Ask somebody for statements until they leave."""
    from omnigraph.cli.shell.prompt import Prompt

    runner, prompt = Runner(session), Prompt(session, history)
    write_note("a query or a mutation, or .help; Ctrl-D leaves")
    while True:
        try:
            for statement in statements_of(prompt.ask()):
                runner.run(statement)
                if session.was_interrupted:
                    break
        except KeyboardInterrupt:
            if sys.stderr is not None:
                write_note("cancelled")
        except (EOFError, Leave):
            return 0
