"""The terminal of the shell: prompt, colours, history, keys.

Owns what a person sees while typing. Runs nothing.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.filters import completion_is_selected
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer

from omnigraph.cli.render.output import diagnose, use_colour
from omnigraph.cli.shell.completion import ShellCompleter
from omnigraph.cli.shell.session import ShellSession
from omnigraph.cli.shell.statements import is_whole
from omnigraph.editors.pygments_lexers import GqLexer


class Prompt:
    """Asks for one statement after the other."""

    def __init__(self, session: ShellSession, history: Path) -> None:
        self._session = session
        self._completer = ShellCompleter(session)
        self._prompt: PromptSession[str] = PromptSession(
            multiline=True,
            history=_kept(history),
            completer=self._completer,
            complete_while_typing=False,
            lexer=PygmentsLexer(GqLexer) if use_colour(sys.stdout) else None,
            key_bindings=_keys(),
            prompt_continuation=_continued,
        )

    def ask(self) -> str:
        """What somebody wrote; Ctrl-C and Ctrl-D are KeyboardInterrupt and EOFError."""
        self._completer.forget()
        return self._prompt.prompt(f"{self._session.name}:{self._session.branch}> ")


def _continued(width: int, _: int, __: int) -> str:
    return f"{'...':>{max(width - 1, 3)}} "


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=~completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_whole(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline()

    @keys.add("enter", filter=completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.newline()

    return keys


def _kept(path: Path) -> History:
    """The history of earlier shells, which nobody else may read; without a place for it, none."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600))
        path.chmod(0o600)
    except OSError as error:
        diagnose("warning", f"no history is kept: {path}: {error.strerror}")
        return InMemoryHistory()
    return FileHistory(str(path))
