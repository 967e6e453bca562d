"""Every write route under an `Idempotency-Key`: what is sent twice happens once."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph.server.call import IF_COMMIT, RUN_ID
from omnigraph.server.router import Route
from omnigraph.server.routes import all_routes
from tests.server.serving import SCHEMA, Served

GROW = 'query grow() { update Person set { age: 1 } where name = "Ann" }'
LINE = '{"type": "Person", "data": {"name": "Cem"}}\n'
WIDER = SCHEMA.replace("title: String @key", "title: String @key\n    genre: String?")
JSON = {"content-type": "application/json"}
LINES = {"content-type": "application/x-ndjson"}
LOOKS = {"query", "read", "export", "captureChangeBaseline"}
"""Operations that are sent as POST and change nothing."""

ONCE: dict[str, tuple[str, dict[str, Any]]] = {
    "mutate": ("/mutate", {"json": {"query": GROW}}),
    "mutateIfGraphCommit": ("/mutate/if-graph-commit", {"json": {"query": GROW}}),
    "change": ("/change", {"json": {"query_source": GROW}}),
    "load": ("/load", {"json": {"data": LINE}}),
    "loadNdjson": (
        "/load/ndjson?branch=new&from=main",
        {"content": LINE, "headers": LINES},
    ),
    "ingest": ("/ingest", {"json": {"data": LINE, "branch": "new", "from": "main"}}),
    "mergeBranches": (
        "/branches/merge",
        {"json": {"source": "dev", "delete_branch": True}},
    ),
    "applySchema": ("/schema/apply", {"json": {"schema_source": WIDER}}),
    "invokeQuery": ("/queries/grow", {"json": {"params": {"name": "Ann"}}}),
    "invokeQueryIfGraphCommit": (
        "/queries/grow/if-graph-commit",
        {"json": {"params": {"name": "Ann"}}},
    ),
}
"""A request of every route that takes the header."""
REFUSED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "createBranch": ("POST", "/branches", {"json": {"name": "other"}}),
    "deleteBranch": ("DELETE", "/branches/dev", {}),
    "maintain": ("POST", "/maintain", {"json": {}}),
    "embed": ("POST", "/embed", {"json": {"type": "Person"}}),
}
"""A request of those that are the same when they are sent again, and do not take it."""


def writing() -> dict[str, Route]:
    return {
        route.operation: route
        for route in all_routes()
        if route.is_of_graph and route.method in ("POST", "DELETE") and route.operation not in LOOKS
    }


def commits(served: Served) -> dict[str, list[str]]:
    """The commits of every branch."""
    graph = served.graph
    return {name: [one.id for one in graph.commits.list(name)] for name in graph.branches.list()}


def test_every_route_that_writes_is_here() -> None:
    found = writing()
    assert set(found) == set(ONCE) | set(REFUSED)
    takes = {name for name, route in found.items() if any(h.name == RUN_ID for h in route.headers)}
    assert takes == set(ONCE)


@pytest.mark.parametrize("operation", ONCE)
def test_what_is_sent_twice_happens_once(served: Served, operation: str) -> None:
    path, options = ONCE[operation]
    served.graph.branches.create("dev")
    served.graph.mutate('query q() { insert Film { title: "Ran" } }', branch="dev")
    headers = {**options.get("headers", {}), RUN_ID: "once"}
    if any(header.name == IF_COMMIT for header in writing()[operation].headers):
        # The first answer is given before the condition is looked at, which no longer holds.
        headers[IF_COMMIT] = served.graph.snapshot().commit_id
    sent = {**options, "headers": headers}
    first = served.client.post(f"/graphs/film{path}", **sent)
    assert first.status_code == 200, first.text
    done = commits(served)
    again = served.client.post(f"/graphs/film{path}", **sent)
    assert again.status_code == 200, again.text
    assert commits(served) == done
    told = again.json()
    assert told.pop("repeats_run") is True
    assert told["commit"] == first.json()["commit"]
    # What was made or deleted on the way was so then, and how rows have changed is not kept.
    once = {"branch_created", "branch_deleted", "changes"}
    assert {k: v for k, v in told.items() if k not in once} == {
        k: v for k, v in first.json().items() if k not in once
    }
    other = 'query other() { delete Film where title = "Heat" }'
    refused = served.post("/mutate", {"query": other}, headers={RUN_ID: "once"})
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert commits(served) == done


@pytest.mark.parametrize("operation", REFUSED)
def test_what_cannot_be_done_once_is_refused_and_not_done(served: Served, operation: str) -> None:
    method, path, options = REFUSED[operation]
    served.graph.branches.create("dev")
    before = commits(served)
    refused = served.client.request(
        method, f"/graphs/film{path}", headers={RUN_ID: "once"}, **options
    )
    assert refused.status_code == 400
    assert "takes no Idempotency-Key" in refused.json()["error"]
    assert commits(served) == before
