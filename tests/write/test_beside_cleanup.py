"""Writers that a cleanup meets anywhere: what was acknowledged is there, and reads."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import Conflict, ReadSetChanged
from omnigraph.lang.structural import ID
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.tables.table import Table, TablePin
from omnigraph.write.recovery import intent_scope
from omnigraph.write.recovery.sweep import stored_intents
from tests import faults, profile
from tests.table_writes import overwrite
from tests.write.beside import (
    DAY,
    HOUR,
    POINTS,
    PREPARING,
    PUBLISHING,
    STAGING,
    add_person,
    check_sound,
    collect,
    collect_ahead,
    collect_twice,
    knows,
    load,
    make,
    meanwhile,
    move_on_and_collect,
    person,
    shown,
    slip_in,
    writes_to,
)
from tests.write.processes import context
from tests.write.writing import Action, Rows, mutate

pytestmark = pytest.mark.slow

WRITES = writes_to("main")
ODD_COLLECTORS: dict[str, Action] = {
    "two hours ahead": collect_ahead(2 * HOUR),
    "a day ahead": collect_ahead(DAY),
    "a day behind": collect_ahead(-DAY),
    "two of them": collect_twice,
}


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("pristine") / "graph"
    make(str(place))
    return place


@pytest.fixture
def graph(pristine: Path, tmp_path: Path) -> og.Graph:
    return copy_of(pristine, tmp_path / "graph")


def copy_of(pristine: Path, place: Path) -> og.Graph:
    shutil.copytree(pristine, place)
    return og.open(place, actor="writer")


@pytest.fixture(scope="module")
def results(
    pristine: Path, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[tuple[str, bool], dict[str, Rows]]:
    """What each write makes of the graph alone, and when others have written before."""
    place = tmp_path_factory.mktemp("alone")
    found = {}
    for name, write in WRITES.items():
        for is_moved in (False, True):
            graph = copy_of(pristine, place / f"{name}-{is_moved}")
            if is_moved:
                add_person(graph, "Zoe")
            write(graph)
            found[name, is_moved] = shown(graph)["main"]
    return found


def check_there(graph: og.Graph, written: Any, expected: dict[str, Rows]) -> None:
    """The write is the newest commit, did what it does, and everything stays readable."""
    assert graph.commits.list()[0].id == written.commit.id
    assert shown(graph)["main"] == expected
    check_sound(graph)


# -- writes of the size of a request -----------------------------------------------------


@pytest.mark.pairwise
@pytest.mark.parametrize("is_moved", [False, True], ids=["cleanup", "commits-and-cleanup"])
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("write", WRITES)
def test_a_write_beside_a_cleanup_is_there(
    graph: og.Graph,
    results: Mapping[tuple[str, bool], dict[str, Rows]],
    write: str,
    point: str,
    is_moved: bool,
) -> None:
    with meanwhile(graph, point, move_on_and_collect if is_moved else collect) as fault:
        written = WRITES[write](graph)
    assert fault.fired == 1
    check_there(graph, written, results[write, is_moved])


@pytest.mark.pairwise
@pytest.mark.parametrize("collector", ODD_COLLECTORS)
@pytest.mark.parametrize("point", [*STAGING, *PUBLISHING])
@pytest.mark.parametrize("write", ["insert", "update"])
def test_no_clock_decides_whether_a_write_may_be_published(
    graph: og.Graph,
    results: Mapping[tuple[str, bool], dict[str, Rows]],
    write: str,
    point: str,
    collector: str,
) -> None:
    with meanwhile(graph, point, ODD_COLLECTORS[collector]) as fault:
        written = WRITES[write](graph)
    assert fault.fired == 1
    check_there(graph, written, results[write, False])


# The local disk has met every point with every write.
@pytest.mark.parametrize(
    ("write", "point"),
    profile.each_once(["insert", "append", "update"], [*STAGING, *PUBLISHING]),
)
def test_a_write_beside_a_cleanup_is_there_on_s3(
    s3_bucket: str,
    results: Mapping[tuple[str, bool], dict[str, Rows]],
    write: str,
    point: str,
) -> None:
    graph = make(f"{s3_bucket}/graph")
    with meanwhile(graph, point, collect) as fault:
        written = WRITES[write](graph)
    assert fault.fired == 1
    check_there(graph, written, results[write, False])


@pytest.mark.parametrize("point", PUBLISHING)
def test_a_write_across_a_gap_of_collected_versions_is_there_on_s3(
    s3_bucket: str, results: Mapping[tuple[str, bool], dict[str, Rows]], point: str
) -> None:
    """Storage sees no conflict with versions that are gone, and what was to be one may be too."""
    graph = make(f"{s3_bucket}/graph")
    with meanwhile(graph, point, move_on_and_collect) as fault:
        written = WRITES["insert"](graph)
    assert fault.fired == 1
    check_there(graph, written, results["insert", True])


@pytest.mark.parametrize("point", [*STAGING, *PUBLISHING])
def test_a_write_beside_a_cleanup_of_another_process_is_there(
    graph: og.Graph, results: Mapping[tuple[str, bool], dict[str, Rows]], point: str
) -> None:
    def elsewhere(other: og.Graph) -> None:
        process = context.Process(target=collect_at, args=(str(other.location),))
        process.start()
        process.join()
        assert process.exitcode == 0

    with meanwhile(graph, point, elsewhere):
        written = WRITES["insert"](graph)
    check_there(graph, written, results["insert", False])


def collect_at(place: str) -> None:
    collect(og.open(place))


@pytest.mark.parametrize("point", PUBLISHING)
def test_cleanups_that_come_back_again_and_again_do_not_starve_a_write(
    graph: og.Graph, results: Mapping[tuple[str, bool], dict[str, Rows]], point: str
) -> None:
    other = og.open(str(graph.location))
    is_collecting = False

    def again() -> None:
        # A cleanup passes the commit of a manifest, too.
        nonlocal is_collecting
        if not is_collecting:
            is_collecting = True
            collect(other)
            is_collecting = False

    matching = "__manifest" if point == "before_commit" else ""
    with faults.observed(point, again, times=12, matching=matching):
        written = WRITES["update"](graph)
    check_there(graph, written, results["update", False])


def test_a_conditional_write_is_not_failed_by_a_cleanup(graph: og.Graph) -> None:
    head = graph.snapshot().commit_id
    with meanwhile(graph, "publish_ready", collect):
        result = mutate(graph, 'insert Person { name: "New" }', if_commit=head)
    assert result.commit is not None
    assert result.commit.parent_id == head
    check_sound(graph)


@pytest.mark.parametrize("point", [*PREPARING[1:], *STAGING, *PUBLISHING])
@pytest.mark.parametrize("write", ["update", "delete"])
def test_a_strict_write_is_not_run_on_rows_that_changed(
    graph: og.Graph, write: str, point: str
) -> None:
    """A cleanup in between takes away nothing but time: the rows it has read still decide."""
    name = {"update": "Ann", "delete": "Bob"}[write]

    def grown_up(table: Table) -> TablePin:
        rows = table.scan()
        ages = [77 if id_ == name else 1 for id_ in rows[ID].to_pylist()]
        aged = pa.array(ages, rows.schema.field("age").type)
        place = rows.schema.get_field_index("age")
        return overwrite(table, rows.set_column(place, "age", aged))

    def change_and_collect(other: og.Graph) -> None:
        slip_in(other, "node:Person", "main", grown_up)
        collect(other)

    before = len(graph.commits.list())
    with (
        meanwhile(graph, point, change_and_collect) as fault,
        pytest.raises(ReadSetChanged, match="nothing was written"),
    ):
        WRITES[write](graph)
    assert fault.fired == 1
    assert len(graph.commits.list()) == before + 1
    assert shown(graph)["main"]["node:Person"][name]["age"] == 77
    check_sound(graph)


# -- writes with an intent ---------------------------------------------------------------

ANNOUNCED: dict[str, Action] = {name: WRITES[name] for name in ("append", "merge", "overwrite")}
INTENT = ["intent_written", *STAGING, "intent_extended", *PUBLISHING]
"""Where an announced write has its intent."""


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every write is too large for a request."""
    monkeypatch.setattr(intent_scope, "REQUEST_BYTES", -1)


def intents(graph: og.Graph) -> int:
    return len(stored_intents(ControlObjects(graph.location)).intents)


@pytest.mark.pairwise
@pytest.mark.usefixtures("announced")
@pytest.mark.parametrize("is_moved", [False, True], ids=["cleanup", "commits-and-cleanup"])
@pytest.mark.parametrize("point", [*PREPARING, *INTENT])
@pytest.mark.parametrize("write", ANNOUNCED)
def test_an_announced_write_beside_a_cleanup_keeps_its_files(
    graph: og.Graph,
    results: Mapping[tuple[str, bool], dict[str, Rows]],
    write: str,
    point: str,
    is_moved: bool,
) -> None:
    with (
        meanwhile(graph, point, move_on_and_collect if is_moved else collect) as fault,
        faults.observed("rows_written", list, times=None) as staged,
    ):
        written: Any = ANNOUNCED[write](graph)
    assert fault.fired == 1
    assert intents(graph) == 0
    if point in INTENT and (write != "overwrite" or not is_moved):
        assert staged.fired == {"append": 2, "merge": 1, "overwrite": 1}[write]
    check_there(graph, written, results[write, is_moved])


@pytest.mark.usefixtures("announced")
@pytest.mark.parametrize("point", INTENT)
def test_an_announced_load_beside_a_cleanup_is_there_on_s3(
    s3_bucket: str, results: Mapping[tuple[str, bool], dict[str, Rows]], point: str
) -> None:
    graph = make(f"{s3_bucket}/graph")
    with meanwhile(graph, point, collect) as fault:
        written = WRITES["append"](graph)
    assert fault.fired == 1
    check_there(graph, written, results["append", False])


@pytest.mark.pairwise
@pytest.mark.usefixtures("announced")
@pytest.mark.parametrize("ahead", [2 * HOUR, DAY], ids=["two hours", "a day"])
@pytest.mark.parametrize("point", INTENT)
@pytest.mark.parametrize("write", ANNOUNCED)
def test_an_announced_write_that_was_revoked_changes_nothing_and_can_be_run_again(
    graph: og.Graph,
    results: Mapping[tuple[str, bool], dict[str, Rows]],
    write: str,
    point: str,
    ahead: timedelta,
) -> None:
    before, history = shown(graph), graph.commits.list()
    with (
        meanwhile(graph, point, collect_ahead(ahead)) as fault,
        pytest.raises(Conflict, match="nothing was changed, run it again"),
    ):
        ANNOUNCED[write](graph)
    assert fault.fired == 1
    assert shown(graph) == before
    assert graph.commits.list() == history
    assert [found.recovery_kind for found in graph.recoveries()] == ["RolledBack"]
    assert intents(graph) == 0
    check_there(graph, ANNOUNCED[write](graph), results[write, False])


@pytest.mark.usefixtures("announced")
@pytest.mark.parametrize("point", ["published", "intent_removed"])
def test_an_announced_write_that_is_published_cannot_be_revoked(
    graph: og.Graph, results: Mapping[tuple[str, bool], dict[str, Rows]], point: str
) -> None:
    with meanwhile(graph, point, collect_ahead(DAY)) as fault:
        written = WRITES["append"](graph)
    assert fault.fired == 1
    assert [found.recovery_kind for found in graph.recoveries()] == (
        ["RolledForward"] if point == "published" else []
    )
    check_there(graph, written, results["append", False])


# -- loads that make their branch --------------------------------------------------------

FORK = load("append", person("New"), knows("k2", "New", "Ann"), branch="new", from_branch="main")
FORKING = ["branch_creating", "branch_created", "branch_forked"]


@pytest.fixture(params=[2**30, -1], ids=["request", "announced"])
def either_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write is small enough for a request, or is not."""
    monkeypatch.setattr(intent_scope, "REQUEST_BYTES", request.param)


@pytest.mark.pairwise
@pytest.mark.usefixtures("either_size")
@pytest.mark.parametrize("is_moved", [False, True], ids=["cleanup", "commits-and-cleanup"])
@pytest.mark.parametrize("point", [*POINTS, *FORKING])
def test_a_forking_load_beside_a_cleanup_is_there(
    graph: og.Graph,
    results: Mapping[tuple[str, bool], dict[str, Rows]],
    point: str,
    is_moved: bool,
) -> None:
    main = {} if is_moved else shown(graph)["main"]
    with meanwhile(graph, point, move_on_and_collect if is_moved else collect) as fault:
        loaded: Any = FORK(graph)
    assert fault.fired == 1
    assert loaded.branch_created
    assert intents(graph) == 0
    found = shown(graph)
    assert found.keys() == {"main", "new"}
    assert found["main"] == main or is_moved
    assert "New" not in found["main"]["node:Person"]
    # The commits of the others are in it, if it was made after them.
    assert found["new"] in (results["append", False], results["append", is_moved])
    assert graph.commits.list("new")[0].id == loaded.commit.id
    check_sound(graph, "new")


@pytest.mark.parametrize("point", [*STAGING, *FORKING, "publish_ready"])
def test_a_forking_load_beside_a_cleanup_is_there_on_s3(
    s3_bucket: str, results: Mapping[tuple[str, bool], dict[str, Rows]], point: str
) -> None:
    graph = make(f"{s3_bucket}/graph")
    with meanwhile(graph, point, collect) as fault:
        FORK(graph)
    assert fault.fired == 1
    assert shown(graph)["new"] == results["append", False]
    check_sound(graph, "new")


@pytest.mark.usefixtures("announced")
@pytest.mark.parametrize("point", [*INTENT, *FORKING])
def test_a_forking_load_that_was_revoked_changes_no_row_and_can_be_run_again(
    graph: og.Graph, results: Mapping[tuple[str, bool], dict[str, Rows]], point: str
) -> None:
    before = shown(graph)["main"]
    with (
        meanwhile(graph, point, collect_ahead(DAY)) as fault,
        pytest.raises(Conflict, match="run it again"),
    ):
        FORK(graph)
    assert fault.fired == 1
    found = shown(graph)
    # The branch may have been made already, and then it shows what main shows.
    assert found in ({"main": before}, {"main": before, "new": before})
    assert intents(graph) == 0
    FORK(graph)
    assert shown(graph) == {"main": before, "new": results["append", False]}
    check_sound(graph, "new")
