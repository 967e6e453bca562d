"""Processes that are killed and stopped at random instants leave a graph that agrees with a model.

As many die as the profile says, or `OMNIGRAPH_SOAK_KILLS`; `OMNIGRAPH_SOAK_SEED` is the seed.
`python -m tests.soak` runs one seed again.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests import profile
from tests.s3_server import S3Server
from tests.soak.run import Store, run
from tests.soak.stores import local, on_s3

SEED = int(os.environ.get("OMNIGRAPH_SOAK_SEED", "1"))
KILLS = int(os.environ.get("OMNIGRAPH_SOAK_KILLS", profile.CHOSEN.kills))
SHARE_OF_S3 = 0.25

pytestmark = [pytest.mark.slow, pytest.mark.soak]
Record = Callable[[str, object], None]


def soak(store: Store, kills: int, record_property: Record) -> None:
    seen = run(store, SEED, kills)
    assert seen["kills"] == kills
    assert seen["kills that hit an operation"] >= kills // 4
    record_property(f"soak on {store.name}, seed", SEED)
    for name in ("kills", "kills that hit an operation", "stops", "commits read", "seconds"):
        record_property(f"soak on {store.name}, {name}", seen[name])


def test_random_kills_and_stops_on_local_disk(record_property: Record) -> None:
    soak(local(), KILLS - int(KILLS * SHARE_OF_S3), record_property)


def test_random_kills_and_stops_on_s3(s3_server: S3Server, record_property: Record) -> None:
    soak(on_s3(s3_server), int(KILLS * SHARE_OF_S3), record_property)
