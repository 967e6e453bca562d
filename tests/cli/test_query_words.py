"""Queries as people type them: behind the graph, from a file or stdin, with parameters in words."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph

Run = Callable[..., Any]
SCHEMA = "node Film { title: String @key year: I32? }"
ASKED = "match { $f: Film } return { $f.title } order { $f.title }"


@pytest.fixture
def film(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A graph in the working directory."""
    monkeypatch.chdir(tmp_path)
    with omnigraph.init("film.omni", SCHEMA) as graph:
        graph.load([{"type": "Film", "data": {"title": t}} for t in ("1984", "Up")], mode="append")
    Path("asked.gq").write_text(ASKED)
    return "film.omni"


def titles(ran: Any) -> list[str]:
    assert ran.code == 0, ran.err
    return list(ran.out.splitlines()[1:])


def test_a_query_without_braces_is_one(run: Run, film: str) -> None:
    assert run("mutate", film, 'delete Film where title = "Up"').code == 0
    assert titles(run("query", film, ASKED, "--format", "csv")) == ["1984"]


def test_a_query_from_a_file_or_stdin(run: Run, film: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert titles(run("query", film, "asked.gq", "--format", "csv")) == ["1984", "Up"]
    for words in ([film, "-"], [film, "--query", "-"], ["-", "--store", film]):
        monkeypatch.setattr("sys.stdin", io.StringIO(ASKED))
        assert titles(run("query", *words, "--format", "csv")) == ["1984", "Up"]
    missing = run("query", film, "nothing.gq")
    assert missing.err.startswith("error: cannot read nothing.gq")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("select title from Film", "match { $a: Type } return { $a.property }"),
        ("MATCH (f:Film) RETURN f.title", "match { $a: Type } return { $a.property }"),
    ],
)
def test_other_languages_are_answered(run: Run, film: str, text: str, told: str) -> None:
    ran = run("query", film, text)
    assert ran.code == 1
    assert told in ran.err


def test_parameters_in_words(run: Run, film: str) -> None:
    asked = "match { $f: Film { title: $t } } return { $f.title }"
    assert titles(run("query", film, asked, "-p", "t=Up", "--format", "csv")) == ["Up"]
    assert titles(run("query", film, asked, "-p", '{"t": "Up"}', "--format", "csv")) == ["Up"]
    # A number is a number, unless it is quoted.
    assert run("query", film, asked, "-p", "t=1984").code == 1
    assert titles(run("query", film, asked, "-p", 't="1984"', "--format", "csv")) == ["1984"]
    named = f"query q($t: String) {{ {asked} }}"
    assert titles(run("query", film, named, "q", "1984", "--format", "csv")) == ["1984"]


def test_several_parameters(run: Run, film: str) -> None:
    asked = "match { $f: Film  $f.title in [$a, $b] } return { $f.title }"
    ran = run("query", film, asked, "-p", "a=Up", "--params", '{"b": "It"}', "--format", "csv")
    assert titles(ran) == ["Up"]
    twice = run("query", film, asked, "-p", "a=Up", "-p", "a=It")
    assert twice.err == "error: --params says a twice\n"


def test_mistakes_stand_where_they_were_typed(run: Run, film: str) -> None:
    ran = run("query", film, "match { $f: Flim } return { $f.title }")
    assert "--> <query>:1:13" in ran.err
    assert "1 | match { $f: Flim } return { $f.title }" in ran.err
