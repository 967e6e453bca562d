"""Plan and apply: from nothing to what is declared, and on from there."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from omnigraph import init
from omnigraph.cluster.applying import apply
from omnigraph.cluster.approving import approve
from omnigraph.cluster.observing import force_unlock, import_, refresh, status
from omnigraph.cluster.planning import plan
from omnigraph.cluster.sidecars import Approval
from omnigraph.storage.objects.faults import watched
from tests.cluster.deployments import ONE, TWO, WIDER, Deployment, codes


@pytest.fixture
def deployed(tmp_path: Path) -> Deployment:
    return Deployment.make(tmp_path / "team").deployed()


def files(directory: Path) -> dict[str, bytes]:
    found = directory.rglob("*")
    return {str(one.relative_to(directory)): one.read_bytes() for one in found if one.is_file()}


def test_an_apply_needs_a_ledger_and_an_import_makes_it_once(tmp_path: Path) -> None:
    team = Deployment.make(tmp_path)
    assert codes(apply(tmp_path)) == ["state_missing"]
    assert codes(plan(tmp_path)) == ["state_missing"]
    assert codes(status(tmp_path)) == ["state_missing"]
    assert status(tmp_path).ok
    assert not refresh(tmp_path).ok
    assert import_(tmp_path).ok
    assert codes(import_(tmp_path)) == ["state_already_exists"]
    assert team.ledger.state_revision == 1


def test_an_import_takes_up_what_is_there(tmp_path: Path) -> None:
    team = Deployment.make(tmp_path)
    place = team.root.graph("ferries")
    with init(str(place), tmp_path / "ferries.pg") as graph:
        graph.load([{"type": "Port", "data": {"code": "ARD"}}], mode="append")
    found = import_(tmp_path)
    assert found.statuses["schema.ferries"].status == "applied"
    assert team.apply().converged
    rows = team.graph().query("query q() { match { $p: Port } return { $p.code as code } }").rows
    assert rows == [{"code": "ARD"}]


def test_what_is_declared_is_applied_once(deployed: Deployment) -> None:
    assert deployed.ledger.graphs == ["ferries"]
    assert sorted(deployed.ledger.resources) == [
        "graph.ferries",
        "policy.team",
        "query.ferries.ports",
        "schema.ferries",
    ]
    before = files(deployed.directory)
    again = deployed.apply()
    assert (again.converged, again.state_written, again.changes) == (True, False, [])
    assert files(deployed.directory) == before
    assert plan(deployed.directory).changes == []


def test_a_plan_writes_nothing(deployed: Deployment) -> None:
    deployed.write("ferries.pg", WIDER)
    deployed.declare(TWO)
    before = files(deployed.directory)
    found = plan(deployed.directory)
    assert {one.resource: (one.operation, one.disposition) for one in found.changes} == {
        "graph.crew": ("create", "applied"),
        "graph.ferries": ("update", "derived"),
        "schema.crew": ("create", "derived"),
        "schema.ferries": ("update", "applied"),
    }
    schema = next(one for one in found.changes if one.resource == "schema.ferries")
    assert schema.migration is not None
    assert [step["kind"] for step in schema.migration["steps"]] == ["add_property"]
    assert ("schema.ferries", ["query.ferries.ports"]) in found.blast_radius
    assert files(deployed.directory) == before


def test_a_schema_is_changed_and_the_rows_stay(deployed: Deployment) -> None:
    deployed.graph().load([{"type": "Port", "data": {"code": "ARD"}}], mode="append")
    deployed.write("ferries.pg", WIDER)
    assert deployed.apply().converged
    graph = deployed.graph()
    assert graph.query("query q() { match { $p: Port } return { $p.code as c, $p.name as n } }")
    assert graph.commits.list()[0].actor == "act-ann"
    assert deployed.apply().changes == []


def test_what_only_reads_otherwise_is_applied_and_no_commit(deployed: Deployment) -> None:
    head = deployed.graph().commits.list()[0].id
    deployed.write("ferries.pg", "// Ports.\n" + WIDER.replace("    name: String?\n", ""))
    assert deployed.apply().converged
    assert deployed.graph().commits.list()[0].id == head
    assert codes(refresh(deployed.directory)) == []
    assert plan(deployed.directory).changes == []


def test_a_change_that_the_rows_do_not_take_blocks_what_depends_on_it(
    deployed: Deployment,
) -> None:
    deployed.graph().load([{"type": "Port", "data": {"code": "ARD"}}], mode="append")
    deployed.write("ferries.pg", WIDER.replace("name: String?", "name: String"))
    deployed.write("ferries.gq", (deployed.directory / "ferries.gq").read_text() + "\n// more\n")
    found = deployed.apply()
    assert found.ok
    assert not found.converged
    assert codes(found) == [
        "apply_unsupported_change",
        "apply_dependency_blocked",
        "apply_dependency_blocked",
    ]
    assert found.statuses["schema.ferries"].status == "blocked"
    deployed.write("ferries.pg", WIDER)
    assert deployed.apply().converged


def test_a_graph_that_cannot_be_made_stops_work_on_graphs(deployed: Deployment) -> None:
    deployed.declare(TWO.replace("ferries: {", "z-more: { schema: crew.pg }\n  ferries: {"))
    init(str(deployed.root.graph("crew")), deployed.directory / "ferries.pg").close()
    found = deployed.apply()
    assert codes(found)[:2] == ["graph_create_failed", "graph_create_skipped"]
    assert found.statuses["graph.crew"].status == "error"
    # Whoever takes it as it is goes on from there.
    assert refresh(deployed.directory).ok
    assert "graph.crew" in deployed.ledger.resources


def test_a_graph_goes_only_with_an_approval_that_fits(deployed: Deployment) -> None:
    deployed.declare(TWO)
    assert deployed.apply().converged
    deployed.graph("crew").load([{"type": "Person", "data": {"code": "Ann"}}], mode="append")
    deployed.declare(ONE)
    found = plan(deployed.directory)
    assert [(one.resource, one.satisfied) for one in found.approvals] == [("graph.crew", False)]
    left = deployed.apply()
    assert (left.ok, left.converged, left.deferred_count) == (True, False, 2)
    assert left.statuses["graph.crew"].conditions == ("approval_required",)
    assert codes(approve(deployed.directory, "graph.ferries", "a")) == ["approval_not_required"]

    deployed.approve("graph.crew")
    deployed.declare(ONE.replace("version: 1", "version: 1\nmetadata: { name: other }"))
    assert codes(deployed.apply()) == ["approval_stale"]
    assert deployed.graph("crew").query("query q() { match { $p: Person } return { $p.code } }")

    deployed.approve("graph.crew")
    assert plan(deployed.directory).approvals[0].satisfied
    assert deployed.apply().converged
    assert not Path(deployed.root.graph("crew").path).exists()
    (record,) = deployed.ledger.approval_records
    data = deployed.root.objects.read(f"__cluster/approvals/{record}.json")
    assert data is not None
    assert msgspec.json.decode(data, type=Approval).consumed_at is not None

    # The same graph, made and dropped again under the same configuration: nobody agreed to that.
    deployed.declare(TWO)
    assert deployed.apply().converged
    deployed.declare(ONE.replace("version: 1", "version: 1\nmetadata: { name: other }"))
    assert not deployed.apply().converged
    assert Path(deployed.root.graph("crew").path).exists()


@pytest.mark.parametrize("changed", ["__cluster/state.json", "__cluster/approvals"])
def test_a_graph_stays_if_somebody_decides_otherwise_meanwhile(
    changed: str, deployed: Deployment
) -> None:
    deployed.declare(TWO)
    deployed.apply()
    deployed.declare(ONE)
    deployed.approve("graph.crew")

    def meanwhile(point: str, _: str) -> None:
        if point != "cluster_announced":
            return
        if changed.endswith(".json"):
            data = deployed.root.objects.read(changed)
            assert data is not None
            deployed.root.objects.replace(changed, data + b"\n")
        else:
            for name in deployed.root.objects.list(changed):
                deployed.root.objects.delete(name)

    with watched(meanwhile):
        found = deployed.apply()
    assert "graph_delete_failed" in codes(found)
    assert "nothing was deleted" in found.diagnostics[1].message
    assert deployed.graph("crew").catalog.nodes
    assert deployed.apply().converged == changed.endswith(".json")


def test_an_approval_that_was_used_is_none_even_if_its_file_was_lost_halfway(
    deployed: Deployment,
) -> None:
    deployed.declare(TWO)
    deployed.apply()
    deployed.declare(ONE)
    deployed.approve("graph.crew")
    kept = {
        name: deployed.root.objects.read(name)
        for name in deployed.root.objects.list("__cluster/approvals")
    }
    assert deployed.apply().converged
    for name, data in kept.items():
        assert data is not None
        deployed.root.objects.replace(name, data)
    deployed.declare(TWO)
    deployed.apply()
    deployed.declare(ONE)
    assert not deployed.apply().converged


def test_bindings_of_a_policy_change_by_themselves(deployed: Deployment) -> None:
    deployed.declare(TWO.replace("[ferries]", "[ferries, graph.crew]"))
    found = plan(deployed.directory)
    policy = next(one for one in found.changes if one.resource == "policy.team")
    assert policy.metadata_change == "policy_bindings"
    assert policy.binding_change == {
        "before": ["graph.ferries"],
        "after": ["graph.crew", "graph.ferries"],
    }
    assert deployed.apply().converged
    assert deployed.ledger.resources["policy.team"].applies_to == ("graph.ferries", "graph.crew")


def test_a_provider_that_a_graph_still_has_stays(deployed: Deployment) -> None:
    provided = ONE.replace(
        "queries: ferries.gq", "queries: ferries.gq, embedding_provider: fake"
    ).replace("graphs:", "providers: { embedding: { fake: { kind: mock, model: m } } }\ngraphs:")
    deployed.declare(provided)
    assert deployed.apply().converged
    applied = deployed.ledger.resources["graph.ferries"]
    assert applied.embedding_provider == "provider.embedding.fake"
    deployed.declare(provided.replace("model: m", "model: other"))
    changed = plan(deployed.directory).changes
    assert [one.resource for one in changed] == ["graph.ferries", "provider.embedding.fake"]
    assert changed[1].metadata_change == "embedding_profile"
    assert deployed.apply().converged
    deployed.declare(ONE)
    assert deployed.apply().converged
    assert "provider.embedding.fake" not in deployed.ledger.resources


def test_a_blob_that_is_gone_or_changed_is_told_and_written_again(deployed: Deployment) -> None:
    names = deployed.root.objects.list("__cluster/resources")
    deployed.root.objects.delete(names[0])
    deployed.root.objects.replace(names[1], b"something else")
    assert codes(status(deployed.directory)) == [
        "catalog_payload_missing",
        "catalog_payload_mismatch",
    ]
    found = refresh(deployed.directory)
    assert found.statuses["policy.team"].status == "drifted"
    assert deployed.apply().converged
    assert codes(status(deployed.directory)) == []
    assert status(deployed.directory).statuses["policy.team"].status == "applied"


def test_a_graph_that_somebody_else_has_changed_is_brought_back(deployed: Deployment) -> None:
    deployed.graph().apply_schema(WIDER)
    assert refresh(deployed.directory).statuses["schema.ferries"].status == "drifted"
    found = plan(deployed.directory)
    assert [one.resource for one in found.changes] == ["graph.ferries", "schema.ferries"]
    assert deployed.apply().converged
    assert "name" not in deployed.graph().catalog.nodes["Port"].properties


def test_a_graph_that_is_gone_is_told_and_never_made_again_by_itself(
    deployed: Deployment,
) -> None:
    place = Path(deployed.root.graph("ferries").path)
    place.rename(place.with_name("aside"))
    found = refresh(deployed.directory)
    assert codes(found) == ["graph_observation_error"]
    assert found.statuses["graph.ferries"].status == "error"
    deployed.apply()
    assert not place.exists()
    place.with_name("aside").rename(place)
    assert refresh(deployed.directory).statuses["graph.ferries"].status == "applied"


def test_a_lock_that_was_left_is_taken_away_by_its_id_alone(deployed: Deployment) -> None:
    lock = b'{"version":1,"lock_id":"L1","operation":"apply","created_at":"2026-01-01","pid":7}'
    assert deployed.root.objects.create("__cluster/lock.json", lock)
    held = plan(deployed.directory).state.lock
    assert held is not None
    assert held.lock_id == "L1"
    for found in (deployed.apply(), plan(deployed.directory), refresh(deployed.directory)):
        assert codes(found) == ["state_lock_held"]
        assert "force-unlock L1" in found.diagnostics[-1].message
    assert status(deployed.directory).state.lock is not None
    assert codes(force_unlock(deployed.directory, "L2")) == ["state_lock_id_mismatch"]
    assert force_unlock(deployed.directory, "L1").ok
    assert codes(force_unlock(deployed.directory, "L1")) == ["state_lock_missing"]
    assert deployed.apply().converged


def test_a_ledger_that_is_changed_underneath_is_not_overwritten(deployed: Deployment) -> None:
    deployed.declare(TWO)

    def meddle(point: str, _: str) -> None:
        if point == "cluster_state_ready":
            data = deployed.root.objects.read("__cluster/state.json")
            assert data is not None
            deployed.root.objects.replace("__cluster/state.json", data + b"\n")

    with watched(meddle):
        found = deployed.apply()
    assert codes(found) == ["state_cas_mismatch"]
    assert "graph.crew" not in deployed.ledger.resources
    again = deployed.apply()
    assert codes(again) == ["cluster_recovery_rolled_forward"]
    assert again.converged
    assert deployed.root.objects.list("__cluster/recoveries") == []


def test_two_applies_without_a_lock_do_not_lose_each_other(deployed: Deployment) -> None:
    deployed.declare(TWO + "state: { lock: false }\n")
    other: list[bool] = []

    def meanwhile(point: str, _: str) -> None:
        if point == "cluster_state_ready" and not other:
            other.append(False)
            other[0] = deployed.apply().ok

    with watched(meanwhile):
        first = deployed.apply()
    assert "state_lock_disabled" in codes(first)
    assert codes(first)[-1] == "state_cas_mismatch" or first.converged
    assert deployed.apply().converged
    assert deployed.graph("crew").catalog.nodes
