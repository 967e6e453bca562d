"""When a server is not there, is not one, breaks off or is slow: what is said, what is tried."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.client import connection
from omnigraph.client.address import ServerAddress
from omnigraph.client.opening import list_graphs
from tests.client.conftest import Pair
from tests.client.running import TOKENS, application, denying, new_graph, running

ALL = "query all() { match { $p: Person } return { $p.name as n } order { $p.name asc } }"
ADD = 'query add() { insert Person { name: "Zed" } }'
TOKEN = "very-secret-token"  # noqa: S105 - of a test

Message = dict[str, Any]
Send = Callable[[Message], Awaitable[None]]


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nobody waits between two attempts; what was waited is told."""
    pauses: list[float] = []
    monkeypatch.setattr(connection, "sleep", pauses.append)
    return pauses


class Scripted:
    """A server that answers as it is told, and remembers what it was asked."""

    def __init__(self, *answers: tuple[int, dict[str, str], bytes] | None) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, dict[str, str]]] = []

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        if scope["type"] != "http":
            return
        while (await receive()).get("more_body"):
            pass
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.asked.append((f"{scope['method']} {scope['path']}", headers))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            head = [(b"content-length", b"9")]
            await send({"type": "http.response.start", "status": 200, "headers": head})
            raise RuntimeError("break off")
        status, given, body = answer
        names = [(name.encode(), value.encode()) for name, value in given.items()]
        await send({"type": "http.response.start", "status": status, "headers": names})
        await send({"type": "http.response.body", "body": body})


JSON = {"content-type": "application/json"}
GOOD = (200, JSON, b'{"branches": ["main"]}')
MADE_BODY = (
    b'{"branch": "main", "query_name": "add", "affected_nodes": 1, "affected_edges": 0, '
    b'"actor_id": null, "commit": null, "warnings": []}'
)
MADE = (200, JSON, MADE_BODY)


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, Scripted]]:
    """One server for all that ask it; each says what it answers."""
    scripted = Scripted()
    with running(scripted) as url:
        yield url, scripted


@pytest.fixture
def scripted(server: tuple[str, Scripted]) -> Scripted:
    server[1].asked.clear()
    return server[1]


@pytest.fixture
def url(server: tuple[str, Scripted]) -> str:
    return server[0]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        ((200, {"content-type": "text/html"}, b"<html>"), "bad_answer", "answers with a web page"),
        ((404, {"content-type": "text/html"}, b"<html>"), "bad_answer", "check the address"),
        ((302, {"location": "http://x?t=1"}, b""), "bad_answer", "sends its callers elsewhere"),
        ((200, {}, b""), "bad_answer", "answers with nothing"),
        ((200, JSON, b"[]"), "bad_answer", "versions of the same release"),
        ((200, JSON, b'{"branches": '), "bad_answer", "does not understand"),
        ((502, {"content-type": "text/plain"}, b"bad gateway"), "lost", "status 502"),
        ((429, JSON, b'{"error": "full", "code": "too_many_requests"}'), "busy", "full; try"),
    ],
)
def test_an_answer_that_is_none(
    url: str, scripted: Scripted, answer: tuple[int, dict[str, str], bytes], kind: str, words: str
) -> None:
    scripted.answers = [answer]
    graph = og.open(url, graph="film", token=TOKEN)
    with pytest.raises(errors.ServerError, match=words) as failed:
        graph.branches.list()
    assert failed.value.kind == kind
    check_silent(failed.value)


def check_silent(error: BaseException) -> None:
    """No token in anything that an error holds, its cause and its context included."""
    seen: list[BaseException] = []
    found: BaseException | None = error
    while found is not None and found not in seen:
        seen.append(found)
        texts = [str(found), repr(found), repr(vars(found))]
        assert all(TOKEN not in text for text in texts), texts
        found = found.__cause__
    assert TOKEN.encode() not in pickle.dumps(error)


def test_nobody_is_there(no_pause: list[float]) -> None:
    graph = og.open(f"http://127.0.0.1:{free_port()}", graph="film", token=TOKEN)
    with pytest.raises(errors.ServerError, match="cannot be reached") as failed:
        graph.mutate(ADD)
    # What was never sent may be sent again, even a write.
    assert (failed.value.kind, len(no_pause)) == ("refused", 2)
    assert "outcome" not in failed.value.details
    check_silent(failed.value)


def test_a_server_without_tls(url: str) -> None:
    graph = og.open(url.replace("http", "https"), graph="film", token=TOKEN)
    with pytest.raises(errors.ServerError, match="does not speak TLS") as failed:
        graph.branches.list()
    assert failed.value.kind == "tls"
    check_silent(failed.value)


@pytest.mark.parametrize("broken", [None, (503, {"content-type": "text/plain"}, b"no")])
def test_reads_are_repeated_and_writes_are_not(url: str, scripted: Scripted, broken: Any) -> None:
    graph = og.open(url, graph="film")
    scripted.answers = [broken, GOOD]
    assert graph.branches.list() == ["main"]
    assert len(scripted.asked) == 2
    scripted.answers = [broken, MADE]
    with pytest.raises(errors.ServerError) as failed:
        graph.mutate(ADD)
    assert len(scripted.asked) == 3
    if broken is None:
        assert failed.value.details["outcome"] == "unknown"
        assert "run_id" in failed.value.message
    scripted.answers = [broken, broken, MADE]
    assert graph.mutate(ADD, run_id="once").affected_nodes == 1
    assert [asked["idempotency-key"] for _, asked in scripted.asked[3:]] == ["once"] * 3


def test_whoever_is_busy_says_for_how_long(
    url: str, scripted: Scripted, no_pause: list[float]
) -> None:
    body = b'{"error": "too many requests", "code": "too_many_requests"}'
    scripted.answers = [(429, {**JSON, "retry-after": "2"}, body), MADE]
    assert og.open(url, graph="film").mutate(ADD).affected_nodes == 1
    assert no_pause == [2.0]
    scripted.answers = [(429, {**JSON, "retry-after": "60"}, body)]
    with pytest.raises(errors.ServerError, match="try again after 60 s") as failed:
        og.open(url, graph="film").mutate(ADD)
    assert failed.value.details == {"retry_after": "60", "kind": "busy"}


def test_nothing_is_waited_for_longer_than_was_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        graph = og.open(url, graph="film", timeout=0.05)
        with pytest.raises(errors.ServerError, match=r"no answer for 0\.05 s") as failed:
            graph.mutate(ADD)
        assert (failed.value.kind, failed.value.details["outcome"]) == ("timeout", "unknown")


@pytest.mark.slow
def test_what_was_written_is_what_is_read(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "film.omni")
    asked: list[tuple[str, str | None]] = []
    inner = application(graph)

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            found = dict(scope["headers"]).get(b"omnigraph-min-commit")
            asked.append((scope["path"], None if found is None else found.decode()))
        await inner(scope, receive, send)

    with running(watched) as url:
        served = og.open(url, graph="film")
        served.query(ALL)
        first = served.mutate(ADD).commit
        served.query(ALL)
        served.branches.create("dev")
        other = served.mutate(ADD.replace("Zed", "Yan"), branch="dev").commit
        assert first is not None
        assert other is not None
        served.query(ALL, branch="dev")
        graph.branches.delete("dev")
        graph.branches.create("dev")
        # That commit is gone: what is there now is shown.
        assert len(served.query(ALL, branch="dev")) == 3
        served.query(ALL, branch="dev")
    sent = [commit for path, commit in asked if path.endswith("/query")]
    assert sent == [None, first.id, other.id, other.id, None, None]


@pytest.mark.slow
def test_who_may_not_is_told_so(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "film.omni")
    with running(denying(graph)) as url:
        with pytest.raises(errors.Unauthenticated, match="missing bearer token"):
            og.open(url, graph="film").query(ALL)
        with pytest.raises(errors.Unauthenticated, match="invalid bearer token") as failed:
            og.open(url, graph="film", token=TOKEN).query(ALL)
        check_silent(failed.value)
        served = og.open(url, graph="film", token=TOKENS["ann"])
        assert len(served.query(ALL)) == 2
        with pytest.raises(errors.PolicyDenied, match="'change' on branch 'main' for actor 'ann'"):
            served.mutate(ADD)
        with pytest.raises(errors.NotFound, match="graph 'other' not found"):
            og.open(f"{url}/graphs/other", graph="other", token=TOKENS["ann"]).query(ALL)
        with pytest.raises(errors.PolicyDenied, match="graph_list"):
            list_graphs(ServerAddress.parse(url), TOKENS["ann"])


def test_an_export_that_breaks_off_is_no_export(tmp_path: Path, pair: Pair) -> None:
    class Breaking:
        """Sends a line of more, and no more."""

        async def __call__(self, scope: Any, _: Any, send: Send) -> None:
            if scope["type"] == "http":
                head = {"type": "http.response.start", "status": 200, "headers": []}
                await send(head)
                line = b'{"type":"Film","data":{"id":"a"}}\n'
                await send({"type": "http.response.body", "body": line, "more_body": True})
                raise RuntimeError("break off")

    out = tmp_path / "film.jsonl"
    out.write_text("as it was")
    with running(Breaking()) as url:
        graph = og.open(url, graph="film")
        for write in (graph.export, graph.changes.baseline):
            with pytest.raises(errors.ServerError, match="broke off"):
                write(out)
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == ["film.jsonl"]
    assert out.read_text() == "as it was"
    chunks = list(pair.served.export().chunks())
    assert b"".join(chunk.data for chunk in chunks) == b"".join(
        chunk.data for chunk in pair.opened.export().chunks()
    )
    shown = [(chunk.kind, chunk.type_name, chunk.rows) for chunk in chunks]
    assert shown == [("edge", "ActedIn", 1), ("node", "Film", 1), ("node", "Person", 2)]


def wrong_addresses() -> Iterator[tuple[str, dict[str, Any], str]]:
    yield "http://", {"graph": "film"}, "the address of a server is"
    yield "http://user:pw@host", {"graph": "film"}, "a host and a path, and no more"
    yield "http://host?token=x", {"graph": "film"}, "a host and a path, and no more"
    yield "http://host", {}, "which graph"
    yield "http://host", {"graph": "a/b"}, "is no id of a graph"
    yield "http://host/graphs/a", {"graph": "b"}, "and graph= another one"
    yield "http://host", {"graph": "a", "actor": "ann"}, "the token decides who acts"
    yield "http://host", {"graph": "a", "read_only": True}, "the token decides who acts"
    yield "http://host", {"graph": "a", "token": "a b"}, "a token is a word"
    yield "http://host", {"graph": "a", "timeout": 0.0}, "above 0"
    yield "film.omni", {"graph": "a"}, "is no server"
    yield "http://host:99999", {"graph": "a"}, "the address of a server is"


@pytest.mark.parametrize(("location", "options", "words"), list(wrong_addresses()))
def test_an_address_that_does_not_do(location: str, options: Any, words: str) -> None:
    untyped: Any = og.open
    with pytest.raises(errors.BadRequest, match=words) as refused:
        untyped(location, **options)
    assert "pw" not in refused.value.message
    assert "token=x" not in refused.value.message


def test_addresses() -> None:
    for url, graph, wanted in (
        ("HTTP://Host:80/", "film", "http://host:80/graphs/film"),
        ("https://host/base/graphs/film/", None, "https://host/base/graphs/film"),
        ("http://[::1]:8080", "a-B", "http://[::1]:8080/graphs/a-B"),
    ):
        assert str(ServerAddress.parse(url, graph)) == wanted
    address = ServerAddress.parse("http://h", "g")
    assert address.url("branches", "a/b c") == "http://h/graphs/g/branches/a%2Fb%20c"


def test_a_token_is_shown_nowhere(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", TOKEN)
    graph = og.open(pair.url, graph="film")
    assert repr(graph) == f"<Graph {pair.url}/graphs/film>"
    assert TOKEN not in repr(graph._connection)
    with pytest.raises(errors.BadRequest, match="cannot be copied"):
        pickle.dumps(graph)
