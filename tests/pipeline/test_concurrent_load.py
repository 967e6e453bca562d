"""A load on Spark that is overtaken: what others commit meanwhile counts as if it came before."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import omnigraph as og
from omnigraph.errors import OmniGraphError
from omnigraph.lang.structural import DST, SRC
from omnigraph.storage.tables.reachable_files import files_of
from tests import faults
from tests.pipeline.engines import content, run_tasks_here
from tests.pipeline.killing import (
    RUN,
    check_swept,
    data_files,
    intents_of,
    staging_files,
    until,
)
from tests.pipeline.rivals import Rival, act, act_elsewhere, writer_elsewhere
from tests.write.processes import check_chain
from tests.write.writing import rows, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

SCHEMA = """
node Person {
    name: String @key
    mail: String? @unique
}
node Team {
    name: String @key
}
edge Knows: Person -> Person {
    @unique(src, dst)
}
edge Boss: Person -> Person @card(0..1)
edge Shift: Person -> Team @card(2..3)
"""


def node(kind: str, name: str, **values: Any) -> dict[str, Any]:
    return {"type": kind, "data": {"name": name, **values}}


def edge(kind: str, source: str, target: str, **values: Any) -> dict[str, Any]:
    return {"edge": kind, "from": source, "to": target, "data": values}


def lines(*envelopes: dict[str, Any]) -> str:
    return "".join(json.dumps(one) + "\n" for one in envelopes)


STORED = (
    *(node("Person", name) for name in ("Bob", "Cid", "Dan", "Eve", "Old")),
    node("Person", "Ann", mail="a"),
    *(node("Team", name) for name in ("T1", "T2", "T3")),
    edge("Knows", "Ann", "Bob"),
    edge("Boss", "Ann", "Bob"),
    edge("Shift", "Ann", "T1", id="s1"),
    edge("Shift", "Ann", "T2", id="s2"),
    edge("Shift", "Ann", "T3", id="s3"),
)
COMMON = (
    node("Person", "New", mail="n"),
    edge("Knows", "New", "Bob"),
    edge("Knows", "Bob", "Cid"),
    edge("Boss", "Cid", "Ann"),
)
LOADS: dict[str, tuple[dict[str, Any], ...]] = {
    "append": (*COMMON, edge("Shift", "Bob", "T1"), edge("Shift", "Bob", "T2")),
    # A shift of Ann's becomes one of Dan's: Ann has two left, as many as she needs.
    "merge": (
        *COMMON,
        node("Person", "Ann", mail="z"),
        edge("Shift", "Dan", "T1", id="s1"),
        edge("Shift", "Dan", "T2"),
    ),
    # Nobody has a shift in the team that goes.
    "overwrite": (
        *(node("Team", name) for name in ("T1", "T2", "T3")),
        edge("Knows", "Ann", "Cid"),
        edge("Knows", "Bob", "Ann"),
    ),
}
RIVALS = {
    "insert": Rival("mutate", 'insert Person { name: "Other", mail: "o" }'),
    "delete": Rival("mutate", 'delete Person where name = "Eve"'),
    "insert edge": Rival("mutate", 'insert Boss { from: "Dan", to: "Eve" }'),
    "compact": Rival("compact"),
    "same id": Rival("mutate", 'insert Person { name: "New" }'),
    "same mail": Rival("append", lines(node("Person", "Other", mail="n"))),
    "same pair": Rival("mutate", 'insert Knows { from: "Bob", to: "Cid" }'),
    "one more boss": Rival("mutate", 'insert Boss { from: "Cid", to: "Bob" }'),
    "one shift less": Rival("mutate", 'delete Shift where to = "T2"'),
    "late shifts": Rival("append", lines(edge("Shift", "Cid", "T4"), edge("Shift", "Cid", "T1"))),
    "no end": Rival("mutate", 'delete Person where name = "Bob"'),
    "update": Rival("mutate", 'update Person set { mail: "q" } where name = "Ann"'),
    "replace": Rival("merge", lines(node("Person", "Ann", mail="z"))),
    "same run": Rival("append", lines(*LOADS["append"]), RUN),
}
ONCE, AGAIN = "prepared once", "prepared again"
# What becomes of each load when it is overtaken; of all others nothing is expected here.
FATES: dict[tuple[str, str], str] = {
    **{("append", rival): ONCE for rival in ("insert", "delete", "insert edge", "update")},
    **{("merge", rival): ONCE for rival in ("insert", "delete", "update", "replace")},
    **{("overwrite", rival): ONCE for rival in ("insert", "delete", "compact", "insert edge")},
    ("append", "late shifts"): ONCE,
    ("append", "same id"): "key_conflict",
    ("append", "same mail"): "unique",
    ("append", "same pair"): "unique",
    ("append", "one more boss"): "cardinality",
    ("append", "no end"): "endpoint",
    ("append", "same run"): "conflict",
    ("merge", "same id"): AGAIN,
    ("merge", "same mail"): "unique",
    ("merge", "one more boss"): "cardinality",
    ("merge", "one shift less"): "cardinality",
    ("merge", "no end"): "endpoint",
    ("overwrite", "same pair"): "read_set_conflict",
    ("overwrite", "no end"): "read_set_conflict",
    ("overwrite", "late shifts"): "read_set_conflict",
}


@dataclass(frozen=True)
class Outcome:
    """What became of a load, and what the graph holds then."""

    fate: str
    codes: dict[str, int]
    holds: list[str]


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("seed") / "graph"
    graph = og.init(root, SCHEMA)
    # Several fragments of a table, for the compaction.
    graph.load(lines(*STORED), mode="append")
    graph.load(lines(node("Person", "Late"), node("Team", "T4")), mode="append")
    return root


def load(root: Path, file: Path, engine: str, **options: Any) -> Outcome:
    graph = og.open(root, actor="loader")
    built = 0

    def count(point: str, _: str) -> None:
        nonlocal built
        built += point == "changes_built"

    codes: dict[str, int] = {}
    try:
        with faults.watched(count):
            done = graph.load([file], engine=engine, **options)
        fate = "repeats" if done.repeats_run else ONCE if built == 1 else AGAIN
        codes = dict(done.rejects)
    except OmniGraphError as error:
        fate = error.details.get("rule", error.code)
    return Outcome(fate, codes, content(og.open(root, read_only=True)))


@dataclass(frozen=True)
class Race:
    """A load and whoever comes before it, each time on a new copy of the graph."""

    seed: Path
    place: Path
    file: Path
    options: dict[str, str]

    def only(self, rival: Rival) -> list[str]:
        """What the graph holds when nothing is loaded."""
        root = self._copy()
        act(str(root), rival)
        return content(og.open(root, read_only=True))

    def in_turn(self, rival: Rival) -> Outcome:
        """One after the other, and on the engine that knows nothing of Spark."""
        root = self._copy()
        act(str(root), rival)
        return load(root, self.file, "inline", **self.options)

    def at_once(self, rival: Rival, point: str) -> tuple[Path, Outcome]:
        """The other commits when the load passes a point."""
        root = self._copy()
        with faults.observed(point, lambda: act_elsewhere(root, rival)) as fault:
            found = load(root, self.file, "spark", **self.options)
        assert fault.fired
        return root, found

    def _copy(self) -> Path:
        root = self.place / "graph"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(self.seed, root)
        return root


@pytest.mark.parametrize("on_error", ["fail", "skip"])
@pytest.mark.parametrize("mode", LOADS)
def test_a_load_is_overtaken(
    mode: str, on_error: str, seed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_tasks_here(monkeypatch)
    file = tmp_path / "rows.jsonl"
    file.write_text(lines(*LOADS[mode]), encoding="utf-8")
    race = Race(seed, tmp_path, file, {"mode": mode, "on_error": on_error, "run_id": RUN})
    for name, rival in RIVALS.items():
        try:
            check_overtaken(race, rival, FATES.get((mode, name)))
        except Exception as error:
            error.add_note(f"{mode}, overtaken by {name}")
            raise


def check_overtaken(race: Race, rival: Rival, fate: str | None) -> None:
    """It went as if the other had come first, and nothing lies about."""
    skips = race.options["on_error"] == "skip"
    only, expected = race.only(rival), race.in_turn(rival)
    root, found = race.at_once(rival, "changes_checked" if skips else "publish_ready")
    if fate is not None and (not skips or fate in {ONCE, AGAIN, "repeats"}):
        assert found.fate == fate
    if found.fate == "read_set_conflict":
        # What replaces whole types cannot be prepared again behind its caller's back.
        assert race.options["mode"] == "overwrite"
        assert found.holds == only
        check_swept(root, intents_of(root), is_published=False)
    else:
        assert (found.codes, found.holds) == (expected.codes, expected.holds)
        assert {found.fate, expected.fate} <= {ONCE, AGAIN} or found.fate == expected.fate
    assert not intents_of(root)
    assert not staging_files(root)
    assert data_files(root) == referenced(root)
    check_chain(root)


def referenced(root: Path) -> set[str]:
    """The data files that some commit refers to."""
    graph = og.open(root, read_only=True)
    found: set[str] = set()
    for commit in graph.commits.list():
        for key, shown in graph.snapshot(commit=commit.id).tables.items():
            table = table_of(graph, key).at(shown.pin)
            found |= {f"{shown.table.path}/{name}" for name in files_of(table)}
    return {name for name in found if "/data/" in name}


def test_a_load_wins_against_somebody_who_never_stops_writing(
    tmp_path: Path, spark: SparkSession
) -> None:
    root = tmp_path / "graph"
    graph = og.init(root, SCHEMA)
    graph.load(lines(node("Person", "Hot"), node("Person", "Cold")), mode="append")
    count = 3000
    people = [node("Person", f"p{number}", mail=str(number)) for number in range(count)]
    knows = [edge("Knows", f"p{number}", "Cold") for number in range(count)]
    bosses = [edge("Boss", f"p{number}", "Hot") for number in range(count)]
    file = tmp_path / "rows.jsonl"
    file.write_text(lines(*people, *knows, *bosses, node("Person", "Hot")), encoding="utf-8")
    with writer_elsewhere(root, pause=0.05) as rounds:
        until(lambda: rounds.value, "somebody writes")
        begun = rounds.value
        done = graph.load([file], mode="merge", engine="spark", spark=spark)
        ended = rounds.value
        assert ended > begun
        until(lambda: rounds.value > ended + 1, "a whole round comes after the load")
    assert done.nodes == {"Person": count + 1}
    found = rows(og.open(root, read_only=True), "Person")
    stays = {f"stays {number}" for number in range(rounds.value)}
    assert set(found) == {"Hot", "Cold", *stays, *(f"p{number}" for number in range(count))}
    # The last word on the row that all of them write is not the load's.
    assert found["Hot"]["mail"] == f"hot {rounds.value - 1}"
    for name, target in (("Knows", "Cold"), ("Boss", "Hot")):
        pairs = sorted((row[SRC], row[DST]) for row in rows(graph, name).values())
        assert pairs == sorted((f"p{number}", target) for number in range(count))
    assert check_chain(root)["rival"] == 4 * rounds.value
