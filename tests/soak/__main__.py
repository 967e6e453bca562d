"""Run the soak once more from a seed: `python -m tests.soak --store local --seed 7 --kills 40`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.s3_server import running
from tests.soak.run import Store, run
from tests.soak.stores import local, on_s3


def _tell(kills: int) -> None:
    sys.stderr.write(f"\r{kills} kills")


def main() -> None:
    """Read the arguments, run, and say what happened."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--store", choices=("local", "s3"), default="local")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=40)
    wanted = parser.parse_args()
    with ExitStack() as stack:
        store: Store = local()
        if wanted.store == "s3":
            directory = stack.enter_context(tempfile.TemporaryDirectory())
            store = on_s3(stack.enter_context(running(Path(directory))))
        seen = run(store, wanted.seed, wanted.kills, _tell)
    sys.stderr.write("\n")
    for name, count in sorted(seen.items()):
        sys.stdout.write(f"{name}: {count}\n")


if __name__ == "__main__":
    main()
