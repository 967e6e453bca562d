"""A graph of 217 types: one publish may touch all of them."""

from __future__ import annotations

import pytest

from omnigraph.manifest.entries import Registration, TableIdentity
from omnigraph.manifest.publish_request import AdvanceTable, RegisterTable
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.location import Location
from tests.manifest.graphs import KNOWS, PERSON, pin, request

TYPES = 217


@pytest.mark.slow
def test_217_types(manifest: Manifest, root: Location) -> None:
    identities = [TableIdentity(number, 1) for number in range(3, TYPES + 1)]
    tables = [
        RegisterTable(
            Registration(identity, f"node:T{identity.table_id}", f"nodes/{identity}"), pin(1)
        )
        for identity in identities
    ]
    manifest.publish("main", request(*tables))
    for round_ in range(1, 12):
        manifest.publish(
            "main", request(*(AdvanceTable(i, round_, pin(round_)) for i in identities))
        )
    cold = Manifest(root)
    snapshot = cold.view().snapshot
    assert len(snapshot.tables) == TYPES
    assert {table.version for table in snapshot.tables.values()} == {1, 12}
    assert len(cold.commits()) == 13
    sizes = cold.view().log.log_sizes()
    assert sum(sizes) + len(cold.view().state.recent) == 11 * len(identities) + 13
    assert len(sizes) <= 8
    first = cold.view_at(cold.commits()[-2]).state
    assert {first.current_version(identity) for identity in (PERSON, KNOWS, *identities)} == {1}
