"""The pages of a graph, its history and its health: what they tell, and that texts stay texts."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.display.markup import SHOWN, Html, element, table
from omnigraph.graph import Action

EVIL = "<script>alert('&')</script>"
SAFE = "&lt;script&gt;alert(&#x27;&amp;&#x27;)&lt;/script&gt;"
SCHEMA = """\
node Person {
    name: String @key
    note: String?
}

edge Knows: Person -> Person
"""
SET = "query set($n: String, $t: String) { update Person set { note: $t } where name = $n }"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "people.omni", SCHEMA)
    people = [{"type": "Person", "data": {"name": name}} for name in (EVIL, "Ann")]
    knows = {"edge": "Knows", "from": "Ann", "to": EVIL}
    graph.load([*people, knows], mode="append", actor=EVIL, message=EVIL)
    return graph


@pytest.fixture
def forked(graph: og.Graph) -> og.Graph:
    """Both branches say something else of the same node."""
    graph.branches.create("dev")
    graph.mutate(SET, {"n": EVIL, "t": EVIL}, branch="dev")
    graph.mutate(SET, {"n": EVIL, "t": "else"})
    return graph


def page(shown: object) -> str:
    html = shown._repr_html_()  # type: ignore[attr-defined]
    assert isinstance(html, str)
    assert "<script" not in html
    return html


def test_markup_is_escaped_once() -> None:
    assert element("p", EVIL, element("b", "&"), title='"') == (
        f'<p title="&quot;">{SAFE}<b>&amp;</b></p>'
    )
    assert element("td", "x", style=None) == "<td>x</td>"
    assert SAFE in table([EVIL], [[EVIL]])
    assert Html("<b>") == "<b>"


def test_a_graph(graph: og.Graph) -> None:
    graph.branches.create("draft")
    html = page(graph)
    assert str(graph.location) in html
    assert graph.snapshot().commit_id in html
    assert "branches: draft, main" in html
    assert '<td>node:Person</td><td style="text-align: right">2</td>' in html
    assert "<svg" in html
    assert repr(graph) == f"<Graph {graph.location}>"


def test_a_graph_that_may_not_be_looked_at_says_so(graph: og.Graph) -> None:
    class Nothing:
        def authorize(
            self, actor: str, action: Action, branch: str | None, target: str | None
        ) -> None:
            raise errors.PolicyDenied(f"{EVIL} {actor} {action} {branch} {target}")

    session = graph.as_actor("ann", Nothing())
    html = page(session)
    assert SAFE in html
    assert "<svg" not in html


def test_a_schema(graph: og.Graph) -> None:
    assert repr(graph.catalog) == "<Catalog of 1 node type, 1 edge type>"
    assert page(graph.catalog).startswith("<p>1 node type, 1 edge type</p><svg")


def test_a_log(graph: og.Graph) -> None:
    for number in range(SHOWN):
        graph.mutate(SET, {"n": "Ann", "t": str(number)})
    log = graph.commits.list()
    html = page(log)
    assert html.startswith(f"<p>{SHOWN + 2} commits</p>")
    assert html.count("<tr>") == SHOWN + 1
    assert html.endswith("<p>… and 2 more commits</p>")
    assert repr(log).count("\n") == SHOWN + 1
    older = log[-3:]
    assert page(older).count(SAFE) == 2
    assert older == list(log)[-3:]


def test_a_commit(graph: og.Graph) -> None:
    commit = graph.commits.list()[0]
    shown = f"{commit.time:%Y-%m-%dT%H:%M:%SZ}"
    assert repr(commit) == f"<Commit {commit.id} on main by {EVIL}, {shown}: {EVIL}>"
    assert page(commit).count(SAFE) == 2
    assert round(commit.time.timestamp() * 1_000_000) == commit.created_at


def test_what_writes_say_is_short(graph: og.Graph) -> None:
    done = graph.mutate(SET, {"n": "Ann", "t": "x"})
    assert done.commit is not None
    assert repr(done) == f"<MutationResult on main: 1 node, 0 edges, commit {done.commit.id}>"
    again = graph.mutate(SET, {"n": "Nobody", "t": "x"})
    assert repr(again) == "<MutationResult on main: 0 nodes, 0 edges, no commit>"
    graph.mutate(SET, {"n": "Ann", "t": "x"})
    emptied = graph.mutate('insert Person { name: "Ann" }')
    assert "\nwarning: insert replaced 1 Person and emptied note" in repr(emptied)
    line = '{"type": "Person", "data": {"name": "Ben"}}'
    loaded = graph.load(line, mode="merge", dry_run=True)
    assert repr(loaded) == "<LoadResult on main: 1 node, 0 edges, a dry run>"


def test_a_difference(forked: og.Graph) -> None:
    html = page(forked.diff("main", "dev"))
    assert html.count("1 change<") == 1
    assert f"note: else → {SAFE}" in html
    assert page(forked.diff("main", "main")).endswith(": 0 changes</p>")


def test_a_difference_of_schemas(graph: og.Graph) -> None:
    graph.branches.create("dev")
    graph.apply_schema(SCHEMA + "node Film { title: String @key }", branch="dev")
    diff = graph.diff("main", "dev")
    assert diff.schema._repr_html_() in page(diff)


def test_a_merge_and_its_conflicts(forked: og.Graph) -> None:
    with pytest.raises(errors.MergeConflicts) as caught:
        forked.branches.merge("dev")
    html = page(caught.value)
    assert html.count("<tr>") == 2
    assert f"<td>Person:{SAFE}</td><td>note</td>" in html
    tried = forked.branches.merge("dev", dry_run=True)
    assert repr(tried) == "<MergeResult dev into main: merged (dry run), 1 in conflict>"
    assert caught.value._repr_html_() in page(tried)
    settled = page(forked.branches.merge("dev", resolve="source", dry_run=True))
    assert "<td>node:Person</td>" in settled
    assert "<td>note</td><td>source</td>" in settled
    merged = forked.branches.merge("dev", resolve="target")
    assert merged.commit is not None
    assert repr(merged) == f"<MergeResult dev into main: merged, commit {merged.commit.id}>"
    assert merged.commit.id in page(merged)


def test_a_status(graph: og.Graph) -> None:
    status = graph.status()
    assert repr(status).startswith(f"<GraphStatus {graph.location}: ok, main at ")
    assert repr(status).endswith(f"{status.stored_bytes:,} bytes>")
    html = page(status)
    assert '<td>node:Person</td><td style="text-align: right">2</td>' in html


def test_plans(graph: og.Graph) -> None:
    assert page(graph.plan_schema(SCHEMA + "node Film { title: String @key }"))
    query = f'match {{ $p: Person {{ name: "{EVIL}" }} }} return {{ $p.name }}'
    assert SAFE in page(graph.explain(query))


def test_a_way_is_shown_as_it_is_walked(graph: og.Graph) -> None:
    query = 'match { $a: Person { name: "Ann" }  $a $w:knows{0,2} $b } return { $w }'
    result = graph.query(query)
    assert f"Ann -[Knows]-&gt; {SAFE}" in page(result)
    assert "<td>Ann</td>" in page(result)
    assert f"Ann -[Knows]-> {EVIL}" in repr(result)
    back = "match { $a: Person $a $w:<knows>{1,1} $b } return { $w }"
    assert f"{EVIL} <-[Knows]- Ann" in repr(graph.query(back))
