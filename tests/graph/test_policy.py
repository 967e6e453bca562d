"""Sessions under a policy: what every public method asks, and that a denial stops it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.graph import Action, Policy, Session
from omnigraph.graph.access import Surface
from omnigraph.pipeline.declared.run import Pipeline
from tests.film_graph import SCHEMA, files

Asked = tuple[str, Action, str | None, str | None]

ADD = 'query add() { insert Person { name: "Ann" } }'
ALL = "query all() { match { $p: Person } return { $p.name as name } }"
LINE = '{"type": "Person", "data": {"name": "Ben"}}'
PIPELINE = """\
version: 1
branch: dev
from: main
mode: append
sources:
  people: {kind: csv, path: people.csv}
nodes:
  Person:
    source: people
    columns: {name: name}
"""

HARMLESS = {
    "location",
    "read_only",
    "actor",
    "caches",
    "close",
    "branches",
    "tags",
    "commits",
    "changes",
}
"""What tells nothing of a graph that its caller has not brought along."""


class Asking:
    """A policy that writes down what it is asked, and denies the actions it is told to."""

    def __init__(self, *denied: Action) -> None:
        self.asked: list[Asked] = []
        self.denied = denied

    def authorize(self, actor: str, action: Action, branch: str | None, target: str | None) -> None:
        self.asked.append((actor, action, branch, target))
        if action in self.denied:
            raise errors.PolicyDenied(f"policy denied action '{action}' for actor '{actor}'")


EVERYTHING: tuple[Action, ...] = (
    "read",
    "export",
    "change",
    "branch_create",
    "branch_delete",
    "branch_merge",
    "schema_apply",
    "admin",
)


class Calls:
    """A call of every public method, with branches in an unusual spelling, and what it asks.

    The graph has the branches main and dev; the newest commit of dev was made on it.
    """

    def __init__(self, graph: og.Graph, directory: Path) -> None:
        self.commit = graph.commits.list("dev")[0].id
        self.document = directory / "people.yaml"
        self.document.write_text(PIPELINE)

    def all(self) -> dict[str, tuple[Callable[[Session], object], tuple[Any, ...]]]:
        commit, document = self.commit, self.document
        return {
            "schema": (lambda s: s.schema, ("read", None, None)),
            "catalog": (lambda s: s.catalog, ("read", None, None)),
            "plan_schema": (
                lambda s: s.plan_schema(SCHEMA, branch=" dev"),
                ("read", "dev", None),
            ),
            "apply_schema": (
                lambda s: s.apply_schema(SCHEMA, branch=" dev"),
                ("schema_apply", None, "dev"),
            ),
            "schema_at": (lambda s: s.schema_at(commit), ("read", "dev", None)),
            "schema_log": (lambda s: s.schema_log(" dev"), ("read", "dev", None)),
            "snapshot": (lambda s: s.snapshot(" dev "), ("read", "dev", None)),
            "index_status": (lambda s: s.index_status(" dev"), ("read", "dev", None)),
            "status": (lambda s: s.status(" dev"), ("read", "dev", None)),
            "maintain": (lambda s: s.maintain(" dev", dry_run=True), ("admin", "dev", None)),
            "recoveries": (lambda s: s.recoveries(), ("read", None, None)),
            "lint": (lambda s: s.lint(ALL, branch=" dev"), ("read", "dev", None)),
            "query": (lambda s: s.query(ALL, branch="dev "), ("read", "dev", None)),
            "blob": (
                lambda s: s.blob("node", "Person", "Ann", "photo", snapshot=commit),
                ("read", "dev", None),
            ),
            "explain": (lambda s: s.explain(ALL, snapshot=commit), ("read", "dev", None)),
            "sql": (
                lambda s: s.sql("select 1 as one", snapshot=commit),
                ("read", "dev", None),
            ),
            "table": (lambda s: s.table("Person", snapshot=commit), ("read", "dev", None)),
            "to_spark": (lambda s: s.to_spark("Person"), ("read", "main", None)),
            "to_networkx": (lambda s: s.to_networkx(snapshot=commit), ("read", "dev", None)),
            # A type that is not there is told before a library that is not.
            "to_igraph": (lambda s: s.to_igraph(types=["Nobody"]), ("read", "main", None)),
            "to_pyg": (lambda s: s.to_pyg(types=["Nobody"]), ("read", "main", None)),
            "create_views": (lambda s: s.create_views(commit=commit), ("read", "dev", None)),
            "export": (lambda s: list(s.export(branch=" dev")), ("export", "dev", None)),
            "mutate": (lambda s: s.mutate(ADD, branch=" dev"), ("change", "dev", None)),
            "load": (
                lambda s: s.load(LINE, mode="merge", branch=" dev"),
                ("change", "dev", None),
            ),
            "stream_load": (
                lambda s: s.stream_load(None, type="Person", checkpoint="c"),
                ("change", "main", None),
            ),
            "run_pipeline": (lambda s: s.run_pipeline(document), ("change", "dev", None)),
            "validate_pipeline": (
                lambda s: s.validate_pipeline(document),
                ("read", "dev", None),
            ),
            "embed": (lambda s: s.embed("Person", branch=" dev"), ("change", "dev", None)),
            "cleanup": (lambda s: s.cleanup(1, dry_run=True), ("admin", None, None)),
            "optimize": (lambda s: s.optimize(" dev", dry_run=True), ("admin", "dev", None)),
            "repair": (lambda s: s.repair(), ("admin", None, None)),
            "verify": (lambda s: s.verify(branch=" dev"), ("export", "dev", None)),
            "ensure_indices": (lambda s: s.ensure_indices(" dev"), ("change", "dev", None)),
            "branches.list": (lambda s: s.branches.list(), ("read", None, None)),
            "branches.create": (
                lambda s: s.branches.create(" new ", " dev"),
                ("branch_create", "dev", "new"),
            ),
            "branches.rename": (
                lambda s: s.branches.rename(" dev", " newer "),
                ("branch_create", "dev", "newer"),
            ),
            "tags.list": (lambda s: s.tags.list(), ("read", None, None)),
            "tags.create": (
                lambda s: s.tags.create(" v1", commit),
                ("branch_create", "dev", "v1"),
            ),
            "tags.delete": (lambda s: s.tags.delete("v1 "), ("branch_delete", None, "v1")),
            "history": (lambda s: s.history("Person", "Ann", branch=" dev"), ("read", "dev", None)),
            "blame": (lambda s: s.blame("Person", "Ann", branch=" dev"), ("read", "dev", None)),
            "branches.delete": (
                lambda s: s.branches.delete(" dev"),
                ("branch_delete", None, "dev"),
            ),
            "branches.merge": (
                lambda s: s.branches.merge(" dev", "main "),
                ("branch_merge", "dev", "main"),
            ),
            "commits.list": (lambda s: s.commits.list(" dev"), ("read", "dev", None)),
            "commits.get": (lambda s: s.commits.get(commit), ("read", None, None)),
            "commits.changes": (lambda s: s.commits.changes(commit), ("read", "dev", None)),
            "changes.poll": (lambda s: s.changes.poll(branch="dev "), ("read", "dev", None)),
            "changes.baseline": (
                lambda s: list(s.changes.baseline(branch=" dev")),
                ("export", "dev", None),
            ),
        }


TWICE = {
    "diff",
    "schema_diff",
    "branches.reset",
    "branches.revert",
    "branches.cherry_pick",
}
"""What looks at two branches; they have a test of their own."""
NEEDS_SPARK = {"to_spark", "create_views", "stream_load", "run_pipeline", "validate_pipeline"}
ALSO = {"branches.rename": [("ann", "branch_delete", None, "dev")]}
"""What is asked after the first question has been answered."""
FAILS: dict[str, type[errors.OmniGraphError]] = {
    "embed": errors.BadRequest,
    "blob": errors.BadRequest,
    "to_igraph": errors.NotFound,
    "to_pyg": errors.NotFound,
}
"""What is allowed and then refused for another reason: no type here has vectors or blobs."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "film.omni"


@pytest.fixture
def graph(root: Path) -> og.Graph:
    graph = og.init(root, SCHEMA, actor="owner")
    graph.branches.create("dev")
    graph.mutate(ADD, branch="dev")
    return graph


@pytest.fixture
def calls(graph: og.Graph, tmp_path: Path) -> Calls:
    return Calls(graph, tmp_path)


def _public(of: object) -> Iterator[str]:
    for name in dir(type(of)) + list(vars(of)):
        if not name.startswith("_"):
            yield name


def test_every_public_method_is_here(graph: og.Graph, calls: Calls) -> None:
    session = graph.as_actor("ann")
    names = set(_public(session)) - HARMLESS
    for space in ("branches", "tags", "commits", "changes"):
        names |= {f"{space}.{name}" for name in _public(getattr(session, space))}
    assert names == {*calls.all(), *TWICE}
    spaces = {name for name, value in vars(session).items() if isinstance(value, Surface)}
    assert spaces == {"branches", "tags", "commits", "changes"}


def test_what_is_harmless_asks_nothing(graph: og.Graph) -> None:
    policy = Asking(*EVERYTHING)
    session = graph.as_actor("ann", policy)
    assert (session.actor, session.read_only) == ("ann", False)
    assert session.location == graph.location
    assert session.caches
    session.close()
    assert policy.asked == []


def test_a_denial_stops_every_method_after_one_question(
    graph: og.Graph, calls: Calls, root: Path
) -> None:
    before = files(root)
    for name, (call, wanted) in calls.all().items():
        policy = Asking(*EVERYTHING)
        with pytest.raises(errors.PolicyDenied):
            call(graph.as_actor("ann", policy))
        assert policy.asked == [("ann", *wanted)], name
    assert files(root) == before


def test_what_is_allowed_is_asked_once(graph: og.Graph, calls: Calls) -> None:
    later = ["tags.create", "tags.delete", "branches.merge", "branches.rename", "branches.delete"]
    every = calls.all()
    for name in [*(every.keys() - {*later, *NEEDS_SPARK}), *later]:
        call, wanted = every[name]
        policy = Asking()
        session = graph.as_actor("ann", policy)
        if name in FAILS:
            with pytest.raises(FAILS[name]):
                call(session)
        else:
            call(session)
        if name == "branches.rename":
            graph.branches.rename("newer", "dev")
        assert policy.asked[0] == ("ann", *wanted), name
        assert policy.asked[1:] == ALSO.get(name, []), name


def test_a_replay_needs_both_branches(graph: og.Graph, calls: Calls) -> None:
    policy = Asking()
    session = graph.as_actor("ann", policy)
    assert session.branches.cherry_pick(calls.commit, " main").outcome == "picked"
    asked = [("ann", "read", "dev", None), ("ann", "change", "main", None)]
    assert policy.asked == asked
    policy.asked.clear()
    assert session.branches.revert(calls.commit, "dev ").outcome == "reverted"
    assert policy.asked == [asked[0], ("ann", "change", "dev", None)]
    policy.asked.clear()
    assert session.branches.reset("dev", calls.commit).outcome == "reset"
    deletes = ("ann", "branch_delete", None, "dev")
    assert policy.asked == [asked[0], ("ann", "change", "dev", None), deletes]
    for denied in ("read", "change", "branch_delete"):
        commits = graph.commits.list("dev")
        with pytest.raises(errors.PolicyDenied):
            graph.as_actor("ann", Asking(denied)).branches.reset("dev", "dev~1")
        assert graph.commits.list("dev") == commits


def test_a_diff_needs_both_sides(graph: og.Graph, calls: Calls) -> None:
    policy = Asking()
    session = graph.as_actor("ann", policy)
    assert len(session.diff("main", calls.commit)) == 1
    assert policy.asked == [("ann", "read", "main", None), ("ann", "read", "dev", None)]
    policy.asked.clear()
    assert len(session.diff(graph.snapshot("dev"), graph.snapshot())) == 1
    assert policy.asked == [("ann", "read", "dev", None), ("ann", "read", "main", None)]
    policy.asked.clear()
    assert session.schema_diff("main", calls.commit).steps == ()
    assert policy.asked == [("ann", "read", "main", None), ("ann", "read", "dev", None)]


def test_a_load_that_makes_its_branch_has_to_be_allowed_to(graph: og.Graph, root: Path) -> None:
    policy = Asking()
    session = graph.as_actor("ann", policy)
    session.load(LINE, mode="append", branch=" new", from_branch=" dev ")
    assert policy.asked == [
        ("ann", "branch_create", "dev", "new"),
        ("ann", "change", "new", None),
    ]
    policy.asked.clear()
    session.load(LINE, mode="merge", branch="new", from_branch="dev")
    assert policy.asked == [("ann", "change", "new", None)]
    before = files(root)
    denying = Asking("branch_create")
    with pytest.raises(errors.PolicyDenied):
        graph.as_actor("ann", denying).load(LINE, mode="append", branch="b", from_branch="dev")
    assert denying.asked == [("ann", "branch_create", "dev", "b")]
    assert files(root) == before


def test_a_pipeline_that_makes_its_branch_has_to_be_allowed_to(
    graph: og.Graph, calls: Calls
) -> None:
    graph.branches.delete("dev")
    policy = Asking("change")
    with pytest.raises(errors.PolicyDenied):
        graph.as_actor("ann", policy).run_pipeline(calls.document)
    assert policy.asked == [
        ("ann", "branch_create", "main", "dev"),
        ("ann", "change", "dev", None),
    ]


def test_what_was_allowed_is_what_is_done(
    graph: og.Graph, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Overtaken(Asking):
        """While it decides, somebody commits something and writes another document."""

        def authorize(
            self, actor: str, action: Action, branch: str | None, target: str | None
        ) -> None:
            super().authorize(actor, action, branch, target)
            if len(self.asked) == 1:
                graph.load(LINE, mode="merge")
                calls.document.write_text(PIPELINE.replace("dev", "main"))

    session = graph.as_actor("ann", Overtaken())
    assert len(session.diff("main", "dev")) == 1
    ran: list[str] = []
    monkeypatch.setattr(Pipeline, "run", lambda self, *_, **__: ran.append(self.document.branch))
    calls.document.write_text(PIPELINE)
    policy = Overtaken()
    graph.as_actor("ann", policy).run_pipeline(calls.document)
    assert policy.asked == [("ann", "change", "dev", None)]
    assert ran == ["dev"]


def test_a_merge_whose_source_may_not_be_deleted_is_a_merge(graph: og.Graph) -> None:
    policy = Asking("branch_delete")
    result = graph.as_actor("ann", policy).branches.merge("dev", delete_source=True)
    assert result.outcome == "fast_forward"
    assert (result.branch_deleted, result.branch_delete_error) == (
        False,
        "policy denied action 'branch_delete' for actor 'ann'",
    )
    assert policy.asked == [
        ("ann", "branch_merge", "dev", "main"),
        ("ann", "branch_delete", None, "dev"),
    ]
    assert graph.branches.list() == ["dev", "main"]


def test_nobody_takes_the_name_of_another(graph: og.Graph, root: Path) -> None:
    policy = Asking()
    session = graph.as_actor("ann", policy)
    before = files(root)
    for call in (
        lambda: session.mutate(ADD, actor="owner"),
        lambda: session.load(LINE, mode="append", actor="owner"),
        lambda: session.branches.create("x", actor="owner"),
        lambda: session.branches.delete("dev", actor="owner"),
        lambda: session.branches.merge("dev", actor="owner"),
        lambda: session.ensure_indices(actor="owner"),
        lambda: session.apply_schema(SCHEMA, actor="owner"),
    ):
        with pytest.raises(errors.PolicyDenied, match="this is a session of 'ann'"):
            call()
    assert policy.asked == []
    assert files(root) == before
    # A filter is nobody's name.
    assert [one.actor for one in session.commits.list("dev", actor="owner")] == ["owner", "owner"]
    assert session.mutate(ADD, actor="ann").commit is not None


def test_under_a_policy_somebody_has_to_be_named(graph: og.Graph) -> None:
    policy = Asking()
    session = Session(graph._access.handle, None, policy)
    with pytest.raises(errors.PolicyDenied, match="nobody is named"):
        session.query(ALL)
    assert policy.asked == []


def test_the_policy_is_asked_before_a_read_only_graph_refuses(graph: og.Graph) -> None:
    reader = og.open(str(graph.location), read_only=True)
    denied: Policy = Asking("change")
    with pytest.raises(errors.PolicyDenied):
        reader.as_actor("ann", denied).mutate(ADD)
    with pytest.raises(errors.BadRequest, match="read-only"):
        reader.as_actor("ann", Asking()).mutate(ADD)


def test_what_changes_is_refused_by_a_read_only_graph(graph: og.Graph, calls: Calls) -> None:
    reader = og.open(str(graph.location), read_only=True)
    session = reader.as_actor("ann")
    for name, (call, (action, *_)) in calls.all().items():
        if action in {"read", "export", "admin"}:
            continue
        with pytest.raises(errors.BadRequest, match="read-only"):
            call(session)
        assert name
    with pytest.raises(errors.BadRequest, match="read-only"):
        session.cleanup(1)
    assert session.cleanup(1, dry_run=True).commits_reclaimed >= 0
    assert session.branches.merge("dev", dry_run=True).commit is None


def test_a_method_keeps_its_signature_and_its_words(graph: og.Graph) -> None:
    assert list(inspect.signature(graph.branches.delete).parameters) == ["name", "actor"]
    assert (Session.query.__doc__ or "").startswith("Run a read query")
