"""The root command: help, version, exit codes, deprecated spellings."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click
import pytest
from click.testing import CliRunner

from omnigraph import errors
from omnigraph.cli.command import rewrite
from omnigraph.cli.main import cli
from omnigraph.cli.verbs import VERBS
from omnigraph.version import INTERNAL_SCHEMA, __version__

Run = Callable[..., Any]


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*_args: object, **_kwargs: object) -> None:
        raise error

    monkeypatch.setattr("omnigraph.cli.verbs.maintain.version.write_text", fail)


@pytest.mark.parametrize("spelling", ["-h", "--help"])
def test_help_lists_every_verb(spelling: str) -> None:
    result = CliRunner().invoke(cli, [spelling])
    assert result.exit_code == 0
    for verb, (_, line) in VERBS.items():
        assert verb in result.stdout
        assert line.split()[0] in result.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_the_listed_help_is_how_the_verb_introduces_itself(verb: str) -> None:
    command = cli.get_command(click.Context(cli), verb)
    assert command is not None
    assert command.name == verb
    assert (command.help or "").splitlines()[0] == VERBS[verb].help


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(run: Run, verb: str) -> None:
    ran = run(verb, "-h")
    assert ran.code == 0
    assert ran.out.startswith(f"Usage: omnigraph {verb}")


def test_no_arguments_shows_help_on_stderr(run: Run) -> None:
    ran = run()
    assert (ran.code, ran.out) == (2, "")
    assert "Commands:" in ran.err


@pytest.mark.parametrize("args", [["version"], ["-v"], ["--version"]])
def test_version_is_two_lines(run: Run, args: list[str]) -> None:
    ran = run(*args)
    assert ran.code == 0
    assert ran.out == f"omnigraph {__version__}\ninternal-schema {INTERNAL_SCHEMA}\n"
    assert ran.err == ""


def test_version_as_json_is_pretty(run: Run) -> None:
    ran = run("version", "--json")
    assert ran.out == (
        f'{{\n  "version": "{__version__}",\n  "internal_schema": {INTERNAL_SCHEMA}\n}}\n'
    )


@pytest.mark.parametrize("args", [["nonsense"], ["version", "--nonsense"], ["version", "extra"]])
def test_usage_errors_exit_2(run: Run, args: list[str]) -> None:
    ran = run(*args)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")
    assert "--help`." in ran.err


def test_a_misspelt_verb_gets_a_suggestion(run: Run) -> None:
    assert "Did you mean 'version'?" in run("vresion").err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (errors.NotFound("no such branch"), 1, "error: no such branch\n"),
        (errors.ParseError("short", report="a.gq:1:1: long"), 1, "a.gq:1:1: long\n"),
        (errors.PreconditionFailed("head moved"), 4, "error: head moved\n"),
        (FileNotFoundError(2, "No such file", "x"), 1, "error: [Errno 2] No such file: 'x'\n"),
        (click.FileError("x", "unreadable"), 1, "error: Could not open file 'x': unreadable\n"),
        (KeyboardInterrupt(), 130, "\n"),
        (EOFError(), 1, "\n"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_exceptions_become_exit_codes(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, message: str
) -> None:
    raising(monkeypatch, error)
    ran = run("version")
    assert (ran.code, ran.out, ran.err) == (code, "", message)


def test_a_bug_is_told_as_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    raising(monkeypatch, ZeroDivisionError("by nothing"))
    ran = run("version")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: ZeroDivisionError: by nothing (test_main.py:")
    assert ran.err.endswith("): this is a defect of OmniGraph, please report it\n")


def test_a_verb_returns_its_exit_code(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.cli.verbs.maintain.version.command.callback", lambda **_: 1)
    assert run("version").code == 1


@pytest.mark.parametrize("old", ["check", "query lint", "query check"])
def test_old_spellings_are_rewritten_with_a_warning(old: str) -> None:
    args, warning = rewrite([*old.split(), "--schema", "s.pg"])
    assert args == ["lint", "--schema", "s.pg"]
    assert warning == f"`omnigraph {old}` is deprecated: use `omnigraph lint`"


@pytest.mark.parametrize("line", ["--yes check", "query", "query find", "lint check", ""])
def test_old_spellings_count_only_as_the_first_words(line: str) -> None:
    assert rewrite(line.split()) == (line.split(), None)


def test_the_warning_of_an_old_spelling_goes_to_stderr(run: Run) -> None:
    ran = run("check", "--help")
    assert ran.err.startswith("warning: `omnigraph check` is deprecated")


def test_words_of_other_programs_are_answered(run: Run) -> None:
    from omnigraph.cli.foreign_words import ANSWERS

    assert not ANSWERS.keys() & VERBS.keys()
    for word, answer in ANSWERS.items():
        ran = run(word, "x")
        assert ran.code == 2
        assert f"there is no command '{word}': {answer}" in ran.err
    for answer in ANSWERS.values():
        for named in re.findall(r"`omnigraph ([a-z]+)", answer):
            assert named in VERBS, answer
