"""Every code has a configuration or a state that leads to it, and says what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from omnigraph.cluster import desired as desired_module
from omnigraph.cluster.applying import apply
from omnigraph.cluster.approving import approve
from omnigraph.cluster.layout import LOCK, STATE
from omnigraph.cluster.observing import force_unlock, import_, refresh, status
from omnigraph.cluster.planning import plan, validate
from omnigraph.cluster.revision import read_applied, require_graph
from omnigraph.config.cluster import parse
from omnigraph.config.cluster.diagnostics import ERRORS, WARNINGS
from omnigraph.errors import BadRequest, StorageError
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.swapped_object import SwappedObject
from tests.cluster.deployments import ONE, TWO, WIDER, Deployment, codes, killed_at
from tests.faults import armed

FIXTURES = Path(__file__).parent / "fixtures" / "configurations.txt"
PAGE = Path(__file__).parents[2] / "docs" / "user" / "cluster.md"
UNREACHABLE = {
    # A guard over the code itself.
    "apply_approval_invariant_violation",
    # A ledger has one version of a graph, and no fields that nobody knows.
    "conflicting_graph_manifest_observation",
    # An export holds nothing in storage that a deletion could see.
    "graph_delete_export_in_progress",
}


def configurations() -> list[tuple[str, dict[str, str]]]:
    found = []
    text = FIXTURES.read_text(encoding="utf-8")
    for block in re.split(r"^=== ", text, flags=re.MULTILINE)[1:]:
        heading, _, rest = block.partition("\n")
        parts = re.split(r"^--- (.+)\n", rest, flags=re.MULTILINE)[1:]
        files = dict(zip(parts[::2], parts[1::2], strict=True))
        found.append((heading.strip(), files))
    return found


CONFIGURATIONS = configurations()


@pytest.mark.parametrize(
    ("heading", "files"),
    CONFIGURATIONS,
    ids=[f"{at}-{heading}" for at, (heading, _) in enumerate(CONFIGURATIONS)],
)
def test_a_configuration_leads_to_its_codes(
    heading: str, files: dict[str, str], tmp_path: Path
) -> None:
    Deployment.make(tmp_path)
    for name, text in files.items():
        if name.startswith("rm "):
            (tmp_path / name.removeprefix("rm ")).unlink()
            continue
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = validate(tmp_path)
    wanted = set(heading.replace("~", "").split())
    told = {one.code for one in found.diagnostics}
    assert told - {"external_blob_ingress_default_deny"} <= wanted <= told
    is_warning = {one.code: one.severity == "warning" for one in found.diagnostics}
    assert {one for one in heading.split() if one.startswith("~")} == {
        f"~{code}" for code in wanted if is_warning[code]
    }
    assert found.ok == heading.startswith("~")
    assert all(one.message and "\n\n" not in one.message for one in found.diagnostics)
    assert "sk-very-secret" not in repr(found)
    # Nothing that is wrong here is ever planned or applied.
    if not found.ok:
        assert not plan(tmp_path).ok
        assert not (tmp_path / "__cluster").exists()


def test_a_key_that_nobody_knows_is_told_with_its_place_and_the_nearest(tmp_path: Path) -> None:
    team = Deployment.make(tmp_path)
    team.declare("version: 1\ngraphs:\n  ferries:\n    schemas: ferries.pg\n")
    messages = [one.message for one in validate(tmp_path).diagnostics]
    assert any("schema" in one and "(line 4, column 5)" in one for one in messages)


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    assert codes(validate(tmp_path / "none")) == ["config_dir_not_found"]


def test_a_directory_of_queries_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = Deployment.make(tmp_path, ONE.replace("queries: ferries.gq", "queries: many"))
    (team.directory / "many").mkdir()

    def denied(_: Path) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", denied)
    assert codes(validate(tmp_path)) == ["query_dir_unreadable"]


def test_a_file_that_changes_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = Deployment.make(tmp_path)
    known = desired_module.policy_of

    def meanwhile(*args: Any, **named: Any) -> Any:
        team.write("ferries.pg", WIDER)
        return known(*args, **named)

    monkeypatch.setattr(desired_module, "policy_of", meanwhile)
    assert codes(validate(tmp_path)) == ["resource_content_changed"]


# -- the ledger and the lock -------------------------------------------------------------


@pytest.fixture
def deployed(tmp_path: Path) -> Deployment:
    return Deployment.make(tmp_path / "team").deployed()


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (b"{", "invalid_state_json"),
        (b'{"version":1,"state_revision":1,"more":1}', "invalid_state_json"),
        (b'{"version":2,"state_revision":1}', "unsupported_state_version"),
    ],
)
def test_a_ledger_that_cannot_be_used_stops_everything(
    state: bytes, code: str, tmp_path: Path
) -> None:
    team = Deployment.make(tmp_path)
    team.root.objects.replace(STATE, state)
    for found in (plan(tmp_path), apply(tmp_path), status(tmp_path), refresh(tmp_path)):
        assert code in codes(found)
    assert not import_(tmp_path).ok
    assert team.root.objects.read(STATE) == state
    with pytest.raises(BadRequest, match=code):
        read_applied(str(tmp_path))


@pytest.mark.parametrize(
    ("lock", "code"),
    [(b"{", "invalid_state_lock"), (b'{"version":2}', "unsupported_state_lock_version")],
)
def test_a_lock_that_cannot_be_read_is_respected(lock: bytes, code: str, tmp_path: Path) -> None:
    team = Deployment.make(tmp_path)
    team.root.objects.replace(LOCK, lock)
    assert codes(plan(tmp_path))[0] == code
    assert codes(force_unlock(tmp_path, "x")) == [code]
    seen = status(tmp_path)
    assert code in codes(seen)
    assert seen.ok
    assert team.root.objects.read(LOCK) == lock


def fails(monkeypatch: pytest.MonkeyPatch, of: type, method: str, matching: str) -> None:
    """Have a method fail where what it is asked for has this in its name."""
    known = getattr(of, method)

    def failing(self: Any, *args: Any) -> Any:
        name = getattr(self, "_name", "") if of is SwappedObject else str(args[0] if args else "")
        if matching in name:
            raise StorageError("injected fault", kind="transient")
        return known(self, *args)

    monkeypatch.setattr(of, method, failing)


Does = Callable[[Path], Any]


@pytest.mark.parametrize(
    ("failing", "does", "code"),
    [
        ((SwappedObject, "read", STATE), plan, "state_read_error"),
        ((SwappedObject, "swap", STATE), import_, "state_write_error"),
        ((ControlObjects, "claim", LOCK), plan, "state_lock_error"),
        ((ControlObjects, "read", LOCK), status, "state_lock_read_error"),
        ((ControlObjects, "list", "__cluster/recoveries"), status, "state_read_error"),
    ],
)
def test_storage_that_fails_is_told(
    failing: tuple[type, str, str],
    does: Does,
    code: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    team = Deployment.make(tmp_path)
    if does is status:
        assert import_(team.directory).ok
    fails(monkeypatch, *failing)
    assert code in codes(does(tmp_path))


@pytest.mark.slow
def test_a_server_that_is_not_there_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    Deployment.make(tmp_path, storage="s3://nowhere/team")
    found = plan(tmp_path)
    assert codes(found) == ["state_lock_error"]
    assert "nothing listens there" in found.diagnostics[-1].message
    with pytest.raises(BadRequest, match=r"state_read_error.*nothing listens there"):
        read_applied("s3://nowhere/team")


def test_a_deployment_that_storage_fails_is_finished_by_the_next(deployed: Deployment) -> None:
    deployed.write("ferries.pg", WIDER)
    with armed("before_put", matching="__cluster/recoveries/"):
        found = deployed.apply()
    assert "recovery_sidecar_write_error" in codes(found)
    assert "name" not in deployed.graph().catalog.nodes["Port"].properties
    deployed.write("ferries.gq", (deployed.directory / "ferries.gq").read_text() + "\n// x\n")
    with armed("before_put", matching="__cluster/resources/"):
        assert "resource_payload_write_error" in codes(deployed.apply())
    assert deployed.apply().converged


def test_a_schema_that_cannot_be_published_is_told(
    deployed: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnigraph.cluster import applying as module

    def failing(*_: Any, **__: Any) -> None:
        raise StorageError("injected fault", kind="transient")

    deployed.write("ferries.pg", WIDER)
    deployed.declare(TWO.replace("crew:", "a-crew:"))
    with monkeypatch.context() as patch:
        patch.setattr(module, "change_schema", failing)
        found = deployed.apply()
    assert "schema_apply_failed" in codes(found)
    assert deployed.apply().converged
    with monkeypatch.context() as patch:
        patch.setattr(module, "create", failing)
        deployed.write("ferries.pg", WIDER.replace("name", "title"))
        deployed.declare(TWO.replace("crew:", "b-crew:"))
        deployed.approve("graph.a-crew")
        found = deployed.apply()
    assert [one for one in codes(found) if one.startswith(("graph", "schema"))] == [
        "graph_create_failed",
        "schema_apply_skipped",
        "graph_delete_skipped",
    ]


def test_a_deletion_that_fails_is_told_and_goes_on_later(
    deployed: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnigraph.cluster import applying as module

    deployed.declare(TWO)
    deployed.apply()
    deployed.declare(ONE)
    with armed("before_put", matching="__cluster/approvals/"):
        found = approve(deployed.directory, "graph.crew", "act-ann")
    assert codes(found) == ["approval_write_error"]
    deployed.approve("graph.crew")

    def failing(*_: Any, **__: Any) -> None:
        raise StorageError("injected fault", kind="transient")

    with monkeypatch.context() as patch:
        patch.setattr(module, "delete", failing)
        assert "graph_delete_failed" in codes(deployed.apply())
    with monkeypatch.context() as patch:
        fails(patch, ControlObjects, "delete", "__cluster/recoveries")
        assert "recovery_sidecar_cleanup_failed" in codes(deployed.apply())
    assert deployed.apply().converged


def test_a_plan_without_the_graph_says_that_there_is_no_preview(deployed: Deployment) -> None:
    deployed.write("ferries.pg", WIDER)
    place = Path(deployed.root.graph("ferries").path)
    place.rename(place.with_name("aside"))
    assert codes(plan(deployed.directory)) == ["schema_preview_unavailable"]


def test_what_died_is_told_by_whoever_looks(deployed: Deployment) -> None:
    deployed.declare(TWO)
    with killed_at("cluster_announced"):
        deployed.apply()
    deployed.unlock()
    assert codes(plan(deployed.directory)) == ["cluster_recovery_pending"]
    assert codes(status(deployed.directory)) == ["cluster_recovery_pending"]


# -- the applied revision ----------------------------------------------------------------


def tampered(deployed: Deployment, change: Callable[[dict[str, Any]], object]) -> None:
    data = deployed.root.objects.read(STATE)
    assert data is not None
    ledger = msgspec.json.decode(data)
    change(ledger["applied_revision"]["resources"])
    deployed.root.objects.replace(STATE, msgspec.json.encode(ledger))


def refused(deployed: Deployment) -> str:
    with pytest.raises(BadRequest) as told:
        read_applied(str(deployed.directory))
    return told.value.message


def test_nothing_is_served_that_was_not_applied(tmp_path: Path) -> None:
    team = Deployment.make(tmp_path)
    assert "cluster_state_missing" in refused(team)
    assert import_(tmp_path).ok
    assert "cluster_empty" in refused(team)
    with pytest.raises(BadRequest, match="storage_root_invalid"):
        read_applied("ftp://nowhere/x")
    with pytest.raises(BadRequest, match="config_dir_not_found"):
        read_applied(str(tmp_path / "none"))


def test_a_ledger_or_a_catalog_that_was_tampered_with_is_not_served(deployed: Deployment) -> None:
    read_applied(str(deployed.directory))
    with pytest.raises(BadRequest, match=r"graph_not_applied.*did you mean"):
        require_graph(read_applied(str(deployed.directory)), "ferry")
    names = deployed.root.objects.list("__cluster/resources")
    good = deployed.root.objects.read(names[0])
    assert good is not None
    deployed.root.objects.replace(names[0], good + b" ")
    assert "catalog_payload_digest_mismatch" in refused(deployed)
    deployed.root.objects.delete(names[0])
    assert "catalog_payload_missing" in refused(deployed)
    deployed.root.objects.replace(names[0], good)
    tampered(deployed, lambda found: found["policy.team"].pop("applies_to"))
    assert "policy_bindings_missing" in refused(deployed)
    again = {"digest": good and deployed.ledger.resources["policy.team"].digest}
    tampered(
        deployed,
        lambda found: found.update(
            {
                "policy.team": {**again, "applies_to": ["graph.ferries"]},
                "policy.more": {**again, "applies_to": ["graph.ferries"]},
            }
        ),
    )
    assert "duplicate_policy_binding" in refused(deployed)


def test_a_blob_that_cannot_be_read_is_told(
    deployed: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails(monkeypatch, ControlObjects, "read", "__cluster/resources")
    assert "catalog_payload_read_error" in refused(deployed)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (
            lambda found: found.pop("provider.embedding.fake"),
            "embedding_provider_missing",
        ),
        (
            lambda found: found["provider.embedding.fake"].pop("embedding_profile"),
            "embedding_provider_profile_missing",
        ),
        (
            lambda found: found["provider.embedding.fake"]["embedding_profile"].update(model="x"),
            "embedding_provider_digest_mismatch",
        ),
        (
            lambda found: found["graph.ferries"]["external_blob_policy"].clear(),
            "external_blob_policy_digest_mismatch",
        ),
    ],
)
def test_a_graph_whose_entry_was_tampered_with_is_not_served(
    change: Callable[[dict[str, Any]], object], code: str, tmp_path: Path
) -> None:
    blobs = "external_blobs: { allow: [{ base: s3://media/, scope: server_safe }] }"
    team = Deployment.make(
        tmp_path,
        ONE.replace(
            "queries: ferries.gq", f"queries: ferries.gq, embedding_provider: fake, {blobs}"
        ).replace("graphs:", "providers: { embedding: { fake: { kind: mock } } }\ngraphs:"),
    ).deployed()
    assert read_applied(str(tmp_path)).graphs["ferries"].problem is None
    tampered(team, change)
    problem = read_applied(str(tmp_path)).graphs["ferries"].problem
    assert problem is not None
    assert problem.startswith(code)


def test_every_key_is_explained() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = " ".join(re.findall(r"^\| (`.+?) \|", page, re.MULTILINE))
    for key in (*parse.KEYS, *parse.GRAPH, *parse.PROVIDER, *parse.POLICY, "lock", "backend"):
        assert re.search(rf"[`.]{key}\b", rows + page), key
    for key in parse.FUTURE:
        assert f"`{key}`" in page, key


def test_every_code_is_led_to_and_explained() -> None:
    led_to = {word for heading, _ in CONFIGURATIONS for word in heading.replace("~", "").split()}
    for module in Path(__file__).parent.glob("test_*.py"):
        led_to |= set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", module.read_text(encoding="utf-8")))
    page = PAGE.read_text(encoding="utf-8")
    for code in {*ERRORS, *WARNINGS}:
        assert code in led_to, code
        assert f"`{code}`" in page, code
    assert {*ERRORS} >= UNREACHABLE
