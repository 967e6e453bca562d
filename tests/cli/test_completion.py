"""Completion in shells: the script, and what it offers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import BashComplete

import omnigraph as og
from omnigraph.cli.main import cli

Run = Callable[..., Any]
OMNIGRAPH = Path(sys.executable).with_name("omnigraph")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script(run: Run, shell: str) -> None:
    ran = run("completion", shell)
    assert (ran.code, ran.err) == (0, "")
    assert "_OMNIGRAPH_COMPLETE" in ran.out


def test_unknown_shells(run: Run) -> None:
    ran = run("completion", "tcsh")
    assert ran.code == 2
    assert "'bash', 'zsh', 'fish'" in ran.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("omnigraph br", {"branch"}),
        ("omnigraph branch re", {"rename", "reset"}),
        ("omnigraph load --mo", {"--mode"}),
        ("omnigraph load --mode a", {"append"}),
    ],
)
def test_what_is_offered(words: str, offered: set[str]) -> None:
    environment = {
        **os.environ,
        "_OMNIGRAPH_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    ran = subprocess.run(
        [OMNIGRAPH], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert {line.partition(",")[2] for line in ran.stdout.splitlines()} == offered


@pytest.fixture
def film(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    with og.init(
        "film.omni", "node Film { title: String @key }\nnode Person { name: String }"
    ) as graph:
        graph.branches.create("draft")
        graph.tags.create("v1")
    return "film.omni"


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("branch delete f", ["film.omni"]),
        ("branch delete film.omni ", ["draft", "main"]),
        ("branch create new --from ", []),
        ("branch create new --uri film.omni --from ", ["draft", "main", "v1"]),
        ("query film.omni --branch d", ["draft"]),
        ("tag delete film.omni ", ["v1"]),
        ("diff film.omni main ", ["draft", "main", "v1"]),
        ("diff film.omni main draft --type P", ["Person"]),
        ("blame film.omni F", ["Film"]),
        ("show nothing.omni ", []),
    ],
)
def test_names_of_a_graph(film: str, words: str, offered: list[str]) -> None:
    *args, incomplete = words.split(" ")
    found = BashComplete(cli, {}, "omnigraph", "_OMNIGRAPH_COMPLETE").get_completions(
        args, incomplete
    )
    assert [item.value for item in found] == offered, film


def test_names_of_a_project(film: str) -> None:
    Path("find.gq").write_text("query find_films() { match { $f: Film } return { $f.title } }")
    Path("omnigraph.yaml").write_text(
        f"version: 1\ngraphs: {{ film: {{ uri: {film}, queries: [find.gq] }} }}\n"
    )
    complete = BashComplete(cli, {}, "omnigraph", "_OMNIGRAPH_COMPLETE")
    assert [one.value for one in complete.get_completions(["query"], "fi")] == [
        "film",
        "film.omni",
        "find_films",
    ]
    assert [one.value for one in complete.get_completions(["branch", "merge"], "")] == [
        "film",
        "film.omni",
        "draft",
        "main",
    ]
