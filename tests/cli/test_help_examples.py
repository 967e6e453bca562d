"""Every help ends with something to type, and what it says can be typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from omnigraph.cli.examples import EXAMPLES, MOST, examples_of
from omnigraph.cli.main import cli
from omnigraph.cli.options.capabilities import refusals
from omnigraph.cli.options.scope import scope_of, words_of
from tests.docs.collect import walk

COMMANDS = {words: command for words, command, _ in walk(cli)}
TYPED = [(words, line) for words, lines in EXAMPLES.items() for line in lines]
FILE = re.compile(r"[\w-]+\.(pg|gq|csv|jsonl|yaml|parquet)")


def parsed(line: str) -> click.Context:
    """The context of the command that a line runs, with nothing run."""
    inside = re.fullmatch(r'eval "\$\((.*)\)"', line)
    program, *arguments = shlex.split(line if inside is None else inside[1])
    if ">" in arguments:
        arguments = arguments[: arguments.index(">")]
    assert program == "omnigraph"
    command: click.Command = cli
    ctx = command.make_context("omnigraph", arguments)
    while isinstance(command, click.Group):
        name, found, rest = command.resolve_command(ctx, ctx._protected_args + ctx.args)
        assert found is not None
        command, ctx = found, found.make_context(name, rest, parent=ctx)
    return ctx


def test_there_is_an_example_for_every_command_and_for_nothing_else() -> None:
    commands = {
        words for words, command in COMMANDS.items() if not isinstance(command, click.Group)
    }
    assert {*EXAMPLES} == {"", *commands}


@pytest.mark.parametrize("words", COMMANDS)
def test_every_help_ends_with_examples(words: str, run: Callable[..., Any]) -> None:
    ran = run(*words.split(), "--help")
    heading, *lines = ran.out.rpartition("\nExamples:\n")[1:]
    assert heading
    assert tuple(line.strip() for line in lines[0].splitlines()) == examples_of(words)
    assert 1 <= len(examples_of(words)) <= MOST


@pytest.mark.parametrize(("words", "line"), TYPED, ids=[line for _, line in TYPED])
def test_an_example_is_understood(
    words: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in FILE.finditer(line):
        Path(name[0]).touch()
    ctx = parsed(line)
    assert words in ("", words_of(ctx))
    assert refusals(words_of(ctx), scope_of(ctx).given) == []


def test_what_does_not_exist_is_not_understood() -> None:
    for line in ("omnigraph query --colour red", "omnigraph brunch list"):
        with pytest.raises(click.UsageError):
            parsed(line)
