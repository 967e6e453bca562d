"""Which word of a command line is the graph, and which are the verb's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import omnigraph
from omnigraph.cli.main import cli
from omnigraph.cli.options.capabilities import capability
from omnigraph.cli.options.words import GraphWord

Run = Callable[..., Any]
SCHEMA = "node Film { title: String @key year: I32? }"


@pytest.fixture
def film(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A graph in the working directory, with a branch and a tag."""
    monkeypatch.chdir(tmp_path)
    Path("film.pg").write_text(SCHEMA)
    with omnigraph.init("films", SCHEMA) as graph:
        graph.mutate('create Film { title: "Up", year: 2009 }')
        graph.branches.create("draft")
        graph.tags.create("v1")
    return "films"


def commands(
    group: click.Group, context: click.Context, words: str = ""
) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by its words."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, context, f"{words}{name} ")
        else:
            yield words + name, command


def test_every_command_on_a_graph_takes_it_first() -> None:
    missing = []
    for name, command in commands(cli, click.Context(cli)):
        # `config` looks at what is configured, and opens no graph.
        if "store" not in capability(name).takes or name.startswith("config "):
            continue
        words = [param for param in command.params if isinstance(param, click.Argument)]
        if not words or not (isinstance(words[0], GraphWord) or words[0].name == "words"):
            missing.append(name)
    assert missing == []


@pytest.mark.parametrize(
    "words",
    [
        ["branch", "list"],
        ["branch", "create", "@", "new"],
        ["branch", "rename", "@", "draft", "other"],
        ["branch", "reset", "@", "draft", "--to", "v1"],
        ["branch", "merge", "@", "draft"],
        ["branch", "delete", "@", "draft"],
        ["tag", "list"],
        ["tag", "create", "@", "v2"],
        ["tag", "create", "@", "v2", "draft"],
        ["tag", "delete", "@", "v1"],
        ["show", "@"],
        ["show", "@", "v1"],
        ["commit", "show", "@", "main"],
        ["commit", "changes", "@", "main"],
        ["diff", "@", "main", "draft"],
        ["schema", "diff", "@", "main", "draft"],
        ["history", "@", "Film", "Up"],
        ["blame", "@", "Film", "Up"],
        ["changes", "poll"],
        ["log"],
        ["status"],
        ["query", "@", "match { $f: Film } return { $f.title }"],
        ["mutate", "@", 'update Film set { year: 2010 } where title = "Up"'],
        ["explain", "@", "match { $f: Film } return { $f.title }"],
    ],
    ids=" ".join,
)
def test_the_graph_is_named_in_four_ways(
    run: Run, film: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    verb = words[: words.index("@")] if "@" in words else words
    own = words[len(verb) + 1 :]
    first = run(*verb, film, *own, "--json", *(["--dry-run"] if "merge" in verb else []))
    assert first.code == 0, first.err

    def runs(*args: str) -> None:
        # What was done already is refused the second time: code 1 and not 2.
        assert run(*args).code < 2

    runs(*verb, *own, "--uri", film)
    runs("--uri", film, *verb, *own)
    runs(*verb, *own, "--store", film)
    monkeypatch.setenv("OMNIGRAPH_STORE", film)
    runs(*verb, *own)


def test_as_many_words_as_are_needed_are_the_verbs_own(run: Run, film: str) -> None:
    ran = run("branch", "create", "new")
    assert ran.code == 2
    assert "which graph?" in ran.err
    missing = run("branch", "create", film)
    assert missing.code == 2
    assert missing.err.startswith("error: films is a graph, and NAME is missing")
    assert run("branch", "create", film, "--uri", film, "--quiet").out == (
        "created branch films from main\n"
    )


def test_between_the_two_the_look_of_the_first_word_decides(
    run: Run, film: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_STORE", film)
    assert run("tag", "create", "v2", "draft").out.startswith("created tag v2 of commit")
    assert run("tag", "create", film, "v3").out.startswith("created tag v3 of commit")
    assert run("show", "v3").code == 0
    # A path of no graph is meant as one, too, and said to be none.
    assert "nothing.omni" in run("show", "nothing.omni").err


def test_a_word_too_many_beside_an_option(run: Run, film: str) -> None:
    ran = run("branch", "create", film, "new", "--store", film)
    assert ran.code == 2
    assert ran.err.startswith("error: more than one address is given (URI, --store): choose one")
    assert "unexpected extra argument" in run("branch", "create", film, "new", "more").err


def test_the_environment_gives_way(
    run: Run, film: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_STORE", "elsewhere.omni")
    assert run("branch", "list", film).out == "draft\nmain\n"
    assert run("branch", "list", "--store", film).out == "draft\nmain\n"
    assert "elsewhere.omni" in run("branch", "list").err
    (tmp_path / "omnigraph.yaml").write_text("version: 1\ngraphs: { f: { uri: films } }\n")
    assert "elsewhere.omni" in run("branch", "list").err
    assert run("branch", "list", "--graph", "f").out == "draft\nmain\n"
    # A command that takes no store is not told of one.
    assert "elsewhere" not in run("queries", "list").err


def test_a_graph_is_made_where_the_environment_says(
    run: Run, film: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_STORE", "other.omni")
    assert run("init", "--schema", "film.pg").out == "initialized other.omni\n"
    assert run("init", "--schema", "film.pg", "--uri", "third.omni").code == 0
    assert film != "other.omni"
