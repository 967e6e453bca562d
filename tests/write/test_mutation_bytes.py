"""The memory bound of mutations: what they read and make is counted, and nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import ResourceLimit
from omnigraph.storage.budget import configured_bytes
from tests.write.writing import mutate, overtaken, unchanged

ROWS = 20_000
TEXT = 200
SIZE = ROWS * TEXT
SCHEMA = """
node Page {
    path: String @key
    text: String?
    code: I64? @unique
}

edge Links: Page -> Page
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.init(tmp_path_factory.mktemp("bytes") / "graph", SCHEMA)
    paths = [f"/{number}" for number in range(ROWS)]
    pages = pa.table({"path": paths, "text": ["x" * TEXT] * ROWS, "code": range(ROWS)})
    links = pa.table({"from": paths, "to": paths[::-1]})
    graph.load({"Page": pages, "Links": links}, mode="append")
    return graph


@pytest.fixture(autouse=True)
def _environment() -> Iterator[None]:
    configured_bytes.cache_clear()
    yield
    configured_bytes.cache_clear()


REFUSED = {
    "update": ("update Page set { code: null } where code >= 0", SIZE, "update Page"),
    "delete": ("delete Page where code >= 0", 200_000, "delete Page"),
    "edges": ("delete Links where from != @none", 200_000, "delete Links"),
    "insert": ("".join(f'insert Page {{ path: "n{n}" }}\n' for n in range(300)), 2_000, "insert"),
    # One value of a kilobyte, and every row gets it.
    "value": (
        'update Page set { text: "LONG" } where code >= 0'.replace("LONG", "y" * 1000),
        3 * SIZE,
        "update Page",
    ),
    # Each of them reads little, and all of it is kept until the end.
    "many": (
        "\n".join(
            f"update Page set {{ text: null }} where code >= {n} and code < {n + 500}"  # noqa: S608 - no SQL
            for n in range(0, ROWS, 500)
        ),
        SIZE // 2,
        "update Page",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_mutation_that_needs_too_much_changes_nothing(graph: og.Graph, kind: str) -> None:
    body, most, operator = REFUSED[kind]
    query = f"query q($none: String) {{ {body.replace('@none', '$none')} }}"
    with unchanged(graph), pytest.raises(ResourceLimit) as refused:
        graph.mutate(query, params={"none": "nowhere"}, max_bytes=most)
    details = refused.value.details
    assert (details["resource"], details["limit"]) == ("query_bytes", most)
    assert details["operator"] == operator
    assert details["actual"] > most
    assert f"in `{operator}`" in refused.value.message


def test_the_rules_are_on_the_bound(graph: og.Graph) -> None:
    """What is looked up to judge a mutation is read by it, too."""
    given = "".join(f'insert Page {{ path: "c{n}", code: {n} }}\n' for n in range(2_000))
    with unchanged(graph), pytest.raises(ResourceLimit) as refused:
        mutate(graph, given, max_bytes=400_000)
    assert refused.value.details["operator"] == "rules of the schema"


def test_what_fits_is_done(graph: og.Graph) -> None:
    graph.branches.create("side")
    done = mutate(
        graph, "update Page set { code: null } where code < 100", branch="side", max_bytes=2**20
    )
    assert done.affected_nodes == 100


def test_the_environment_says_the_bound(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_QUERY_BYTES", "100kB")
    with unchanged(graph), pytest.raises(ResourceLimit) as refused:
        mutate(graph, "delete Page where code >= 0")
    assert refused.value.details["limit"] == 100_000


def test_a_mutation_that_is_prepared_again_counts_again(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", SCHEMA)
    text = "x" * 100_000
    add = 'query q($t: String) { insert Page { path: "one", text: $t } }'
    graph.mutate(add, params={"t": text})

    def touch(other: og.Graph) -> None:
        other.mutate(add, params={"t": "y" * 100_000})

    change = 'query q($n: I64) { upsert Page { path: "one", code: $n } }'
    with overtaken(graph, "changes_checked", touch) as fault:
        done = graph.mutate(change, params={"n": 1}, max_bytes=250_000)
    assert fault.fired == 1
    assert done.affected_nodes == 1
