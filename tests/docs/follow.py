"""Following a page to the letter: its files, its commands and its Python, in an empty directory.

Owns what a block means to somebody who tries a page out. A block with a title is a
file; the lines of a `console` block that begin with `$ ` are run, and print what
stands below them, where a line `…` stands for any lines; `pycon` blocks are doctests that share
their names, and `ipython` blocks cells of a notebook that has these names too.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from omnigraph.cli.main import main
from tests.docs.examples import Block, blocks_of, transcripts
from tests.ipython_shell import ipython_shell

HOME = "/home/ann"
_ID = re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_MOMENT = re.compile(r'(?<="created_at": )\d+')
_ANYTHING = "…"
_CELL = re.compile(r"In \[\d+\]: ?")
_GOES_ON = "   ...:"
_FAILED = re.compile(r"^(error[:\[]|ERROR )", re.MULTILINE)


class Follower:
    """Somebody who does what a page says, in the current directory.

    The ids on the page are not those of this run: each stands for one of them.
    """

    def __init__(self, page: Path, capsys: pytest.CaptureFixture[str] | None = None) -> None:
        self.page = page
        self.blocks = blocks_of(page.read_text(encoding="utf-8"), page.name)
        self.capsys = capsys
        self.home = str(Path.cwd())
        self.names: dict[str, Any] = {}
        self.ids: dict[str, str] = {}
        self.code = 0
        self.ran = 0

    def follow(self) -> None:
        """Every block, in order."""
        with ExitStack() as self.open:
            for block in self.blocks:
                self.do(block)

    def do(self, block: Block) -> None:
        """One block."""
        if block.title is not None:
            Path(block.title).write_text(block.text, encoding="utf-8")
        elif block.info == "console":
            for line, shown in transcripts(block):
                self._run(line.strip(), shown, block)
        elif block.info == "pycon":
            self.ran += 1
            self.python(block)
        elif block.info == "ipython":
            self._cells(block)

    def _run(self, line: str, shown: str, block: Block) -> None:
        self.ran += 1
        if line == "echo $?":
            assert shown == f"{self.code}\n", block.place
            return
        for written, real in self.ids.items():
            line = line.replace(written, real)
        program, *arguments = shlex.split(line)
        if program == "cd":
            os.chdir(*arguments)
            return
        assert program == "omnigraph", f"{block.place}: only omnigraph is run"
        target = None
        if arguments[-2:-1] == [">"]:
            *arguments, _, target = arguments
        self.code, out, err = self.execute(arguments)
        if target is not None:
            Path(target).write_text(out, encoding="utf-8")
            out = ""
        err, out = err.replace(self.home, HOME), out.replace(self.home, HOME)
        # A terminal shows them as they come, which nobody can tell afterwards.
        printed = out + err if _fits(out + err, shown) else err + out
        assert _fits(printed, shown), f"{block.place}: {line}\n{printed}"
        assert (self.code != 0) == bool(_FAILED.search(shown)), block.place
        if _ANYTHING in shown.splitlines():
            return
        for written, real in zip(_ID.findall(shown), _ID.findall(printed), strict=True):
            known = self.ids.setdefault(written, real)
            assert known == real, f"{block.place}: {written} stands for two ids"

    def execute(self, arguments: list[str]) -> tuple[int, str, str]:
        """The code of a command line, and what it prints to stdout and to stderr."""
        assert self.capsys is not None
        code = main(arguments)
        captured = self.capsys.readouterr()
        return code, captured.out, captured.err

    def python(self, block: Block) -> None:
        """A session of Python, which goes on from block to block."""
        assert self.capsys is not None
        runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
        test = doctest.DocTestParser().get_doctest(
            block.text, self.names, block.place, self.page.name, block.line
        )
        failed = runner.run(test, clear_globs=False).failed
        assert failed == 0, self.capsys.readouterr().out
        self.names |= test.globs

    def _cells(self, block: Block) -> None:
        assert self.capsys is not None
        self.ran += 1
        shell = self._shell
        shell.user_ns.update(self.names)
        for cell, shown in cells_of(block):
            shell.run_cell(cell, store_history=True)
            captured = self.capsys.readouterr()
            printed = (captured.out + captured.err).replace(str(Path.cwd()), HOME)
            assert _settled(_plain(printed)) == _settled(_plain(shown)), block.place

    @cached_property
    def _shell(self) -> Any:
        return self.open.enter_context(ipython_shell(Path(".ipython")))


def cells_of(block: Block) -> list[tuple[str, str]]:
    """The cells of a block, each with what it shows."""
    found: list[tuple[str, str]] = []
    for line in block.text.splitlines(keepends=True):
        begins = _CELL.match(line)
        if begins is not None:
            found.append((line[begins.end() :], ""))
        elif line.startswith(_GOES_ON):
            cell, shown = found.pop()
            found.append((cell + line.removeprefix(_GOES_ON).removeprefix(" "), shown))
        else:
            cell, shown = found.pop()
            found.append((cell, shown + line))
    return found


def _plain(text: str) -> str:
    """The text without what nobody sees at the ends of lines."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _fits(printed: str, shown: str) -> bool:
    """Whether something is what a page shows, but for ids and times, and what it leaves out."""
    lines = _settled(shown).splitlines(keepends=True)
    pattern = (r"(?:.*\n)*" if line.strip() == _ANYTHING else re.escape(line) for line in lines)
    return re.fullmatch("".join(pattern), _settled(printed)) is not None


def _settled(text: str) -> str:
    """The text with every id and every time alike."""
    return _MOMENT.sub("<time>", _TIME.sub("<time>", _ID.sub("<id>", text)))
