"""A restricted actor meets the graph from which the hidden things were deleted, and no other."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from random import Random

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.graph import Session
from omnigraph.lang.schema.syntax.format import format_schema
from omnigraph.lang.source import Source
from omnigraph.policy import parse_policy
from omnigraph.read.access import entities
from tests import profile
from tests.policy.limited_graphs import ACTOR, deleted, draw_limits, policy_of
from tests.read.differential import Place, check
from tests.read.generate_graphs import change, draw_data, draw_schema, envelopes, schema_text
from tests.read.generate_queries import Generator
from tests.read.model import Schema
from tests.read.query_ast import Query, query_text

QUERIES = 15


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(profile.CHOSEN.seeds // 2))
def test_generated_queries_meet_nothing_hidden(
    seed: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    rng = Random(seed)  # noqa: S311 - for tests, not for secrets
    if seed % 2:
        monkeypatch.setattr(entities, "MANY", -1)
        monkeypatch.setattr(entities, "SMALL_TABLE", -1)
        monkeypatch.setattr(entities, "ROW_BYTES", 4)
    record_property("answers compared", compare_all(rng, tmp_path, QUERIES))


@pytest.mark.parametrize("seed", [2001, 2002])
def test_a_few_generated_queries_meet_nothing_hidden(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)  # noqa: S311 - as above
    assert compare_all(rng, tmp_path, 6) > 20


def compare_all(rng: Random, root: Path, queries: int) -> int:
    """Compare answers, failures, schema, export, diff and feed; says how many answers."""
    schema = draw_schema(rng)
    before = draw_data(rng, schema)
    limits = draw_limits(rng, schema, before)
    graph = og.init(root / "whole", schema_text(schema))
    graph.load(envelopes(schema, before), mode="append")
    first = graph.snapshot().commit_id
    now = before.copy()
    change(rng, schema, now, graph, "main")

    narrow, was = deleted(schema, before, limits)
    _, data = deleted(schema, now, limits)
    small = og.init(root / "small", schema_text(narrow))
    small.load(envelopes(narrow, was), mode="append")
    small_first = small.snapshot().commit_id
    small.load(envelopes(narrow, data), mode="overwrite")
    for name in [*narrow.nodes, *narrow.edges]:
        rows = (data.nodes if name in narrow.nodes else data.edges)[name]
        if not rows:
            _delete_all(small, narrow, name)

    session = graph.as_actor(ACTOR, policy_of(limits))
    place = Place("what is shown", session, narrow, data)  # type: ignore[arg-type]
    old = Place("what was shown", session, narrow, was, snapshot=first)  # type: ignore[arg-type]
    compared = 0
    for _ in range(queries):
        query = _drawn(rng, narrow)
        if query is not None:
            compared += check(place, query, "auto", "indexed")
            compared += check(old, query, "csr")
        unaware = _drawn(rng, schema)
        if unaware is not None:
            compared += _fail_alike(session, small, query_text(unaware))
    assert session.schema == format_schema(Source(small.schema))
    assert list(session.export()) == list(small.export())
    assert list(session.changes.baseline())[:-1] == list(small.export())
    _differ_alike(session, small, first, small_first)
    return compared


def _drawn(rng: Random, schema: Schema) -> Query | None:
    """A query; None where there is too little to ask about."""
    try:
        return Generator(rng, schema).query()
    except IndexError:
        return None


def _delete_all(graph: og.Graph, schema: Schema, name: str) -> None:
    if graph.snapshot().tables.get(f"node:{name}") or name in schema.edges:
        graph.mutate(f'query d() {{ delete {name} where @id != "" }}')


def _fail_alike(session: Session, small: og.Graph, text: str) -> int:
    """A query that was made for the whole graph says the same of both, or fails the same way."""
    said: list[object] = []
    for asked in (session, small):
        try:
            compiled = asked.lint(text)
            said.append([str(one.summary) for one in compiled.diagnostics])
            asked.query(text)
        except errors.OmniGraphError as error:
            said.append((type(error), error.code, error.message, error.details))
    assert said[: len(said) // 2] == said[len(said) // 2 :], text
    return 1


def _differ_alike(session: Session, small: og.Graph, first: str, small_first: str) -> None:
    """What is different since the first commit is what is different in the smaller graph."""

    def changed(graph: Session, commit: str) -> list[tuple[object, ...]]:
        found = graph.diff(commit, "main")
        return [(one.kind, one.type.name, one.id, one.op, one.before, one.after) for one in found]

    assert changed(session, first) == changed(small, small_first)
    assert session.diff(first, "main").stats == small.diff(small_first, "main").stats
    seen = {
        (change.type.name, change.id)
        for block in session.changes.poll(start=f"after:{first}").blocks
        for change in block.changes
    }
    assert {(type_, id_) for _, type_, id_, *_rest in changed(session, first)} <= seen


# -- searching ---------------------------------------------------------------------------------

CORPUS = """
node Team { name: String @key }
node Note {
    name: String @key team: String text: String? @index v: Vector(2)? secret: String? @index
}
edge Of: Note -> Team { why: String? }
"""
WORDS = ("graph", "lake", "river", "stone", "graphs", "lakes", "of", "the")
NOTE = "match {{ $n: Note }} return {{ $n.name as n"
SEARCHES = (
    'match {{ $n: Note search($n.text, "{a} {b}") }} return {{ $n.name as n }}',
    'match {{ $n: Note match_text($n.text, "{a} {b}") }} return {{ $n.name as n }}',
    'match {{ $n: Note fuzzy($n.text, "{a}", 1) }} return {{ $n.name as n }}',
    NOTE + ', bm25($n.text, "{a} {b}") as s }} order {{ bm25($n.text, "{a} {b}") desc }} limit 7',
    NOTE + ", nearest($n.v, [{x}, 1.0]) as d }} order {{ nearest($n.v, [{x}, 1.0]) }} limit 6",
    NOTE + ' }} order {{ rrf(nearest($n.v, [{x}, 1.0]), bm25($n.text, "{a}")) desc }} limit 9',
    'match {{ $n: Note search($n.text, "{a}") $n of $t }} return {{ $t.name as t, count($n) as c }}',  # noqa: E501 - one query
    'match {{ $t: Team not {{ $n of $t search($n.text, "{a}") }} }} return {{ $t.name as t }}',
    'match {{ $n: Note search($n.secret, "{a}") }} return {{ $n.name as n }}',
    NOTE + ' }} order {{ bm25($n.secret, "{a}") desc }} limit 3',
)


def test_searches_rank_as_if_the_hidden_was_deleted(tmp_path: Path) -> None:
    rng = Random(7)  # noqa: S311 - as above
    teams = ("red", "blue", "green")
    notes = [
        {
            "name": f"n{number:02}",
            "team": teams[number % 3],
            "text": " ".join(rng.choices(WORDS, k=rng.randint(1, 9))),
            "v": [rng.choice((-1.0, 0.5, 2.0)), float(number % 5)],
        }
        for number in range(60)
    ]
    small_schema = CORPUS.replace("secret: String? @index", "").replace("why: String?", "")
    graphs = []
    for name, schema, shown in (
        ("whole", CORPUS, teams),
        ("small", small_schema.replace("{  }", ""), ("red", "green")),
    ):
        graph = og.init(tmp_path / name, schema)
        lines: list[object] = [{"type": "Team", "data": {"name": one}} for one in teams]
        for note in notes:
            if note["team"] in shown:
                more = {"secret": note["text"]} if name == "whole" else {}
                lines.append({"type": "Note", "data": note | more})
                lines.append({"edge": "Of", "from": note["name"], "to": note["team"], "data": {}})
        graph.load(lines, mode="append")
        graph.ensure_indices()
        graphs.append(graph)
    whole, small = graphs
    policy = parse_policy(
        """
version: 1
groups: {readers: [ann]}
rules:
  - id: red
    allow: {actors: {group: readers}, actions: [read], hide: {Note: [secret], Of: [why]},
            rows: {Note: 'team = "red"'}}
  - id: green
    allow: {actors: {group: readers}, actions: [read], hide: {Note: [secret, text], Of: [why]},
            rows: {Note: 'team = "green"'}}
"""
    )
    session = whole.as_actor("ann", policy)
    compared = 0
    for pattern in SEARCHES:
        for _ in range(8):
            a, b = rng.sample(WORDS, 2)
            text = "query q() { " + pattern.format(a=a, b=b, x=rng.choice((0.5, 2.0))) + " }"
            said: list[object] = []
            for asked in (session, small):
                try:
                    said.append(asked.query(text).rows)
                except errors.OmniGraphError as error:
                    said.append([type(error), error.code, error.message])
            assert said[0] == said[1], text
            compared += 1
    assert compared == 80


def test_nothing_hidden_is_named_anywhere(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "whole", CORPUS)
    graph.load([{"type": "Note", "data": {"name": "n1", "team": "red"}}], mode="append")
    policy = parse_policy(
        """
version: 1
groups: {readers: [ann]}
rules:
  - id: r
    allow: {actors: {group: readers}, actions: [read, export], types: [Note],
            hide: {Note: [secret, team]}, rows: {Note: 'team = "blue"'}}
"""
    )
    session = graph.as_actor("ann", policy)
    query = "query q() { match { $n: Note } return { $n.name as n, count($n) as c } }"
    shown = [
        session.schema,
        repr(asdict(session.catalog)),
        session.catalog._repr_html_(),
        session._repr_html_(),
        repr(list(session.to_networkx().nodes(data=True))),
        repr(dict(session.snapshot().tables)),
        repr([asdict(commit) for commit in session.commits.list()]),
        repr(asdict(session.commits.get(graph.snapshot().commit_id))),
        session.commits.list()._repr_html_(),  # type: ignore[attr-defined]
        str(session.explain(query)),
        str(session.explain(query, analyze=True)),
        repr(list(session.export())),
        repr(session.lint(query.replace("$n.name", "$n.secrets"))),
        repr(session.plan_schema("node Note { name: String @key }").steps),
    ]
    for text in shown:
        assert not re.search(r"(?i)secret(?!s)|team|blue|n1\b", text), text
    for call in (
        lambda: session.table("Note"),
        session.snapshot().tables["node:Note"].pinned.dataset,
        session.status,
        session.index_status,
        session.schema_log,
        lambda: session.to_spark("Note"),
        lambda: session.export(tmp_path / "out/", format="parquet"),
        session.recoveries,
    ):
        with pytest.raises(errors.PolicyDenied):
            call()
    with pytest.raises(errors.NotFound):
        session.table("Team")
    with pytest.raises(errors.NotFound, match="there is no type Team"):
        session.diff("main", "main", types="Team")


def test_a_blob_is_read_where_its_row_is_shown(tmp_path: Path) -> None:
    graph = og.init(
        tmp_path / "whole",
        "node File { name: String @key team: String content: Blob? thumb: Blob? }",
    )
    graph.load(
        [
            {"type": "File", "data": {"name": team, "team": team, "content": "base64:aGk="}}
            for team in ("red", "blue")
        ],
        mode="append",
    )
    policy = parse_policy(
        """
version: 1
groups: {readers: [ann]}
rules:
  - id: r
    allow: {actors: {group: readers}, actions: [read, export], hide: {File: [thumb]},
            rows: {File: 'team = "red"'}}
"""
    )
    session = graph.as_actor("ann", policy)
    found = session.blob("node", "File", "red", "content")
    assert (found.read(), found.etag) == (b"hi", graph.blob("node", "File", "red", "content").etag)
    said = []
    for id_ in ("blue", "none"):
        with pytest.raises(errors.NotFound) as refused:
            session.blob("node", "File", id_, "content")
        said.append(refused.value.message.replace(id_, "it"))
    assert said[0] == said[1]
    with pytest.raises(errors.OmniGraphError, match="thumb") as hidden:
        session.blob("node", "File", "red", "thumb")
    with pytest.raises(type(hidden.value)) as unknown:
        session.blob("node", "File", "red", "nothing")
    told = [one.value.message.partition(":")[0] for one in (hidden, unknown)]
    assert told[0].replace("thumb", "nothing") == told[1]
    assert list(session.export()) == [line for line in graph_lines(graph) if '"red"' in line]


def graph_lines(graph: og.Graph) -> list[str]:
    """The lines of an export without what is hidden from the reader of files."""
    return [re.sub(r',"thumb":null', "", line) for line in graph.export()]


def test_no_figure_tells_a_hidden_row_from_none(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "whole", CORPUS)
    notes = [{"name": f"n{number}", "team": "blue", "text": "long " * 50} for number in range(40)]
    notes.append({"name": "mine", "team": "red"})
    graph.load([{"type": "Note", "data": note} for note in notes], mode="append")
    policy = parse_policy(
        """
version: 1
groups: {readers: [ann]}
rules:
  - id: r
    allow: {actors: {group: readers}, actions: [read], rows: {Note: 'team = "red"'}}
"""
    )
    session = graph.as_actor("ann", policy)
    text = "query q($n: String) { match { $x: Note { name: $n } } return { $x.text as t } }"
    said = []
    for name in ("n7", "nobody"):
        found = session.explain(text, params={"n": name}, analyze=True)
        said.append(re.sub(r"[\d.]+ ms", "", str(found)))
        assert found.to_json()["total"]["requests"] is None
        assert session.query(ALL_NOTES, max_bytes=1).rows == [{"n": "mine"}]
    assert said[0] == said[1]
    assert "request" not in said[0]


ALL_NOTES = "query q() { match { $x: Note } return { $x.name as n } }"


def test_of_a_network_those_rows_are_there_that_are_shown(tmp_path: Path) -> None:
    schema = """\
node Note { name: String @key team: String secret: String? }
node Team { name: String @key }
edge About: Note -> Note { secret: String? }
edge Of: Note -> Team
"""
    graph = og.init(tmp_path / "whole", schema)
    notes = [("r1", "red"), ("b1", "blue"), ("b2", "blue")]
    graph.load(
        [
            *({"type": "Note", "data": {"name": name, "team": team}} for name, team in notes),
            {"type": "Team", "data": {"name": "red"}},
            {"edge": "About", "from": "r1", "to": "b1"},
            {"edge": "About", "from": "b1", "to": "b2", "data": {"id": "a2", "secret": "s"}},
            {"edge": "Of", "from": "b1", "to": "red"},
        ],
        mode="append",
    )
    policy = parse_policy(
        """
version: 1
groups: {readers: [ann]}
rules:
  - id: r
    allow: {actors: {group: readers}, actions: [read], types: [Note, About],
            hide: {Note: [secret], About: [secret]}, rows: {Note: 'team = "blue"'}}
"""
    )
    session = graph.as_actor("ann", policy)
    network = session.to_networkx()
    assert set(network.nodes) == {"b1", "b2"}
    assert list(network.edges(data=True)) == [("b1", "b2", {"@type": "About", "@id": "a2"})]
    with pytest.raises(errors.NotFound, match="no type here has a property secret"):
        session.to_networkx(properties=["secret"])
    page = session._repr_html_()
    assert "About" in page
    assert not re.search("secret|Team|red|<td>", page.replace(str(graph.location), ""))
