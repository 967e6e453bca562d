"""A query ends when it should, whatever it is doing: by a timeout, a switch or an interrupt."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import QueryCancelled, ResourceLimit
from omnigraph.read.execute import engine, operators, sorting
from omnigraph.read.search import analysis
from omnigraph.storage import budget
from omnigraph.storage.cancellation import Cancellation

SCHEMA = "node N { name: String @key  v: I32  t: String }\nedge E: N -> N\n"
NODES = 300
COUNT = "query q() { match { $a: N } return { count($a) as n } }"
LONG = " ".join(f"term{n}" for n in range(1_000))
# Far more than anything here takes, and far less than what is waited for in vain.
SOON = 20.0


class Counted(Cancellation):
    """Counts how often it is looked at, and turns itself after so many looks."""

    def __init__(self, turns_after: float = float("inf")) -> None:
        super().__init__()
        self.looks = 0
        self._turns_after = turns_after

    @property
    def is_cancelled(self) -> bool:
        self.looks += 1
        return self.looks > self._turns_after


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    made = og.init(tmp_path_factory.mktemp("in time") / "graph", SCHEMA)
    nodes: list[dict[str, Any]] = [
        {"type": "N", "data": {"name": str(n), "v": n % 7, "t": f"even odd word{n} {n}"}}
        for n in range(NODES)
    ]
    edges = [
        {"edge": "E", "from": str(n), "to": str((n * step + step) % NODES)}
        for n in range(NODES)
        for step in range(1, 12)
    ]
    nodes.append({"type": "N", "data": {"name": "long", "v": 0, "t": LONG}})
    made.load([*nodes, *edges], mode="append")
    return made


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Native code that does not come back while the test runs; small work counts as heavy."""
    until = threading.Event()
    begun = threading.Event()

    def grouped(*_: object) -> object:
        begun.set()
        until.wait()
        raise AssertionError("nobody waits for this any more")

    monkeypatch.setattr(budget, "HEAVY", 1)
    monkeypatch.setattr(engine, "group_rows", grouped)
    yield begun
    until.set()


def in_time(work: Callable[[], object], error: type[BaseException]) -> None:
    start = time.monotonic()
    with pytest.raises(error):
        work()
    assert time.monotonic() - start < SOON


def when(begun: threading.Event, act: Callable[[], None]) -> threading.Thread:
    """A thread that acts when something has begun."""

    def wait() -> None:
        begun.wait()
        act()

    waiting = threading.Thread(target=wait)
    waiting.start()
    return waiting


@pytest.mark.usefixtures("endless")
def test_a_timeout_does_not_wait_for_what_cannot_look(graph: og.Graph) -> None:
    in_time(lambda: graph.query(COUNT, timeout=0.2), ResourceLimit)


def test_a_switch_does_not_wait_for_what_cannot_look(
    graph: og.Graph, endless: threading.Event
) -> None:
    switch = Cancellation()
    turning = when(endless, switch.cancel)
    in_time(lambda: graph.query(COUNT, cancellation=switch), QueryCancelled)
    turning.join()


def test_an_interrupt_does_not_wait_for_what_cannot_look(
    graph: og.Graph, endless: threading.Event
) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupting = when(endless, lambda: os.kill(os.getpid(), signal.SIGINT))
    try:
        in_time(lambda: graph.query(COUNT), KeyboardInterrupt)
    finally:
        interrupting.join()
        signal.signal(signal.SIGINT, before)


def test_what_is_left_behind_stops_at_its_next_look(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work goes on when nobody waits any more, as far as its next look and no further."""
    going_on, ended = threading.Event(), threading.Event()
    stopped: list[BaseException] = []

    def slow(*_: object) -> object:
        going_on.wait()
        try:
            budget.look()
        except QueryCancelled as error:
            stopped.append(error)
            raise
        finally:
            ended.set()
        raise AssertionError("it looked and went on")

    monkeypatch.setattr(budget, "HEAVY", 1)
    monkeypatch.setattr(engine, "group_rows", slow)
    with pytest.raises(ResourceLimit):
        graph.query(COUNT, timeout=0.2)
    going_on.set()
    assert ended.wait(SOON)
    assert stopped


def test_no_rows_after_the_time(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last step is what takes too long: its rows are there, and nobody gets them."""
    projected = engine._projected

    def late(*args: object) -> object:
        found = projected(*args)  # type: ignore[arg-type]
        time.sleep(0.3)
        return found

    monkeypatch.setattr(engine, "_projected", late)
    with pytest.raises(ResourceLimit, match="timeout"):
        graph.query("query q() { match { $a: N } return { $a.v } }", timeout=0.2)


@pytest.mark.parametrize(
    "text",
    [
        "$a: N $a e $b } return { $b.v }",
        "$a: N $a e{1,2} $b } return { count($b) as n }",
        "$a: N optional { $a e $b } } return { $b.v }",
        "$a: N $a e $b not { $b e $a } } return { $b.v }",
    ],
)
def test_expansions_look_between_pieces(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """There is a look for every piece of the rows that are made."""
    piece = 100
    monkeypatch.setattr(sorting, "PIECE", piece)
    monkeypatch.setattr("omnigraph.read.access.csr.PIECE", piece)
    query = f"query q() {{ match {{ {text} }}"
    rows = NODES * 11
    graph.query(query)
    counted = Counted()
    graph.query(query, cancellation=counted)
    assert counted.looks > rows / (2 * piece)
    for looks in (counted.looks // 4, counted.looks // 2, counted.looks - 1):
        with pytest.raises(QueryCancelled):
            graph.query(query, cancellation=Counted(looks))


def test_products_look_between_pieces(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators, "PIECE", 1_000)
    monkeypatch.setattr("omnigraph.read.execute.products.PIECE", 1_000)
    counted = Counted()
    text = "query q() { match { $a: N $b: N $a.v < $b.v } return { count($a) as n } }"
    graph.query(text, cancellation=counted)
    assert counted.looks > NODES * NODES / 1_000


@pytest.mark.parametrize("search", ["match_text($a.t, $q)", "fuzzy($a.t, $q, 1)"])
def test_searches_look_between_words(graph: og.Graph, search: str) -> None:
    """A thousand words are a thousand pieces of work."""
    text = f"query q($q: String) {{ match {{ $a: N {search} }} return {{ $a.name as name }} }}"
    assert {"name": "long"} in graph.query(text, params={"q": LONG}).rows
    with pytest.raises(QueryCancelled):
        graph.query(text, params={"q": LONG}, cancellation=Counted(900))


def test_texts_are_cut_into_words_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = pa.array([f"some text number {n} of many, {n % 5}" for n in range(500)] + [None, ""])
    whole = analysis.analyze(texts)
    monkeypatch.setattr(analysis, "TEXTS_AT_ONCE", 7)
    monkeypatch.setattr(analysis, "WORDS_AT_ONCE", 11)
    pieces = analysis.analyze(texts)
    assert pieces.vocabulary.equals(whole.vocabulary)
    assert pieces.codes.tolist() == whole.codes.tolist()
    assert pieces.places.tolist() == whole.places.tolist()
    assert pieces.offsets.tolist() == whole.offsets.tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "$a: N $b: N $c: N $d: N $b e $a $d e $c $a.v < $d.v } return { count($a) as n }",
        "$a: N $b: N $c: N $b e $c $d e $a } return { $a.v } order { $d.v desc } limit 3",
        "$a: N $b: N $c: N $b e $a $c.t contains $a.t } return { count($a) as n }",
        "$a: N $b: N $c: N $b e $c } return { $a.v, $b.t, max($c.t) as m }",
    ],
)
def test_long_queries_end_in_time(graph: og.Graph, text: str) -> None:
    start = time.monotonic()
    with pytest.raises(ResourceLimit, match="timeout"):
        graph.query(f"query q() {{ match {{ {text} }}", timeout=0.3)
    assert time.monotonic() - start < 4
