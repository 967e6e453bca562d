"""A process that answers for one system: `python -m bench.traversal.worker NAME DIRECTORY`.

Owns the talk over its pipes: one JSON message per line in, one out. Time is measured
here, around the question alone, so the pipes cost nobody anything.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.traversal.questions import QUESTIONS, WAYS, Params, Question
from bench.traversal.systems import System, system


def answer(message: dict[str, Any], asked: System, known: Sequence[Question]) -> dict[str, Any]:
    """Do what a message says, and say how long it took."""
    start = time.perf_counter()
    match message["do"]:
        case "load":
            asked.load(Path(message["files"]))
        case "open":
            asked.open()
        case "ask":
            (question,) = (one for one in known if one.name == message["question"])
            return _ask(question, message["params"], asked)
        case "memory":
            return {"bytes": peak_memory()}
    return {"seconds": time.perf_counter() - start}


def peak_memory() -> int:
    """The most bytes this process ever had in memory."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # On Linux getrusage also remembers the parent, from before this program was started.
    (peak,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(peak.split()[1]) * 1024


def _ask(question: Question, params: Sequence[Params], asked: System) -> dict[str, Any]:
    seconds, answers = [], []
    for one in params:
        start = time.perf_counter()
        rows = asked.ask(question, one)
        seconds.append(time.perf_counter() - start)
        answers.append(rows)
    return {"seconds": seconds, "answers": answers}


def serve(asked: System, known: Sequence[Question]) -> None:
    """Answer until there is nothing more to answer."""
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), asked, known)), flush=True)


if __name__ == "__main__":
    serve(system(sys.argv[1], Path(sys.argv[2])), (*QUESTIONS, *WAYS))
