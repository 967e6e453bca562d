"""The chapter about the server: a graph over HTTP, for whoever has a token.

Owns the process of that server; works on the library that the chapters before have made.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, cast

import httpx2 as httpx

from demo.telling import check, say

PROGRAM = Path(sys.executable).with_name("omnigraph-server")
BOOKS = "query books() { match { $b: Book } return { count($b) as books } }"
ADD = 'query add() { update Book set { year: 2021 } where isbn = "111-7" }'


def show_server(uri: str) -> None:
    """Ask with a token, be denied with none and with another, follow a change, and stop."""
    say(
        "The same graph over HTTP",
        "omnigraph-server listens on a port that is free. Tokens come from the environment; who\n"
        "has one may look, and without a policy nobody may change anything.",
    )
    tokens = json.dumps({"mira": "token-of-mira"})
    process, url = _start(uri, {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": tokens})
    try:
        with httpx.Client(base_url=url, timeout=60) as client:
            mira = {"Authorization": "Bearer token-of-mira"}
            found = _told(client.post("/query", json={"query": BOOKS}, headers=mira))
            check(found["row_count"] == 1, "    mira's token is good")
            other = {"Authorization": "Bearer token-of-tom"}
            refused = client.post("/query", json={"query": BOOKS}, headers=other)
            _told(refused)
            check(refused.status_code == 401, "    another is not: 401")
            denied = client.post("/mutate", json={"query": ADD}, headers=mira)
            _told(denied)
            check(denied.status_code == 403, "    and mira may not change it: 403")
    finally:
        _stop(process)
    say(
        "Changes are followed as they happen",
        "Who asks for changes with ?wait= is answered when there are some. Under its\n"
        "Idempotency-Key a write happens once, however often it is sent.",
    )
    process, url = _start(uri, {"OMNIGRAPH_UNAUTHENTICATED": "1"})
    try:
        with httpx.Client(base_url=url, timeout=60) as client, ThreadPoolExecutor(1) as pool:
            cursor = client.get("/changes").json()["cursor"]
            coming = pool.submit(client.get, "/changes", params={"cursor": cursor, "wait": 30})
            once = {"Idempotency-Key": "demo-1"}
            first = client.post("/mutate", json={"query": ADD}, headers=once).json()
            again = client.post("/mutate", json={"query": ADD}, headers=once).json()
            commit = first["commit"]["graph_commit_id"]
            check(again["commit"]["graph_commit_id"] == commit, "    sent twice, done once")
            [block] = coming.result().json()["blocks"]
            check(block["cause"]["graph_commit_id"] == commit, "    and who waited has seen it")
    finally:
        code = _stop(process)
    check(code == 0, "    the server has ended what it had begun")


def _start(uri: str, environment: Mapping[str, str]) -> tuple[subprocess.Popen[str], str]:
    command = [str(PROGRAM), uri, "--graph", "library", "--bind", "127.0.0.1:0", "--no-access-log"]
    print(f"$ omnigraph-server {' '.join(command[1:])}")
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **environment},
    )
    line = cast("IO[str]", process.stdout).readline().strip()
    print(line)
    check("=" in line, "    it listens")
    return process, f"http://{line.partition('=')[2]}/graphs/library"


def _stop(process: subprocess.Popen[str]) -> int:
    process.terminate()
    code = process.wait(60)
    cast("IO[str]", process.stdout).close()
    return code


def _told(answer: httpx.Response) -> Any:
    print(f"{answer.status_code} {answer.text}")
    return answer.json()
