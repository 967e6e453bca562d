"""No command line ends in a traceback: every verb and option, found in the tree of commands."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.cli.main import cli
from omnigraph.cli.options.scope import GlobalOption
from omnigraph.pipeline.spark import session as spark_sessions
from tests.cli.conftest import Ran
from tests.film_graph import SCHEMA

PROGRAM = str(Path(sys.executable).with_name("omnigraph"))
WRONG = ("", "-1", "nan", "9" * 30, "x" * 5_000, "{\n")
ALL = "query all() { match { $p: Person } return { $p.name as name } }"
ADD = 'query add() { insert Person { name: "Žofie" } }'

# What a command needs besides, for the rest of it to be looked at.
NEEDED: dict[str, list[str]] = {
    "load": ["--mode", "merge"],
    "pipeline run": ["--store", "GRAPH"],
    "pipeline validate": ["--store", "GRAPH"],
    "mutate": ["--store", "GRAPH", "-e", ADD],
    "query": ["--store", "GRAPH", "-e", ALL],
    "explain": ["--store", "GRAPH", "-e", ALL],
    "changes poll": ["--start", "beginning"],
    "cleanup": ["--keep", "1"],
    "embed": ["--store", "GRAPH", "--type", "Person"],
    "generate": ["--people", "3"],
    "lint": ["--query", "all.gq"],
}
GIVEN = {"name": "dev", "source": "dev", "commit_id": "main", "before": "main", "after": "dev"}
GIVEN |= {
    "uri": "GRAPH",
    "schema": "film.pg",
    "data": "people.jsonl",
    "out": "out",
    "mode": "merge",
}
GIVEN |= {"file": "people.yaml", "files": "film.pg"}
GIVEN |= {
    "entity": "node",
    "type_": "Person",
    "type_name": "Person",
    "id_": "Ben",
    "property_": "name",
}
GIVEN |= {"policy": "policy.yaml", "tests": "cases.yaml", "who": "ann", "action": "read"}
GIVEN |= {"arguments": "version", "shell": "bash"}
GIVEN |= {"old": "dev", "new": "other", "to": "main", "ref": "main"}
GIVEN |= {"resource": "graph.film", "lock_id": "01A"}
STARTS = {("serve", "--unauthenticated"), ("submit", "--run")}
"""What starts something that goes on, and is tested where that is."""
POLICY = """\
version: 1
groups: {team: [ann]}
rules: [{id: r, allow: {actors: {group: team}, actions: [read]}}]
"""
CASES = "version: 1\ncases: [{id: c, actor: ann, action: read, expect: allow}]\n"


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    def refuse(_: object) -> Any:
        raise errors.EngineError("there is no Spark here")

    monkeypatch.setattr(spark_sessions, "_start", refuse)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    graph = og.init(tmp_path / "film.omni", SCHEMA)
    graph.branches.create("dev")
    graph.mutate(ADD)
    Path("film.pg").write_text(SCHEMA, encoding="utf-8")
    Path("all.gq").write_text(ALL, encoding="utf-8")
    line = '{"type": "Person", "data": {"name": "Ben"}}\n'
    Path("people.jsonl").write_text(line, encoding="utf-8")
    Path("people.yaml").write_text("version: 1\n", encoding="utf-8")
    Path("policy.yaml").write_text(POLICY, encoding="utf-8")
    Path("cases.yaml").write_text(CASES, encoding="utf-8")
    return str(graph.location)


def commands(command: click.Command = cli, *words: str) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        for name in command.list_commands(ctx):
            found = command.get_command(ctx, name)
            assert found is not None
            yield from commands(found, *words, name)
    else:
        yield " ".join(words), command


def wrong_lines(words: str, command: click.Command, values: tuple[str, ...]) -> Iterator[list[str]]:
    """Every command line of a command in which one value is wrong, or a flag is turned."""
    for param in command.params:
        if isinstance(param, GlobalOption) and words != "snapshot":
            continue  # they are the same everywhere
        needed = _needed(words, command, param)
        if isinstance(param, click.Option) and param.is_flag:
            yield [*words.split(), *needed, param.opts[0]]
            continue
        for value in values:
            wrong = [param.opts[0], value] if isinstance(param, click.Option) else ["--", value]
            yield [*words.split(), *needed, *wrong]


def _needed(words: str, command: click.Command, tried: click.Parameter) -> list[str]:
    found = list(NEEDED.get(words, []))
    if tried.opts[0] in found:
        at = found.index(tried.opts[0])
        del found[at : at + 2]
    names = {param.name for param in command.params}
    if "uri" in names and "--uri" not in found and tried.name != "uri":
        is_option = any("--uri" in param.opts for param in command.params)
        found += ["--uri", "GRAPH"] if is_option else []
    for param in command.params:
        if param is tried or (not param.required and (param.name != "uri" or "--uri" in found)):
            continue
        if isinstance(param, click.Argument):
            found.append(GIVEN[str(param.name)])
        elif param.opts[0] not in found:
            found += [param.opts[0], GIVEN[str(param.name)]]
    return found


@pytest.mark.slow
def test_every_option_of_every_verb_may_be_wrong(graph: str, run: Callable[..., Ran]) -> None:
    complaints: list[str] = []
    for words, command in commands():
        for line in wrong_lines(words, command, WRONG):
            if (words, line[-1]) in STARTS:
                continue
            args = [graph if arg == "GRAPH" else arg for arg in line]
            try:
                ran = run(*args)
            except BaseException as error:  # noqa: BLE001 - whatever it is, it would be a traceback
                complaints.append(f"{line!r:.200}: {error!r}")
                continue
            if ran.code not in {0, 1, 2, 4} or (ran.code and not (ran.err + ran.out).strip()):
                complaints.append(f"{line!r:.200}: ends with {ran.code}")
            if "Traceback" in ran.err or "defect" in ran.err:
                complaints.append(f"{line!r:.200}: {ran.err}")
        assert run("query", "--store", graph, "-e", ALL).code == 0, words
    assert not complaints, "\n".join(complaints)
    assert run("mutate", "--store", graph, "-e", ADD).code == 0


def test_words_that_are_no_text(run: Callable[..., Ran]) -> None:
    for word in ("a\0b", "a\udcffb"):
        ran = run("snapshot", word)
        assert ran.code == 2
        assert "error: an argument is not UTF-8 text: 'a" in ran.err
    # What a locale without UTF-8 makes of it.
    assert "no graph at" in run("snapshot", "\udcc5\udcbeofie.omni").err


def test_what_no_verb_had_thought_of(
    graph: str, run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(error: BaseException) -> Callable[..., Any]:
        def fail(*_: object, **__: object) -> Any:
            raise error

        return fail

    for error, said in (
        (KeyError("x"), r"error: KeyError: 'x' (test_wrong_values.py:"),
        (MemoryError(), "error: memory ran out: ask for less"),
        (UnicodeEncodeError("latin-1", "Ž", 0, 1, "no"), r"error: latin-1 has no letter '\u017d'"),
    ):
        monkeypatch.setattr("omnigraph.graph.open", failing(error))
        ran = run("snapshot", graph)
        assert (ran.code, ran.out) == (1, "")
        assert said in ran.err
        assert ran.err.count("\n") == 1


def test_a_process_without_streams(
    graph: str, monkeypatch: pytest.MonkeyPatch, run: Callable[..., Ran]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", None)
        patch.setattr(sys, "stderr", None)
        assert run("export", graph, "--out", "all.jsonl").code == 0
        assert run("cleanup", "s3://b/g", "--keep", "1", "--confirm").code == 1
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        for line in (["export", graph], ["diff", "main", "dev", "--uri", graph, "--json"]):
            assert run(*line).code == 1
            assert run(*line).err == "error: [Errno 9] stdout is closed\n"


def start(
    *args: str, out: int = subprocess.PIPE, environment: Mapping[str, str] | None = None
) -> tuple[int, str, str]:
    ran = subprocess.run(
        [PROGRAM, *args],
        stdout=out,
        stderr=subprocess.PIPE,
        env={**os.environ, **(environment or {})},
        check=False,
        timeout=120,
    )
    return ran.returncode, (ran.stdout or b"").decode(), ran.stderr.decode()


@pytest.mark.slow
def test_a_reader_that_has_seen_enough(graph: str) -> None:
    for line in (["export", graph], ["query", "--store", graph, "-e", ALL, "--format", "csv"]):
        read_end, write_end = os.pipe()
        os.close(read_end)
        assert start(*line, out=write_end) == (0, "", "")
        os.close(write_end)


@pytest.mark.slow
def test_a_locale_without_utf_8(graph: str) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    find = 'query z() { match { $p: Person { name: "Žofie" } } return { $p.name as name } }'
    query = ["query", "--store", graph, "-e", find, "--format", "csv"]
    assert start(*query, environment=plain) == (0, "name\nŽofie\n", "")
    assert start(*query, environment={"PYTHONIOENCODING": "ascii"})[:2] == (0, "name\nŽofie\n")
    shown = ["query", "--store", graph, "-e", find, "--format", "table"]
    code, _, said = start(*shown, environment={"PYTHONIOENCODING": "latin-1"})
    assert code == 1
    assert said.startswith(r"error: latin-1 has no letter '\u017d': set PYTHONUTF8=1")
    assert said.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OMNIGRAPH_CACHE_BYTES", "9" * 40),
        ("OMNIGRAPH_EMBED_TIMEOUT_MS", "abc"),
        ("OMNIGRAPH_EMBED_PROVIDER", "nan"),
    ],
)
def test_values_of_the_environment(graph: str, variable: str, value: str) -> None:
    load = ["load", graph, "--data", "people.jsonl", "--mode", "merge"]
    code, _, said = start(*load, environment={variable: value})
    assert "Traceback" not in said
    assert "defect" not in said
    if code:
        assert f"error: {variable}" in said
