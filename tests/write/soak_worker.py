"""A long-lived writer in a process of its own: it gets writes, and acknowledges each of them."""

from __future__ import annotations

from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from traceback import format_exc

import omnigraph as og
from omnigraph.errors import PreconditionFailed
from omnigraph.write import announcement
from omnigraph.write.results import LoadResult, MutationResult
from tests.write.processes import context
from tests.write.soak_model import Increment, Load, Mutate

Write = Mutate | Load | Increment
PATIENCE = 120
"""Seconds after which a worker that says nothing is taken for stuck."""


def count(graph: og.Graph) -> MutationResult:
    """One more on the counter: read, and write only if nothing has happened since."""
    while True:
        head = graph.snapshot().commit_id
        (row,) = graph.table("Counter", snapshot=head).to_table().to_pylist()
        with suppress(PreconditionFailed):
            return graph.mutate(
                'query q($v: I32) { update Counter set { value: $v } where name = "all" }',
                params={"v": row["value"] + 1},
                if_commit=head,
            )


def perform(graph: og.Graph, write: Write) -> str:
    """Do one write; gives its commit."""
    result: MutationResult | LoadResult
    match write:
        case Mutate(source, params):
            result = graph.mutate(source, params=params)
        case Load(data, mode, is_announced):
            announcement.REQUEST_BYTES = -1 if is_announced else 2**30
            result = graph.load(data, mode=mode)
        case Increment():
            result = count(graph)
    assert result.commit is not None
    return result.commit.id


def work(root: str, actor: str, pipe: Connection) -> None:
    """Serve until nobody asks any more; an error is told like an acknowledgement."""
    graph = og.open(root, actor=actor)
    with suppress(EOFError):
        while True:
            for write in pipe.recv():
                try:
                    answer = perform(graph, write)
                except Exception:
                    pipe.send(Exception(format_exc()))
                    raise
                pipe.send(answer)


class Worker:
    """The parent's side of one worker."""

    def __init__(self, root: str, actor: str) -> None:
        self._root = root
        self._actor = actor
        self._process: BaseProcess
        self._pipe: Connection
        self.start()

    def start(self) -> None:
        """Start the process; it opens the graph while the parent goes on."""
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=work, args=(self._root, self._actor, theirs), daemon=True
        )
        self._process.start()
        theirs.close()

    def ask(self, writes: list[Write]) -> None:
        """Hand over some writes, to be done in this order."""
        self._pipe.send(writes)

    def acknowledged(self, n: int) -> list[str]:
        """The commits of the next writes."""
        commits: list[str] = []
        for _ in range(n):
            assert self._pipe.poll(PATIENCE), f"{self._actor} is stuck"
            commits.append(self._take())
        return commits

    def kill(self) -> list[str]:
        """Kill the process, whatever it does; gives what it had acknowledged before."""
        self._process.kill()
        self._process.join()
        commits: list[str] = []
        with suppress(EOFError, OSError):
            while True:
                commits.append(self._take())
        self._pipe.close()
        return commits

    def stop(self) -> None:
        """Let the process end."""
        self._pipe.close()
        self._process.join()
        assert self._process.exitcode == 0

    def _take(self) -> str:
        answer = self._pipe.recv()
        if isinstance(answer, Exception):
            raise AssertionError(f"{self._actor} was refused: {answer}")
        assert isinstance(answer, str)
        return answer
