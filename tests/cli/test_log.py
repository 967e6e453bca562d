"""`omnigraph log`: which commits it shows, in which order, as text, drawn and as JSON."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

import omnigraph as og
from omnigraph.cli.render.commit_graph import in_order
from omnigraph.cli.verbs.history import log
from omnigraph.manifest.entries import Commit

Run = Callable[..., Any]

SCHEMA = "node Person { name: String @key  age: I32? }"
INSERT = "query q($n: String) { insert Person { name: $n } }"
ULID = re.compile(r"\b[0-9A-Z]{26}\b")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "g.omni", SCHEMA, actor="ann")


def add(graph: og.Graph, name: str, branch: str = "main", actor: str | None = None) -> str:
    done = graph.mutate(INSERT, params={"n": name}, branch=branch, actor=actor)
    assert done.commit is not None
    return done.commit.id


def settled(text: str) -> str:
    """The text with letters for the ids, in the order in which they occur, and without times."""
    letters: dict[str, str] = {}
    text = TIME.sub("T", text)
    return ULID.sub(lambda found: letters.setdefault(found[0], chr(97 + len(letters))), text)


def uri(graph: og.Graph) -> str:
    return graph.location.uri


# -- a branch ------------------------------------------------------------------------------


def test_the_newest_commit_is_first(run: Run, graph: og.Graph) -> None:
    graph.load('{"type": "Person", "data": {"name": "cy"}}', mode="append", actor="cy")
    add(graph, "ben", actor="ben")
    ran = run("log", uri(graph))
    assert (ran.code, ran.err) == (0, "")
    assert settled(ran.out) == ("* a T ben (main) mutation\n* b T cy load append\n* c T ann init\n")
    assert ULID.findall(ran.out) == [commit.id for commit in graph.commits.list()]


def test_a_branch_shows_what_it_inherited(run: Run, graph: og.Graph) -> None:
    graph.branches.create("draft")
    mine = add(graph, "ben", "draft")
    add(graph, "cy")
    ran = run("log", uri(graph), "--branch", " draft ")
    assert ULID.findall(ran.out)[0] == mine
    assert settled(ran.out) == "* a T ann (draft) mutation\n* b T ann init\n"


def test_every_branch_at_a_head_is_named(run: Run, graph: og.Graph) -> None:
    for name in ("b", "a"):
        graph.branches.create(name)
    assert settled(run("log", uri(graph)).out) == "* a T ann (a, b, main) init\n"


def test_a_limit(run: Run, graph: og.Graph) -> None:
    for name in ("a", "b", "c"):
        last = add(graph, name)
    assert ULID.findall(run("log", uri(graph), "--limit", "1").out) == [last]
    drawn = run("log", uri(graph), "--limit", "2", "--graph")
    assert settled(drawn.out).splitlines() == [
        "* a T ann (main) mutation",
        "* b T ann mutation",
        ":",
    ]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--all", "--branch", "main"], "--all is every branch"),
        (["--limit", "0"], "0 is not in the range"),
        (["--as", "ann"], "takes no --as"),
    ],
)
def test_what_makes_no_sense(run: Run, graph: og.Graph, args: list[str], message: str) -> None:
    ran = run("log", uri(graph), *args)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_a_branch_that_is_missing(run: Run, graph: og.Graph) -> None:
    ran = run("log", uri(graph), "--branch", "x")
    assert (ran.code, ran.out, ran.err) == (1, "", "error: there is no branch x\n")


def test_an_actor_cannot_move_the_cursor(run: Run, graph: og.Graph) -> None:
    add(graph, "ben", actor="b\x1b[2Jn")
    assert "b\\x1b[2Jn (main)" in run("log", uri(graph)).out


# -- merges --------------------------------------------------------------------------------


def test_a_merge_names_its_parents(run: Run, graph: og.Graph) -> None:
    graph.branches.create("draft")
    theirs = add(graph, "ben", "draft")
    ours = add(graph, "cy")
    merged = graph.branches.merge("draft").commit
    assert merged is not None
    first, *rest = run("log", uri(graph)).out.splitlines()
    assert settled(first) == "M a T ann (main) merge of draft, parents b c"
    assert ULID.findall(first) == [merged.id, ours, theirs]
    assert [ULID.findall(line)[0] for line in rest] == [
        ours,
        theirs,
        graph.commits.list()[-1].id,
    ]


def test_a_drawn_merge(run: Run, graph: og.Graph) -> None:
    graph.branches.create("draft")
    add(graph, "ben", "draft", actor="ben")
    add(graph, "cy")
    graph.branches.merge("draft")
    add(graph, "dee", "draft", actor="dee")
    drawn = run("log", uri(graph), "--graph", "--all")
    assert settled(drawn.out).splitlines() == [
        "* a T dee (draft) mutation",
        "| * b T ann (main) merge of draft",
        "|/|",
        "| * c T ann mutation",
        "* | d T ben mutation",
        "|/",
        "* e T ann init",
    ]
    alone = run("log", uri(graph), "--graph")
    assert settled(alone.out).splitlines() == [
        "* a T ann (main) merge of draft",
        "|\\",
        "* | b T ann mutation",
        "| * c T ben mutation",
        "|/",
        "* d T ann init",
    ]


def test_what_was_merged_from_a_branch_that_is_gone(run: Run, graph: og.Graph) -> None:
    graph.branches.create("draft")
    theirs = add(graph, "ben", "draft")
    graph.branches.merge("draft", delete_source=True)
    drawn = run("log", uri(graph), "--graph")
    assert settled(drawn.out).splitlines() == [
        "* a T ann (main) merge of draft",
        "|\\",
        "| * b T ann mutation",
        "|/",
        "* c T ann init",
    ]
    assert run("log", uri(graph), "--graph", "--all").out == drawn.out
    assert theirs in run("log", uri(graph)).out.splitlines()[0]


# -- for programs --------------------------------------------------------------------------


def test_json(run: Run, graph: og.Graph) -> None:
    graph.branches.create("draft")
    add(graph, "ben")
    shown = json.loads(run("log", uri(graph), "--json").out)["commits"]
    listed = json.loads(run("commit", "list", uri(graph), "--json").out)["commits"]
    assert [
        {**commit, "heads": [name]} for commit, name in zip(listed, ("main", "draft"), strict=True)
    ] == shown


def test_colours_are_for_terminals(
    run: Run, graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = run("log", uri(graph), "--graph").out
    assert "\x1b" not in plain
    monkeypatch.setattr("omnigraph.cli.render.output.use_colour", lambda _: True)
    drawn = run("log", uri(graph), "--graph").out
    assert drawn.startswith(click.style("*", fg=log.COLOURS[0]))
    assert click.unstyle(drawn) == plain


# -- the order -----------------------------------------------------------------------------


def commit(id_: str, time: int, parent: str | None = None, merged: str | None = None) -> Commit:
    return Commit(id_, None, 1, parent, merged, None, time)


def test_children_stand_before_parents_whatever_the_clocks_say() -> None:
    found = [commit("a", 9), commit("b", 1, "a"), commit("c", 5, "a"), commit("d", 2, "b", "c")]
    assert [one.id for one in in_order(found)] == ["d", "c", "b", "a"]


def test_of_one_moment_the_higher_id_is_first() -> None:
    found = [commit("b", 1), commit("c", 1), commit("a", 1)]
    assert [one.id for one in in_order(found)] == ["c", "b", "a"]


def test_its_help_opens_no_engine() -> None:
    script = (
        "import sys; from omnigraph.cli.main import main; main(['log', '--help']);"
        "print(*sys.modules, sep='\\n', file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(ran.stderr.split())
    assert "omnigraph.cli.verbs.history.log" in loaded
    assert loaded.isdisjoint({"msgspec", "pyarrow", "lance", "numpy", "omnigraph.graph"})
