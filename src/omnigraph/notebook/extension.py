"""The extension of IPython: `%gq`, `%%gq` and `%gq_open`, and completion in them.

Owns what IPython is told, and taking it back. The only module that knows IPython, which has
loaded it.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any, NoReturn

from IPython.core.completer import (
    CompletionContext,
    SimpleCompletion,
    SimpleMatcherResult,
    context_matcher,
)
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import no_var_expand

from omnigraph.errors import BadRequest
from omnigraph.notebook.cells import Cells
from omnigraph.notebook.completion import CellCompleter

KINDS = {"gq": "line_cell", "gq_open": "line"}


class Extension:
    """What one IPython was told."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.cells = Cells(shell)
        self.completer = CellCompleter(self.cells)

    def load(self) -> None:
        """Make the magics and completion known."""
        for name, kind in KINDS.items():
            self.shell.register_magic_function(getattr(self, name), kind, name)
        completer = self.shell.Completer
        if completer is not None:
            completer.custom_matchers.append(self.matches)
        self.shell.events.register("post_run_cell", self.forget)

    def unload(self) -> None:
        """Take everything back."""
        for name in KINDS:
            for magics in self.shell.magics_manager.magics.values():
                magics.pop(name, None)
        completer = self.shell.Completer
        if completer is not None:
            completer.custom_matchers.remove(self.matches)
        self.shell.events.unregister("post_run_cell", self.forget)

    # -- magics ----------------------------------------------------------------------

    # Braces and dollars are those of the query.
    @no_var_expand
    def gq(self, line: str, cell: str | None = None) -> Any:
        """Run a query or a mutation, and show its result.

        `%gq [options] match { … } return { … }` on one line, or `%%gq [options]` and the query in
        the lines below. `--graph NAME` is the variable of a graph; without it the graph of
        `%gq_open` is meant, or the only one there is. `--branch B`, `--snapshot C`,
        `-p name=value` (JSON, text or `{expression}`), `--params {mapping}`, `--name QUERY`,
        `--out VARIABLE`, `--message TEXT` and `--explain` are as in `omnigraph query`.
        """
        return self.cells.run(line, cell)

    def gq_open(self, line: str) -> Any:
        """Open the graph that `%gq` is about: `%gq_open LOCATION [--branch B]`.

        `--graph ID` names a graph of a server, whose token is that of the environment; `--actor`
        and `--read-only` are for one in storage.
        """
        from shlex import split

        given = _OPENING.parse_args(split(line))
        return self.cells.open(
            given.location,
            branch=given.branch,
            graph=given.graph,
            actor=given.actor,
            read_only=given.read_only,
        )

    # -- completion ------------------------------------------------------------------

    @context_matcher(identifier="omnigraph", priority=1_000)  # type: ignore[untyped-decorator]
    def matches(self, context: CompletionContext) -> SimpleMatcherResult:
        """What Tab offers."""
        found = self.completer.offered(
            context.full_text, context.cursor_line, context.cursor_position
        )
        if found is None:
            return {"completions": []}
        return {
            "completions": [SimpleCompletion(one.word, type=one.sort) for one in found.words],
            "matched_fragment": found.written,
            "suppress": True,
        }

    def forget(self, *_: object) -> None:
        """A cell was run."""
        self.completer.forget()


class _Options(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadRequest(f"%gq_open: {message}")


_OPENING = _Options(prog="%gq_open", add_help=False, allow_abbrev=False)
_OPENING.add_argument("location")
_OPENING.add_argument("-b", "--branch", default="main")
_OPENING.add_argument("-g", "--graph")
_OPENING.add_argument("--actor")
_OPENING.add_argument("--read-only", action="store_true")

_loaded: dict[int, Extension] = {}


def load(shell: InteractiveShell) -> None:
    """Load the extension, once for each IPython."""
    if id(shell) not in _loaded:
        _loaded[id(shell)] = Extension(shell)
        _loaded[id(shell)].load()


def unload(shell: InteractiveShell) -> None:
    """Take back what was loaded."""
    found = _loaded.pop(id(shell), None)
    if found is not None:
        found.unload()
