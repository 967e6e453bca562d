"""Searches without an index, against the model: every function, alone and together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph as og
from tests import profile
from tests.read import search_model as model
from tests.read.model import Data, freeze
from tests.read.search_graph import MODEL, make_search_graph, memo, search_data
from tests.read.search_reading import expected_rows, same_rows
from tests.write.writing import mutate

WORDS = (
    *("fox", "foxes", "Fox", "FOX", "hen", "hens", "red", "ready", "running", "runs", "ran"),
    *("the", "of", "to", "not", "have", "doing", "organization", "interval"),
    *("café", "cafe", "CAFÉ", "naïve", "Straße", "strasse", "ΟΔΟΣ", "οδος", "œuvre", "½", "①"),
    *("中文", "हिन्दी", "Ⓐb", "İstanbul", "x²", "ﬁne", "don't", "snake_case", "e\u0301cole", "C++"),
    *("a" * 39, "a" * 40, "é" * 19, "é" * 20, "7", "007", "🙂"),
)
BETWEEN = (" ", " ", " ", "  ", ", ", "-", "\n", "_", ".", "\u00ad", "\u2028", "'")
TEXTS = (None, "", " ", "...", "the of to", "fox " * 5, "🙂 🙂", "to be or not to be")
VECTORS = (
    *((1.0, 0.0, 0.0), (0.5, 0.5, 0.0), (3.0, 3.0, 0.0), (0.0, 0.25, 1.0), (-1.0, 0.0, 0.5)),
    *((0.0, 0.0, 0.0), (1.0, 2.0, 3.0), (2.0, 4.0, 6.0), (-2.0, 0.0, 0.0), (1e15, 0.0, 1e15)),
)


def phrases(most: int) -> st.SearchStrategy[str]:
    words = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(BETWEEN)), max_size=most)
    return words.map(lambda parts: "".join(word + between for word, between in parts))


texts = st.one_of(st.sampled_from(TEXTS), phrases(8), phrases(8))
queries = st.one_of(phrases(3), phrases(3), st.sampled_from(TEXTS[1:]))
vectors = st.one_of(st.none(), st.sampled_from(VECTORS))


@st.composite
def graphs(draw: st.DrawFn) -> Data:
    codes = [f"m{n}" for n in range(draw(st.integers(1, 12)))]
    memos = [
        memo(
            code,
            draw(texts),
            draw(vectors),
            draw(st.sampled_from([None, 1, 2, 3])),
            body=draw(texts),
        )
        for code in draw(st.permutations(codes))
    ]
    desks = [{"name": name, "motto": draw(texts), "w": draw(vectors)} for name in ("oak", "pine")]
    pairs = st.tuples(st.sampled_from(codes), st.sampled_from(codes))
    laid = st.tuples(st.sampled_from(codes), st.sampled_from(["oak", "pine"]))
    return search_data(
        memos, desks, draw(st.lists(pairs, max_size=14)), draw(st.lists(laid, max_size=8))
    )


# -- queries -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    text: str
    params: dict[str, Any]
    is_ordered: bool


@st.composite
def asked(draw: st.DrawFn) -> Asked:
    """A query over memos and what they cite or lie on."""

    def one_in(times: int) -> bool:
        return draw(st.integers(1, times)) == 1

    other, clause = draw(
        st.sampled_from(
            [
                (None, ""),
                (None, ""),
                ("$e", "$d cites $e"),
                ("$e", "optional { $d cites $e }"),
                ("$e", "$d <cites>{1,2} $e"),
                ("$k", "$d liesOn $k"),
                ("$k", "optional { $d liesOn $k }"),
                (None, "not { $d cites $x search($x.subject, $p) }"),
                (None, "any { $d.n > 1 } or { $d liesOn $x fuzzy($x.motto, $p, 1) }"),
            ]
        )
    )
    fields = ["$d.subject", "$d.body"]
    fields += {"$e": ["$e.subject"], "$k": ["$k.motto"], None: []}[other]
    vector_fields = ["$d.v"] + {"$e": ["$e.v"], "$k": ["$k.w"], None: []}[other]
    clauses = ["$d: Memo", clause] + ["$d.n > 1"] * one_in(4)
    for _ in range(draw(st.integers(0, 2))):
        call = draw(
            st.sampled_from(
                ["search({}, $q)", "match_text({}, $q)", "fuzzy({}, $q)", "fuzzy({}, $q, $edits)"]
            )
        )
        clauses.append(call.format(draw(st.sampled_from(fields))))
    arms = [
        f"nearest({draw(st.sampled_from(vector_fields))}, $v)",
        f"bm25({draw(st.sampled_from(fields))}, $q)",
    ]
    ranking = draw(st.sampled_from([*arms, *arms, "rrf({}, {})", "rrf({}, {}, $k0)"]))
    ranking = ranking.format(*draw(st.permutations(arms)))
    ranks, shows = draw(st.sampled_from([(True, True), (True, False), (False, True), (False,) * 2]))
    columns = ["$d.code as code"] + [f"{other}.@id as o"] * (other is not None)
    columns += ["$d.n as n"] * one_in(2) + [f"{ranking} as s"] * shows
    is_distinct = (shows or not ranks) and one_in(4)
    if is_distinct and other is not None:
        columns.remove("$d.code as code")
    aliases = [column.rpartition(" ")[2] for column in columns]
    keys = [
        f"{key}{draw(st.sampled_from(['', ' desc']))}"
        for key in draw(st.lists(st.sampled_from(aliases), max_size=2, unique=True))
    ]
    if is_distinct and not ranks:
        keys = aliases
    order = [ranking] * ranks + keys
    limit = ""
    if ranks or (keys and one_in(2)):
        limit = f"limit {draw(st.integers(0, 9))}"
        if one_in(3):
            limit += f" offset {draw(st.integers(0, 4))}"
    params = {
        "q": (draw(queries), "String"),
        "p": (draw(queries), "String"),
        "v": (list(draw(st.sampled_from(VECTORS))), "Vector(3)"),
        "edits": (draw(st.integers(0, 3)), "I32"),
        "k0": (draw(st.integers(1, 60)), "I64"),
    }
    declared = ", ".join(f"${name}: {type_}" for name, (_, type_) in params.items())
    text = (
        f"query q({declared}) {{ match {{ {' '.join(clauses)} }} "
        f"return {'distinct ' * is_distinct}{{ {', '.join(columns)} }} "
        + (f"order {{ {', '.join(order)} }} " if order else "")
        + f"{limit} }}"
    )
    return Asked(text, {name: value for name, (value, _) in params.items()}, bool(order))


def check(found: Sequence[dict[str, Any]], data: Data, query: Asked) -> None:
    wanted = expected_rows(MODEL, data, query.text, query.params)
    rows = list(found)
    if not query.is_ordered:
        rows, wanted = (
            sorted(each, key=lambda row: repr(freeze({**row, "s": None})))
            for each in (rows, wanted)
        )
    assert same_rows(rows, wanted), f"{query}\nfound  {rows}\nwanted {wanted}"


@pytest.mark.slow
@profile.dear
@given(data=st.data())
def test_generated_searches(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    before = data.draw(graphs())
    graph = make_search_graph(tmp_path_factory.mktemp("exact") / "graph", before)
    commit = graph.snapshot().commit_id
    graph.branches.create("work")
    branch, now = before.copy(), before.copy()
    _change(data, graph, branch, "work")
    _change(data, graph, now, "main")
    places: list[tuple[Data, dict[str, Any]]] = [
        (now, {}),
        (branch, {"branch": "work"}),
        (before, {"snapshot": commit}),
    ]
    for query in data.draw(st.lists(asked(), min_size=12, max_size=12)):
        for held, options in places:
            found = graph.query(query.text, params=query.params, **options)
            check(found.rows, held, query)


def _change(data: st.DataObject, graph: og.Graph, held: Data, branch: str) -> None:
    """Write some memos anew, add one, and delete one."""
    codes = sorted(held.nodes["Memo"])
    chosen = data.draw(st.lists(st.sampled_from(codes), max_size=3, unique=True))
    written = [memo(code, data.draw(texts), data.draw(vectors)) for code in [*chosen, "new"]]
    graph.load([{"type": "Memo", "data": row} for row in written], mode="merge", branch=branch)
    held.nodes["Memo"] |= {row["code"]: row for row in written}
    gone = data.draw(st.sampled_from(codes))
    mutate(graph, f'delete Memo where code = "{gone}"', branch=branch)
    del held.nodes["Memo"][gone]
    for rows in held.edges.values():
        for id_ in [id_ for id_, row in rows.items() if gone in (row["@src"], row["@dst"])]:
            del rows[id_]


# -- cases that say what the rules are ---------------------------------------------------------


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    memos = [memo(f"t{n}", text) for n, text in enumerate(RULES)]
    return make_search_graph(tmp_path_factory.mktemp("rules") / "graph", search_data(memos))


RULES = (
    "The red fox runs",
    "a fox running to the old hen",
    "Café society in the Straße",
    "organizations have not moved",
    "ΟΔΟΣ",
    "हिन्दी भाषा",
    None,
    "",
    "to have and to have",
    "don't stop",
    "a" * 39 + " " + "b" * 40,
    "fox fox hen",
)


def _matching(graph: og.Graph, call: str, query: str) -> list[int]:
    text = f"query q($q: String) {{ match {{ $d: Memo {call} }} return {{ $d.code }} }}"
    return sorted(int(row["d.code"][1:]) for row in graph.query(text, params={"q": query}).rows)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("FOX", [0, 1, 11]),
        ("run", [0, 1]),
        ("hen fox", [0, 1, 11]),
        ("cafe", [2]),
        ("strasse", []),
        ("straße", [2]),
        ("organization", [3]),
        ("οδοσ", [4]),
        ("Οδος", []),
        ("हिन", [5]),
        ("ह", []),
        ("not", [3]),
        ("to have the", []),
        ("", []),
        ("...", []),
        ("don", [9]),
        ("t", [9]),
        ("a" * 39, [10]),
        ("b" * 40, []),
        ("f*", []),
        ("fox AND cafe", [0, 1, 2, 11]),
    ],
)
def test_search_finds_any_word(graph: og.Graph, query: str, found: list[int]) -> None:
    assert _matching(graph, "search($d.subject, $q)", query) == found
    assert [n for n, text in enumerate(RULES) if model.has_any(text, query)] == found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("red fox", [0]),
        ("fox red", []),
        ("fox hen", [11]),
        ("fox the hen", [11]),
        ("fox fox", [11]),
        ("the fox", [0, 1, 11]),
        ("running to the old", [1]),
        ("running old", []),
        ("running a a old", [1]),
        ("in the", []),
        ("don't stop", [9]),
    ],
)
def test_match_text_finds_the_phrase(graph: og.Graph, query: str, found: list[int]) -> None:
    assert _matching(graph, "match_text($d.subject, $q)", query) == found
    assert [n for n, text in enumerate(RULES) if model.has_phrase(text, query)] == found


@pytest.mark.parametrize(
    ("query", "edits", "found"),
    [
        ("fix", 1, [0, 1, 11]),
        ("fix", 0, []),
        ("foxx", 1, [0, 1, 11]),
        ("ox", 1, [0, 1, 11]),
        ("xof", 1, []),
        ("xof", 2, [0, 1, 3, 9, 11]),
        ("hem old", 0, [1]),
        ("the", 9, []),
    ],
)
def test_fuzzy_finds_near_spellings(
    graph: og.Graph, query: str, edits: int, found: list[int]
) -> None:
    assert _matching(graph, f"fuzzy($d.subject, $q, {edits})", query) == found
    assert [n for n, text in enumerate(RULES) if model.has_near(text, query, edits)] == found


def test_fuzzy_takes_two_edits_unless_told(graph: og.Graph) -> None:
    assert _matching(graph, "fuzzy($d.subject, $q)", "xof") == [0, 1, 3, 9, 11]


def test_search_for_null_finds_nothing(graph: og.Graph) -> None:
    text = "query q($q: String?) { match { $d: Memo search($d.subject, $q) } return { $d.code } }"
    assert graph.query(text, params={"q": None}).rows == []


def test_text_predicates_hold_together(graph: og.Graph) -> None:
    both = 'search($d.subject, "fox") match_text($d.subject, "old hen") fuzzy($d.subject, $q)'
    assert _matching(graph, both, "rums") == [1]


def test_a_search_of_what_is_not_there_yet(tmp_path_factory: pytest.TempPathFactory) -> None:
    empty = make_search_graph(tmp_path_factory.mktemp("empty") / "graph", search_data([]))
    assert _matching(empty, "search($d.subject, $q)", "fox") == []
    ranked = "query q() { match { $d: Memo } return { $d.code } order { %s } limit 3 }"
    for ranking in (
        "nearest($d.v, [1.0, 0.0, 0.0])",
        'bm25($d.subject, "fox")',
        'rrf(nearest($d.v, [1.0, 0.0, 0.0]), bm25($d.subject, "fox"))',
    ):
        assert empty.query(ranked % ranking).rows == []
