"""The cost contract: requests do not grow with history, and freshness costs one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from omnigraph.manifest.store import Manifest
from omnigraph.manifest.view import View
from omnigraph.storage import session
from omnigraph.storage.location import Location
from omnigraph.storage.meter import RequestMeter, measure
from tests.manifest.graphs import advance, copy_manifest, make_manifest


def requests(action: Callable[[], object]) -> RequestMeter:
    with measure() as meter:
        action()
    return meter


def publish_without_sealing(manifest: Manifest) -> RequestMeter:
    """A publish that only replaces the head; a sealing one comes first if it is due."""
    if len(manifest.view().state.recent) > 60:
        advance(manifest)
        advance(manifest)
    return requests(lambda: advance(manifest))


def cold_open(root: Location, monkeypatch: pytest.MonkeyPatch) -> RequestMeter:
    """Opening as a new process would: nothing in any cache."""

    def view() -> View:
        return Manifest(root).view()

    monkeypatch.setattr(session, "_session", None)
    return requests(view)


@pytest.mark.slow
def test_cost_is_flat_in_history(
    any_root: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown = Location.parse(str(tmp_path / "grown"))
    growing = make_manifest(grown)
    measured: list[dict[str, RequestMeter]] = []
    for depth in (10, 1000):
        while growing.view().state.version < depth:
            advance(growing)
        root = any_root.join(f"depth{depth}")
        copy_manifest(grown, root)
        manifest = Manifest(root)
        commit = manifest.commits()[depth // 2]
        measured.append(
            {
                "publish": publish_without_sealing(manifest),
                "probe": requests(manifest.view),
                "open": cold_open(root, monkeypatch),
                "time travel": requests(partial(Manifest(root).view_at, commit)),
            }
        )
        assert manifest.view().state.version > depth
    shallow, deep = measured
    for name, meter in deep.items():
        assert abs(shallow[name].total - meter.total) <= 1, (name, str(shallow), str(deep))
    assert deep["publish"].total <= 8
    # On a local disk Lance lists past its own counters.
    assert deep["probe"].total == (0 if any_root.is_local else 1)
    assert deep["open"].total <= 5


def test_branch_costs_one_request_more(any_root: Location) -> None:
    manifest = make_manifest(any_root)
    for number in range(5):
        manifest.create_branch(f"b{number}", "main")
    for name in ("main", "b3"):
        advance(manifest, name)
    on_main, on_branch = (
        requests(partial(advance, manifest, name)).total for name in ("main", "b3")
    )
    assert on_branch == on_main + 1
    assert requests(lambda: manifest.view("b3")).total == requests(manifest.view).total + 1


def test_reading_writes_nothing(manifest: Manifest, root: Location) -> None:
    manifest.create_branch("dev", "main")
    for _ in range(70):
        advance(manifest)

    def read() -> None:
        cold = Manifest(root)
        for commit in cold.commits()[::20]:
            cold.view_at(cold.find_commit(commit.id))
        cold.view("dev")
        cold.branches()

    meter = requests(read)
    assert (meter.puts, meter.deletes) == (0, 0)
