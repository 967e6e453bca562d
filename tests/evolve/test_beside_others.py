"""A schema change that writers, cleanups and other changes meet anywhere it passes.

Others go past the turns that writers of one process take, so that they can come in even while
the change is inside its publish.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.evolve.apply import SchemaResult
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.maintain.cleanup import cleanup
from omnigraph.manifest.publish_request import AdvanceTable, PendingCommit, PublishRequest
from omnigraph.manifest.store import Manifest
from omnigraph.storage.tables.table import ROW_ADDRESS, Table, TablePin
from omnigraph.write.publish.staging import stamp
from omnigraph.write.recovery import intent_scope
from tests import faults, table_writes
from tests.evolve.evolving import Rows, edge, held, make, node, reopened, run, shown
from tests.write.writing import table_of

Action = Callable[[og.Graph], object]

SCHEMA = """\
node Person { name: String @key  age: I32?  mail: String? }
node Film { title: String @key }
edge Knows: Person -> Person { since: I32? }
"""
ROWS = [
    *(
        node("Person", name=name, age=n, mail=f"m{n}")
        for n, name in enumerate(("Ann", "Ben", "Cy"))
    ),
    edge("Knows", "Ann", "Ben", id="k1", since=1),
    edge("Knows", "Ben", "Cy", id="k2"),
]
AFTER = """\
node Person { name: String @key  years: I64 @default(-1) @rename_from("age")
              mail: String? @unique  rank: I32 @default(5)  tags: [String]? }
node Song { title: String @key }
edge Met: Person -> Person @rename_from("Knows") { since: I32?  @key(src, dst) }
"""
POINTS = [
    *("txn_captured", "changes_built", "changes_checked", "tables_created", "columns_written"),
    *("table_staged", "publish_ready", "before_commit"),
]
"""Where others come in; before a commit, it is the one to the manifest."""


# -- others ------------------------------------------------------------------------------


def slip_in(graph: og.Graph, key: str, made: Callable[[Table], TablePin]) -> None:
    """Publish another version of a table as one commit, if the table is there."""
    found = graph.snapshot().tables.get(key)
    if found is not None:
        advance = AdvanceTable(found.identity, found.version, made(table_of(graph, key)))
        graph.manifest.publish("main", PublishRequest(PendingCommit.mint("other"), (advance,)))


def insert_rows(columns: Mapping[str, list[Any]], table: Table) -> TablePin:
    mark = stamp("other", "other", "logical")
    return table_writes.update_rows(table, None, inserted=pa.table(dict(columns)), stamp=mark)


def add_person(
    graph: og.Graph, name: str = "New", age: int | None = 9, mail: str | None = "m9"
) -> None:
    columns: dict[str, list[Any]] = {
        ID: [name],
        "name": [name],
        "age": [age],
        "mail": [mail],
    }
    slip_in(graph, "node:Person", partial(insert_rows, columns))


def add_edge(graph: og.Graph, id_: str, source: str, target: str) -> None:
    columns = {ID: [id_], SRC: [source], DST: [target]}
    slip_in(graph, "edge:Knows", partial(insert_rows, columns))


def drop_ben(graph: og.Graph) -> None:
    """Delete a person with both edges."""

    def work(table: Table, where: pc.Expression) -> TablePin:
        places = table.scan([ID], where, with_row_address=True).column(ROW_ADDRESS)
        return table_writes.update_rows(table, None, deleted=places)

    slip_in(graph, "node:Person", lambda table: work(table, pc.field("name") == "Ben"))
    slip_in(graph, "edge:Knows", lambda table: work(table, pc.field(ID).isin(["k1", "k2"])))


def add_film(graph: og.Graph) -> None:
    slip_in(graph, "node:Film", partial(insert_rows, {ID: ["Alien"], "title": ["Alien"]}))


def collect(graph: og.Graph) -> None:
    """A thorough cleanup, which knows nothing but what storage says."""
    report = cleanup(graph.location, Manifest(graph.location), keep=1, grace=timedelta(0))
    assert report.errors == {}


@contextmanager
def meanwhile(
    graph: og.Graph, point: str, action: Action, times: int | None = 1
) -> Iterator[faults.Fault]:
    other = og.open(str(graph.location), actor="other")
    matching = "__manifest" if point == "before_commit" else ""
    is_acting = False

    def act() -> None:
        nonlocal is_acting
        if not is_acting:
            is_acting = True
            action(other)
            is_acting = False

    with faults.observed(point, act, times=times, matching=matching) as fault:
        yield fault


@pytest.fixture(params=[False, True], ids=["small", "announced"])
def graph(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> og.Graph:
    """A graph whose older commits show rows that its head does not."""
    graph = make(tmp_path / "graph", SCHEMA, ROWS)
    run(graph, 'insert Person { name: "Dee" }')
    run(graph, 'delete Person where name = "Dee"')
    if request.param:
        monkeypatch.setattr(intent_scope, "REQUEST_BYTES", -1)
    return graph


def people(graph: og.Graph) -> dict[str, tuple[Any, ...]]:
    rows = shown(graph)["Person"]
    assert all(row["rank"] == 5 and row["tags"] is None for row in rows.values())
    return {name: (row["years"], row["mail"]) for name, row in rows.items()}


OLD = {"Ann": (0, "m0"), "Ben": (1, "m1"), "Cy": (2, "m2")}
EDGES = {
    '["Ann","Ben"]': {"from": "Ann", "to": "Ben", "since": 1},
    '["Ben","Cy"]': {"from": "Ben", "to": "Cy", "since": None},
}


def check_sound(graph: og.Graph) -> None:
    """Everything reads, before and after another cleanup, and the next writes succeed."""
    before = shown(reopened(graph))
    collect(graph)
    found = reopened(graph)
    assert shown(found) == before
    run(found, 'insert Person { name: "Next", years: 4 } insert Song { title: "Hey" }')
    found.apply_schema(AFTER.replace("rank: I32 @default(5)", "rank: F64 @default(5)"))
    after = shown(reopened(found))
    assert after["Song"] == {"Hey": {"title": "Hey"}}
    assert after["Person"].keys() == before["Person"].keys() | {"Next"}


# -- rows that obey ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_rows_that_come_and_go_meanwhile_are_as_the_schema_wants_them(
    graph: og.Graph, point: str
) -> None:
    def act(other: og.Graph) -> None:
        add_person(other, "New", age=None)
        drop_ben(other)
        add_edge(other, "k3", "Cy", "New")

    with meanwhile(graph, point, act) as fault:
        done = graph.apply_schema(AFTER)
    assert fault.fired
    assert done.applied
    assert people(graph) == {"Ann": OLD["Ann"], "Cy": OLD["Cy"], "New": (-1, "m9")}
    assert shown(graph)["Met"] == {'["Cy","New"]': {"from": "Cy", "to": "New", "since": None}}
    assert graph.snapshot().commit_id == graph.commits.list()[0].id
    check_sound(graph)


@pytest.mark.parametrize("point", ["columns_written", "publish_ready"])
def test_columns_of_rows_that_stay_are_written_once(graph: og.Graph, point: str) -> None:
    """Beside two writers, no more files than fragments: the first one's and theirs."""

    def act(other: og.Graph) -> None:
        add_person(other, "New")

    place = Path(str(graph.location).removeprefix("file://"))
    before = {path.name for path in place.glob("nodes/*/data/*")}
    with meanwhile(graph, point, act):
        graph.apply_schema(AFTER.replace(" @key(src, dst)", ""))
    after = {path.name for path in place.glob("nodes/*/data/*")}
    assert people(graph) == OLD | {"New": (9, "m9")}
    # The row of the other writer, and columns for it and for what was there.
    fragments = len(table_of(graph, "node:Person").dataset().get_fragments())
    assert len(after - before) == 1 + fragments


# -- rows that do not --------------------------------------------------------------------

BREAKING: dict[str, tuple[str, Action, str]] = {
    "null": (
        SCHEMA.replace("age: I32?", "age: I32"),
        lambda other: add_person(other, age=None),
        "New",
    ),
    "unique": (
        SCHEMA.replace("mail: String?", "mail: String? @unique"),
        lambda other: add_person(other, mail="m1"),
        "Ben, New",
    ),
    "range": (
        SCHEMA.replace("mail: String?", "mail: String? @range(age, 0..5)"),
        add_person,
        "New",
    ),
    "enum": (
        SCHEMA.replace("mail: String?", "mail: enum(m0, m1, m2)?"),
        add_person,
        "New",
    ),
    "cardinality": (
        SCHEMA.replace("-> Person {", "-> Person @card(0..1) {"),
        lambda other: add_edge(other, "k3", "Ann", "Cy"),
        "Ann",
    ),
    "key of edges": (
        SCHEMA.replace("{ since: I32?", "{ since: I32? @key(src, dst)"),
        lambda other: add_edge(other, "k3", "Ann", "Ben"),
        "k1, k3",
    ),
    "no longer empty": (
        SCHEMA.replace("title: String @key", "title: String @key  year: I32"),
        add_film,
        "OG-MF-103",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("point", ["changes_built", "changes_checked", "publish_ready"])
@pytest.mark.parametrize("name", BREAKING)
def test_a_row_that_comes_meanwhile_and_does_not_obey_refuses_it(
    tmp_path: Path, name: str, point: str
) -> None:
    text, action, told = BREAKING[name]
    graph = make(tmp_path / "graph", SCHEMA, ROWS)
    with (
        meanwhile(graph, point, action) as fault,
        pytest.raises(errors.SchemaChangeRefused, match=told),
    ):
        graph.apply_schema(text)
    assert fault.fired
    assert graph.schema == SCHEMA
    assert graph.commits.list()[0].actor == "other"
    assert table_of(graph, "node:Person").dataset().schema.names == [ID, "age", "mail", "name"]


def test_a_column_that_is_no_longer_empty_refuses_it(tmp_path: Path) -> None:
    graph = make(tmp_path / "graph", SCHEMA, [node("Person", name="Ann")])
    text = SCHEMA.replace("age: I32?", "age: Bool?")
    with (
        meanwhile(graph, "publish_ready", add_person),
        pytest.raises(errors.SchemaChangeRefused, match="OG-MF-106"),
    ):
        graph.apply_schema(text)
    run(graph, 'delete Person where name = "New"')
    assert graph.apply_schema(text).applied


# -- other schema changes ----------------------------------------------------------------


@pytest.mark.parametrize("point", ["changes_checked", "columns_written"])
def test_of_two_changes_the_second_is_planned_on_the_first(graph: og.Graph, point: str) -> None:
    first = AFTER.replace("tags: [String]?", "note: String?")

    def act(other: og.Graph) -> None:
        other.apply_schema(first)
        run(other, 'update Person set { note: "x" } where name = "Ann"')

    with meanwhile(graph, point, act):
        done = graph.apply_schema(AFTER)
    assert [step.to_json()["kind"] for step in done.steps] == ["add_property", "drop_property"]
    assert done.steps[1].to_json()["rows_losing_value"] == 1
    assert people(graph) == OLD
    assert shown(graph)["Met"] == EDGES
    check_sound(graph)


def test_the_same_change_twice_at_once_is_made_once(graph: og.Graph) -> None:
    with meanwhile(graph, "columns_written", lambda other: other.apply_schema(AFTER)):
        done = graph.apply_schema(AFTER)
    assert (done.applied, done.commit) == (False, None)
    assert people(graph) == OLD
    check_sound(graph)


def test_a_condition_that_somebody_breaks_meanwhile(graph: og.Graph) -> None:
    head = graph.snapshot().commit_id
    for text in (AFTER, SCHEMA):
        with (
            meanwhile(graph, "changes_checked", add_film),
            pytest.raises(errors.PreconditionFailed),
        ):
            graph.apply_schema(text, if_commit=graph.snapshot().commit_id)
    assert graph.schema == SCHEMA
    assert head != graph.snapshot().commit_id


# -- cleanups ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.pairwise
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("writes", [False, True], ids=["alone", "with a writer"])
def test_a_cleanup_takes_nothing_that_a_change_needs(
    graph: og.Graph, point: str, writes: bool
) -> None:
    def act(other: og.Graph) -> None:
        if writes:
            add_person(other, "New")
            drop_ben(other)
        collect(other)

    with meanwhile(graph, point, act) as fault:
        graph.apply_schema(AFTER)
    assert fault.fired
    expected = OLD | {"New": (9, "m9")} if writes else OLD
    assert people(reopened(graph)) == {
        k: v for k, v in expected.items() if not writes or k != "Ben"
    }
    assert shown(graph)["Met"] == ({} if writes else EDGES)
    check_sound(graph)


def files_of(graph: og.Graph) -> set[str]:
    place = Path(str(graph.location).removeprefix("file://"))
    found = [path for part in ("nodes", "edges") for path in (place / part).rglob("*")]
    return {path.relative_to(place).as_posix() for path in found if path.is_file()}


def broken(point: str) -> Callable[[], errors.StorageError]:
    return lambda: errors.StorageError(f"gone at {point}", kind="permanent")


@pytest.mark.parametrize("point", ["tables_created", "columns_written", "table_staged"])
def test_what_a_change_that_failed_leaves_is_collected(tmp_path: Path, point: str) -> None:
    graph = make(tmp_path / "graph", SCHEMA, ROWS)
    collect(graph)
    before, rows = files_of(graph), held(graph.snapshot())
    with faults.armed(point, broken(point)), pytest.raises(errors.StorageError):
        graph.apply_schema(AFTER)
    assert files_of(graph) > before
    collect(graph)
    assert files_of(graph) == before
    assert held(reopened(graph).snapshot()) == rows
    graph.apply_schema(AFTER)
    assert people(graph) == OLD


def test_tables_of_a_branch_that_is_gone_are_collected(tmp_path: Path) -> None:
    graph = make(tmp_path / "graph", SCHEMA, ROWS)
    collect(graph)
    before = files_of(graph)
    graph.branches.create("dev")
    graph.apply_schema(AFTER, branch="dev")
    run(graph, 'insert Song { title: "Hey" }', branch="dev")
    collect(graph)
    assert shown(graph, "dev")["Song"] == {"Hey": {"title": "Hey"}}
    graph.branches.delete("dev")
    collect(graph)
    assert files_of(graph) == before


def test_a_directory_that_nobody_here_has_made_stays(tmp_path: Path) -> None:
    graph = make(tmp_path / "graph", SCHEMA, ROWS)
    graph.apply_schema(AFTER)
    foreign = tmp_path / "graph/nodes" / f"{2**40:016x}-{2**40 + 1:016x}/data"
    foreign.mkdir(parents=True)
    (foreign / "x.lance").write_text("mine")
    collect(graph)
    assert (foreign / "x.lance").read_text() == "mine"


# -- writers -----------------------------------------------------------------------------


def apply_past(text: str) -> Action:
    """Another schema, by a graph that takes no turns with the writer."""

    def act(other: og.Graph) -> SchemaResult:
        return other.apply_schema(text)

    return act


WRITES: dict[str, Callable[[og.Graph], object]] = {
    "insert": lambda g: run(g, 'insert Person { name: "New", mail: "m9" }'),
    "upsert": lambda g: run(g, 'insert Person { name: "Ann", mail: "m8" }'),
    "update": lambda g: run(g, 'update Person set { mail: "m7" } where name = "Ann"'),
    "delete": lambda g: run(g, 'delete Person where name = "Cy"'),
    "append": lambda g: g.load([node("Person", name="New")], mode="append"),
    "merge": lambda g: g.load([node("Person", name="Ann", mail="m6")], mode="merge"),
    "overwrite": lambda g: g.load([edge("Knows", "Cy", "Ann", id="k9")], mode="overwrite"),
}
WRITING = ["txn_captured", "changes_checked", "table_staged"]
SAME_NAMES = """\
node Person { name: String @key  age: I64?  mail: String? @unique  rank: I32 @default(5) }
node Film { title: String @key }
edge Knows: Person -> Person { since: I32?  note: String? }
"""


@pytest.mark.slow
@pytest.mark.parametrize("point", WRITING)
@pytest.mark.parametrize("name", WRITES)
def test_a_writer_that_is_overtaken_by_a_change_prepares_itself_again(
    tmp_path: Path, name: str, point: str
) -> None:
    graph = make(tmp_path / "graph", SCHEMA, ROWS)
    reference = make(tmp_path / "reference", SCHEMA, ROWS)
    reference.apply_schema(SAME_NAMES)
    WRITES[name](reference)
    with meanwhile(graph, point, apply_past(SAME_NAMES)) as fault:
        WRITES[name](graph)
    assert fault.fired
    assert shown(graph) == shown(reference)


@pytest.mark.parametrize("point", WRITING[:2])
def test_a_writer_is_refused_by_the_schema_that_came_first(tmp_path: Path, point: str) -> None:
    graph = make(tmp_path / "graph", SCHEMA, ROWS)
    stricter = SCHEMA.replace("age: I32?", "age: I32").replace(
        "mail: String?", "mail: String? @unique"
    )
    wrong: list[tuple[str, type[errors.OmniGraphError]]] = [
        ('insert Person { name: "New" }', errors.TypeCheckError),
        ('insert Person { name: "New", age: 1, mail: "m1" }', errors.OmniGraphError),
        ('update Person set { mail: "m1" } where name = "Ann"', errors.OmniGraphError),
    ]
    for number, (body, error) in enumerate(wrong):
        graph.apply_schema(SCHEMA)
        before = shown(graph)
        with meanwhile(graph, point, apply_past(stricter)), pytest.raises(error) as caught:
            run(graph, body)
        assert not isinstance(caught.value, errors.InternalError), number
        assert shown(graph) == before
    renamed = SCHEMA.replace("mail: String?", 'post: String? @rename_from("mail")')
    graph.apply_schema(SCHEMA)
    with meanwhile(graph, point, apply_past(renamed)), pytest.raises(errors.TypeCheckError):
        run(graph, 'update Person set { mail: "m7" } where name = "Ann"')
    dropped = "node Film { title: String @key }"
    with meanwhile(graph, point, apply_past(dropped)), pytest.raises(errors.OmniGraphError) as gone:
        run(graph, 'delete Person where name = "Ann"')
    assert isinstance(gone.value, errors.TypeCheckError | errors.ReadSetChanged)
    assert shown(graph) == {"Film": {}}


@pytest.mark.parametrize(
    "body", ['update Person set { mail: "x" } where age >= 0', "delete Person where age >= 0"]
)
def test_a_strict_write_is_refused_if_somebody_touched_its_rows_too(
    tmp_path: Path, body: str
) -> None:
    graph = make(tmp_path / "graph", SCHEMA, ROWS)

    def act(other: og.Graph) -> None:
        other.apply_schema(SAME_NAMES)
        run(other, 'update Person set { age: 7 } where name = "Ann"')

    with meanwhile(graph, "changes_checked", act), pytest.raises(errors.ReadSetChanged):
        run(graph, body)
    rows: Rows = shown(graph)
    assert {name: row["age"] for name, row in rows["Person"].items()} == {
        "Ann": 7,
        "Ben": 1,
        "Cy": 2,
    }
