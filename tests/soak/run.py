"""A run of the soak: some kills from one seed, over as many graphs as that takes.

Owns the report of a failure: it has the seed, the round, what was asked and answered, and
where the graph is kept.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests import profile
from tests.soak.history import Crew, History
from tests.soak.processes import Nurseries

SHOWN = 60


@dataclass(frozen=True, slots=True)
class Store:
    """Where graphs are made; ``location`` is None for a directory of the run."""

    name: str
    location: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    linger: float = 0.0
    """For how long a request of a process that is dead may still be served."""


def run(
    store: Store, seed: int, kills: int, tell: Callable[[int], None] | None = None
) -> Counter[str]:
    """Kill so many processes; gives what happened, raises what must not.

    After every round ``tell`` gets the number of kills so far.
    """
    directory = Path(tempfile.mkdtemp(prefix=f"omnigraph-soak-{store.name}-{seed}-"))
    random = Random(f"{store.name} {seed}")  # noqa: S311 - the same run every time
    crew = Crew(Nurseries(random, store.environment, directory / "workers.log"))
    began = time.monotonic()
    done = 0
    try:
        while done < kills:
            root = f"{store.location or directory}/graph{done}"
            history = History(root, crew, random, store.linger)
            try:
                history.begin()
                for _ in range(min(profile.CHOSEN.rounds, kills - done)):
                    history.play()
                    done += 1
                    if tell is not None:
                        tell(done)
                history.finish()
            except Exception as error:
                error.add_note(_report(store, seed, done, history, directory))
                raise
            if store.location is None:
                shutil.rmtree(root)
    finally:
        crew.end()
    shutil.rmtree(directory)
    crew.seen["seconds"] = round(time.monotonic() - began)
    return crew.seen


def _report(store: Store, seed: int, done: int, history: History, directory: Path) -> str:
    """What a person needs to understand a failure and to see it again."""
    lines = [json.dumps(entry.line(), default=str) for entry in history.ledger.entries.values()]
    written = directory / "history.jsonl"
    written.write_text("\n".join(lines), encoding="utf-8")
    if store.location is not None:
        _fetch(store, history.root, directory / "graph")
    again = f"python -m tests.soak --store {store.name} --seed {seed} --kills {done + 1}"
    return "\n".join(
        [
            f"seed {seed} on {store.name}, round {done}, after {len(lines)} operations",
            f"the graph and all of its history are kept in {directory}",
            f"again: {profile.VARIABLE}={profile.NAME} {again}",
            f"the last operations (all of them: {written}):",
            *(line[:600] for line in lines[-SHOWN:]),
        ]
    )


def _fetch(store: Store, root: str, directory: Path) -> None:
    """Keep the objects of a graph, whose server ends with the run."""
    import obstore
    from obstore.store import S3Store

    environment = store.environment
    objects = S3Store.from_url(
        root,
        endpoint=environment["AWS_ENDPOINT_URL_S3"],
        access_key_id=environment["AWS_ACCESS_KEY_ID"],
        secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        region=environment["AWS_REGION"],
        client_options={"allow_http": True},
    )
    for page in obstore.list(objects):
        for found in page:
            target = directory / found["path"]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(bytes(obstore.get(objects, found["path"]).bytes()))
