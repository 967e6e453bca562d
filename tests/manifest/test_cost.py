"""The cost contract: requests do not grow with history, and freshness costs one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from omnigraph.manifest.branches import BranchRefs
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.refs import Ref, Refs
from omnigraph.manifest.snapshot import BranchState
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.location import Location
from omnigraph.storage.objects.meter import RequestMeter, measure
from omnigraph.storage.tables import handles
from tests.manifest.graphs import advance, copy_manifest, fork, make_manifest


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


def cold_open(
    root: Location, monkeypatch: pytest.MonkeyPatch, branch: str = "main"
) -> RequestMeter:
    """Opening as a new process would: nothing in any cache."""

    def view() -> BranchState:
        return Manifest(root).view(branch)

    monkeypatch.setattr(handles, "_session", None)
    return requests(view)


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Location]:
    """Manifests to copy, by their number of commits."""
    place = Location.parse(str(tmp_path_factory.mktemp("grown")))
    shallow, deep = place.join("shallow"), place.join("deep")
    growing = make_manifest(deep)
    while growing.view().state.version < 10:
        advance(growing)
    copy_manifest(deep, shallow)
    while growing.view().state.version < 1000:
        advance(growing)
    return {10: shallow, 1000: deep}


@pytest.mark.slow
def test_cost_is_flat_in_history(
    any_root: Location, grown: dict[int, Location], monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[dict[str, RequestMeter]] = []
    for depth, source in grown.items():
        root = any_root.join(f"depth{depth}")
        copy_manifest(source, root)
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


def test_branch_costs_what_main_costs(any_root: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = make_manifest(any_root)
    for number in range(5):
        fork(manifest, f"b{number}")
    for name in ("main", "b3"):
        advance(manifest, name)
    on_main, on_branch = (
        requests(partial(advance, manifest, name)).total for name in ("main", "b3")
    )
    assert on_branch == on_main
    assert requests(lambda: manifest.view("b3")).total == requests(manifest.view).total
    # A cold reader has to learn what the name means: one listing and one object.
    cold = cold_open(any_root, monkeypatch)
    assert cold_open(any_root, monkeypatch, "b3").total == cold.total + 2


@pytest.mark.slow
def test_cost_of_branches_is_flat_in_their_number(any_root: Location) -> None:
    manifest = make_manifest(any_root)
    few, many = (cost_of_branches(manifest, any_root, count) for count in (10, 1000))
    shown = {name: (str(few[name]), str(many[name])) for name in few}
    for name, meter in many.items():
        assert meter.total == few[name].total, shown
    if not any_root.is_local:
        for name, limit in LIMITS.items():
            assert many[name].total <= limit, shown


LIMITS = {
    "create": 8,
    "create from a branch": 11,
    "open": 4,
    "list": 1,
    "list elsewhere": 2,
    "delete": 10,
    "delete elsewhere": 13,
}


def cost_of_branches(manifest: Manifest, root: Location, names: int) -> dict[str, RequestMeter]:
    """What is done with branches where there are so many."""
    add_names(manifest, names)
    branches, other = BranchRefs(manifest), BranchRefs(Manifest(root))
    branches.create("warm")
    other.manifest.view()
    measured = {
        "create": requests(lambda: branches.create("new")),
        "create from a branch": requests(lambda: branches.create("newer", "new")),
        "open": requests(lambda: other.manifest.view("new")),
        "list": requests(branches.list),
        "list elsewhere": requests(BranchRefs(Manifest(root)).list),
        "delete": requests(lambda: branches.delete("new")),
        "delete elsewhere": requests(lambda: other.delete("newer")),
    }
    branches.delete("warm")
    return measured


def add_names(manifest: Manifest, count: int) -> None:
    """Let there be so many names; of branches that nobody looks at here."""

    def named(refs: Refs) -> Refs | None:
        made = range(count)
        names = {f"n{number}": Ref(f"ID{number}", MAIN, MAIN, None, 1) for number in made}
        return (
            None
            if refs.names.keys() >= names.keys()
            else replace(refs, names={**refs.names, **names})
        )

    manifest.refs.change(named)


def test_reading_writes_nothing(manifest: Manifest, root: Location) -> None:
    fork(manifest, "dev")
    for _ in range(70):
        advance(manifest)

    def read() -> None:
        cold = Manifest(root)
        for commit in cold.commits()[::20]:
            cold.view_at(cold.find_commit(commit.id))
        cold.view("dev")
        BranchRefs(cold).list()

    meter = requests(read)
    assert (meter.puts, meter.deletes) == (0, 0)
