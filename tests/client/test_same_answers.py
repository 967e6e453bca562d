"""The same calls on a graph that is opened here and on one on a server: results and errors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.client.graph import ServedGraph
from omnigraph.client.unserved import UNSERVED
from omnigraph.graph import Session
from omnigraph.graph.access import Surface
from omnigraph.manifest.entries import Commit
from omnigraph.read.output.result import Result
from tests.client.conftest import Pair
from tests.client.running import SCHEMA, application, new_graph, running

Call = Callable[[Any], object]

PEOPLE = (
    "query people() { match { $p: Person } "
    "return { $p.name as name, $p.age as age, $p.born as born } order { $p.name asc } }"
)
ADD = "query add($n: String, $a: I32?) { insert Person { name: $n, age: $a } }"
EVERY = "".join(map(chr, range(1, 128))) + "Żółć \u2028 😀"

LOOKS: dict[str, Call] = {
    "query": lambda g: g.query(PEOPLE),
    "query at a commit": lambda g: g.query(PEOPLE, snapshot=g.commits.list()[0].id),
    "query nothing": lambda g: g.query(PEOPLE.replace("Person }", 'Person { name: "No" } }')),
    "query with any text": lambda g: g.query(
        "query q($t: String) { match { $p: Person } return { $t as t, $p.name as n } "
        "order { $p.name asc } }",
        params={"t": EVERY},
    ),
    "arrow": lambda g: g.query(PEOPLE).to_arrow(),
    "pandas": lambda g: g.query(PEOPLE).to_pandas().to_dict("records").__repr__(),
    "a result as a page": lambda g: g.query(PEOPLE)._repr_html_(),
    "one row and one value": lambda g: (g.query(PEOPLE)[0], g.query(PEOPLE).head(1)["age"]),
    "schema": lambda g: g.schema,
    "schema as a picture": lambda g: g.catalog._repr_html_(),
    "status as a page": lambda g: g.status()._repr_html_().partition("</p>")[2],
    "branches": lambda g: g.branches.list(),
    "commits": lambda g: g.commits.list(),
    "commits of nobody": lambda g: g.commits.list(actor="nobody"),
    "commit": lambda g: g.commits.get(g.commits.list()[-1].id),
    "changes of a commit": lambda g: g.commits.changes(g.commits.list()[0].id, types="Person"),
    "poll": lambda g: g.changes.poll(start="beginning", ops=["insert"], kinds="edge").blocks,
    "baseline": lambda g: [*g.changes.baseline(types=["Film"])][:-1],
    "export": lambda g: list(g.export()),
    "export some": lambda g: list(g.export(types=["Film", "ActedIn"])),
    "lint": lambda g: [one.code for one in g.lint(PEOPLE.replace("age as", "agee as")).diagnostics],
    "status": lambda g: (g.status().rows, g.status().types, g.status().head),
    "indexes": lambda g: g.index_status().indexes,
    "maintain": lambda g: [step.action for step in g.maintain(dry_run=True).steps],
    # errors
    "a parse error": lambda g: g.query("query q( { }"),
    "a type error": lambda g: g.query("query q() { match { $p: Persn } return { $p.name } }"),
    "a parameter": lambda g: g.query(
        "query q($n: I32) { match { $p: Person } return { $n as n } }", params={"n": "x"}
    ),
    "no branch": lambda g: g.query(PEOPLE, branch="nowhere"),
    "no snapshot": lambda g: g.query(PEOPLE, snapshot="01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    "no commit": lambda g: g.commits.get("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    "a cursor": lambda g: g.changes.poll(cursor="nonsense"),
    "no type": lambda g: list(g.export(types=["Nobody"])),
    "a wrong argument": lambda g: g.query(5),
    "a wrong parameter": lambda g: g.query(PEOPLE, params=[1]),
    "out of range": lambda g: g.mutate(ADD, params={"n": "Old", "a": 200}),
    "a wrong line": lambda g: g.load('{"type": "Person", "data": {"nam": 1}}', mode="append"),
    "a key that is there": lambda g: g.load(
        '{"type": "Person", "data": {"name": "Ann"}}', mode="append"
    ),
    "no end": lambda g: g.load(
        '{"edge": "ActedIn", "from": "Ann", "to": "No", "data": {"id": "e9"}}', mode="append"
    ),
    "a mode": lambda g: g.load("", mode="sideways"),
    "a lost condition": lambda g: g.mutate(
        ADD, params={"n": "X", "a": 1}, if_commit=g.commits.list()[-1].id
    ),
    "a branch that is there": lambda g: g.branches.create("main"),
    "no branch to delete": lambda g: g.branches.delete("nowhere"),
    "a bad name": lambda g: g.branches.create("a/../b"),
    "no branch to merge": lambda g: g.branches.merge("nowhere"),
    "a schema": lambda g: g.apply_schema("node Person { name: Strin @key }"),
    "a refused schema": lambda g: g.apply_schema(SCHEMA.replace("age: I32?", "age: I32")),
    "no vectors": lambda g: g.embed("Person"),
    "a blob": lambda g: _seen(g.blob("node", "Person", "Ann", "photo")),
    "a blob at a commit": lambda g: _seen(
        g.blob("node", "Person", "Ann", "photo", snapshot=g.commits.list()[0].id)
    ),
    "a range": lambda g: g.blob("node", "Person", "Ann", "photo").read(1, 4),
    "no range": lambda g: g.blob("node", "Person", "Ann", "photo").read(4, 9),
    "no blob": lambda g: g.blob("node", "Person", "Ben", "photo"),
    "nobody": lambda g: g.blob("node", "Person", "", "photo"),
    "no such type": lambda g: g.blob("edge", "Person", "Ann", "photo"),
    "no such property": lambda g: g.blob("node", "Person", "Ann", "age"),
    "no such branch": lambda g: g.blob("node", "Person", "Ann", "photo", branch="nowhere"),
    "no files": lambda g: g.load("nowhere.jsonl", mode="append"),
}


def _seen(blob: Any) -> object:
    """Everything that a blob says of itself."""
    names = ("kind", "size", "etag", "uri", "offset", "commit_id", "selector")
    return [*(getattr(blob, name) for name in names), repr(blob), blob.read(), list(blob)]


def plain(found: object) -> object:
    """A result as it can be compared: nothing that tells where it was made."""
    if isinstance(found, Result):
        whole = (found.query_name, found.branch, found.snapshot, found.commit_id)
        return [*whole, found.table.schema, found.rows]
    if isinstance(found, Commit):
        names = {one.name for one in fields(Commit)} - {"stored", "metadata"}
        return {name: getattr(found, name) for name in names}
    if isinstance(found, list | tuple):
        return [plain(one) for one in found]
    if is_dataclass(found) and not isinstance(found, type):
        return {one.name: plain(getattr(found, one.name)) for one in fields(found)}
    return found


SAID_OTHERWISE = (errors.BranchNotFound, errors.KeyConflict, errors.PreconditionFailed)
"""What the wire has words of its own for."""


def outcome(call: Call, graph: object) -> object:
    """What came of a call."""
    try:
        return plain(call(graph))
    except errors.OmniGraphError as error:
        extra = {name: getattr(error, name, None) for name in ("report", "rule", "kind")}
        said = () if isinstance(error, SAID_OTHERWISE) else (error.message, str(error))
        return type(error), error.code, *said, plain_details(error), extra


def plain_details(error: errors.OmniGraphError) -> object:
    """Details in the types of JSON; those of a bad request are not sent."""
    import msgspec

    if type(error) in (errors.BadRequest, errors.NotFound, errors.BranchNotFound, errors.Conflict):
        return {}
    details = msgspec.json.decode(msgspec.json.encode(error.details, enc_hook=str))
    if isinstance(error, errors.KeyConflict):
        return {name: details[name] for name in ("type_key", "entity_id")}
    return details


@pytest.mark.parametrize("name", LOOKS)
def test_a_look_gives_the_same(pair: Pair, name: str) -> None:
    here, there = outcome(LOOKS[name], pair.opened), outcome(LOOKS[name], pair.served)
    assert there == here


def steps(graph: Any) -> Iterator[object]:
    """A history; every call is made on two graphs that began alike."""
    yield graph.mutate(ADD, params={"n": "Cid", "a": None})
    yield graph.mutate(ADD.replace("insert", "upsert"), params={"n": "Ann", "a": 50}, run_id="r1")
    yield graph.mutate(ADD.replace("insert", "upsert"), params={"n": "Ann", "a": 50}, run_id="r1")
    yield graph.mutate("query q() { delete Person where name = $n }".replace("$n", '"Nobody"'))
    yield graph.branches.create("dev")
    rows = [{"type": "Person", "data": {"name": "Dan", "photo": b"\x00dan"}}]
    yield graph.load(rows, mode="append", branch="dev")
    line = '{"type": "Film", "data": {"title": "Ran", "year": 1985}}\n'
    yield graph.load(line, mode="merge", branch="new", from_branch="dev", run_id="r2")
    yield graph.load(line, mode="merge", branch="new", from_branch="dev", run_id="r2")
    yield graph.query(PEOPLE, branch="new")
    yield graph.mutate(ADD.replace("insert", "upsert"), params={"n": "Ann", "a": 51}, branch="dev")
    yield graph.mutate(ADD.replace("insert", "upsert"), params={"n": "Ann", "a": 52})
    try:
        graph.branches.merge("dev")
    except errors.MergeConflicts as error:
        yield error.conflicts
    yield graph.branches.merge("new", run_id="r3")
    yield graph.branches.merge("new", delete_source=True)
    yield graph.branches.list()
    head = graph.commits.list()[0].id
    yield graph.mutate(ADD, params={"n": "Eva", "a": 1}, if_commit=head)
    yield graph.apply_schema(SCHEMA.replace("year: I32?", "year: I32?\n    length: I32?"))
    yield graph.apply_schema(graph.schema)
    yield graph.query(PEOPLE)
    yield list(graph.export(types=["Person", "Film"]))
    yield graph.branches.delete("dev")
    yield sorted((one.op, one.id) for one in graph.commits.changes(head).changes)


OWN = {"id", "parent_id", "merged_parent_id", "commit_id", "created_at", "base_commit_id"}
UNSENT = {"source_id", "work", "plan", "base_commit_id", "counts", "embedding"}


def comparable(found: object) -> object:
    """What two graphs that began alike have in common."""
    if isinstance(found, Result):
        return [found.query_name, found.branch, found.table.schema, found.rows]
    if is_dataclass(found) and not isinstance(found, type):
        drop = (OWN | {"stored", "metadata"}) if isinstance(found, Commit) else UNSENT
        names = [one.name for one in fields(found) if one.name not in drop]
        return {name: comparable(getattr(found, name)) for name in names}
    if isinstance(found, list | tuple):
        return [comparable(one) for one in found]
    return found


@pytest.mark.slow
def test_a_history_is_the_same(tmp_path: Path) -> None:
    opened, behind = new_graph(tmp_path / "here.omni"), new_graph(tmp_path / "there.omni")
    with running(application(behind)) as url:
        served = og.open(url, graph="film")
        for number, (here, there) in enumerate(
            zip(steps(opened), steps(served), strict=True), start=1
        ):
            assert comparable(there) == comparable(here), number
        report: Any = served.export(tmp_path / "there.jsonl", types=["Person", "ActedIn"])
        same = opened.export(tmp_path / "here.jsonl", types=["Person", "ActedIn"])
        assert (report.nodes, report.edges, report.bytes) == (same.nodes, same.edges, same.bytes)
        written = served.changes.baseline(tmp_path / "baseline.jsonl")
        opened.changes.baseline(tmp_path / "opened.jsonl")
        assert (tmp_path / "baseline.jsonl").stat().st_size == (
            tmp_path / "opened.jsonl"
        ).stat().st_size
        assert served.changes.poll(cursor=written.resume_cursor, wait=0.1).blocks == ()


def test_everything_is_there_or_says_why_not(pair: Pair) -> None:
    session = pair.opened
    for name in dir(session):
        if name.startswith("_") or name == "manifest":
            continue
        assert hasattr(ServedGraph, name) or hasattr(pair.served, name), name
        if isinstance(value := getattr(session, name), Surface):
            there = getattr(pair.served, name)
            for method in dir(type(value)):
                assert method.startswith("_") or hasattr(there, method), f"{name}.{method}"
    for name in UNSERVED:
        assert hasattr(Session, name) or name == "as_actor"
        with pytest.raises(errors.NotServed, match=name) as refused:
            getattr(pair.served, name)()
        assert refused.value.details == {"name": name}


def test_options_are_those_of_an_opened_graph(pair: Pair) -> None:
    """Whoever moves to a server gives the same arguments; what cannot be sent is refused."""
    spaces = [(pair.opened, pair.served)]
    spaces += [
        (getattr(pair.opened, name), getattr(pair.served, name))
        for name in ("branches", "tags", "commits", "changes")
    ]
    for here, there in spaces:
        for name, method in inspect.getmembers(type(there), inspect.isfunction):
            if name.startswith("_") or name in UNSERVED or not hasattr(here, name):
                continue
            if method.__doc__ and method.__doc__.startswith("Not served"):
                with pytest.raises(errors.NotServed):
                    method(there)
                continue
            known = inspect.signature(getattr(type(here), name)).parameters
            assert list(known) == [
                one for one in inspect.signature(method).parameters if one != "wait"
            ], name
    wrong: list[Call] = [
        lambda g: g.mutate(ADD, actor="ben"),
        lambda g: g.query(PEOPLE, max_bytes=5),
        lambda g: g.load("", mode="append", dry_run=True),
        lambda g: g.load({"Person": object()}, mode="append"),
        lambda g: g.branches.merge("dev", resolve="source"),
        lambda g: g.branches.merge("dev", dry_run=True),
        lambda g: g.mutate(ADD, message="why"),
        lambda g: g.commits.list(grep="why"),
        lambda g: g.export(snapshot="01A"),
        lambda g: g.export("there/"),
        lambda g: g.lint(PEOPLE, branch="dev"),
        lambda g: g.snapshot(commit="01A"),
    ]
    for call in wrong:
        with pytest.raises(errors.NotServed):
            call(pair.served)


def test_which_query_is_meant_is_asked_in_the_words_of_the_wire(pair: Pair) -> None:
    for text in ("", PEOPLE + PEOPLE.replace("people", "others")):
        with pytest.raises(errors.NotFound) as here:
            pair.opened.query(text)
        with pytest.raises(errors.BadRequest) as there:
            pair.served.query(text)
        assert there.value.message == here.value.message


@pytest.mark.slow
def test_a_large_blob_comes_in_pieces(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "film.omni")
    content = bytes(range(256)) * (9 << 12)
    graph.load([{"type": "Person", "data": {"name": "Big", "photo": content}}], mode="append")
    with running(application(graph)) as url:
        blob = og.open(url, graph="film").blob("node", "Person", "Big", "photo")
        graph.mutate('query q() { delete Person where name = "Big" }')
        pieces = list(blob.chunks(1))
        assert [len(piece) for piece in pieces] == [4 << 20, 4 << 20, (1 << 20) - 1]
        assert b"".join(pieces) == content[1:]
        with pytest.raises(errors.ResourceLimit):
            blob.read()


def test_stored_queries(pair: Pair) -> None:
    assert [one.name for one in pair.served.stored_queries().queries] == ["grow", "person"]
    assert pair.served.invoke("person", {"name": "Ann"}).rows == [{"name": "Ann", "age": 40}]
    with pytest.raises(errors.NotFound, match="stored query not found"):
        pair.served.invoke("nobody")
    with pytest.raises(errors.BadRequest, match="use omnigraph mutate grow"):
        pair.served.invoke("grow")
    done = pair.served.invoke_mutation("grow", {"name": "Nobody"}, run_id="s1")
    assert (done.affected_nodes, done.commit) == (0, None)


def test_a_served_graph_has_a_page(pair: Pair) -> None:
    page = pair.served._repr_html_()
    assert pair.served.location in page
    assert '<td>node:Person</td><td style="text-align: right">' in page
    assert "<svg" in page
    log = pair.served.commits.list()
    assert log[:1]._repr_html_().count(log[0].id) == 1
    silent = og.open("http://127.0.0.1:1", graph="film", token="t")  # noqa: S106 - of nobody
    assert "<svg" not in silent._repr_html_()
    assert f"{silent!r}".replace("<", "&lt;").replace(">", "&gt;") in silent._repr_html_()
