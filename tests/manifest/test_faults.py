"""Failing storage: a publish happens once or not at all, and what is said of it is true."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from omnigraph.errors import StorageError
from omnigraph.manifest.publish_request import AdvanceTable, PublishRequest
from omnigraph.manifest.snapshot import BranchState
from omnigraph.manifest.store import Manifest
from omnigraph.storage.logs.head_log import CompareAndSwapLost, HeadLog
from omnigraph.storage.objects.location import Location
from tests.faults import armed
from tests.manifest.graphs import PERSON, advance, fork, pin, request


@pytest.fixture
def asked() -> PublishRequest:
    return request(AdvanceTable(PERSON, 1, pin(2)))


def count(root: Location, asked: PublishRequest) -> int:
    """How often the commit is in the history."""
    return [commit.id for commit in Manifest(root).commits()].count(asked.commit.id)


def permanent() -> StorageError:
    return StorageError("no space left on device", kind="permanent")


@pytest.mark.parametrize("warm", [True, False])
def test_lost_acknowledgement_is_read_back(
    manifest: Manifest, root: Location, asked: PublishRequest, warm: bool
) -> None:
    if warm:
        manifest.view()
    with armed("after_commit", matching="__manifest") as fault:
        state = manifest.publish("main", asked).state
    assert fault.fired == 1
    assert (state.version, state.head_commit_id) == (2, asked.commit.id)
    assert count(root, asked) == 1
    assert advance(manifest).state.version == 3


def test_every_acknowledgement_is_lost(
    manifest: Manifest, root: Location, asked: PublishRequest
) -> None:
    with armed("after_commit", times=None):
        assert manifest.publish("main", asked).state.head_commit_id == asked.commit.id
        assert advance(manifest).state.version == 3
    assert count(root, asked) == 1


def test_attempt_does_not_get_through(
    manifest: Manifest, root: Location, asked: PublishRequest
) -> None:
    with (
        armed("before_commit", times=None) as fault,
        pytest.raises(StorageError, match="was being published") as caught,
    ):
        manifest.publish("main", asked)
    assert fault.fired == 1
    assert caught.value.kind == "transient"
    assert caught.value.details["commit_id"] == asked.commit.id
    assert caught.value.details["outcome"] == "unknown"
    assert count(root, asked) == 0
    manifest.publish("main", asked)
    manifest.publish("main", asked)
    assert count(root, asked) == 1


def test_hopeless_failure_is_not_repeated(
    manifest: Manifest, root: Location, asked: PublishRequest
) -> None:
    with armed("before_commit", permanent, times=None) as fault, pytest.raises(StorageError):
        manifest.publish("main", asked)
    assert fault.fired == 1
    assert count(root, asked) == 0


def test_hopeless_failure_after_the_fact_is_a_success(
    manifest: Manifest, root: Location, asked: PublishRequest
) -> None:
    with armed("after_commit", permanent):
        assert manifest.publish("main", asked).state.head_commit_id == asked.commit.id
    assert count(root, asked) == 1


def test_read_back_that_fails_too_leaves_a_doubt(
    manifest: Manifest,
    root: Location,
    asked: PublishRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    manifest.view()

    def fail(_: Manifest, branch: str) -> BranchState:
        raise StorageError(f"cannot read {branch}", kind="transient")

    with monkeypatch.context() as patch:
        patch.setattr(Manifest, "load", fail)
        with armed("after_commit"), pytest.raises(StorageError) as caught:
            manifest.publish("main", asked)
    assert caught.value.details["outcome"] == "unknown"
    assert caught.value.details["commit_id"] == asked.commit.id
    for handle in (manifest, Manifest(root)):
        assert handle.publish("main", asked).state.head_commit_id == asked.commit.id
    assert count(root, asked) == 1


def losing(root: Location, failure: Callable[[], StorageError] | None, publishes: int) -> object:
    """A replace_head whose commit is made, then followed by others', then reported as lost."""
    real = HeadLog.replace_head
    done = False

    def replace_head(log: HeadLog, *args: object, **options: object) -> HeadLog:
        nonlocal done
        replaced = real(log, *args, **options)  # type: ignore[arg-type]
        if done:
            return replaced
        done = True
        other = Manifest(root)
        for _ in range(publishes):
            advance(other)
        if failure is None:
            raise CompareAndSwapLost
        raise failure()

    return replace_head


@pytest.mark.parametrize("publishes", [1, 40, 70])
@pytest.mark.parametrize("conflict", [True, False])
def test_lost_acknowledgement_among_busy_others(
    manifest: Manifest,
    root: Location,
    asked: PublishRequest,
    monkeypatch: pytest.MonkeyPatch,
    *,
    publishes: int,
    conflict: bool,
) -> None:
    """The commit may be sealed away when it is looked for; a client that repeats a put whose
    answer was lost even reports its own success as a conflict.
    """
    manifest.view()
    failure = None if conflict else permanent
    monkeypatch.setattr(HeadLog, "replace_head", losing(root, failure, publishes))
    assert manifest.publish("main", asked).state.version == publishes + 2
    assert count(root, asked) == 1


def test_outcome_is_known_when_somebody_else_took_the_version(
    manifest: Manifest, root: Location, asked: PublishRequest
) -> None:
    manifest.view()
    other = Manifest(root)

    def fail() -> StorageError:
        advance(other)
        return permanent()

    with (
        armed("before_commit", fail, matching="__manifest", times=1),
        pytest.raises(StorageError) as caught,
    ):
        manifest.publish("main", asked)
    assert caught.value.details["outcome"] == "not_published"
    assert count(root, asked) == 0


def test_lost_race_is_told(
    manifest: Manifest, root: Location, asked: PublishRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def moved(*_: object, **__: object) -> HeadLog:
        raise CompareAndSwapLost

    with monkeypatch.context() as patch:
        patch.setattr(HeadLog, "replace_head", moved)
        with pytest.raises(CompareAndSwapLost):
            manifest.publish("main", asked)
    assert count(root, asked) == 0


def test_attempt_that_looks_lost_is_read_back(
    manifest: Manifest, root: Location, asked: PublishRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = HeadLog.replace_head

    def replace_head(log: HeadLog, *args: object, **options: object) -> HeadLog:
        real(log, *args, **options)  # type: ignore[arg-type]
        raise CompareAndSwapLost

    monkeypatch.setattr(HeadLog, "replace_head", replace_head)
    assert manifest.publish("main", asked).state.head_commit_id == asked.commit.id
    assert count(root, asked) == 1


def test_branch_publish_survives_a_lost_acknowledgement(
    manifest: Manifest, asked: PublishRequest
) -> None:
    branch_id = fork(manifest, "dev")
    with armed("after_commit"):
        assert manifest.publish(branch_id, asked).state.head_commit_id == asked.commit.id
    assert len(manifest.commits("dev")) == 2
    assert len(manifest.commits()) == 1
