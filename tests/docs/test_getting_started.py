"""The first page a user follows works to the letter."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from omnigraph.cli.main import main
from tests.docs.examples import blocks_of, transcripts

PAGE = Path(__file__).parents[2] / "docs" / "user" / "getting-started.md"
BLOCKS = blocks_of(PAGE.read_text(encoding="utf-8"), PAGE.name)


def test_the_commands_print_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = [ran for block in BLOCKS if block.info == "console" for ran in transcripts(block)]
    assert len(shown) == 5
    texts = {block.language: block.text for block in BLOCKS if block.info in ("pg", "gq")}
    Path("film.pg").write_text(texts["pg"], encoding="utf-8")
    for line, output in shown:
        mistaken = "ERROR" in output
        query = texts["gq"].replace("{ $p.name,", "{ $p.nam,") if mistaken else texts["gq"]
        Path("film.gq").write_text(query, encoding="utf-8")
        program, *arguments = shlex.split(line)
        assert program == "omnigraph"
        assert main(arguments) == (1 if mistaken else 0)
        assert capsys.readouterr().out == output
