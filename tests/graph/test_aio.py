"""The surface for event loops: the same names, awaited, on a bounded pool of threads."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import aio, errors
from omnigraph.graph import Action, Session
from omnigraph.graph.access import Surface
from omnigraph.storage.budget import Budget
from omnigraph.storage.cancellation import Cancellation
from tests.film_graph import SCHEMA
from tests.graph.aio_stub import STUB, aio_stub

ADD = "query add($name: String) { insert Person { name: $name } }"
ALL = "query all() { match { $p: Person } return { $p.name as name } order { $p.name asc } }"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "film.omni"
    og.init(root, SCHEMA)
    return root


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), 60))


async def until(found: Callable[[], bool]) -> None:
    while not found():  # noqa: ASYNC110 - a thread makes it true, and knows no loop
        await asyncio.sleep(0.01)


def test_the_stub_is_true(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--bless"):
        STUB.write_text(aio_stub(), encoding="utf-8")
    assert STUB.read_text(encoding="utf-8") == aio_stub(), "run `pytest --bless tests/graph`"


def test_a_graph_is_made_and_opened(tmp_path: Path) -> None:
    async def work() -> None:
        made = await aio.init(tmp_path / "film.omni", SCHEMA, actor="ann")
        assert isinstance(made, aio.Graph)
        assert await made.schema == SCHEMA
        assert set((await made.catalog).nodes) == {"Film", "Person"}
        assert (made.actor, made.notices, made.read_only) == ("ann", [], False)
        await made.close()
        async with aio.open(tmp_path / "film.omni", read_only=True) as graph:
            assert (await graph.snapshot()).commit_id
            with pytest.raises(errors.BadRequest, match="read-only"):
                await graph.mutate(ADD, params={"name": "x"})
        with pytest.raises(errors.NotFound):
            await aio.open(tmp_path / "nothing.omni")

    run(work)


def test_the_surface_works(root: Path) -> None:
    async def work() -> None:
        async with aio.open(root) as graph:
            added = await graph.mutate(ADD, params={"name": "a"})
            assert added.commit is not None
            line = '{"type": "Person", "data": {"name": "b"}}'
            assert await graph.branches.create("dev") == "dev"
            loaded = await graph.load(line, mode="append", branch="dev", actor="ben")
            assert loaded.total == 1
            assert (await graph.commits.list("dev"))[0].actor == "ben"
            assert (await graph.branches.merge("dev")).outcome == "fast_forward"
            assert (await graph.query(ALL)).rows == [{"name": "a"}, {"name": "b"}]
            assert (await graph.table("Person")).count_rows() == 2
            page = await graph.changes.poll(start="beginning")
            assert page.caught_up
            assert (await graph.commits.get(added.commit.id)).id == added.commit.id

    run(work)


def test_what_reads_on_is_a_stream(root: Path) -> None:
    async def work() -> None:
        async with aio.open(root) as graph:
            before = await graph.snapshot()
            lines = [f'{{"type": "Person", "data": {{"name": "{n:05}"}}}}' for n in range(3000)]
            await graph.load("\n".join(lines), mode="append")
            export = await graph.export()
            first = await anext(export)
            rest = [line async for line in export]
            assert len({first, *rest}) == 3000
            chunks = [chunk async for chunk in (await graph.export()).chunks()]
            assert sum(chunk.rows for chunk in chunks) == 3000
            diff = await graph.diff(before, "main")
            assert [stats.inserted for stats in await diff.stats] == [3000]
            for _ in range(2):
                assert len([change.id async for change in diff]) == 3000
            assert diff.to_version > diff.from_version
            baseline = await graph.changes.baseline()
            assert baseline.snapshot_commit_id == (await graph.snapshot()).commit_id
            assert len([line async for line in baseline]) == 3001

    run(work)


def test_a_session_of_an_actor(root: Path) -> None:
    class ReadOnly:
        def authorize(
            self, actor: str, action: Action, branch: str | None, target: str | None
        ) -> None:
            if action != "read":
                raise errors.PolicyDenied(f"{actor} {action} {branch} {target}")

    async def work() -> None:
        async with aio.open(root) as graph:
            async with graph.as_actor("ann", ReadOnly()) as ann:
                assert (await ann.query(ALL)).rows == []
                with pytest.raises(errors.PolicyDenied, match="ann change main None"):
                    await ann.mutate(ADD, params={"name": "x"})
                with pytest.raises(errors.PolicyDenied, match="ann branch_delete None dev"):
                    await ann.branches.delete("dev")
            # The threads are the graph's.
            assert (await graph.query(ALL)).rows == []
            await graph.as_actor("ben").mutate(ADD, params={"name": "y"})
            assert (await graph.commits.list())[0].actor == "ben"

    run(work)


def test_the_loop_goes_on_and_threads_are_bounded(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, seen = threading.Event(), set[str]()
    query = Session.query

    def slow(*args: Any, **named: Any) -> Any:
        seen.add(threading.current_thread().name)
        gate.wait(30)
        return query(*args, **named)

    slow.needs = ("read",)  # type: ignore[attr-defined]
    slow.__signature__ = inspect.signature(query)  # type: ignore[attr-defined]
    monkeypatch.setattr(Session, "query", slow)

    async def work() -> None:
        async with aio.open(root, threads=2) as graph:
            asked = [asyncio.create_task(graph.query(ALL)) for _ in range(6)]
            await until(lambda: len(seen) == 2)
            assert not any(task.done() for task in asked)
            gate.set()
            assert all(result.rows == [] for result in await asyncio.gather(*asked))
            assert len(seen) == 2

    run(work)


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Queries that go on until they are cancelled; gives what became of them."""
    log: list[str] = []

    def look(self: Budget) -> None:
        log.append("begun")
        for _ in range(3000):
            if self.cancellation is not None and self.cancellation.is_cancelled:
                log.append("stopped")
                raise errors.QueryCancelled("the query was cancelled")
            time.sleep(0.01)

    monkeypatch.setattr(Budget, "look", look)
    return lambda: log


def test_a_cancelled_task_stops_its_query(root: Path, endless: Callable[[], list[str]]) -> None:
    async def work() -> None:
        async with aio.open(root, threads=1) as graph:
            running = asyncio.create_task(graph.query(ALL))
            waiting = asyncio.create_task(graph.query(ALL))
            await until(lambda: "begun" in endless())
            for task in (waiting, running):
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            await until(lambda: "stopped" in endless())
            # The thread is free again, and the one that waited for it never ran.
            await graph.snapshot()
            assert endless() == ["begun", "stopped"]

    run(work)


def test_a_timeout_of_the_loop_stops_a_query(root: Path, endless: Callable[[], list[str]]) -> None:
    async def work() -> None:
        async with aio.open(root) as graph:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(graph.explain(ALL, analyze=True), 0.1)
            await until(lambda: "stopped" in endless())

    run(work)


def test_the_callers_own_switch_stops_a_query_too(
    root: Path, endless: Callable[[], list[str]]
) -> None:
    async def work() -> None:
        switch = Cancellation()
        async with aio.open(root) as graph:
            running = asyncio.create_task(graph.query(ALL, cancellation=switch))
            await until(lambda: "begun" in endless())
            switch.cancel()
            with pytest.raises(errors.QueryCancelled):
                await running
            # It is theirs: a task that is cancelled leaves it alone.
            other = Cancellation()
            running = asyncio.create_task(graph.query(ALL, cancellation=other))
            await until(lambda: endless().count("begun") == 2)
            running.cancel()
            await until(lambda: endless().count("stopped") == 2)
            assert not other.is_cancelled

    run(work)


def test_after_the_end_a_call_is_refused(root: Path) -> None:
    async def work() -> None:
        async with aio.open(root) as graph:
            pass
        with pytest.raises(errors.BadRequest, match="the graph is closed"):
            await graph.snapshot()
        with pytest.raises(errors.BadRequest, match="at least one thread"):
            await aio.open(root, threads=0)

    run(work)


def test_the_proxy_shows_what_it_stands_for(root: Path) -> None:
    async def work() -> None:
        async with aio.open(root) as graph:
            target = og.open(root)
            spaces = [name for name, one in vars(target).items() if isinstance(one, Surface)]
            for proxy, real in [
                (graph, target),
                *((getattr(graph, name), getattr(target, name)) for name in spaces),
            ]:
                public = {name for name in dir(real) if not name.startswith("_")}
                assert public <= set(dir(proxy))
                for name, found in inspect.getmembers_static(type(real)):
                    if hasattr(found, "needs"):
                        assert inspect.iscoroutinefunction(getattr(proxy, name)), name
                        assert getattr(proxy, name).__doc__ == found.__doc__
            assert repr(graph) == f"<async <Graph {root}>>"
            with pytest.raises(AttributeError):
                _ = graph.nothing  # type: ignore[attr-defined]

    run(work)
