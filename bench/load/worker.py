"""A process that loads for one system: `python -m bench.load.worker NAME DIRECTORY`.

Owns the talk over its pipes: one JSON message per line in, one out. Time is measured where
the load is, so neither the pipes nor removing what was loaded cost anybody anything.
"""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.load.systems import Loader, loader
from bench.traversal.worker import peak_memory


def answer(message: dict[str, Any], asked: Loader, directory: Path) -> dict[str, Any]:
    """Do what a message says."""
    match message["do"]:
        case "start":
            return {"seconds": asked.start(warm_up=message["warm_up"])}
        case "load":
            into = directory / message["into"]
            return asdict(asked.load(message["shape"], Path(message["files"]), into))
        case "remove":
            shutil.rmtree(directory / message["into"])
            return {}
        case "memory":
            return {"bytes": peak_memory()}
    raise ValueError(f"nobody knows how to {message['do']}")


def main(name: str, directory: str) -> None:
    """Answer until there is nothing more to answer."""
    asked = loader(name)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), asked, Path(directory))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
