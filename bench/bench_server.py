"""What HTTP adds to a query, how many clients a server stands, and whether it holds on to memory.

Owns its graph, its server and its clients. The yardstick is the same graph in this process, asked
in turns with the server.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection
from multiprocessing import get_context
from pathlib import Path
from typing import IO, Any, Self, cast

import omnigraph as og
from bench.ratio import Ratio, interleaved

PEOPLE = 10_000
POINT = (
    "query point($name: String) { match { $p: Person { name: $name } } "
    "return { $p.name as name, $p.age as age } }"
)
PUT = "query put($name: String, $age: I32) { update Person set { age: $age } where name = $name }"
ADDED_S = 0.0015
"""How much HTTP may add to a point query."""
CLIENTS = 32
SECONDS = 4.0
REQUESTS = 50_000 if os.environ.get("OMNIGRAPH_BENCH_BIG") else 5_000


def run() -> list[Ratio]:
    """Measure over a graph of ten thousand people."""
    with tempfile.TemporaryDirectory() as directory:
        location = Path(directory) / "people.omni"
        graph = og.init(location, "node Person {\n    name: String @key\n    age: I32?\n}\n")
        rows = ({"type": "Person", "data": {"name": f"p{n}", "age": n % 90}} for n in range(PEOPLE))
        graph.load(list(rows), mode="append")
        graph.ensure_indices()
        cores = len(os.sched_getaffinity(0))
        found = []
        with served(location) as (url, pid):
            found += [*_latency(graph, url), *_mixed(url), *_memory(url, pid)]
        with served(location, "--workers", str(cores)) as (url, _):
            found += _throughput(graph, url, cores)
        return found


@contextmanager
def served(location: Path, *more: str) -> Iterator[tuple[str, int]]:
    """A server over a graph: its address, and its process."""
    program = Path(sys.executable).with_name("omnigraph-server")
    options = ("--unauthenticated", "--bind", "127.0.0.1:0", "--no-access-log", "--graph", "people")
    process = subprocess.Popen(
        [str(program), str(location), *options, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    output = cast("IO[str]", process.stdout)
    try:
        address = output.readline().strip().partition("=")[2]
        url = f"http://{address}/graphs/people"
        _until_it_answers(url)
        yield url, process.pid
    finally:
        process.terminate()
        process.wait(60)
        output.close()


class Asker:
    """A client that costs as little as one can, so that the server is what is measured."""

    def __init__(self, url: str) -> None:
        host, _, self._path = url.removeprefix("http://").partition("/")
        self._connection = HTTPConnection(host, timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def post(self, route: str, asked: Mapping[str, Any]) -> None:
        """Ask, and look that it was answered."""
        headers = {"Content-Type": "application/json"}
        self._connection.request("POST", f"/{self._path}{route}", json.dumps(asked), headers)
        answer = self._connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {answer.read()!r}")
        answer.read()


def _until_it_answers(url: str) -> None:
    while True:
        try:
            with Asker(url) as client:
                _ask(client, 0)
            return
        except OSError:
            time.sleep(0.1)


def _ask(client: Asker, number: int) -> None:
    client.post("/query", {"query": POINT, "params": {"name": f"p{number % PEOPLE}"}})


def _embedded(graph: og.Graph, number: int) -> None:
    if len(graph.query(POINT, params={"name": f"p{number % PEOPLE}"}).rows) != 1:
        raise RuntimeError("the graph has lost somebody")


def _latency(graph: og.Graph, url: str) -> list[Ratio]:
    """A point query, here and over HTTP, one after the other."""
    numbers = iter(range(10**9))
    with Asker(url) as client:
        over_http, embedded = interleaved(
            lambda: _ask(client, next(numbers)), lambda: _embedded(graph, next(numbers)), runs=400
        )
    return [Ratio("point query, HTTP / (embedded + 1.5 ms)", over_http, embedded + ADDED_S, 1.0)]


def _mixed(url: str) -> list[Ratio]:
    """Reads while others write: the slowest against the usual."""
    taken: list[float] = []
    until = time.monotonic() + SECONDS

    def read(number: int) -> None:
        with Asker(url) as client:
            while time.monotonic() < until:
                started = time.perf_counter()
                _ask(client, number)
                taken.append(time.perf_counter() - started)
                number += 7

    def write(number: int) -> None:
        with Asker(url) as client:
            while time.monotonic() < until:
                params = {"name": f"p{number}", "age": number % 90}
                client.post("/mutate", {"query": PUT, "params": params})
                number += 1
                time.sleep(0.05)

    with ThreadPoolExecutor(5) as pool:
        done = [*(pool.submit(read, n) for n in range(4)), pool.submit(write, 0)]
        for one in done:
            one.result()
    cuts = statistics.quantiles(taken, n=100)
    return [Ratio("mixed load, p99 / p50", cuts[98], cuts[49], 5.0)]


def _memory(url: str, pid: int) -> list[Ratio]:
    """What the process holds after many requests, and after a tenth of them."""
    with Asker(url) as client:
        for number in range(REQUESTS // 10):
            _ask(client, number)
        before = _resident(pid)
        for number in range(REQUESTS - REQUESTS // 10):
            _ask(client, number)
    name = f"memory after {REQUESTS:,} requests / after a tenth"
    return [Ratio(name, _resident(pid), before, 1.1, unit="MB")]


def _resident(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} has no memory")


def _throughput(graph: og.Graph, url: str, cores: int) -> list[Ratio]:
    """Seconds for one query: cores that ask the graph itself, and clients that ask the server."""
    embedded = _rate(lambda: _embedded(graph, 1), SECONDS / 2)
    processes = max(cores, 2)
    each = CLIENTS // processes
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        rates = list(pool.map(partial(_clients, url, each), range(processes)))
    name = f"{CLIENTS} clients, {cores} x embedded / HTTP throughput"
    return [Ratio(name, 1 / sum(rates), 1 / (cores * embedded), 1.25)]


def _clients(url: str, count: int, place: int) -> float:
    """How many queries so many clients of one process are answered in a second."""
    with ThreadPoolExecutor(count) as pool:
        clients = [Asker(url) for _ in range(count)]
        counts = pool.map(lambda client: _rate(lambda: _ask(client, place), SECONDS), clients)
        return sum(counts)


def _rate(action: Callable[[], None], seconds: float) -> float:
    for _ in range(5):
        action()
    started, count = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        action()
        count += 1
    return count / (time.perf_counter() - started)
