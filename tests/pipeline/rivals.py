"""Other processes that commit to a graph while a load is at work on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Literal

import omnigraph as og
from tests.write.processes import context
from tests.write.writing import compact_all, mutate

SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Rival:
    """What somebody else does: a mutation, an inline load of lines, or a compaction."""

    kind: Literal["mutate", "append", "merge", "compact"]
    text: str = ""
    run_id: str | None = None


def act(root: str, rival: Rival) -> None:
    """Commit as somebody else."""
    graph = og.open(root, actor="rival")
    match rival.kind:
        case "mutate":
            mutate(graph, rival.text)
        case "compact":
            compact_all(graph)
        case mode:
            graph.load(rival.text, mode=mode, engine="inline", run_id=rival.run_id)


def act_elsewhere(root: Path, rival: Rival) -> None:
    """The same in a process of its own."""
    process = context.Process(target=act, args=(str(root), rival))
    process.start()
    process.join(SECONDS)
    process.kill()
    assert process.exitcode == 0


@contextmanager
def writer_elsewhere(root: Path, pause: float) -> Iterator[Synchronized[int]]:
    """A process that never stops writing while the block runs; it counts its rounds."""
    stop, rounds = context.Event(), context.Value("q", 0)
    process = context.Process(target=keep_writing, args=(str(root), pause, stop, rounds))
    process.start()
    try:
        yield rounds
    finally:
        stop.set()
        process.join(SECONDS)
        process.kill()
    assert process.exitcode == 0


def keep_writing(root: str, pause: float, stop: Event, rounds: Synchronized[int]) -> None:
    """In every round one person comes, one who came is deleted, and one who was there changes."""
    graph = og.open(root, actor="rival")
    number = 0
    while not stop.wait(pause):
        mutate(graph, f'insert Person {{ name: "stays {number}", mail: "m{number}" }}')
        mutate(graph, f'insert Person {{ name: "goes {number}" }}')
        mutate(graph, f'delete Person where name = "goes {number}"')
        mutate(graph, f'insert Person {{ name: "Hot", mail: "hot {number}" }}')
        number += 1
        rounds.value = number
