"""Input of every sort, broken in every way: rows, or an error of ours."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.errors import OmniGraphError
from omnigraph.lang.types import Scalar, ValueType
from omnigraph.write.load.columns.csv_cells import misfit_text, parse_texts
from tests import fuzzing
from tests.profile import costly

SCHEMA = """\
node Thing {
    name: String @key
    flag: Bool?
    small: I32?
    large: U64?
    half: F32?
    day: Date?
    moment: DateTime?
    kind: enum(a, b)?
    words: [String]?
    numbers: [F32]?
    at: Vector(2)?
    data: Blob?
    @range(small, 0..9)
    @check(name, "^.{0,40}$")
}
edge Near: Thing -> Thing { weight: F64? }
"""
PROPERTIES = ("name", "flag", "small", "large", "half", "day", "moment", "kind", "words", "numbers",
              "at", "data", "id", "other")  # fmt: skip
SOUND = b"\n".join(
    map(
        fuzzing.line,
        [
            {"type": "Thing", "data": {"name": "a", "small": 3, "words": ["x"], "at": [1, 2.5]}},
            {"type": "Thing", "data": {"name": "b", "day": "2024-01-31", "half": 0.1, "kind": "a"}},
            {"edge": "Near", "from": "a", "to": "b", "data": {"weight": 1e3}},
        ],
    )
)
KINDS = [ValueType(scalar) for scalar in Scalar if scalar is not Scalar.VECTOR]
KINDS += [ValueType(kind.scalar, is_list=True) for kind in KINDS if kind.scalar is not Scalar.BLOB]
KINDS += [ValueType(Scalar.VECTOR, dimension=2)]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    return og.init(tmp_path_factory.mktemp("fuzzed") / "graph", SCHEMA)


@costly
@given(fuzzing.broken(SOUND))
def test_broken_lines(graph: og.Graph, data: bytes) -> None:
    with fuzzing.only_our_errors():
        graph.load(data, mode="merge")


@costly
@given(
    st.lists(
        st.dictionaries(st.sampled_from(PROPERTIES), fuzzing.JSON_VALUES, max_size=4), max_size=3
    )
)
def test_lines_of_any_values(graph: og.Graph, rows: list[dict[str, Any]]) -> None:
    lines = [fuzzing.line({"type": "Thing", "data": {"name": "a"} | row}) for row in rows]
    with fuzzing.only_our_errors():
        graph.load(b"\n".join(lines), mode="merge")


@costly
@given(
    st.lists(
        fuzzing.VALUES
        | st.fixed_dictionaries(
            {"type": st.just("Thing")},
            optional={
                "data": st.dictionaries(st.sampled_from(PROPERTIES), fuzzing.VALUES, max_size=3),
                "edge": fuzzing.SCALARS,
            },
        ),
        min_size=1,
        max_size=3,
    ).filter(lambda records: not any(isinstance(one, str) for one in records))  # no paths
)
def test_records_of_any_values(graph: og.Graph, records: list[Any]) -> None:
    with fuzzing.only_our_errors():
        graph.load(records, mode="merge")


def test_a_record_that_holds_itself(graph: og.Graph) -> None:
    record: dict[str, Any] = {"type": "Thing"}
    record["data"] = record
    with pytest.raises(OmniGraphError):
        graph.load([record], mode="merge")


@given(
    st.sampled_from(KINDS),
    st.lists(
        st.none()
        | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
        | st.sampled_from(["[" * fuzzing.DEEP, "[1, 2]", "[1e999, 1]", "[null, 1]", '["\\ud800"]',
                           "nan", "9" * 5000, "[" + "9" * 5000 + "]", "base64:", "[[1], 2]"]),
        max_size=4,
    ),
)  # fmt: skip
def test_cells_of_csv(kind: ValueType, texts: list[str | None]) -> None:
    column = pa.array(texts, pa.string())
    parsed, wrong = parse_texts(kind, column)
    assert len(parsed) == len(texts)
    for at in wrong.nonzero()[0].tolist():
        assert misfit_text(kind, texts[at] or "")
