"""Indexes under another schema: kept and used where columns stay, told where they do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.read.plan import planner
from omnigraph.read.search import vectors, words
from omnigraph.storage.indexes.table_indexes import indexes_of
from omnigraph.storage.tables.table import Table, TablePin
from omnigraph.write.publish.staging import stamp
from tests.evolve.evolving import ask, edge, make, node, run
from tests.table_indexing import create_index
from tests.write.writing import maintain, table_of

SCHEMA = """\
node Memo {
    code: String @key
    n: I32? @index
    subject: String? @index
    v: Vector(3)? @index
}

edge Cites: Memo -> Memo
"""
RENAMED = """\
node Note @rename_from("Memo") {
    code: String @key
    number: I32? @index @rename_from("n")
    title: String? @index @rename_from("subject")
    w: Vector(3)? @index @rename_from("v")
}

edge Links: Note -> Note @rename_from("Cites")
"""
RANKED = (
    "query q() {{ match {{ $d: {0} }} return {{ $d.code }} "
    'order {{ rrf(nearest($d.{1}, [1.0, 0.0, 0.0]), bm25($d.{2}, "red fox")) }} limit 3 }}'
)
LINKED = 'query q() {{ match {{ $a: {0} {{ code: "m003" }} $a {1} $b }} return {{ $b.code }} }}'
MEMOS = 100


@pytest.fixture(autouse=True)
def through_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every table for a large one."""
    monkeypatch.setattr(vectors, "DIRECT", 0)
    monkeypatch.setattr(words, "ANALYZED", 0)
    monkeypatch.setattr(planner, "MANY_EDGES", 0)


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    texts = ("red fox", "blue fox", "red hen", None)
    memos = [
        node("Memo", code=f"m{n:03}", n=n, subject=texts[n % 4], v=[n % 7, n % 11, 1])
        for n in range(MEMOS)
    ]
    links = [edge("Cites", f"m{n:03}", f"m{n + 1:03}") for n in range(MEMOS - 1)]
    graph = make(tmp_path / "graph", SCHEMA, [*memos, *links])
    graph.ensure_indices()

    def work(key: str, table: Table, commit: PendingCommit) -> TablePin:
        if key != "node:Memo":
            return table.pin
        return create_index(table, "v", "IVF_FLAT", stamp=stamp(commit.id, "i", "maintenance"))

    assert maintain(graph, "main", work)
    return graph


def states(graph: og.Graph) -> dict[tuple[str, str | None], str]:
    return {(one.property, one.kind): one.state for one in graph.index_status().indexes}


def ranked_by(graph: og.Graph, *names: str) -> tuple[list[str], list[dict[str, Any]]]:
    """How a ranking was answered, and the answer."""
    told = graph.explain(RANKED.format(*names), analyze=True).to_json()["operators"]
    way = next(found["ranked_by"] for found in told if found["operator"] == "rank")
    return way, list(graph.query(RANKED.format(*names)).rows)


def expanded_by(graph: og.Graph, *names: str) -> tuple[list[Any], list[dict[str, Any]]]:
    """How edges were followed, and where they lead."""
    told = graph.explain(LINKED.format(*names), analyze=True).to_json()["operators"]
    hops = [found["hops"] for found in told if found["operator"] == "expand"]
    return hops, list(graph.query(LINKED.format(*names)).rows)


def test_a_rename_keeps_every_index_and_uses_it(graph: og.Graph) -> None:
    before = [(one.name, one.kind, one.covered) for one in indexes_of(table_of(graph, "node:Memo"))]
    ways, rows = ranked_by(graph, "Memo", "v", "subject")
    assert ways == ["vector index", "text index"]
    expanded, ends = expanded_by(graph, "Memo", "cites")
    assert expanded == [[{"sources": 1, "expansion": "indexed"}]]
    graph.apply_schema(RENAMED)
    table = table_of(graph, "node:Note")
    assert [(one.name, one.kind, one.covered) for one in indexes_of(table)] == before
    assert ranked_by(graph, "Note", "w", "title") == (ways, rows)
    assert expanded_by(graph, "Note", "links") == (expanded, ends)
    assert set(states(graph).values()) == {"complete"}
    assert graph.ensure_indices().commit_id is None
    plan = str(table.dataset().scanner(filter="n = 3").explain_plan())
    assert "ScalarIndexQuery" in plan
    assert ask(graph, "$d: Note $d.number = 3", "$d.code") == [{"d.code": "m003"}]
    run(graph, 'insert Note { code: "new", title: "red fox", w: [1.0, 0.0, 0.0], number: 3 }')
    assert ask(graph, "$d: Note $d.number = 3", "$d.code")[-1] == {"d.code": "new"}
    assert {"d.code": "new"} in ranked_by(graph, "Note", "w", "title")[1]


def test_an_index_of_a_former_column_is_told_and_another_is_wanted(graph: og.Graph) -> None:
    graph.apply_schema(SCHEMA.replace("n: I32?", "n: I64?").replace("String? @index", "String?"))
    told = {
        (one.property, one.kind, one.state, one.rows_covered)
        for one in graph.index_status().indexes
        if one.property in ("n", "subject")
    }
    assert told == {
        ("n", "BTREE", "pending", 0),
        ("n", "BTREE", "unasked", MEMOS),
        ("subject", "BTREE", "unasked", MEMOS),
        ("subject", "INVERTED", "unasked", MEMOS),
    }
    assert ask(graph, "$d: Memo $d.n = 3", "$d.code") == [{"d.code": "m003"}]
    graph.ensure_indices()
    states_of_n = [o.state for o in graph.index_status().indexes if o.property == "n"]
    assert sorted(states_of_n) == ["complete", "unasked"]
    run(graph, "update Memo set { n: 5000000000 } where n = 3")
    assert ask(graph, "$d: Memo $d.n > 100", "$d.code") == [{"d.code": "m003"}]
    assert ask(graph, "$d: Memo $d.n = 3", "$d.code") == []


def test_a_column_more_leaves_the_indexes_whole(graph: og.Graph) -> None:
    graph.apply_schema(SCHEMA.replace("n: I32?", "rank: I32 @default(1) note: String?  n: I32?"))
    assert set(states(graph).values()) == {"complete"}
    ways, _ = ranked_by(graph, "Memo", "v", "subject")
    assert ways == ["vector index", "text index"]
    run(graph, 'update Memo set { subject: "red fox red fox", rank: 2 } where n = 7')
    found = ask(graph, '$d: Memo search($d.subject, "fox")', "$d.code", "$d.rank")
    assert {"d.code": "m007", "d.rank": 2} in found


def test_edges_with_a_key_need_their_ids_indexed_again(graph: og.Graph) -> None:
    graph.apply_schema(SCHEMA.replace("Memo -> Memo", "Memo -> Memo { @key(src, dst) }"))
    assert expanded_by(graph, "Memo", "cites")[1] == [{"b.code": "m004"}]
    graph.ensure_indices()
    assert set(states(graph).values()) == {"complete", "none"}
    assert expanded_by(graph, "Memo", "cites")[1] == [{"b.code": "m004"}]
