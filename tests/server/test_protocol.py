"""What comes before a route: paths, tokens, bodies, limits, and the states at boot."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import Headers
from starlette.types import Message

from omnigraph import errors
from omnigraph.cli.main import main
from omnigraph.errors import BadRequest, OmniGraphError, QueryCancelled
from omnigraph.graph import Cancellation
from omnigraph.server import call as calls
from omnigraph.server import tracing
from omnigraph.server.routes import loads, reads
from omnigraph.server.routes.byte_ranges import Part, Selected, select
from omnigraph.server.served import OneGraph, id_of_location, state_of
from omnigraph.server.settings import BODY_LIMIT, LOAD_LIMIT, Limits
from omnigraph.server.tokens import Tokens
from omnigraph.storage import budget
from omnigraph.wire.body import encode
from tests.server.serving import ADD, EVERYONE, ROWS, Served, bearer, serving

JSON = {"Content-Type": "application/json"}


# -- paths -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 404),
        ("/nothing", 404),
        ("/query", 404),
        ("/graphs/film", 404),
        ("/graphs/film/", 404),
        ("/graphs/film/nothing", 404),
        ("/graphs/nobody/schema", 404),
        ("/graphs/%2e%2e/schema", 400),
        ("/graphs/film%2Fschema", 404),
        ("/graphs/a%00b/schema", 400),
        ("/graphs/a_b/schema", 400),
        ("/graphs/healthz/schema", 400),
        ("/graphs/%ff/schema", 400),
        ("/graphs/film/commits/..%2F..%2Fx", 404),
        ("/graphs/film/commits/a%00b", 404),
    ],
)
def test_paths_are_taken_as_they_were_sent(served: Served, path: str, status: int) -> None:
    answer = served.client.get(path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json()) == {"error", "code"}


def test_another_method_is_told_which_there_are(served: Served) -> None:
    answer = served.client.put("/graphs/film/branches")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST")
    assert answer.json()["code"] == "method_not_allowed"
    missing = served.client.get("/graphs/nobody/schema")
    assert missing.json() == {"error": "graph 'nobody' not found", "code": "not_found"}


def test_a_request_has_an_id(served: Served) -> None:
    assert served.client.get("/healthz").headers["x-request-id"]
    named = served.client.get("/healthz", headers={"X-Request-Id": "of-a-proxy"})
    assert named.headers["x-request-id"] == "of-a-proxy"
    wrong = served.client.get("/healthz", headers={"X-Request-Id": "a b"})
    assert wrong.headers["x-request-id"] != "a b"


# -- bodies ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", JSON, 400),
        (b"[" * 1_000_000, JSON, 400),
        (b'{"query": "q", "params": {"a": ' + b"[" * 1_000_000, JSON, 400),
        (b'{"query": "q", "other": ' + b"[" * 1_000_000, JSON, 400),
        (b'{"query": "\xff"}', JSON, 400),
        (b'{"query": "\\ud800"}', JSON, 400),
        (b"{}", JSON, 400),
        (b'{"query": "q"}', {"Content-Type": "text/plain"}, 415),
        (b'{"query": "q"}', {}, 415),
        (b" " * (BODY_LIMIT + 1), JSON, 413),
    ],
)
def test_a_wrong_body_is_answered_as_json(
    served: Served, body: bytes, headers: dict[str, str], status: int
) -> None:
    answer = served.client.post("/graphs/film/query", content=body, headers=headers)
    assert answer.status_code == status
    assert answer.json()["code"] == "bad_request"


def test_a_load_may_be_larger_than_other_bodies(served: Served) -> None:
    lines = {"Content-Type": "application/x-ndjson"}
    path = "/graphs/film/load/ndjson"
    fits = served.client.post(path, content=b"\n" * (BODY_LIMIT + 1), headers=lines)
    assert fits.status_code == 200
    refused = served.client.post(path, content=b"\n" * (LOAD_LIMIT + 1), headers=lines)
    assert refused.status_code == 413
    assert refused.json()["resource_limit"] == {
        "resource": "graph_batch_request_bytes",
        "limit": LOAD_LIMIT,
        "actual": LOAD_LIMIT + 1,
    }


# -- tokens and states -------------------------------------------------------------------


def test_only_a_bearer_with_a_token_gets_in(tmp_path: Path) -> None:
    with serving(tmp_path / "film.omni", "default_deny") as served:
        path = "/graphs/film/schema"
        for wrong in ({}, {"Authorization": "bearer token-of-ann"}, {"Authorization": "Basic x"}):
            answer = served.client.get(path, headers=wrong)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.json() == {"error": "missing bearer token", "code": "unauthorized"}
        unknown = served.client.get(path, headers={"Authorization": "Bearer token-of-anna"})
        assert unknown.json() == {"error": "invalid bearer token", "code": "unauthorized"}
        # A token is asked for before the graph is looked for, and before a method is.
        assert served.client.get("/graphs/nobody/schema").status_code == 401
        assert served.client.get(path, headers=bearer("ann")).status_code == 200
        for is_open in ("/healthz", "/readyz", "/openapi.json", "/docs"):
            assert served.client.get(is_open).status_code == 200, is_open
        assert served.client.get("/metrics").status_code == 401
        described = served.client.get("/openapi.json").json()
        query = described["paths"]["/graphs/{graph_id}/query"]["post"]
        assert query["operationId"] == "cluster_query"
        assert query["security"] == [{"bearer_token": []}]


def test_what_everybody_may_do_is_described_without_security(served: Served) -> None:
    described = served.client.get("/openapi.json").json()
    assert "security" not in str(described).lower()
    page = served.client.get("/docs")
    assert "://" not in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("tokens", "policies", "flag", "state"),
    [
        (False, False, False, None),
        (False, False, True, "open"),
        (True, False, False, "default_deny"),
        (True, False, True, "default_deny"),
        (False, True, False, None),
        (False, True, True, None),
        (True, True, False, "policy_enabled"),
    ],
)
def test_the_state_at_boot(tokens: bool, policies: bool, flag: bool, state: str | None) -> None:
    def boot() -> str:
        return state_of(has_tokens=tokens, has_policies=policies, unauthenticated=flag)

    if state is None:
        with pytest.raises(BadRequest):
            boot()
    else:
        assert boot() == state


def test_a_page_of_another_site_changes_nothing(served: Served, tmp_path: Path) -> None:
    """A browser sends a request without a body wherever a page tells it to, and says for whom."""
    path = "/graphs/film/queries/grow"
    for origin, status in (
        ("http://evil.example", 400),
        ("null", 400),
        ("http://testserver.evil.example", 400),
        ("http://testserver", 200),
    ):
        headers = {"Origin": origin}
        asked = {"params": {"name": "Ann"}}
        assert served.client.post(path, headers=headers, json=asked).status_code == status, origin
        assert served.client.get("/graphs/film/schema", headers=headers).status_code == 200
    with serving(tmp_path / "other.omni", "policy_enabled") as other:
        headers = {**bearer("ann"), "Origin": "http://evil.example"}
        assert other.client.post(path, headers=headers, json=asked).status_code == 200


def test_tokens_come_from_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    file.write_text('{" ann ": " one ", "ben": "two"}')
    prefix = "OMNIGRAPH_SERVER_BEARER_TOKEN"
    found = Tokens.from_environment({prefix: "three", f"{prefix}S_FILE": str(file)})
    assert [found.actor_of(token) for token in ("one", "two", "three", "four")] == [
        "ann",
        "ben",
        "default",
        None,
    ]
    assert "one" not in repr(found)
    for wrong in (
        {prefix: " "},
        {f"{prefix}S_JSON": '{"ann": ""}'},
        {f"{prefix}S_JSON": '{"": "x"}'},
        {f"{prefix}S_JSON": '{"ann": "x", "ann ": "y"}'},
        {f"{prefix}S_JSON": '{"ann": "x", "ben": "x"}'},
        {f"{prefix}S_JSON": '["secret"]'},
        {f"{prefix}S_FILE": str(tmp_path / "none")},
        {f"{prefix}S_AWS_SECRET": "secret"},
        {prefix: "x", f"{prefix}S_JSON": '{"default": "y"}'},
    ):
        with pytest.raises(OmniGraphError) as refused:
            Tokens.from_environment(wrong)
        assert '"secret"' not in refused.value.message


def test_a_graph_gets_an_id_from_its_place(tmp_path: Path) -> None:
    assert id_of_location("s3://bucket/my_film.omni/") == "my-film"
    assert id_of_location("/graphs") == "graph"
    with pytest.raises(BadRequest, match="cannot be served"):
        OneGraph(str(tmp_path), "a_b").open()


# -- limits ------------------------------------------------------------------------------


def test_an_actor_has_only_so_much_under_way(tmp_path: Path) -> None:
    limits = Limits(requests_per_actor=1)
    with serving(tmp_path / "film.omni", limits=limits) as served:
        end = served.app.admission.admit(None, 1)
        refused = served.post("/mutate", {"query": ADD, "params": {"name": "Cem"}})
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
        assert refused.json()["code"] == "too_many_requests"
        assert served.post("/query", {"query": EVERYONE}).status_code == 200
        end()
        asked = {"query": ADD, "params": {"name": "Cem"}}
        assert served.post("/mutate", asked).status_code == 200
        assert served.post("/mutate", asked).status_code == 200


def test_one_export_of_a_graph_at_a_time(served: Served) -> None:
    give_back = asyncio.run(served.app.slots.reserve("film"))
    refused = served.post("/export")
    assert refused.status_code == 413
    assert refused.json()["resource_limit"]["resource"] == "stream_export_slots"
    give_back()
    assert served.post("/export").status_code == 200


def blocked(served: Served, monkeypatch: pytest.MonkeyPatch, name: str) -> Callable[[], None]:
    """Keep a method of the graph waiting until it is let go."""
    gate = threading.Event()
    method = getattr(served.graph, name)

    def wait(*args: Any, **named: Any) -> Any:
        gate.wait(20)
        return method(*args, **named)

    monkeypatch.setattr(served.graph, name, wait)
    return gate.set


def test_what_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(tmp_path / "film.omni", limits=Limits(request_seconds=0.2)) as served:
        let_go = blocked(served, monkeypatch, "query")
        late = served.post("/query", {"query": EVERYONE})
        assert late.status_code == 504
        assert "longer than 0.2 s" in late.json()["error"]
        let_go()
        let_go = blocked(served, monkeypatch, "mutate")
        asked = {"query": ADD, "params": {"name": "Cem"}}
        late = served.post("/mutate", asked, headers={"Idempotency-Key": "slow"})
        assert late.status_code == 504
        assert "Idempotency-Key" in late.json()["error"]
        let_go()
        served.app.workers.writers.shutdown(wait=True)
        # The write went on to its end.
        rows = served.graph.query(EVERYONE).rows
        assert {"name": "Cem"} in rows


def test_a_query_beyond_its_bounds_is_told_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bounds of a server are those that the query itself looks at."""
    with serving(tmp_path / "film.omni", limits=Limits(request_seconds=1e-6)) as served:
        slow = served.post("/query", {"query": EVERYONE})
        assert slow.status_code == 504
        assert slow.json()["error"].startswith("the ")
    monkeypatch.setattr(budget, "configured_bytes", lambda: 10)
    with serving(tmp_path / "small.omni") as served:
        # The text makes each row as large as a page: no two rows share it.
        large = EVERYONE.replace("as name", 'as name, "' + "x" * 100_000 + '" as x')
        refused = served.post("/query", {"query": large})
    assert (refused.status_code, refused.json()["code"]) == (413, "bad_request")
    limit = refused.json()["resource_limit"]
    assert (limit["resource"], limit["limit"]) == ("query_bytes", 10)
    assert limit["actual"] > 10


ERRORS: dict[int, tuple[errors.OmniGraphError, dict[str, Any]]] = {
    409: (
        errors.ReadSetChanged(
            "somebody was faster", details={"member": "node:Film", "expected": "1", "actual": "2"}
        ),
        {
            "code": "conflict",
            "read_set_conflict": {"member": "node:Film", "expected": "1", "actual": "2"},
        },
    ),
    410: (
        errors.ChangeFeedGap("gone", details={"first_unreadable_commit_id": "01A"}),
        {"change_feed_gap": {"first_unreadable_commit_id": "01A"}},
    ),
    412: (
        errors.PreconditionFailed(
            "no", details={"branch": "main", "expected": "01A", "actual": "01B"}
        ),
        {
            "error": "precondition failed on branch 'main': expected head '01A' but current is 01B",
            "precondition_failure": {"branch": "main", "expected": "01A", "actual": "01B"},
        },
    ),
    413: (
        errors.ResourceLimit(
            "resource limit exceeded for keyed entities: actual 8193, limit 8192",
            details={"resource": "keyed entities", "limit": 8192, "actual": 8193},
        ),
        {
            "code": "bad_request",
            "resource_limit": {"resource": "keyed entities", "limit": 8192, "actual": 8193},
        },
    ),
    500: (errors.StorageError("the disk is full", kind="unknown"), {"code": "internal"}),
    503: (
        errors.RecoveryRequired("recovery required", details={"operation_id": "01J"}),
        {"recovery_required": {"operation_id": "01J"}},
    ),
}
"""What hardly ever happens, with the body that it is answered with."""


@pytest.mark.parametrize("status", ERRORS)
def test_what_hardly_happens_is_answered_as_the_contract_says(
    served: Served, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    error, wanted = ERRORS[status]

    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(served.graph, "query", fail)
    answer = served.post("/query", {"query": EVERYONE})
    assert answer.status_code == status
    body = answer.json()
    body.pop("reason", None)
    assert body == {"error": error.message} | wanted


def test_nobody_works_for_a_client_that_is_gone(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = threading.Event()

    def wait(*_: Any, cancellation: Cancellation, **__: Any) -> None:
        while not cancellation.is_cancelled:
            time.sleep(0.01)
        stopped.set()
        raise QueryCancelled("the query was cancelled")

    monkeypatch.setattr(served.graph, "query", wait)
    body = encode({"query": EVERYONE})
    coming: Iterator[Message] = iter(
        [
            {"type": "http.request", "body": body, "more_body": False},
            {"type": "http.disconnect"},
        ]
    )
    sent: list[Message] = []

    async def receive() -> Message:
        return next(coming)

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/graphs/film/query",
        "raw_path": b"/graphs/film/query",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }
    asyncio.run(served.app(scope, receive, send))
    assert stopped.wait(20)
    assert sent == []


def test_a_request_is_a_span_where_somebody_traces(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: dict[str, Any] = {}

    class Span:
        def update_name(self, name: str) -> None:
            told["name"] = name

        def set_attribute(self, name: str, value: object) -> None:
            told[name] = value

    class Tracer:
        @contextmanager
        def start_as_current_span(self, _: str, context: object) -> Iterator[Span]:
            told["from"] = context
            yield Span()

    api = (Tracer(), lambda carried: carried["traceparent"])
    monkeypatch.setattr(tracing, "_api", lambda: api)
    served.post("/query", {"query": EVERYONE}, headers={"traceparent": "00-ab-cd-01"})
    assert (told["name"], told["from"], told["status"]) == ("query", "00-ab-cd-01", 200)
    assert told["commit"] == served.graph.snapshot().commit_id


@pytest.mark.parametrize(
    ("module", "name", "asked"),
    [
        (reads, "parse_source", {"query": EVERYONE}),
        (calls, "decoded", {"query": EVERYONE, "params": {"x": "x" * calls.LARGE}}),
        (loads, "_utf_8", ROWS.encode()),
    ],
)
def test_nobody_waits_for_what_takes_long(
    served: Served,
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    name: str,
    asked: dict[str, Any] | bytes,
) -> None:
    """A large text is looked at on a thread: all other requests are answered meanwhile."""
    done, threads = getattr(module, name), []

    def watched(*given: Any) -> Any:
        threads.append(threading.current_thread().name.partition("_")[0])
        return done(*given)

    monkeypatch.setattr(module, name, watched)
    if isinstance(asked, bytes):
        lines = {"Content-Type": "application/x-ndjson"}
        served.client.post("/graphs/film/load/ndjson", content=asked, headers=lines)
    else:
        served.post("/query", asked)
    assert threads
    assert set(threads) <= {"read", "write"}


# -- ranges ------------------------------------------------------------------------------

TAG = '"abc"'


@pytest.mark.parametrize(
    ("headers", "chosen"),
    [
        ({}, Part(0, 10)),
        ({"Range": "bytes=2-4"}, Part(2, 5, is_range=True)),
        ({"Range": "bytes=2-"}, Part(2, 10, is_range=True)),
        ({"Range": "bytes=2-99999999999999999999999"}, Part(2, 10, is_range=True)),
        ({"Range": "bytes=-3"}, Part(7, 10, is_range=True)),
        ({"Range": "bytes=-30"}, Part(0, 10, is_range=True)),
        ({"Range": "bytes=10-"}, "not_satisfiable"),
        ({"Range": "bytes=99999999999999999999999-"}, "not_satisfiable"),
        ({"Range": "bytes=-0"}, "not_satisfiable"),
        ({"Range": "bytes=4-2"}, Part(0, 10)),
        ({"Range": "bytes=0-1,3-4"}, Part(0, 10)),
        ({"Range": "bytes=-"}, Part(0, 10)),
        ({"Range": "rows=0-1"}, Part(0, 10)),
        ({"Range": "bytes=0-1", "If-Range": TAG}, Part(0, 2, is_range=True)),
        ({"Range": "bytes=0-1", "If-Range": f"W/{TAG}"}, Part(0, 10)),
        ({"Range": "bytes=0-1", "If-Range": '"x"'}, Part(0, 10)),
        ({"If-Match": TAG}, Part(0, 10)),
        ({"If-Match": f'"x", {TAG}'}, Part(0, 10)),
        ({"If-Match": "*"}, Part(0, 10)),
        ({"If-Match": f"W/{TAG}"}, "precondition_failed"),
        ({"If-Match": "abc"}, "precondition_failed"),
        ({"If-None-Match": f"W/{TAG}"}, "not_modified"),
        ({"If-None-Match": "*"}, "not_modified"),
        ({"If-None-Match": '"x"'}, Part(0, 10)),
        ({"If-None-Match": "abc"}, Part(0, 10)),
        ({"If-Match": '"x"', "If-None-Match": TAG}, "precondition_failed"),
    ],
)
def test_which_part_is_sent(headers: dict[str, str], chosen: Selected) -> None:
    assert select(Headers(headers), 10, TAG) == chosen


def test_of_nothing_there_is_no_part() -> None:
    assert select(Headers({"Range": "bytes=0-"}), 0, TAG) == "not_satisfiable"
    assert select(Headers({"Range": "bytes=-1"}), 0, TAG) == "not_satisfiable"
    assert select(Headers({"Range": "bytes=0-1"}), 10, TAG, is_head=True) == Part(0, 10)


def test_a_server_that_does_not_start_leaves_the_logs_as_they_were(served: Served) -> None:
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "omnigraph.access")]
    before = [(one.handlers[:], one.level, one.propagate) for one in loggers]
    assert main(["serve", str(served.graph.location)]) == 1
    assert [(one.handlers, one.level, one.propagate) for one in loggers] == before
