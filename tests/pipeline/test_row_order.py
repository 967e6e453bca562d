"""Rows that a load writes in an order, on both ways, in bounded memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

import omnigraph as og
from omnigraph.cli.main import main
from omnigraph.errors import BadRequest, NotFound
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.pipeline.load import operation
from omnigraph.pipeline.load.stage import ordered, stage_input
from omnigraph.rows.external_sort import SortLimits
from omnigraph.write.load.row_order import sort_texts

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    weight: F64?
    born: Date?
    tags: [String]?
}

edge Knows: Person -> Person
"""


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "graph", SCHEMA)


def people(count: int) -> dict[str, pa.Table]:
    # Any order will do.
    shuffled = sorted(range(count), key=lambda at: at * 7919 % 3001)
    names = [f"p{at:05}" for at in shuffled]
    ages = [None if at % 10 == 0 else at % 40 - 20 for at in shuffled]
    return {
        "Person": pa.table({"name": names, "age": pa.array(ages, pa.int32())}),
        "Knows": pa.table({"from": names, "to": names[::-1]}),
    }


def stored(graph: og.Graph, type_name: str, *columns: str) -> list[tuple[Any, ...]]:
    found = graph.table(type_name).to_table(columns=list(columns)).to_pylist()
    return [tuple(row.values()) for row in found]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["request", "bulk", "spilled"])
def test_by_keys(
    graph: og.Graph, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: Any = people(3000)
    if way != "request":
        for name, table in given.items():
            place = tmp_path / f"{name}.csv"
            pa.csv.write_csv(table, place)
        given = {name: tmp_path / f"{name}.csv" for name in given}
        monkeypatch.setattr(stage_input, "LEAST_BYTES", 9_000)
    if way == "spilled":
        tiny = SortLimits(run_rows=300, batch_rows=50, fan_in=3)
        real = ordered.OrderJob
        monkeypatch.setattr(operation, "OrderJob", lambda *job: replace(real(*job), limits=tiny))
        monkeypatch.setattr(ordered, "MAX_ROWS_PER_FILE", 1000)
    done = graph.load(given, mode="append", order_by=True)
    assert done.total == 6000
    ids = stored(graph, "Person", ID)
    assert ids == sorted(ids)
    ends = stored(graph, "Knows", SRC, DST)
    assert ends == sorted(ends)
    assert len({one[0] for one in ids}) == 3000
    if way == "spilled":
        assert len(graph.table("Person").get_fragments()) in {3, 4}
    assert not (tmp_path / "graph" / "__staging").exists()


@pytest.mark.slow
def test_by_properties_without_what_is_wrong(graph: og.Graph, tmp_path: Path) -> None:
    rows = people(400)["Person"].to_pylist()
    rows += [{"name": "p00007", "age": 1}, {"name": "wrong", "age": "x"}]
    text = "".join(f"{one['name']},{'' if one['age'] is None else one['age']}\n" for one in rows)
    (tmp_path / "Person.csv").write_text("name,age\n" + text)
    file = str(tmp_path / "Person.csv")
    argv = ["load", str(graph.location.path), "--data", file, "--mode", "append"]
    assert main([*argv, "--on-error", "skip", "--quiet", "--order-by", "Person=age,name"]) == 0
    found = stored(graph, "Person", "age", "name")
    known = [one for one in found if one[0] is not None]
    assert known == sorted(known)
    assert len(known) == 360
    assert found[360:] == sorted(found[360:], key=lambda one: str(one[1]))
    assert len(found) == 400


@pytest.mark.parametrize(
    ("order", "kind", "said"),
    [
        ({"Persn": ["name"]}, NotFound, "Persn"),
        ({"Person": ["nme"]}, BadRequest, "did you mean `name`"),
        ({"Person": ["tags"]}, BadRequest, "one value"),
        ({"Person": []}, BadRequest, "names no properties"),
    ],
)
def test_orders_there_are_not(
    graph: og.Graph, order: dict[str, list[str]], kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said):
        graph.load(people(3), mode="append", order_by=order)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([-(2**63), -5, 0, 5, 2**63 - 1, None]),
        pa.array([0, 1, 2**64 - 1, None], pa.uint64()),
        pa.array([-1e300, -1.5, -1e-300, 0.0, 1e-300, 2.5, 1e300, None]),
        pa.array(["", "a", "a b", "b", "é", None]),
        pa.array([False, True, None]),
        pa.array([-400, 0, 18262, None], pa.int32()).cast(pa.date32()),
    ],
)
def test_texts_sort_like_values(values: pa.Array) -> None:
    texts = sort_texts(pa.table({"a": values}), ["a"]).to_pylist()
    assert [one.encode() for one in texts] == sorted(one.encode() for one in texts)
    assert len(set(texts)) == len(texts)
