"""The page about graphs works to the letter, on the command line and in Python."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from omnigraph.cli.main import main
from tests.docs.examples import blocks_of, transcripts

PAGE = Path(__file__).parents[2] / "docs" / "user" / "graphs.md"
BLOCKS = blocks_of(PAGE.read_text(encoding="utf-8"), PAGE.name)
HOME = "/home/ann"


def settled(text: str) -> str:
    """The text with every commit id and every time alike."""
    text = re.sub(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b", "<commit>", text)
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<time>", text)


def test_the_page_does_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    runner = doctest.DocTestRunner(verbose=False)
    ran = 0
    for block in BLOCKS:
        if block.info == "pg":
            Path("film.pg").write_text(block.text, encoding="utf-8")
        elif block.info == "console":
            for line, shown in transcripts(block):
                program, *arguments = shlex.split(line)
                assert program == "omnigraph"
                assert main(arguments) == (1 if shown.startswith("error:") else 0)
                captured = capsys.readouterr()
                printed = (captured.err + captured.out).replace(str(tmp_path), HOME)
                assert settled(printed) == settled(shown), block.place
                ran += 1
        elif block.info == "pycon":
            test = doctest.DocTestParser().get_doctest(
                block.text, names, block.place, PAGE.name, block.line
            )
            assert runner.run(test, clear_globs=False).failed == 0, capsys.readouterr().out
            names |= test.globs
            ran += 1
    assert ran >= 10
