"""A process that searches for one system: `python -m bench.search.worker NAME DIRECTORY`.

Owns the talk over its pipes: one JSON message per line in, one out. Time is measured
here, around the question alone, so the pipes cost nobody anything.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from bench.search.questions import ARMS, QUESTIONS
from bench.search.systems import System, system

_BY_NAME = {question.name: question for question in (*QUESTIONS, *ARMS)}


def answer(message: dict[str, Any], asked: System) -> dict[str, Any]:
    """Do what a message says, and say how long it took."""
    start = time.perf_counter()
    match message["do"]:
        case "load":
            asked.load(Path(message["files"]))
            return {"seconds": time.perf_counter() - start}
        case "index":
            built = asked.index()
            return {"seconds": time.perf_counter() - start, "built": built}
        case "ask":
            return _ask(message, asked)
    raise ValueError(f"nobody knows how to {message['do']}")


def _ask(message: dict[str, Any], asked: System) -> dict[str, Any]:
    question = _BY_NAME[message["question"]]
    seconds, answers = [], []
    for params in message["params"]:
        start = time.perf_counter()
        rows = asked.ask(question, params)
        seconds.append(time.perf_counter() - start)
        answers.append(rows)
    return {"seconds": seconds, "answers": answers}


def main(name: str, directory: str) -> None:
    """Answer until there is nothing more to answer."""
    asked = system(name, Path(directory))
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), asked)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
