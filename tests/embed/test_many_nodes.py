"""A backfill of many nodes: commit by commit, going on where it was stopped, and by tasks."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.embed.local import MockEmbedder
from omnigraph.embed.protocol import text_array
from omnigraph.errors import BadRequest, EmbeddingError
from omnigraph.pipeline import maintenance
from omnigraph.write import backfill
from tests import faults
from tests.embed.test_backfill import SCHEMA, column, films, vector
from tests.pipeline.engines import files_of
from tests.sound import check_sound
from tests.write.processes import context, die
from tests.write.writing import mutate, overtaken, unchanged


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> og.Graph:
    """Five files, of which the second has nothing to embed."""
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    graph = og.init(tmp_path / "films.omni", SCHEMA)
    films(graph, a="one", b="two")
    films(graph, c=None, d=" ")
    films(graph, e="three")
    films(graph, f="four", g=None)
    films(graph, h="five")
    return graph


MADE = {"a": "one", "b": "two", "e": "three", "f": "four", "h": "five"}


def check_made(graph: og.Graph) -> None:
    expected = dict.fromkeys("abcdefgh") | {k: vector(v) for k, v in MADE.items()}
    assert column(graph) == expected


def embeddings(graph: og.Graph) -> int:
    return sum(one.metadata.get("operation") == "embed" for one in graph.commits.list())


@dataclass
class Here:
    """Workers that run in this process what executors would."""

    jobs: list[Any] = field(default_factory=list)

    def takes(self, rows: int) -> bool:
        return rows > 0

    def run(
        self,
        _: str,
        function: Callable[[Any], Any],
        jobs: Sequence[Any],
        rows: int,
    ) -> Iterable[Any]:
        assert rows == sum(part.rows for job in jobs for part in job.parts)
        self.jobs += jobs
        return map(function, jobs)


@pytest.fixture(params=["here", "tasks"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """As one process does it, and as tasks do it, one for each file."""
    if request.param == "tasks":
        monkeypatch.setattr(maintenance.MaintenanceWorkers, "takes", Here().takes)
        monkeypatch.setattr(maintenance.MaintenanceWorkers, "run", Here().run)
        monkeypatch.setattr(backfill, "TASK_ROWS", 1)
    return str(request.param)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(("commit_rows", "commits"), [(None, 1), (1, 4), (3, 3), (100, 1)])
def test_as_many_commits_as_are_asked_for(
    graph: og.Graph, commit_rows: int | None, commits: int
) -> None:
    done = graph.embed("Film", "meaning", commit_rows=commit_rows)
    assert (done.rows, done.vectors) == (5, {"meaning": 5})
    assert embeddings(graph) == commits
    assert done.commit is not None
    assert done.commit.id == graph.snapshot().commit_id
    assert done.embedding == {"provider": "mock", "model": ""}
    check_made(graph)
    with unchanged(graph):
        assert graph.embed("Film", "meaning", commit_rows=commit_rows).rows == 0
    check_sound(str(graph.location))


@pytest.mark.usefixtures("way")
def test_what_was_committed_stays_and_the_rest_is_done_next_time(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    embed = MockEmbedder.embed

    def limited(self: MockEmbedder, texts: Any, dimension: int, role: Any = "document") -> Any:
        asked.extend(text_array(texts).to_pylist())
        if "four" in asked and len(asked) < 5:
            raise EmbeddingError("the provider has had enough", kind="unavailable")
        return embed(self, texts, dimension, role)

    monkeypatch.setattr(MockEmbedder, "embed", limited)
    with pytest.raises(EmbeddingError, match="enough"):
        graph.embed("Film", "meaning", commit_rows=1)
    assert embeddings(graph) == 2
    assert [name for name, found in column(graph).items() if found] == ["a", "b", "e"]
    asked.append("now it may")
    assert graph.embed("Film", "meaning", commit_rows=1).rows == 2
    assert asked == ["one", "two", "three", "four", "now it may", "four", "five"]
    check_made(graph)


def test_a_backfill_that_fails_leaves_nothing(
    graph: og.Graph, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise EmbeddingError("no", kind="unavailable")

    monkeypatch.setattr(MockEmbedder, "embed", fail)
    with unchanged(graph), pytest.raises(EmbeddingError):
        graph.embed("Film", "meaning")
    if way == "tasks":
        # Some have written, and another fails.
        monkeypatch.undo()
        monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
        monkeypatch.setattr(maintenance.MaintenanceWorkers, "takes", Here().takes)
        monkeypatch.setattr(maintenance.MaintenanceWorkers, "run", _fails_late)
        monkeypatch.setattr(backfill, "TASK_ROWS", 1)
        before = files_of(graph)
        with pytest.raises(EmbeddingError):
            graph.embed("Film", "meaning")
        assert files_of(graph) == before


def _fails_late(
    _: object, __: str, function: Callable[[Any], Any], jobs: Sequence[Any], ___: int
) -> Iterable[Any]:
    yield function(jobs[0])
    raise EmbeddingError("no", kind="unavailable")


@pytest.mark.usefixtures("way")
def test_others_change_a_row_meanwhile(graph: og.Graph) -> None:
    change = 'update Film set { blurb: "else" } where title = "b"'
    with overtaken(graph, "changes_checked", lambda them: mutate(them, change)) as race:
        done = graph.embed("Film", "meaning")
    assert race.fired == 1
    # The mutation has made its vector itself.
    assert done.vectors == {"meaning": 4}
    assert column(graph)["b"] == vector("else")
    check_sound(str(graph.location))


def test_what_makes_no_sense(graph: og.Graph) -> None:
    with pytest.raises(BadRequest, match="commit_rows more than 0"):
        graph.embed("Film", commit_rows=0)
    with pytest.raises(BadRequest, match="leave commit_rows out"):
        graph.embed("Film", commit_rows=5, only_missing=False)
    with pytest.raises(BadRequest, match="engine"):
        graph.embed("Film", engine="cloud")


def embed_until(root: str, commits: int) -> None:
    """Embed, and die with the publish after so many."""
    # Those who fork it may have begun before the test.
    os.environ["OMNIGRAPH_EMBEDDINGS_MOCK"] = "1"
    left = commits

    def watch(point: str, _: str) -> None:
        nonlocal left
        left -= point == "publish_ready"
        if left < 0:
            die()

    with faults.watched(watch):
        og.open(root).embed("Film", "meaning", commit_rows=1)


@pytest.mark.slow
def test_a_backfill_is_killed(graph: og.Graph) -> None:
    process = context.Process(target=embed_until, args=(graph.location.path, 2))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    again = og.open(graph.location.path)
    assert embeddings(again) == 2
    assert again.embed("Film", "meaning", commit_rows=1).rows == 2
    check_made(again)
    check_sound(str(graph.location), with_crashes=True)
