"""What every route answers, field by field."""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from types import SimpleNamespace
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from omnigraph import errors
from omnigraph.server import heads
from omnigraph.server.routes import changes
from omnigraph.server.served import State
from tests.server.serving import ADD, EVERYONE, ROWS, SCHEMA, Served, bearer, serving

ARROW = "application/vnd.apache.arrow.stream"
GROW = 'query grow() { update Person set { age: 1 } where name = "Ann" }'
SHRINK = 'query shrink() { update Person set { age: 2 } where name = "Ann" }'


def head(served: Served, branch: str = "main") -> str:
    return served.graph.snapshot(branch).commit_id


def commit_of(served: Served, commit_id: str) -> dict[str, Any]:
    commit = served.graph.commits.get(commit_id)
    return {
        "graph_commit_id": commit.id,
        "graph_branch": commit.branch,
        "graph_manifest_version": commit.manifest_version,
        "parent_commit_id": commit.parent_id,
        "merged_parent_commit_id": commit.merged_parent_id,
        "actor_id": commit.actor,
        "created_at": commit.created_at,
    }


def test_a_query_answers_with_rows_and_their_commit(served: Served) -> None:
    answer = served.post("/query", {"query": EVERYONE, "unknown": 1})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {
        "query_name": "everyone",
        "target": {"branch": "main", "snapshot": None},
        "row_count": 2,
        "columns": ["name"],
        "rows": [{"name": "Ann"}, {"name": "Ben"}],
        "graph_commit_id": head(served),
    }
    old = served.post("/read", {"query_source": EVERYONE, "snapshot": head(served)})
    assert old.headers["deprecation"] == "true"
    assert old.headers["link"] == '<query>; rel="successor-version"'
    assert old.json()["target"] == {"branch": None, "snapshot": head(served)}
    assert "graph_commit_id" not in old.json()


def test_rows_come_as_arrow_to_whoever_asks_for_it(served: Served) -> None:
    answer = served.post("/query", {"query": EVERYONE}, headers={"Accept": ARROW})
    assert answer.headers["content-type"] == ARROW
    assert answer.headers["omnigraph-snapshot-id"] == head(served)
    table = pa.ipc.open_stream(answer.content).read_all()
    assert table.to_pylist() == [{"name": "Ann"}, {"name": "Ben"}]
    assert table.schema.metadata == {
        b"omnigraph.query_name": b"everyone",
        b"omnigraph.branch": b"main",
        b"omnigraph.graph_commit_id": head(served).encode(),
    }


@pytest.mark.parametrize(
    ("accept", "is_arrow"),
    [
        (ARROW, True),
        (f"{ARROW}, application/json", True),
        (f"application/json;q=0.5, {ARROW.upper()};q=0.9", True),
        (f"application/json, {ARROW};q=0.5", False),
        (f"{ARROW};q=0", False),
        (f"{ARROW};q=x", True),
        ("*/*", False),
        ("", False),
    ],
)
def test_the_form_is_the_one_that_is_wanted_most(
    served: Served, accept: str, is_arrow: bool
) -> None:
    answer = served.post("/query", {"query": EVERYONE}, headers={"accept": accept})
    assert answer.headers["content-type"] == (ARROW if is_arrow else "application/json")


@pytest.mark.parametrize(
    ("asked", "status", "text"),
    [
        ({"query": EVERYONE, "branch": "main", "snapshot": "x"}, 400, "a branch or a snapshot"),
        ({"query": ADD, "params": {"name": "x"}}, 400, "POST /mutate"),
        ({"query": EVERYONE + ADD}, 400, "say which one to run"),
        ({"query": EVERYONE, "name": "nobody"}, 400, "no query `nobody`"),
        ({"query": EVERYONE, "params": {"x": 1}}, 400, "x"),
        ({"query": "query q() { match { $p: Ghost } return { $p.name } }"}, 400, "Ghost"),
        ({"query": "query"}, 400, "error["),
        ({"query": EVERYONE, "branch": "gone"}, 404, "branch 'gone' not found"),
        ({"query": EVERYONE, "snapshot": "gone"}, 404, "gone"),
        ({}, 400, "query"),
    ],
)
def test_a_query_that_makes_no_sense_is_refused(
    served: Served, asked: dict[str, Any], status: int, text: str
) -> None:
    answer = served.post("/query", asked)
    assert answer.status_code == status
    assert set(answer.json()) - {"reason"} == {"error", "code"}
    assert answer.json()["code"] == ("not_found" if status == 404 else "bad_request")
    assert text in answer.json()["error"]


def test_a_mutation_answers_with_its_commit(served: Served) -> None:
    asked = {"query": ADD, "params": {"name": "Cem"}}
    answer = served.post("/mutate", asked).json()
    assert answer == {
        "branch": "main",
        "query_name": "add",
        "affected_nodes": 1,
        "affected_edges": 0,
        "actor_id": None,
        "commit": commit_of(served, head(served)),
        "warnings": [],
    }
    nothing = 'query none() { delete Person where name = "Zoe" }'
    assert served.post("/mutate", {"query": nothing}).json()["commit"] is None
    old = served.post("/change", {"query_source": ADD, "params": {"name": "Dora"}})
    assert (old.status_code, old.headers["deprecation"]) == (200, "true")
    assert served.post("/mutate", {"query": EVERYONE}).status_code == 400


def test_a_condition_is_kept_or_nothing_happens(served: Served) -> None:
    asked = {"query": ADD, "params": {"name": "Cem"}}
    before, header = head(served), "Omnigraph-If-Graph-Commit"
    failed = served.post("/mutate/if-graph-commit", asked, headers={header: "01A"})
    assert failed.status_code == 412
    assert failed.json() == {
        "error": "precondition failed on branch 'main': expected head '01A' "
        f"but current is {before}",
        "precondition_failure": {"branch": "main", "expected": "01A", "actual": before},
    }
    assert head(served) == before
    for wrong in ({}, {header: f'"{before}"'}, {header: "*"}, {header: "a,b"}):
        assert served.post("/mutate/if-graph-commit", asked, headers=wrong).status_code == 400
    for route in ("/mutate", "/change", "/queries/grow"):
        refused = served.post(route, asked, headers={header: before})
        assert (refused.status_code, head(served)) == (400, before)
        assert f"{route}/if-graph-commit" in refused.json()["error"]
    done = served.post("/mutate/if-graph-commit", asked, headers={header: before})
    assert done.json()["commit"]["parent_commit_id"] == before


def test_a_write_is_repeated_safely(served: Served) -> None:
    asked, header = {"query": ADD, "params": {"name": "Cem"}}, {"Idempotency-Key": "once"}
    first = served.post("/mutate", asked, headers=header).json()
    again = served.post("/mutate", asked, headers=header).json()
    assert again == {**first, "repeats_run": True}
    other = served.post("/mutate", {**asked, "params": {"name": "Eda"}}, headers=header)
    assert (other.status_code, other.json()["code"]) == (409, "conflict")
    loaded = served.post("/load", {"data": ROWS}, headers={"Idempotency-Key": "load"}).json()
    repeated = served.post("/load", {"data": ROWS}, headers={"Idempotency-Key": "load"}).json()
    assert repeated["commit"] == loaded["commit"]
    refused = served.post("/branches", {"name": "dev"}, headers=header)
    assert (refused.status_code, served.get("/branches").json()) == (400, {"branches": ["main"]})


def test_stored_queries_are_called_by_name(served: Served) -> None:
    name = {"name": "name", "kind": "string", "nullable": False}
    person = {"name": "person", "tool_name": "person", "description": "One person."}
    assert served.get("/queries").json() == {
        "queries": [
            {"name": "grow", "tool_name": "grow", "mutation": True, "params": [name]},
            {**person, "mutation": False, "params": [name]},
        ]
    }
    found = served.post("/queries/person", {"params": {"name": "Ann"}}).json()
    assert found["rows"] == [{"p.name": "Ann", "p.age": 40}]
    grown = served.post("/queries/grow", {"params": {"name": "Ann"}}).json()
    assert grown["affected_nodes"] == 1
    unknown = served.post("/queries/nobody")
    assert unknown.status_code == 404
    assert unknown.json() == {"error": "stored query not found", "code": "not_found"}
    wrong = served.post("/queries/grow", {"expect_mutation": False})
    assert wrong.json()["error"] == "'grow' is a mutation — use omnigraph mutate grow"
    assert served.post("/queries/grow", {"snapshot": head(served)}).status_code == 400
    header = {"Omnigraph-If-Graph-Commit": head(served)}
    assert served.post("/queries/person/if-graph-commit", {}, headers=header).status_code == 400
    for empty in (b"", b"null", b" "):
        answer = served.client.post("/graphs/film/queries/person", content=empty)
        assert "name" in answer.json()["error"]


NOTHING = {"inserted": 0, "replaced": 0, "patched": 0, "emptied": 0}


def test_loads_say_what_came(served: Served) -> None:
    asked = {"data": ROWS, "branch": "new"}
    missing = served.post("/load", asked)
    assert missing.status_code == 404
    assert missing.json()["error"] == "branch 'new' not found; pass `from` to create it"
    loaded = served.post("/load", {**asked, "from": "main"}).json()
    assert loaded == {
        "uri": str(served.graph.location),
        "branch": "new",
        "mode": "merge",
        "base_branch": "main",
        "branch_created": True,
        "nodes": [{"name": "Film", "entities_loaded": 1}, {"name": "Person", "entities_loaded": 2}],
        "edges": [
            {"name": "ActedIn", "entities_loaded": 1},
            {"name": "Knows", "entities_loaded": 1},
        ],
        "total_entities": 5,
        "actor_id": None,
        "commit": commit_of(served, head(served, "new")),
        "changes": [
            {"type": "edge:ActedIn", **NOTHING, "inserted": 1},
            {"type": "edge:Knows", **NOTHING, "inserted": 1},
            {"type": "node:Film", **NOTHING, "replaced": 1},
            {"type": "node:Person", **NOTHING, "replaced": 2},
        ],
    }
    lines = {"Content-Type": "application/X-NDJSON; charset=utf-8"}
    raw = served.client.post(
        "/graphs/film/load/ndjson?mode=append",
        content=b'{"type": "Person", "data": {"name": "Cem"}}\n',
        headers=lines,
    )
    assert raw.json()["total_entities"] == 1
    assert "uri" not in raw.json()
    twice = served.post("/load", {"data": ROWS, "mode": "append"})
    assert twice.status_code == 409
    assert twice.json()["error"] == "node type 'Film' already has id 'Heat'"
    assert twice.json()["key_conflict"]["type_name"] == "Film"
    assert served.post("/ingest", {"data": ROWS}).headers["link"].startswith("<load>")
    json = {"Content-Type": "application/json"}
    assert served.client.post("/graphs/film/load/ndjson", headers=json).status_code == 415


def test_branches_are_made_merged_and_deleted(served: Served) -> None:
    uri = str(served.graph.location)
    made = served.post("/branches", {"name": " a/b "}).json()
    assert made == {"uri": uri, "from": "main", "name": "a/b", "actor_id": None}
    assert served.get("/branches").json() == {"branches": ["a/b", "main"]}
    assert served.post("/branches", {"name": "a/b"}).status_code == 409
    served.post("/mutate", {"query": GROW, "branch": "a/b"})
    served.post("/mutate", {"query": SHRINK})
    clash = served.post("/branches/merge", {"source": "a/b"})
    assert clash.status_code == 409
    assert clash.json() == {
        "error": "merge conflicts: node type 'Person', entity id 'Ann' (divergent_update)",
        "code": "conflict",
        "merge_conflicts": [
            {
                "entity_kind": "node",
                "type_name": "Person",
                "entity_id": "Ann",
                "kind": "divergent_update",
                "message": "divergent update for id 'Ann', property 'age'",
                "property": "age",
                "base": 40,
                "source": 1,
                "target": 2,
            }
        ],
    }
    served.post("/branches", {"name": "other", "from": "a/b"})
    served.post("/mutate", {"query": ADD, "params": {"name": "Cem"}, "branch": "other"})
    asked = {"source": "other", "target": "a/b", "delete_branch": True}
    merged = served.post("/branches/merge", asked).json()
    assert (merged["outcome"], merged["branch_deleted"]) == ("fast_forward", True)
    assert merged["commit"]["graph_branch"] == "a/b"
    gone = served.client.delete("/graphs/film/branches/a%2Fb")
    assert gone.json() == {"uri": uri, "name": "a/b", "actor_id": None}
    missing = served.client.delete("/graphs/film/branches/a%2Fb")
    assert missing.json() == {"error": "branch 'a/b' not found", "code": "not_found"}
    assert served.client.delete("/graphs/film/branches/merge").status_code in (404, 405)


def test_commits_and_what_they_changed(served: Served) -> None:
    served.post("/mutate", {"query": GROW})
    newest = head(served)
    listed = served.get("/commits").json()["commits"]
    assert listed[0] == commit_of(served, newest)
    assert served.get(f"/commits/{newest}").json() == commit_of(served, newest)
    assert served.get("/commits/nothing").status_code == 404
    page = served.get(f"/commits/{newest}/changes", params={"kind": "node"}).json()
    assert page["cause"]["graph_commit_id"] == newest
    [change] = page["changes"]
    assert (change["id"], change["op"]) == ("Ann", "update")
    assert change["before"] == {"properties": {"age": 40, "name": "Ann"}}
    unknown = served.get("/commits/nothing/changes")
    assert unknown.json() == {"error": "commit 'nothing' not found", "code": "not_found"}


def test_the_feed_is_followed(served: Served) -> None:
    page = served.get("/changes").json()
    assert (page["blocks"], page["caught_up"]) == ([], True)
    served.post("/mutate", {"query": GROW})
    later = served.get("/changes", params={"cursor": page["cursor"], "wait": 5}).json()
    assert [block["cause"]["graph_commit_id"] for block in later["blocks"]] == [head(served)]
    begun = served.get("/changes?start=beginning&limit=1&type=Person&type=Film").json()
    assert "next_page_token" in begun
    assert "cursor" not in begun
    for wrong, status in [
        ("limit=0", 400),
        ("limit=9000", 413),
        ("nothing=1", 400),
        ("branch=a&branch=b", 400),
        ("start=now&cursor=x", 400),
        ("cursor=x", 400),
        ("branch=gone", 404),
        ("op=swap", 400),
    ]:
        assert served.get(f"/changes?{wrong}").status_code == status, wrong
    rejected = served.get("/changes?cursor=x").json()["error"]
    assert rejected.startswith("change cursor rejected: ")
    lines = served.post("/changes/baseline", {"kind": ["node"]}).text.splitlines()
    last = msgspec.json.decode(lines[-1])["baseline"]
    assert last["snapshot_commit_id"] == head(served)
    going_on = served.get("/changes", params={"cursor": last["resume_cursor"], "kind": "node"})
    assert going_on.json()["caught_up"]
    assert len(lines) == 4


def test_what_comes_while_somebody_begins_to_wait_is_told_at_once(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit between the look at the feed and the look at the head is not slept through."""
    page, looks = changes._page, 0

    async def overtaken(*given: Any) -> Any:
        nonlocal looks
        found, looks = await page(*given), looks + 1
        if looks == 1:
            served.graph.mutate(GROW)
        return found

    monkeypatch.setattr(changes, "_page", overtaken)
    begun = time.monotonic()
    found = served.get("/changes", params={"wait": 250}).json()
    assert [block["cause"]["graph_commit_id"] for block in found["blocks"]] == [head(served)]
    assert time.monotonic() - begun < 200


def test_all_who_wait_for_a_branch_ask_storage_as_one(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, snapshot = [], served.graph.snapshot

    def watched(branch: str = "main") -> Any:
        asked.append(branch)
        return snapshot(branch)

    monkeypatch.setattr(served.graph, "snapshot", watched)
    monkeypatch.setattr(heads, "FRESH_SECONDS", 1e6)
    graph = served.app.served.graphs["film"]

    async def wait() -> list[Any]:
        every = [served.app.heads.now(graph, name) for name in ["main", "gone"] * 50]
        return await asyncio.gather(*every, return_exceptions=True)

    found = asyncio.run(wait())
    assert found[0::2] == [head(served)] * 50
    assert all(isinstance(one, errors.BranchNotFound) for one in found[1::2])
    assert sorted(asked) == ["gone", "main", "main"]


def test_an_export_is_what_was_loaded(served: Served) -> None:
    answer = served.post("/export", {"type_names": ["Film"], "branch": " main "})
    assert answer.headers["content-type"] == "application/x-ndjson; charset=utf-8"
    film = '{"type":"Film","data":{"id":"Heat","poster":null,"title":"Heat","year":1995}}'
    assert answer.text == f"{film}\n"
    assert served.post("/export", {"types": []}).status_code == 400
    assert served.post("/export", {"branch": " "}).status_code == 400


def test_a_blob_is_delivered_whole_or_in_part(served: Served) -> None:
    kept = {"title": "Heat", "poster": "base64:" + b64encode(b"0123456789").decode()}
    served.graph.load([{"type": "Film", "data": kept}], mode="merge")
    where = {"entity": "node", "type": "Film", "id": "Heat", "property": "poster"}
    whole = served.get("/blob", params=where)
    assert (whole.status_code, whole.content) == (200, b"0123456789")
    tag = whole.headers["etag"]
    told = {name: whole.headers[name] for name in ("accept-ranges", "omnigraph-snapshot-id")}
    assert told == {"accept-ranges": "bytes", "omnigraph-snapshot-id": head(served)}
    assert whole.headers["content-type"] == "application/octet-stream"
    part = served.get("/blob", params=where, headers={"Range": "bytes=2-4"})
    assert (part.status_code, part.content) == (206, b"234")
    assert part.headers["content-range"] == "bytes 2-4/10"
    same = served.get("/blob", params=where, headers={"If-None-Match": tag})
    assert (same.status_code, same.content, same.headers["content-length"]) == (304, b"", "10")
    other = served.get("/blob", params=where, headers={"If-Match": '"x"'})
    assert (other.status_code, other.json()["code"]) == (412, "conflict")
    beyond = served.get("/blob", params=where, headers={"Range": "bytes=10-"})
    assert (beyond.status_code, beyond.headers["content-range"]) == (416, "bytes */10")
    assert beyond.json()["blob_range"]["length"] == 10
    known = served.client.head("/graphs/film/blob", params=where)
    assert (known.content, known.headers["content-length"]) == (b"", "10")
    for wrong, status in [
        ({"id": "Nothing"}, 404),
        ({"property": "year"}, 400),
        ({"entity": "row"}, 400),
        ({"type": "Ghost"}, 400),
        ({"branch": "main", "snapshot": "x"}, 400),
    ]:
        assert served.get("/blob", params={**where, **wrong}).status_code == status, wrong


def test_a_blob_that_is_elsewhere_is_pointed_to(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = "https://elsewhere.example/poster.png"
    found = SimpleNamespace(uri=uri, offset=0, size=None, etag=None, commit_id="01A")
    monkeypatch.setattr(served.graph, "blob", lambda *_, **__: found)
    where = {"entity": "node", "type": "Film", "id": "Heat", "property": "poster"}
    outside = served.get("/blob", params=where, follow_redirects=False)
    assert (outside.status_code, outside.content) == (302, b"")
    assert outside.headers["location"] == uri
    assert outside.headers["cache-control"] == "no-store"
    found.uri = "s3://bucket/\u017b\u00f3\u0142\u0107 100%25.png"
    spelled = served.get("/blob", params=where, follow_redirects=False)
    assert spelled.headers["location"] == "s3://bucket/%C5%BB%C3%B3%C5%82%C4%87%20100%25.png"
    found.offset = 5
    failed = served.get("/blob", params=where)
    assert failed.status_code == 500
    assert failed.json()["error"] == "Blob delivery failed before response headers"


def test_the_schema_and_the_snapshot(served: Served) -> None:
    assert served.get("/schema").json() == {"schema_source": SCHEMA}
    shown = served.get("/snapshot").json()
    assert [one["type_name"] for one in shown["datasets"]] == ["ActedIn", "Knows", "Film", "Person"]
    more = SCHEMA.replace("age: I32?", "age: I32?\n    nick: String?")
    applied = served.post("/schema/apply", {"schema_source": more}).json()
    assert (applied["applied"], applied["step_count"]) == (True, 1)
    # What a stored query needs cannot be taken away from under it.
    broken = served.post("/schema/apply", {"schema_source": SCHEMA.replace("age", "years")})
    assert broken.status_code == 400
    assert broken.json()["schema_change_refusal"]["broken_queries"]


def test_a_served_graph_is_looked_after(served: Served) -> None:
    status = served.get("/status?wait=0.01").json()
    assert (status["level"], status["rows"], status["ready"]) == ("ok", 5, True)
    assert {index["type_key"] for index in status["indexes"]} >= {"node:Person"}
    assert served.post("/maintain", {"dry_run": True}).json()["dry_run"]
    assert "@embed" in served.post("/embed", {"type": "Person"}).json()["error"]


def test_what_was_seen_is_seen_again(served: Served) -> None:
    newest = served.post("/mutate", {"query": GROW}).json()["commit"]["graph_commit_id"]
    header = {"Omnigraph-Min-Commit": newest}
    assert served.post("/query", {"query": EVERYONE}, headers=header).status_code == 200
    header = {"Omnigraph-Min-Commit": "01ZZZZZZZZZZZZZZZZZZZZZZZZ"}
    assert served.post("/query", {"query": EVERYONE}, headers=header).status_code == 404


def test_a_load_that_makes_a_branch_is_read_once_it_is_allowed(tmp_path: Any) -> None:
    """Whether the branch is there is looked up before the body, which must still be there then."""
    with serving(tmp_path / "film.omni", "policy_enabled") as served:
        for who, status in (("ben", 403), ("ann", 200)):
            answer = served.client.post(
                "/graphs/film/load/ndjson?branch=new&from=main",
                content=b'{"type": "Person", "data": {"name": "Cem"}}',
                headers={**bearer(who), "Content-Type": "application/x-ndjson"},
            )
            assert answer.status_code == status
        assert (answer.json()["branch_created"], answer.json()["total_entities"]) == (True, 1)


@pytest.mark.parametrize("state", ["default_deny", "policy_enabled"])
def test_who_may_do_what(state: State, tmp_path: Any) -> None:
    with serving(tmp_path / "film.omni", state) as served:
        ann: dict[str, Any] = {"headers": bearer("ann")}
        ben: dict[str, Any] = {"headers": bearer("ben")}
        is_open = state == "policy_enabled"
        added = served.post("/mutate", {"query": ADD, "params": {"name": "C"}}, **ann)
        assert added.status_code == (200 if is_open else 403)
        refused = served.post("/mutate", {"query": ADD, "params": {"name": "D"}}, **ben)
        assert refused.json() == {
            "error": "policy denied action 'change' on branch 'main' for actor 'ben'",
            "code": "forbidden",
        }
        trimmed = served.post("/mutate", {"query": ADD, "branch": " main "}, **ben)
        assert "on branch 'main'" in trimmed.json()["error"]
        assert served.post("/query", {"query": EVERYONE}, **ann).status_code == 200
        hidden = served.get(f"/commits/{head(served)}/changes", **ben)
        assert hidden.status_code == (404 if is_open else 200)
        called = served.post("/queries/person", {"params": {"name": "Ann"}}, **ben)
        assert (called.status_code, called.json()["error"]) == (404, "stored query not found")
        # Before the body is looked at, whatever it is.
        lines = served.client.post("/graphs/film/load/ndjson", content=b"\xff", **ben)
        assert lines.status_code == 403
        graphs = served.client.get("/graphs", **ann)
        assert graphs.status_code == (200 if is_open else 403)
        if is_open:
            uri = str(served.graph.location)
            assert added.json()["actor_id"] == "ann"
            assert graphs.json() == {
                "graphs": [{"graph_id": "film", "uri": uri}],
                "quarantined": [{"graph_id": "broken", "reason": "there is no graph there"}],
            }
