"""The shell: statements through a pipe, and a person at a terminal."""

from __future__ import annotations

import io
import json
import os
import pty
import stat
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pexpect import fdpexpect
from pyarrow import parquet

import omnigraph as og
from omnigraph.cli.options.scope import CommandScope, Target
from omnigraph.cli.shell.session import ShellSession
from omnigraph.cli.shell.statements import is_whole, statements_of
from omnigraph.storage.cancellation import Cancellation
from tests.film_graph import SCHEMA

Run = Callable[..., Any]
Piped = Callable[..., Any]

YEARS = "match { $f: Film } return { $f.title as title, $f.year as year } order { title }"


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> og.Graph:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    made = og.init(tmp_path / "film.omni", SCHEMA)
    films = [{"title": "Ikiru", "year": 1952}, {"title": "Ran", "year": 1985}]
    lines = [json.dumps({"type": "Film", "data": film}) for film in films]
    made.load("\n".join(lines), mode="append")
    return made


@pytest.fixture
def piped(run: Run, graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> Piped:
    def _piped(text: str, *words: str) -> Any:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        return run(*(words or ("shell", str(graph.location))))

    return _piped


# -- where a statement ends --------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("match { $a: A }\nreturn { $a.b }\nlimit 2", 1),
        ("match { $a: A } return { $a.b }\nmatch { $a: A } return { $a.c }", 2),
        ("match { $a: A } return { $a.b }\nunion\nmatch { $a: A } return { $a.c }", 1),
        ("match { $a: A } return { $a.b }; insert A { b: 1 };", 2),
        ('insert A { b: "; \n\n }" }\n\ninsert A { b: 2 }', 2),
        ("insert A { b: 1 }\ninsert A { b: 2 }", 1),
        (
            "query a() {\n\nmatch { $a: A }\nreturn { $a.b } }\nquery b() { delete A where b = 1 }",
            2,
        ),
        (".log\nmatch { $a: A }\nreturn { $a.b }\n.branches", 3),
        (".explain match { $a: A }\nreturn { $a.b }\n.log", 2),
        ("// only a remark\n\n\n", 0),
    ],
)
def test_where_statements_end(text: str, statements: int) -> None:
    assert len(list(statements_of(text))) == statements


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("match { $a: A }", False),
        ("match { $a: A }\n", True),
        ("match { $a: A } return { $a.b", False),
        ("match { $a: A } return { $a.b }", True),
        ("match { $a: A };", True),
        ("query q() { match { $a: A }", False),
        ('insert A { b: "} }', False),
        ("delete A", False),
        ("delete A where b =", False),
        ("delete A where b = 1", True),
        (".explain match { $a: A }", False),
        (".log", True),
        ("nonsense", True),
    ],
)
def test_what_enter_sends(text: str, whole: bool) -> None:
    assert is_whole(text) is whole


# -- through a pipe ----------------------------------------------------------------


def test_reads_and_changes(piped: Piped, graph: og.Graph) -> None:
    ran = piped(f'insert Film {{ title: "Dersu" }}\n\n{YEARS}\n')
    assert (ran.code, ran.err) == (0, "")
    first, commit, *table = ran.out.splitlines()
    assert first == "changed main via query: 1 nodes, 0 edges"
    assert commit == f"commit: {graph.snapshot().commit_id}"
    assert table == [
        "3 rows from branch main via query",
        "title | year",
        "------+-----",
        "Dersu | null",
        "Ikiru | 1952",
        "Ran   | 1985",
    ]


def test_a_path_alone_is_a_shell(piped: Piped) -> None:
    ran = piped(YEARS, "film.omni", "--format", "csv")
    assert (ran.code, ran.out) == (0, "title,year\nIkiru,1952\nRan,1985\n")


def test_a_mistake_ends_nothing(piped: Piped) -> None:
    ran = piped(f"match {{ $f: Flim }} return {{ $f.title }}\n\n.nothing\n.format csv\n{YEARS}")
    assert ran.code == 1
    assert ran.out == "title,year\nIkiru,1952\nRan,1985\n"
    assert "unknown node type Flim" in ran.err
    assert "^^^^ did you mean `Film`?" in ran.err
    assert "there is no command '.nothing'" in ran.err


def test_a_graph_that_is_not_there(piped: Piped) -> None:
    ran = piped(YEARS, "shell", "other.omni")
    assert (ran.code, ran.out) == (1, "")


def test_branches(piped: Piped, graph: og.Graph) -> None:
    graph.branches.create("try")
    insert = 'insert Film { title: "Dersu" }'
    ran = piped(f".switch try\n.branches\n{insert}\n.diff main try\n.switch nowhere\n.log\n")
    assert ran.code == 1
    assert ran.out.startswith("  main\n* try\nchanged try via query: 1 nodes, 0 edges\n")
    assert "Dersu" in ran.out
    assert "(try) mutation" in ran.out
    assert "nowhere" in ran.err
    assert len(graph.query(YEARS)) == 2


def test_schema_plan_help_and_time(piped: Piped) -> None:
    ran = piped(f".schema\n.explain {YEARS}\n.help\n.timing on\n{YEARS}\n.quit\nnonsense")
    assert ran.code == 0
    assert ran.out.startswith(SCHEMA)
    assert "scan $f: Film" in ran.out
    assert ".save FILE" in ran.out
    assert ran.err.endswith(" ms\n")


def test_results_are_saved(piped: Piped, tmp_path: Path) -> None:
    saves = "".join(f".save {name}\n" for name in ("a.csv", "a.jsonl", "a.parquet"))
    assert piped(f"{YEARS}\n{saves}").code == 0
    assert (tmp_path / "a.csv").read_text() == "title,year\nIkiru,1952\nRan,1985\n"
    lines = (tmp_path / "a.jsonl").read_text().splitlines()
    assert [json.loads(line)["year"] for line in lines] == [1952, 1985]
    assert parquet.read_table(tmp_path / "a.parquet").to_pydict()["title"] == ["Ikiru", "Ran"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (".save a.csv", "there is nothing to save"),
        (f"{YEARS}\n.save a.xls", "one of .csv, .jsonl, .json, .parquet"),
        (f"{YEARS}\n.save no/a.csv", "cannot write no/a.csv: No such file or directory"),
        (".read no.gq", "cannot read no.gq"),
        (".read self.gq", "one of them reads itself"),
        (".format tabel", "did you mean `table`?"),
        (".timing perhaps", ".timing is on or off"),
        (".diff main", "`.diff A B`"),
        (".explain", "explain what?"),
    ],
)
def test_commands_that_cannot_be_done(piped: Piped, tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "self.gq").write_text(".read self.gq\n")
    ran = piped(line)
    assert ran.code == 1
    assert said in ran.err


def test_a_file_is_read(piped: Piped, tmp_path: Path) -> None:
    text = f"query one() {{\n    {YEARS}\n    limit 1\n}}\n\nquery two() {{ {YEARS} }}\n"
    (tmp_path / "both.gq").write_text(text)
    ran = piped(".format csv\n.read both.gq\n")
    assert (ran.code, ran.out.splitlines()) == (
        0,
        ["title,year", "Ikiru,1952", "title,year", "Ikiru,1952", "Ran,1985"],
    )


# -- at a terminal -----------------------------------------------------------------

# Opening the terminal makes it the one that keys like Ctrl-C are for. The first
# count does not end before the second one begins.
PROGRAM = """
import os, signal, sys, threading
# Whoever is started in the background ignores it.
signal.signal(signal.SIGINT, signal.default_int_handler)
os.close(os.open(os.ttyname(0), os.O_RDWR))
from omnigraph.cli.main import main
from omnigraph.read.execute import engine
from omnigraph.storage import budget

real, until = engine.group_rows, threading.Event()

def counted(*given):
    until.set()
    return real(*given)

def endless(*given):
    engine.group_rows = counted
    print("begun", flush=True)
    until.wait()
    return real(*given)

budget.HEAVY = 1
engine.group_rows = endless
sys.exit(main(["film.omni"]))
"""
PROMPT = "film.omni:main>"


class Terminal:
    """A shell at a terminal; started without a fork of this process, which has threads."""

    def __init__(self, place: Path) -> None:
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (40, 100))
        environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1", "PROMPT_TOOLKIT_NO_CPR": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=place,
            env=environment,
            start_new_session=True,
        )
        os.close(theirs)
        self._screen = fdpexpect.fdspawn(ours, encoding="utf-8", timeout=300)

    def type(self, keys: str, shown: str) -> None:
        """Press keys, and wait for what is shown then."""
        self._screen.send(keys)
        self._screen.expect_exact(shown)

    def leave(self) -> int:
        """Press Ctrl-D, and wait for the end."""
        self._screen.send("\x04")
        return self.process.wait(timeout=60)

    def close(self) -> None:
        """End it, however far it is."""
        self.process.kill()
        self.process.wait()
        self._screen.close()


@pytest.fixture
def terminal(graph: og.Graph, tmp_path: Path) -> Iterator[Terminal]:
    graph.branches.create("try")
    child = Terminal(tmp_path)
    try:
        yield child
    finally:
        child.close()


@pytest.mark.slow
def test_lines_names_and_branches_at_a_terminal(terminal: Terminal, tmp_path: Path) -> None:
    terminal.type("", PROMPT)
    terminal.type("match { $f: Fi\t", "lm")
    terminal.type(" }\r", "...")
    terminal.type("return { $f.ti\t", "tle")
    terminal.type(" as name }\r", "2 rows from branch main")
    terminal.type("", PROMPT)
    terminal.type(".switch tr\t", "y")
    terminal.type("\r", "film.omni:try>")
    terminal.type("match { $f: Flim } return { $f.title }\r", "did you mean `Film`")
    terminal.type("", "film.omni:try>")
    assert terminal.leave() == 0
    history = tmp_path / "home" / "shell_history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert "+.switch try" in history.read_text()


@pytest.mark.slow
def test_ctrl_c_stops_the_query_and_not_the_shell(terminal: Terminal) -> None:
    count = "match { $f: Film } return { count($f) as films }\r"
    terminal.type("", PROMPT)
    terminal.type(count, "begun")
    terminal.type("\x03", "cancelled")
    terminal.type("", PROMPT)
    terminal.type(count, "1 row from branch main")
    terminal.type("", PROMPT)
    assert terminal.leave() == 0


def test_ctrl_c_in_the_moment_in_which_a_query_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    submit = ThreadPoolExecutor.submit

    def interrupted(pool: ThreadPoolExecutor, *call: Any) -> None:
        submit(pool, *call)
        raise KeyboardInterrupt

    monkeypatch.setattr(ThreadPoolExecutor, "submit", interrupted)
    session = ShellSession(CommandScope(), Target("film.omni"), "main")
    given: list[Cancellation] = []
    with pytest.raises(KeyboardInterrupt):
        session.interruptible(given.append)
    # What has begun unseen is told to stop.
    assert [switch.is_cancelled for switch in given] == [True]
