"""Products of variables that nothing connects: in pieces, the same rows, no more than needed."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph.errors import ResourceLimit
from omnigraph.read.execute import operators, products

SCHEMA = (
    "node N { name: String @key  v: I32? }\nnode M { name: String @key  w: F64 }\nedge E: N -> M\n"
)
N, M = 130, 90
# A part of what a product of three or four of them takes.
LITTLE = 200 << 20

QUERIES = [
    "$a: N $b: M } return { $a.name as a, $b.name as b }",
    "$b: M $a: N } return { $a.name as a, $b.name as b } limit 40 offset 15",
    "$b: M $a: N } return { $a.name as a, $b.name as b } order { $b.w desc } limit 30",
    "$b: M $a: N $a.v < 3 } return { $a.v as a, $b.w as b } order { b asc, a desc } limit 9",
    "$c: N $a: N $a e $b } return { $a.name as a, $b.name as b, $c.name as c } limit 25",
    "$c: M $b: N $b e $a } return { $a.name as a, $b.name as b, $c.name as c } limit 25 offset 7",
    "$a: N $b: M not { $a e $b } } return { $a.name as a, $b.name as b } limit 25",
    "$a: N $b: M optional { $a e $c $c.w > 5.0 } } return { $a.v as a, $c.w as c } limit 60",
    "$a: N $b: M } return { $a.v as v, count($b) as n }",
    "$a: N $b: M } return distinct { $a.v as v, $b.w as w } order { v asc } limit 5",
    "$a: N $b: M $a.v > $b.w } return { $a.name as a, $b.name as b }",
    "$a: N $b: M } return { $a.name as a, $b.name as b } limit 0",
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    made = og.init(tmp_path_factory.mktemp("products") / "graph", SCHEMA)
    made.load(
        [
            *({"type": "N", "data": {"name": f"n{n}", "v": n % 11 or None}} for n in range(N)),
            *({"type": "M", "data": {"name": f"m{n}", "w": n % 13}} for n in range(M)),
            *({"edge": "E", "from": f"n{n}", "to": f"m{n * 7 % M}"} for n in range(N)),
        ],
        mode="append",
    )
    return made


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("piece", [1, 50, 1_000])
def test_pieces_change_nothing(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch, text: str, piece: int
) -> None:
    query = f"query q() {{ match {{ {text} }}"
    whole = graph.query(query).rows
    for module in (operators, products):
        monkeypatch.setattr(module, "PIECE", piece)
    assert graph.query(query).rows == whole


@pytest.mark.parametrize("names", ["abcd", "dcba", "cadb"])
def test_a_limit_needs_a_few_rows_only(graph: og.Graph, names: str) -> None:
    """A product of 286 million rows, of which three are wanted; by name, they are the first."""
    match = " ".join(f"${name}: N" for name in names)
    shown = ", ".join(f"${name}.name as {name}" for name in "abcd")
    text = f"query q() {{ match {{ {match} }} return {{ {shown} }} limit 3 offset 129 }}"
    found = graph.query(text, max_bytes=LITTLE).rows
    ids = [
        row["name"]
        for row in graph.query(
            "query q() { match { $a: N } return { $a.name as name } limit 200 }"
        ).rows
    ]
    first, second = ids[0], ids[1]
    assert [tuple(row.values()) for row in found] == [
        (first, first, first, ids[129]),
        (first, first, second, first),
        (first, first, second, second),
    ]


def test_an_order_under_a_limit_is_made_in_pieces(graph: og.Graph) -> None:
    text = (
        "query q() { match { $a: N $b: M $c: N } "
        "return { $a.name as a, $c.name as c, $b.w as w } order { $b.w desc } limit 4 }"
    )
    found = graph.query(text, max_bytes=100 << 20).rows
    assert [row["w"] for row in found] == [12.0] * 4


def test_what_cannot_fit_is_refused_before_it_is_made(graph: og.Graph) -> None:
    """Nothing but products follows the first one: what they take is known."""
    match = " ".join(f"${name}: N" for name in "abcde")
    text = f"query q() {{ match {{ {match} }} return {{ count($a) as n }} }}"
    with pytest.raises(ResourceLimit, match=r"`scan \$c: N`") as refused:
        graph.query(text, max_bytes=LITTLE)
    assert refused.value.details["actual"] == N**5 * 5 * 8
    assert refused.value.details["operator"] == "scan $c: N"


def test_explain_tells_each_operator_once(graph: og.Graph) -> None:
    text = (
        "query q() { match { $a: N $b: N $c: N $a.v < $c.v } "
        "return { $a.name } order { $c.v asc } limit 2 }"
    )
    shown = graph.explain(text, analyze=True)
    names = [operator.name for operator in shown.operators]
    assert names == ["scan", "scan", "scan", "filter", "order", "project"]
