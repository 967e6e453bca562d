"""What a search refuses, and how it says so."""

from __future__ import annotations

from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import EmbeddingError, OmniGraphError, ParamError, TypeCheckError

SCHEMA = """\
node Memo {
    code: String @key
    subject: String?
    tags: [String]?
    v: Vector(3)?
    meaning: Vector(64)? @embed(subject)
    pinned: Vector(64)? @embed(subject, model="other-model")
}
edge Cites: Memo -> Memo { note: String? }
"""
RANKED = "query q(%s) { match { $d: Memo } return { $d.code } order { %s } limit %s }"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    made = og.init(tmp_path_factory.mktemp("errors") / "graph", SCHEMA)
    zeros = [0.0] * 64
    made.load(
        [
            {"type": "Memo", "data": {"code": code, "subject": text, "v": v, "pinned": zeros}}
            for code, text, v in (
                ("a", "storms at sea", [1.0, 0.0, 0.0]),
                ("b", "recipes for bread and butter", [0.0, 1.0, 0.0]),
            )
        ],
        mode="append",
    )
    return made


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMNIGRAPH_EMBED_PROVIDER", raising=False)
    monkeypatch.delenv("OMNIGRAPH_EMBED_MODEL", raising=False)


def refused(graph: og.Graph, text: str, params: dict[str, Any] | None = None) -> OmniGraphError:
    with pytest.raises(OmniGraphError) as found:
        graph.query(text, params=params or {})
    return found.value


# -- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", [[1.0], [], [1.0] * 4])
def test_a_vector_of_another_dimension(graph: og.Graph, vector: list[float]) -> None:
    text = RANKED % ("$v: Vector(3)", "nearest($d.v, $v)", 2)
    error = refused(graph, text, {"v": vector})
    assert isinstance(error, ParamError)
    assert str(error).startswith("param 'v': ")
    assert "3" in str(error)


@pytest.mark.parametrize(
    ("declared", "ranking"),
    [
        ("$q: Vector(3)?", "nearest($d.v, $q)"),
        ("$q: String?", "nearest($d.meaning, $q)"),
        ("$q: String?", "bm25($d.subject, $q)"),
        ("$q: String?", "rrf(nearest($d.v, [1.0, 0.0, 0.0]), bm25($d.subject, $q))"),
    ],
)
def test_nothing_to_search_for(graph: og.Graph, declared: str, ranking: str) -> None:
    error = refused(graph, RANKED % (declared, ranking, 2), {"q": None})
    assert isinstance(error, ParamError)
    assert "param 'q'" in str(error)
    assert error.details["param"] == "q"


@pytest.mark.parametrize("k", [0, -3, None])
def test_the_constant_of_a_fusion_is_positive(graph: og.Graph, k: int | None) -> None:
    ranking = 'rrf(nearest($d.v, [1.0, 0.0, 0.0]), bm25($d.subject, "sea"), $k)'
    error = refused(graph, RANKED % ("$k: I64?", ranking, 2), {"k": k})
    assert isinstance(error, ParamError)
    assert "param 'k'" in str(error)
    assert "positive integer" in str(error)
    assert error.details["param"] == "k"


@pytest.mark.parametrize("limit", [-1, None])
def test_the_limit_of_a_ranking(graph: og.Graph, limit: int | None) -> None:
    text = RANKED % ("$n: I64?", "nearest($d.v, [1.0, 0.0, 0.0])", "$n")
    assert isinstance(refused(graph, text, {"n": limit}), ParamError)


# -- texts that become vectors ---------------------------------------------------------------------


def test_a_text_is_embedded_when_the_query_runs(graph: og.Graph) -> None:
    text = RANKED % ("$q: String", "nearest($d.meaning, $q)", 1)
    for query, code in (("bad weather on the ocean", "a"), ("baking a cake", "b")):
        assert graph.query(text, params={"q": query}).rows == [{"d.code": code}]


def test_another_model_than_the_vectors_are_made_with(graph: og.Graph) -> None:
    error = refused(graph, RANKED % ("", 'nearest($d.pinned, "sea")', 1))
    assert isinstance(error, EmbeddingError)
    assert "Memo.pinned" in str(error)
    assert "other-model" in str(error)
    assert error.details["expected"] == "other-model"


def test_the_right_model_will_do(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "other-model")
    assert len(graph.query(RANKED % ("", 'nearest($d.pinned, "sea")', 5)).rows) == 2


def test_a_dimension_that_the_local_provider_lacks(graph: og.Graph) -> None:
    error = refused(graph, RANKED % ("", 'nearest($d.v, "sea")', 1))
    assert isinstance(error, EmbeddingError)
    assert "OMNIGRAPH_EMBED_PROVIDER" in str(error)


def test_a_vector_needs_no_provider(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "nobody-knows-it")
    text = RANKED % ("", "nearest($d.v, [1.0, 0.0, 0.0])", 1)
    assert graph.query(text).rows == [{"d.code": "a"}]
    assert isinstance(refused(graph, RANKED % ("", 'nearest($d.v, "sea")', 1)), OmniGraphError)


# -- before anything runs --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "clauses", "order"),
    [
        ("T15", "", "nearest($d.v, [1.0, 0.0])"),
        ("T15", "", "nearest($d.subject, [1.0, 0.0, 0.0])"),
        ("T15", "", "nearest($x.v, [1.0, 0.0, 0.0])"),
        ("T19", 'search($d.tags, "x")', "$d.code"),
        ("T19", "search($d.subject, 3)", "$d.code"),
        ("T19", 'fuzzy($d.subject, "x", 1.5)', "$d.code"),
        ("T20", 'match_text($d.v, "x")', "$d.code"),
        ("T20", "", 'bm25($d.tags, "x")'),
        ("T21", "", 'rrf(nearest($d.v, [1.0, 0.0, 0.0]), bm25($d.subject, "x"), 0)'),
        ("T23", '$d $w:cites $e search($w.note, "x")', "$d.code"),
    ],
)
def test_misuse_is_found_when_a_query_is_checked(
    graph: og.Graph, code: str, clauses: str, order: str
) -> None:
    matched = f"match {{ $d: Memo {clauses} }} return {{ $d.code }}"
    text = f"query q() {{ {matched} order {{ {order} }} limit 1 }}"
    error = refused(graph, text)
    assert isinstance(error, TypeCheckError)
    assert f"[{code}]" in str(error)


@pytest.mark.parametrize(
    ("code", "ranking"),
    [
        ("T17", "nearest($d.v, [1.0, 0.0, 0.0])"),
        ("T21", 'rrf(nearest($d.v, [1.0, 0.0, 0.0]), bm25($d.subject, "x"))'),
    ],
)
def test_a_ranking_without_a_limit(graph: og.Graph, code: str, ranking: str) -> None:
    text = f"query q() {{ match {{ $d: Memo }} return {{ $d.code }} order {{ {ranking} }} }}"
    assert f"[{code}]" in str(refused(graph, text))


def test_fewer_than_no_edits(graph: og.Graph) -> None:
    text = "query q($n: I32) { match { $d: Memo fuzzy($d.subject, 'x', $n) } return { $d.code } }"
    error = refused(graph, text.replace("'", '"'), {"n": -1})
    assert isinstance(error, ParamError)
    assert "the number of edits is 0 or more, found -1" in str(error)


@pytest.mark.parametrize("component", [1e39, -1e300, 10**39, 3.4028235677973366e38])
def test_a_component_beyond_32_bits_is_refused(graph: og.Graph, component: float) -> None:
    text = RANKED % ("$q: Vector(3)", "nearest($d.v, $q)", "2")
    error = refused(graph, text, {"q": [component, 0.5, 1.0]})
    assert isinstance(error, ParamError)
    assert "out of range for F32" in str(error)


def test_a_literal_component_beyond_32_bits_is_refused(graph: og.Graph) -> None:
    text = RANKED % ("", f"nearest($d.v, [1{'0' * 40}.0, 0.0, 0.0])", "2")
    error = refused(graph, text)
    assert isinstance(error, TypeCheckError)
    assert error.code == "T15"
