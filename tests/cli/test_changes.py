"""`omnigraph changes`: following a branch and taking a baseline, for people and programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.cli.render.json_stream import json_pieces
from omnigraph.wire.body import LazyObject
from omnigraph.wire.changes import FeedBody
from tests.history.changing import SCHEMA, change_schema, make_people, mutate, person, place
from tests.wire.plain import plain

Run = Callable[..., Any]


@pytest.fixture
def uri(tmp_path: Path) -> str:
    make_people(tmp_path / "people.omni")
    return str(tmp_path / "people.omni")


@pytest.fixture
def graph(uri: str) -> og.Graph:
    return og.open(uri)


def test_polling_now_is_a_cursor(run: Run, uri: str, graph: og.Graph) -> None:
    cursor = graph.changes.poll().cursor
    ran = run("changes", "poll", "--uri", uri)
    assert (ran.code, ran.out, ran.err) == (0, f"cursor: {cursor}\ncaught up: yes\n", "")
    body = json.loads(run("changes", "poll", "--json", "--store", uri).out)
    assert body == {"blocks": [], "cursor": cursor, "caught_up": True}


def test_polling_for_people(run: Run, uri: str, graph: og.Graph) -> None:
    cursor = str(graph.changes.poll().cursor)
    first = mutate(graph, 'update Person set { age: 31 } where name = "Ann"', actor="ann")
    graph.load([], mode="append")
    lines = run("changes", "poll", "--cursor", cursor, "--uri", uri).out.splitlines()
    assert lines[0].startswith(f"commit {first} of ")
    assert lines[0].endswith(" by ann on main")
    assert lines[1:5] == ["node Person", "  ~ Ann", "      age: 30 → 31", "1 changed"]
    assert lines[5].startswith(f"commit {graph.snapshot().commit_id} of ")
    assert lines[6] == "no differences"
    assert lines[7:] == [f"cursor: {graph.changes.poll().cursor}", "caught up: yes"]


@pytest.mark.parametrize("limit", [[], ["--limit", "1"], ["--limit", "3"]])
def test_polling_for_programs(run: Run, uri: str, graph: og.Graph, limit: list[str]) -> None:
    graph.load([place(f"p{number}") for number in range(4)], mode="append")
    graph.load([person("Cid")], mode="append")
    ran = run("changes", "poll", "--start", "beginning", *limit, "--json", "--uri", uri)
    whole = plain(FeedBody.of(graph.changes.poll(start="beginning")))
    assert ran.out == json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def test_polling_with_filters_on_a_branch(run: Run, uri: str, graph: og.Graph) -> None:
    after = graph.snapshot().commit_id
    graph.branches.create("draft")
    graph.load([person("Cid"), place("Oslo")], mode="append", branch="draft")
    options = ["--branch", "draft", "--type", "Place", "--kind", "node", "--op", "insert"]
    ran = run("changes", "poll", "--start", f"after:{after}", *options, "--json", "--uri", uri)
    (block,) = json.loads(ran.out)["blocks"]
    assert [change["id"] for change in block["changes"]] == ["Oslo"]
    assert block["cause"]["authored_branch"] == "draft"


def test_what_cannot_be_delivered_ends_a_poll_with_its_cursor(
    run: Run, uri: str, graph: og.Graph
) -> None:
    less = SCHEMA.replace("\nedge Lives: Person -> Place\n", "")
    change_schema(graph, less)
    start = ["changes", "poll", "--start", "beginning", "--limit", "2", "--json", "--uri", uri]
    body = json.loads(run(*start).out)
    assert (len(body["blocks"]), body["caught_up"]) == (1, False)
    ran = run("changes", "poll", "--cursor", body["cursor"], "--uri", uri)
    assert (ran.code, ran.out) == (1, "")
    assert "the schema of Lives changed" in ran.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--cursor", "abc"], 1, "change cursor rejected: "),
        (["--cursor", "abc", "--start", "now"], 2, "leave --cursor or --start out"),
        (["--start", "later"], 1, "now, beginning or after:COMMIT"),
        (["--limit", "0"], 1, "from 1 on"),
        (["--limit", "many"], 2, "many"),
        (["--branch", "drft"], 1, "drft"),
        (["--type", "Persn"], 1, "did you mean `Person`?"),
        (["--op", "upsert"], 2, "upsert"),
        (["--as", "ann"], 2, "takes no --as"),
    ],
)
def test_refused(run: Run, uri: str, arguments: list[str], code: int, message: str) -> None:
    ran = run("changes", "poll", *arguments, "--uri", uri)
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err


# -- baseline ----------------------------------------------------------------------


def test_a_baseline(run: Run, uri: str, graph: og.Graph, tmp_path: Path) -> None:
    out = tmp_path / "base.jsonl"
    cursor = graph.changes.poll().cursor
    commit = graph.snapshot().commit_id
    ran = run("changes", "baseline", "--out", str(out), "--uri", uri)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"wrote 5 entities of commit {commit} to {out}\ncursor: {cursor}\n"
    assert out.read_text().splitlines() == list(graph.export())
    ran = run("changes", "baseline", "--out", str(out), "--json", "--uri", uri)
    assert json.loads(ran.out) == {"snapshot_commit_id": commit, "resume_cursor": cursor}


def test_a_baseline_of_some_types(run: Run, uri: str, tmp_path: Path) -> None:
    out = tmp_path / "base.jsonl"
    filters = ["--branch", "main", "--kind", "node", "--type", "Person", "--op", "insert"]
    ran = run("changes", "baseline", "--out", str(out), *filters, "--json", "--uri", uri)
    assert len(out.read_text().splitlines()) == 2
    cursor = json.loads(ran.out)["resume_cursor"]
    poll = ["changes", "poll", "--cursor", cursor, "--uri", uri]
    assert run(*poll, *filters).code == 0
    assert "other kinds" in run(*poll).err


def test_a_baseline_needs_a_place(run: Run, uri: str, tmp_path: Path) -> None:
    assert run("changes", "baseline", "--uri", uri).code == 2
    ran = run("changes", "baseline", "--out", str(tmp_path / "no" / "base.jsonl"), "--uri", uri)
    assert (ran.code, ran.out) == (1, "")
    assert "cannot write" in ran.err


# -- JSON as it comes --------------------------------------------------------------


@pytest.mark.parametrize(
    ("lazy", "plain"),
    [
        (LazyObject([]), {}),
        (LazyObject([("a", iter([])), ("b", {})]), {"a": [], "b": {}}),
        (
            LazyObject([("a\n", iter([1, {"b": [2, "\n"]}, LazyObject([("c", iter([None]))])]))]),
            {"a\n": [1, {"b": [2, "\n"]}, {"c": [None]}]},
        ),
    ],
)
def test_json_is_laid_out_as_if_it_were_written_at_once(lazy: LazyObject, plain: Any) -> None:
    assert "".join(json_pieces(lazy)) == json.dumps(plain, indent=2)
