"""Which graph a command means, and the gate before something is destroyed."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any

import pytest

from omnigraph import errors
from omnigraph.cli.options.scope import CommandScope, Target, target_of

Run = Callable[..., Any]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_an_address_is_taken_as_it_is() -> None:
    assert target_of(CommandScope(), "a.omni") == Target("a.omni")
    assert target_of(CommandScope(store="s3://b/a.omni"), None) == Target("s3://b/a.omni")


def test_an_address_wins_over_a_profile() -> None:
    assert target_of(CommandScope(profile="p"), "a.omni") == Target("a.omni")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["a", "--store", "b"], "more than one address is given (URI, --store): choose one"),
        (["a", "--server", "s"], "more than one address is given (URI, --server): choose one"),
        (["--store", "a", "--graph", "g"], "a store is one graph: leave --graph out"),
        (["a", "--graph", "g"], "a store is one graph: leave --graph out"),
        (["http://x/g"], "http://x/g is not a storage location: remote graphs need --server"),
        (["--store", "HTTPS://x"], "HTTPS://x is not a storage location: remote graphs need"),
        (["--graph", "g"], "which graph? give its URI, or --store URI"),
        (["--server", "http://x", "--as", "ann"], "the token of the server decides who acts"),
        (["--cluster", "c"], "`snapshot` is a data command and takes no --cluster"),
        ([], "which graph? give its URI, or --store URI"),
    ],
)
def test_an_address_that_does_not_do(run: Run, args: list[str], message: str) -> None:
    ran = run("snapshot", *args)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert "Usage: omnigraph snapshot" in ran.err


def test_init_refuses_a_web_address(run: Run) -> None:
    assert run("init", "http://x", "--schema", "s.pg").code == 2


def test_a_location_of_an_unknown_kind(run: Run) -> None:
    ran = run("snapshot", "gs://bucket/g")
    assert (ran.code, ran.out) == (1, "")
    assert "gs:// is not supported" in ran.err


@pytest.mark.parametrize(
    ("uri", "local"),
    [
        ("g.omni", True),
        ("/data/g", True),
        ("file:///data/g", True),
        ("s3://b/g", False),
        ("x://y", False),
    ],
)
def test_what_is_local(uri: str, local: bool) -> None:
    assert Target(uri).is_local is local


def consent(target: str, *, yes: bool = False, as_json: bool = False) -> None:
    Target(target).require_consent("deleting branch b", CommandScope(yes=yes), as_json=as_json)


def test_nobody_is_asked_on_a_local_disk_or_after_yes() -> None:
    consent("g.omni")
    consent("g.omni", as_json=True)
    consent("s3://b/g", yes=True, as_json=True)


@pytest.mark.parametrize("as_json", [False, True])
def test_without_a_terminal_only_yes_will_do(
    monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("y\n") if as_json else io.StringIO("y\n"))
    with pytest.raises(errors.BadRequest, match=r"on s3://b/g cannot be undone: .*--yes"):
        consent("s3://b/g", as_json=as_json)


@pytest.mark.parametrize("answer", ["y", "yes", "Yes"])
def test_a_terminal_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(f"{answer}\n"))
    consent("s3://b/g")
    captured = capsys.readouterr()
    assert captured.err.startswith("deleting branch b on s3://b/g: are you sure? [y/N]")


@pytest.mark.parametrize("answer", ["n", "no", ""])
def test_any_other_answer_is_no(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(f"{answer}\n"))
    with pytest.raises(errors.BadRequest, match="nothing was changed"):
        consent("s3://b/g")


def test_the_gate_stands_before_branch_delete(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    ran = run("branch", "delete", "b", "--uri", "s3://bucket/g")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: deleting branch b on s3://bucket/g cannot be undone")
