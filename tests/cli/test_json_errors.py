"""What programs read of a failure: the error as an object on stdout."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.cli.main import main

Run = Callable[..., Any]
SCHEMA = "node Film { title: String @key year: I32? }"


@pytest.fixture
def film(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A graph in the working directory."""
    monkeypatch.chdir(tmp_path)
    with omnigraph.init("film.omni", SCHEMA) as graph:
        graph.mutate('create Film { title: "Up", year: 2009 }')
    return "film.omni"


@pytest.mark.parametrize(
    ("words", "exit_code", "code"),
    [
        (["query", "@", "match { $f: Flim } return { $f.title }"], 1, "bad_request"),
        (["branch", "delete", "@", "drft"], 1, "not_found"),
        (["show", "nothing.omni"], 1, "not_found"),
        (["mutate", "@", 'create Film { title: "Up" }'], 1, "conflict"),
        (["load", "@", "--mode", "append", "--data", "nothing.csv"], 1, None),
        (["branch", "create"], 2, "bad_request"),
        (["quary"], 2, "bad_request"),
        (
            ["query", "@", "--limit", "2", "match { $f: Film } return { $f.title }"],
            2,
            "bad_request",
        ),
        (
            ["mutate", "@", "--if-commit", "01ABC", 'delete Film where title = "Up"'],
            4,
            None,
        ),
    ],
)
def test_a_failure_is_an_object(
    run: Run, film: str, words: list[str], exit_code: int, code: str | None
) -> None:
    told = run(*[film if word == "@" else word for word in words], "--json")
    assert told.code == exit_code
    body = json.loads(told.out)
    assert body["error"]
    assert code is None or body["code"] == code
    assert told.err
    # Whoever does not ask for JSON gets none.
    plain = run(*[film if word == "@" else word for word in words])
    assert (plain.code, plain.out) == (exit_code, "")
    assert plain.err == told.err


def test_conflicts_of_a_merge_are_an_object(run: Run, film: str) -> None:
    with omnigraph.open(film) as graph:
        graph.branches.create("draft")
        graph.mutate('update Film set { year: 1 } where title = "Up"', branch="draft")
        graph.mutate('update Film set { year: 2 } where title = "Up"')
    ran = run("branch", "merge", film, "draft", "--json")
    assert ran.code == 1
    (conflict,) = json.loads(ran.out)["merge_conflicts"]
    assert conflict["property"] == "year"
    replayed = run("cherry-pick", film, "draft", "--json")
    assert replayed.code == 1
    assert json.loads(replayed.out)["merge_conflicts"]


def test_nothing_is_printed_behind_half_a_result(
    film: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from omnigraph.cli.verbs.history import snapshot
    from omnigraph.errors import StorageError

    def half(_: object) -> None:
        from omnigraph.cli.render.output import write_piece

        write_piece("{")
        raise StorageError("the disk is gone")

    monkeypatch.setattr(snapshot, "write_json", half)
    assert main(["snapshot", film, "--json"]) == 1
    assert capsys.readouterr().out == "{"


def test_words_behind_the_options_ask_for_nothing(run: Run, film: str) -> None:
    assert run("branch", "delete", film, "--", "--json").out == ""
