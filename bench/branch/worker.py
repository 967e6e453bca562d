"""A process that merges for the peer: `python -m bench.branch.worker DIRECTORY SIZE`.

Owns the talk over its pipes: one JSON message per line in, one out. The peer takes the place
of a library that others use, so nothing else may run in its process. It makes the rows
itself, the same that the benchmark makes.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.branch.data import People
from bench.branch.rounds import Step, run_round
from bench.branch.systems import Brancher, Doltlite


def answer(message: dict[str, Any], asked: Brancher, people: People) -> dict[str, Any]:
    """Do what a message says."""
    match message["do"]:
        case "load":
            asked.load(people.table())
            return {}
        case "branch":
            return {"seconds": asked.branch(message["name"])}
        case "round":
            return asdict(run_round(asked, people, Step(**message["step"])))
    raise ValueError(f"nobody knows how to {message['do']}")


def main(directory: str, size: str) -> None:
    """Answer until there is nothing more to answer."""
    asked, people = Doltlite(Path(directory)), People(int(size))
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), asked, people)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
