"""The kinds of writers that the crash tests kill, and the graph they write to.

A kind is plain data: what the graph needs before, the write, and whether another writer
commits in the middle of it. Add one here for every new kind of write.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

import omnigraph as og
from omnigraph.lang.structural import ID
from omnigraph.manifest.publish_request import AdvanceTable, PendingCommit, PublishRequest
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.tables.write_rows import write_rows
from omnigraph.write.publish.run_claims import RunClaims
from omnigraph.write.publish.run_ids import RunId
from omnigraph.write.publish.staging import stamp
from omnigraph.write.recovery.intents import Intent, IntentTable, LiveIntent
from tests.table_writes import insert
from tests.write.writing import mutate, table_of

SCHEMA = """\
node Person {
    name: String @key
    age: I32?
}

node Film {
    title: String @key
    year: I32?
}

edge Knows: Person -> Person {
    note: String?
}

edge ActedIn: Person -> Film {
    role: String?
}
"""

Step = Callable[[og.Graph], object]
Family = Literal[
    "mutation",
    "load",
    "branch",
    "announced",
    "overtaken",
    "collected",
    "merge",
    "branching",
    "schema",
    "sweep",
    "cleanup",
]
LONG_AGO = 1_700_000_000_000_000
"""When the dead writers of the sweeps began, so that they have expired by any clock."""


def envelope(name: str, key: str, **values: Any) -> dict[str, Any]:
    return {"type": name, "data": {("title" if name == "Film" else "name"): key, **values}}


def link(name: str, source: str, target: str, **values: Any) -> dict[str, Any]:
    return {"edge": name, "from": source, "to": target, "data": values}


def lines(*envelopes: dict[str, Any]) -> str:
    return "\n".join(map(json.dumps, envelopes)) + "\n"


def make_seed(root: Path) -> None:
    """A graph with some rows in every table, in several fragments."""
    graph = og.init(root, SCHEMA, actor="seed")
    people = [envelope("Person", name, age=30) for name in ("Ann", "Bob", "Cid", "Dan", "Eve")]
    films = [envelope("Film", title, year=1990) for title in ("Alien", "Brazil", "Heat")]
    knows = [link("Knows", "Ann", "Bob"), link("Knows", "Bob", "Cid"), link("Knows", "Dan", "Eve")]
    acted = [link("ActedIn", "Bob", "Alien", role="cat"), link("ActedIn", "Ann", "Brazil")]
    graph.load(lines(*people, *films, *knows, *acted), mode="append")
    mutate(graph, 'insert Person { name: "Fay", age: 31 } insert Knows { from: "Fay", to: "Bob" }')


# -- what writers do ---------------------------------------------------------------------


def run(body: str, branch: str = "main", **options: Any) -> Step:
    return lambda graph: mutate(graph, body, branch=branch, **options)


def load(mode: str, *envelopes: dict[str, Any], **options: Any) -> Step:
    return lambda graph: graph.load(lines(*envelopes), mode=mode, **options)


def fork(branch: str) -> Step:
    return lambda graph: graph.branches.create(branch)


def unfork(branch: str) -> Step:
    return lambda graph: graph.branches.delete(branch)


def diverge(there: str, here: str = "") -> Step:
    """A branch `dev` with one more commit, and perhaps one more on main."""

    def step(graph: og.Graph) -> None:
        graph.branches.create("dev")
        mutate(graph, there, branch="dev")
        if here:
            mutate(graph, here)

    return step


def merge(**options: Any) -> Step:
    return lambda graph: graph.branches.merge("dev", **options)


def evolve(schema: str, branch: str = "main", **options: Any) -> Step:
    return lambda graph: graph.apply_schema(schema, branch=branch, **options)


def conditional(graph: og.Graph) -> object:
    head = graph.snapshot().commit_id
    return mutate(graph, 'update Person set { age: 44 } where name = "Ann"', if_commit=head)


def slip_in(graph: og.Graph) -> None:
    """A commit past the turns that writers of one process take."""
    shown = graph.snapshot().tables["node:Person"]
    commit = PendingCommit.mint("rival")
    rows = pa.table({ID: ["Rival"], "name": ["Rival"]})
    pin = insert(table_of(graph, "node:Person"), rows, stamp(commit.id, "rival", "logical"))
    change = AdvanceTable(shown.identity, shown.version, pin)
    graph.manifest.publish("main", PublishRequest(commit, (change,)))


def leave_intent(*, published: bool, branch: str = "main") -> Step:
    """A load of one person that was announced long ago, and then its writer died."""

    def step(graph: og.Graph) -> None:
        shown = graph.snapshot(branch).tables["node:Person"]
        commit = PendingCommit.mint("dead")
        tables = [IntentTable.of(shown.table, shown.version)]
        branch_id = graph.manifest.branch_id(branch)
        intent = Intent.mint("Load", branch, commit, tables, branch_id)
        objects = ControlObjects(graph.location)
        live = LiveIntent.open(objects, intent, clock=lambda: LONG_AGO)
        table = table_of(graph, "node:Person", branch)
        written = write_rows(table, None, pa.table({ID: ["Dead"], "name": ["Dead"]}))
        live.extend([IntentTable.of(shown.table, shown.version, written.files)])
        if published:
            rows = pa.table({ID: ["Ghost"], "name": ["Ghost"]})
            pin = insert(table, rows, stamp(commit.id, intent.operation_id, "logical"))
            change = AdvanceTable(shown.identity, shown.version, pin)
            graph.manifest.publish(branch_id, PublishRequest(commit, (change,)))

    return step


def leave_claim(graph: og.Graph) -> None:
    """A claim to a run id on another branch, whose writer died before it could publish."""
    fork("dev")(graph)
    head = graph.manifest.view("dev").exact
    claims = RunClaims(graph.manifest, RunId.of(ONCE, "mutate", {"by": "a writer that died"}))
    claims.hold(PendingCommit.mint("dead").id, head, "dev", {}, branch_created=False)


def leave_much(graph: og.Graph) -> None:
    """An intent, and a copy of the schema that is lost."""
    leave_intent(published=False)(graph)
    ControlObjects(graph.location).delete("_schema.pg")


def leave_orphan(graph: og.Graph) -> None:
    """An intent for a branch that is deleted."""
    graph.branches.create("gone")
    leave_intent(published=False, branch="gone")(graph)
    graph.branches.delete("gone")


def leave_garbage(graph: og.Graph) -> None:
    """Commits that nobody keeps, a branch that was merged and deleted, and one that stays."""
    diverge(CHANGED_ONE, CHANGED_OTHER)(graph)
    merge(delete_source=True)(graph)
    diverge(CHANGED_OTHER, CHANGED_ONE)(graph)
    leave_orphan(graph)


def collect(graph: og.Graph) -> None:
    """Reclaim all but what the heads show."""
    assert graph.cleanup(1, grace=timedelta(0)).errors == {}


def reopen(graph: og.Graph) -> object:
    return og.open(str(graph.location), actor="crasher")


# -- the kinds ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Writer:
    """One kind of write.

    ``before`` runs before the write, in peace. ``rival`` commits as another writer when
    the write passes ``overtaken_at`` for the first time. ``announced`` writes have an
    intent, whatever their size. ``deleted`` is a branch that is gone in the end. What happens
    ``once`` has a run id, and changes nothing when it is repeated.
    """

    family: Family
    write: Step
    branch: str = "main"
    before: Step | None = None
    rival: Step | None = None
    overtaken_at: str = "changes_checked"
    announced: bool = False
    deleted: str | None = None
    once: bool = False


ONCE = "this very run"
MULTI = (
    envelope("Person", "Gus", age=20),
    envelope("Film", "Dune", year=1984),
    link("Knows", "Gus", "Ann", note="new"),
    link("ActedIn", "Gus", "Dune", role="worm"),
)
UPSERTS = (envelope("Person", "Ann", age=50), envelope("Person", "Gus", age=20))
ONE_MORE = run('insert Person { name: "Rival", age: 1 }')
CHANGED_ANN = run('update Person set { age: 77 } where name = "Ann"')
CASCADE = 'delete Person where name = "Bob"'
SAME_GUS = run('insert Person { name: "Gus", age: 1 }')
STAGED = "table_staged"
CREATED = "tables_created"
"""The last point before tables are staged side by side, in no order."""
CHANGED_EVE = run('update Person set { age: 78 } where name = "Eve"')
CHANGED_ONE = 'update Person set { age: 51 } where name = "Ann"'
CHANGED_OTHER = 'update Person set { age: 52 } where name = "Cid"'
THERE = (
    'update Person set { age: 51 } where name = "Ann" insert Person { name: "Gus", age: 20 } '
    'insert Knows { from: "Gus", to: "Ann" } insert Film { title: "Dune" }'
)
HERE = (
    'update Person set { age: 52 } where name = "Cid" insert Knows { from: "Cid", to: "Dan" } '
    'insert ActedIn { from: "Cid", to: "Heat" }'
)

METADATA = SCHEMA.replace("Knows:", "Met:").replace(
    "Person -> Person {", 'Person -> Person @rename_from("Knows") { @unique(note)'
)
COLUMNS = SCHEMA.replace("age: I32?", "age: I64 @default(7)").replace(
    "note: String?", 'note: String @default("-")  tag: String?'
)
TABLES = """\
node Person {
    name: String @key
    age: F64?
}

node Movie @rename_from("Film") {
    title: String @key
    year: I32?
}

node Song {
    title: String @key
}

edge Knows: Person -> Person {
    note: String?
    @key(src, dst)
}

edge Sang: Person -> Song
"""

WRITERS: dict[str, Writer] = {
    "insert": Writer("mutation", run('insert Person { name: "Gus", age: 20 }')),
    "insert-edge": Writer("mutation", run('insert Knows { from: "Ann", to: "Eve" }')),
    "upsert": Writer("mutation", run('insert Person { name: "Ann", age: 20 }')),
    "update": Writer("mutation", run('update Person set { age: 40 } where name != "Bob"')),
    "update-edge": Writer("mutation", run('update Knows set { note: "x" } where from = "Bob"')),
    "delete": Writer("mutation", run('delete Film where title = "Heat"')),
    "delete-edge": Writer("mutation", run('delete Knows where to = "Bob"')),
    "insert-tables": Writer(
        "mutation",
        run('insert Person { name: "Gus" } insert Knows { from: "Gus", to: "Ann" }'),
    ),
    "delete-cascade": Writer("mutation", run(CASCADE)),
    "mixed": Writer(
        "mutation",
        run('update Person set { age: 9 } where name = "Eve" insert Film { title: "Dune" }'),
    ),
    "conditional": Writer("mutation", conditional),
    "append": Writer("load", load("append", envelope("Person", "Gus", age=20))),
    "append-tables": Writer("load", load("append", *MULTI)),
    "merge": Writer("load", load("merge", *UPSERTS)),
    "merge-tables": Writer("load", load("merge", *UPSERTS, link("Knows", "Gus", "Ann"))),
    "overwrite": Writer("load", load("overwrite", link("Knows", "Ann", "Eve", note="only"))),
    "overwrite-tables": Writer(
        "load",
        load("overwrite", link("Knows", "Ann", "Eve"), link("ActedIn", "Eve", "Heat")),
    ),
    "first-on-branch": Writer(
        "branch",
        run('insert Person { name: "Gus" }', branch="dev"),
        branch="dev",
        before=fork("dev"),
    ),
    "cascade-on-branch": Writer(
        "branch", run(CASCADE, branch="dev"), branch="dev", before=fork("dev")
    ),
    "load-on-branch": Writer(
        "branch", load("merge", *UPSERTS, branch="dev"), branch="dev", before=fork("dev")
    ),
    "forking-load": Writer(
        "branch", load("append", *MULTI, branch="new", from_branch="main"), branch="new"
    ),
    "announced-append": Writer("announced", load("append", *MULTI), announced=True),
    "announced-merge": Writer("announced", load("merge", *UPSERTS), announced=True),
    "announced-overwrite": Writer(
        "announced", load("overwrite", link("Knows", "Ann", "Eve")), announced=True
    ),
    "announced-update": Writer(
        "announced", run('update Person set { age: 40 } where name != "Bob"'), announced=True
    ),
    "announced-forking": Writer(
        "announced",
        load("append", *MULTI, branch="new", from_branch="main"),
        branch="new",
        announced=True,
    ),
    "rebased-insert": Writer("overtaken", run('insert Person { name: "Gus" }'), rival=ONE_MORE),
    "rebased-update": Writer(
        "overtaken", run('update Person set { age: 40 } where name = "Ann"'), rival=ONE_MORE
    ),
    "rebased-cascade": Writer("overtaken", run(CASCADE), rival=ONE_MORE),
    "rebased-overwrite": Writer(
        "overtaken", load("overwrite", link("Knows", "Ann", "Eve")), rival=ONE_MORE
    ),
    "rebased-announced": Writer(
        "overtaken", load("append", *MULTI), rival=ONE_MORE, announced=True
    ),
    "beaten-at-the-door": Writer(
        "overtaken",
        run('insert Person { name: "Gus" }'),
        rival=slip_in,
        overtaken_at="publish_ready",
    ),
    "rebased-upsert": Writer("overtaken", load("merge", *UPSERTS), rival=CHANGED_ANN),
    "prepared-again": Writer("overtaken", load("merge", *UPSERTS), rival=SAME_GUS),
    "prepared-again-announced": Writer(
        "overtaken", load("merge", *UPSERTS), rival=SAME_GUS, announced=True
    ),
    "staged-again-insert": Writer(
        "collected", run('insert Person { name: "Gus" }'), rival=collect, overtaken_at=STAGED
    ),
    "staged-again-update": Writer(
        "collected",
        run('update Person set { age: 40 } where name = "Ann"'),
        rival=collect,
        overtaken_at="publish_ready",
    ),
    "staged-again-forking": Writer(
        "collected",
        load("append", *UPSERTS[1:], branch="new", from_branch="main"),
        branch="new",
        rival=collect,
        overtaken_at=STAGED,
    ),
    "collected-announced": Writer(
        "collected",
        load("merge", *UPSERTS),
        rival=collect,
        overtaken_at=STAGED,
        announced=True,
    ),
    "merge-forward": Writer("merge", merge(), before=diverge(THERE)),
    "merge-rows": Writer("merge", merge(), before=diverge(THERE, HERE)),
    "merge-and-delete": Writer(
        "merge", merge(delete_source=True), before=diverge(CHANGED_ONE), deleted="dev"
    ),
    "merge-announced": Writer(
        "merge", merge(), before=diverge(CHANGED_ONE, CHANGED_OTHER), announced=True
    ),
    "merge-prepared-again": Writer(
        "merge", merge(), before=diverge(CHANGED_ONE, CHANGED_OTHER), rival=CHANGED_EVE
    ),
    "run": Writer("mutation", run('insert Person { name: "Gus" }', run_id=ONCE), once=True),
    "run-of-a-load": Writer("load", load("append", *MULTI, run_id=ONCE), once=True),
    "run-of-a-merge": Writer("merge", merge(run_id=ONCE), before=diverge(THERE, HERE), once=True),
    "run-taken-over": Writer(
        "mutation", run('insert Film { title: "Dune" }', run_id=ONCE), before=leave_claim, once=True
    ),
    "run-collected": Writer(
        "collected",
        run('insert Person { name: "Gus" }', run_id=ONCE),
        rival=collect,
        overtaken_at="publish_ready",
        once=True,
    ),
    "branch-create": Writer("branching", fork("new"), branch="new"),
    "branch-delete": Writer("branching", unfork("dev"), before=fork("dev"), deleted="dev"),
    "schema-metadata": Writer("schema", evolve(METADATA)),
    "schema-columns": Writer("schema", evolve(COLUMNS)),
    "schema-tables": Writer("schema", evolve(TABLES, run_id="tables")),
    "schema-hard": Writer("schema", evolve(TABLES, allow_data_loss=True)),
    "schema-on-branch": Writer("schema", evolve(TABLES, "dev"), branch="dev", before=fork("dev")),
    "schema-announced": Writer("schema", evolve(TABLES), announced=True),
    "schema-overtaken": Writer("schema", evolve(TABLES), rival=ONE_MORE, overtaken_at=CREATED),
    "schema-overtaken-announced": Writer(
        "schema", evolve(COLUMNS), rival=CHANGED_ANN, overtaken_at=CREATED, announced=True
    ),
    "schema-collected": Writer("schema", evolve(TABLES), rival=collect, overtaken_at=CREATED),
    "overtaken-by-schema": Writer(
        "overtaken",
        run('update Person set { age: 40 } where name = "Ann"'),
        rival=evolve(COLUMNS),
        overtaken_at="table_staged",
    ),
    "sweep-forward": Writer("sweep", reopen, before=leave_intent(published=True)),
    "sweep-back": Writer("sweep", reopen, before=leave_much),
    "sweep-orphan": Writer("sweep", reopen, before=leave_orphan),
    "cleanup": Writer("cleanup", collect, before=leave_garbage),
}


def prepare(root: Path, kind: str) -> og.Graph:
    """Bring a copy of the seed to where the write of this kind begins."""
    graph = og.open(root, actor="before")
    before = WRITERS[kind].before
    if before is not None:
        before(graph)
    return graph
