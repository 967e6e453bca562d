"""Nothing but `OmniGraphError` leaves the API, whatever it is given."""

from __future__ import annotations

import asyncio
import copy
import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import aio, errors
from omnigraph.lang.source import Source
from omnigraph.pipeline.spark import session as spark_sessions
from omnigraph.read import queries
from omnigraph.storage.objects import clock
from tests.film_graph import SCHEMA
from tests.graph.wrong_values import ADD, ALL, LINE, WRONG, calls

untyped: Any = og
QUIET = {errors.OmniGraphError, errors.InternalError}
"""Classes that say that nobody had thought of it."""


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "film.omni", SCHEMA)
    graph.branches.create("dev")
    graph.mutate(ADD)
    return graph


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> Any:
        raise errors.EngineError("there is no Spark here")

    monkeypatch.setattr(spark_sessions, "_start", refuse)


def _works(graph: og.Graph) -> bool:
    """Whether a graph still reads and writes."""
    return bool(graph.query(ALL).rows) and graph.mutate(ADD).commit is not None


def _outcome(work: Any, arguments: dict[str, object]) -> str | None:
    """What is wrong with what a call did, if anything."""
    try:
        found = work(**arguments)
        if isinstance(found, Iterator):
            for _ in found:
                pass
    except errors.OmniGraphError as error:
        if type(error) in QUIET or not error.message.strip():
            return repr(error)
        try:
            error.message.encode()
        except UnicodeEncodeError:
            return f"a message that cannot be printed: {error.message!r}"
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is not ours
        return repr(error)
    return None


@pytest.mark.slow
@pytest.mark.usefixtures("no_spark")
def test_every_argument_of_every_method_may_be_wrong(
    graph: og.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong: list[str] = []
    for call in calls(graph, tmp_path):
        for what, arguments in call.wrong():
            complaint = _outcome(call.function, arguments)
            if complaint is not None:
                wrong.append(f"{what}: {complaint}")
        assert _works(graph), call.name
    assert not wrong, "\n".join(wrong)
    assert _works(og.open(str(graph.location)))


class Permissive:
    """A policy, so that branches are looked up before a method is called."""

    def authorize(self, *_: object) -> None:
        return


@pytest.mark.slow
@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize("bound", ["by a policy", "read-only"])
def test_whoever_is_asked_first_is_given_no_wrong_value(
    graph: og.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.chdir(tmp_path)
    looking = og.open(str(graph.location), read_only=True)
    surface = graph.as_actor("ann", Permissive()) if bound == "by a policy" else looking
    wrong = [
        f"{what}: {complaint}"
        for call in calls(surface, tmp_path)
        if call.name not in {"init", "open"}
        for what, arguments in call.wrong(["None", "a number", "NUL", "a surrogate", "a list"])
        if (complaint := _outcome(call.function, arguments)) is not None
    ]
    assert not wrong, "\n".join(wrong)
    assert _works(graph)


def test_an_event_loop_gets_the_same(graph: og.Graph) -> None:
    async def walk() -> list[str]:
        complaints = []
        async with aio.open(str(graph.location)) as opened:
            ways: dict[str, Callable[[Any], Any]] = {
                "query": opened.query,
                "cancellation": lambda value: opened.query(ALL, cancellation=value),
                "poll": lambda value: opened.changes.poll(cursor=value),
                "create": opened.branches.create,
                "threads": lambda value: aio.open(str(graph.location), threads=value),
            }
            for what, call in ways.items():
                for kind, value in WRONG.items():
                    try:
                        await call(value)
                    except errors.OmniGraphError as error:
                        if type(error) in QUIET:
                            complaints.append(f"{what}, {kind}: {error!r}")
        return complaints

    assert asyncio.run(walk()) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda graph: graph.query(),
        lambda graph: graph.query(ALL, limit=5),
        lambda graph: graph.query(ALL, None, None, "main"),
        lambda graph: graph.load(LINE),
        lambda _: untyped.open(),
        lambda graph: untyped.open(str(graph.location), mode="r"),
    ],
)
def test_arguments_that_are_missing_or_unknown(
    graph: og.Graph, call: Callable[[Any], object]
) -> None:
    with pytest.raises(errors.BadRequest, match="argument"):
        call(graph)


def test_a_message_names_the_argument(graph: og.Graph) -> None:
    loose: Any = graph
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: loose.query(None), "query: source must be text or a path or a Source, not None"),
        (lambda: loose.query(ALL, timeout="3"), "query: timeout must be a number, not '3'"),
        (lambda: loose.query(ALL, expansion="x"), "expansion must be 'auto' or .*, not 'x'"),
        (lambda: loose.branches.create(5), "create: name must be text, not 5"),
        (lambda: loose.changes.poll(cursor=5), "poll: cursor must be text, not 5"),
        (lambda: loose.cleanup(keep="1"), "cleanup: keep must be a whole number, not '1'"),
        (lambda: loose.cleanup(1, dry_run="no"), "dry_run must be True or False, not 'no'"),
        (lambda: loose.mutate(ADD, actor="\udc80"), "actor must be text, not '.udc80', which is"),
        (lambda: loose.export(types=["Film", 5]), "types must be a list of text, not a list with"),
        (lambda: loose.as_actor("ann", "policy"), "policy must be a Policy, not 'policy'"),
    ]
    for call, message in calls:
        with pytest.raises(errors.BadRequest, match=message):
            call()
    with pytest.raises(errors.ParamError, match="params must be a mapping, not 5"):
        loose.query(ALL, params=5)


@pytest.mark.parametrize("value", WRONG.values(), ids=WRONG)
def test_values_of_parameters(graph: og.Graph, value: object) -> None:
    add = "query add($n: String) { insert Person { name: $n } }"
    find = "query find($n: String) { match { $p: Person { name: $n } } return { $p.name } }"
    before = graph.snapshot().commit_id
    assert _outcome(graph.query, {"source": find, "params": {"n": value}}) is None
    assert _outcome(graph.mutate, {"source": add, "params": {"n": value}}) is None
    record = {"type": "Person", "data": {"name": value}}
    assert _outcome(graph.load, {"data": [record], "mode": "merge"}) is None
    if value == WRONG["a surrogate"]:
        assert graph.snapshot().commit_id == before
    assert _works(graph)


def test_text_that_is_no_unicode_in_a_source(graph: og.Graph) -> None:
    text = 'query all() { match { $p: Person { name: "\udc80" } } return { $p.name } }'
    for source in (Source(text), Source(ALL, "\udc80")):
        assert _outcome(graph.query, {"source": source}) is None
        assert _outcome(graph.lint, {"source": source}) is None


def test_names_that_are_longer_than_a_file_system_allows(graph: og.Graph, tmp_path: Path) -> None:
    long = tmp_path / ("x" * 300)
    for call in (
        lambda: og.init(long, SCHEMA),
        lambda: og.open(long),
        lambda: og.init(tmp_path / "new", long),
        lambda: graph.export(long),
        lambda: graph.changes.baseline(long),
        lambda: graph.load(long, mode="append", engine="inline"),
        lambda: graph.branches.create("x" * 300),
    ):
        with pytest.raises(errors.OmniGraphError) as refused:
            call()
        assert type(refused.value) not in QUIET
    with pytest.raises(errors.BadRequest, match="has 255 bytes at the most, and a path 3,500"):
        og.init("/".join([str(tmp_path), *["x" * 200] * 20]), SCHEMA)


def test_a_clock_before_1970(
    graph: og.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "time_ns", lambda: -(10**15))
    assert graph.query(ALL).rows
    assert og.open(str(graph.location)).query(ALL).rows
    for call in (
        lambda: graph.mutate(ADD),
        lambda: graph.load(LINE, mode="merge"),
        lambda: graph.branches.create("new"),
        lambda: graph.branches.merge("dev"),
        graph.ensure_indices,
        lambda: graph.cleanup(1),
        lambda: og.init(tmp_path / "new", SCHEMA),
    ):
        with pytest.raises(errors.StorageError, match=r"the clock of this machine .*: set it"):
            call()
    assert not (tmp_path / "new").exists()


def test_a_damaged_manifest(graph: og.Graph) -> None:
    """Lance gives up on some of these in Rust, which is no `Exception` in Python."""
    versions = Path(str(graph.location), "__manifest", "main", "_versions")
    (newest,) = sorted(versions.glob("*.manifest"))[:1]
    data = newest.read_bytes()
    for damaged in (b"", data[:4], data[:-20] + bytes(20), data[:-16] + b"\xff" * 4 + data[-12:]):
        newest.write_bytes(damaged)
        # Another branch can be read, so the graph opens; main cannot.
        opened = og.open(str(graph.location))
        assert "branch main" in opened.notices[0]
        with pytest.raises(errors.StorageError):
            opened.query(ALL)
        assert opened.query(ALL, branch="dev").rows == graph.query(ALL, branch="dev").rows
    newest.write_bytes(data)
    assert _works(og.open(str(graph.location)))


@pytest.mark.parametrize(
    ("raised", "kind", "code"),
    [
        (MemoryError(), errors.ResourceLimit, "resource_limit"),
        (RecursionError(), errors.ResourceLimit, "resource_limit"),
        (KeyError("x"), errors.InternalError, "internal_error"),
        (OSError(28, "No space left on device"), errors.StorageError, "storage_error"),
    ],
    ids=repr,
)
def test_what_nobody_meant_to_raise(
    graph: og.Graph,
    monkeypatch: pytest.MonkeyPatch,
    raised: Exception,
    kind: type[errors.OmniGraphError],
    code: str,
) -> None:
    def fail(*_: object) -> Any:
        raise raised

    with monkeypatch.context() as patch:
        patch.setattr(queries, "execute", fail)
        with pytest.raises(kind) as told:
            graph.query(ALL)
    assert told.value.code == code
    assert told.value.__cause__ is raised
    assert _works(graph)


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_stays_one(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch, raised: type[BaseException]
) -> None:
    def fail(*_: object) -> Any:
        raise raised

    monkeypatch.setattr(queries, "execute", fail)
    with pytest.raises(raised):
        graph.query(ALL)


def test_data_that_fails_by_itself(graph: og.Graph) -> None:
    def rows() -> Iterator[dict[str, object]]:
        yield {"type": "Person", "data": {"name": "Ben"}}
        raise LookupError("the source is gone")

    before = graph.snapshot().commit_id
    with pytest.raises(errors.BadRequest, match="LookupError: the source is gone"):
        graph.load(rows(), mode="append")
    assert graph.snapshot().commit_id == before


def test_an_opened_graph_stays_where_it_is(graph: og.Graph) -> None:
    for opened in (graph, graph.as_actor("ann"), graph.branches):
        for carry in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(errors.BadRequest, match="open it there"):
                carry(opened)
    process = multiprocessing.get_context("spawn").Process(target=print, args=(graph,))
    with pytest.raises(errors.BadRequest, match="open it there"):
        process.start()
