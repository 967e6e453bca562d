"""The reads of the LDBC SNB Interactive benchmark in our language, against SQL."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

import duckdb
import pytest

from omnigraph import Graph
from omnigraph.cli.main import main
from tests.snb.network import FILES, START, TABLES, Row, spelled
from tests.snb.reads import COMPLEX, SHORT, VIEWS

PERSONS = (3, 11, 30)
MESSAGES = (0, 40, 70, 199)
AFTER = START + timedelta(days=200)
PARAMS: dict[str, list[dict[str, Any]]] = {
    **{name: [{"message": one} for one in MESSAGES] for name in SHORT},
    **{name: [{"person": one} for one in PERSONS] for name in COMPLEX},
    **{name: [{"person": one} for one in PERSONS] for name in SHORT if name[:3] < "is4"},
}
MORE: dict[str, dict[str, Any]] = {
    "ic1_friends_with_name": {"first": "Ann"},
    "ic2_messages_of_friends": {"before": AFTER},
    "ic3_foreign_posters": {"x": "Norway", "y": "Chile", "start": START, "days": 600},
    "ic4_new_topics": {"start": START + timedelta(days=60), "days": 300},
    "ic5_new_groups": {"after": AFTER},
    "ic6_tags_together": {"name": "Tag1"},
    "ic9_messages_around": {"before": AFTER},
    "ic10_recommendations": {"month": 5},
    "ic11_jobs": {"country": "Italy", "year": 2010},
    "ic12_experts": {"class": "Class1"},
}
WAYS = [{"a": 3, "b": 11}, {"a": 1, "b": 28}, {"a": 5, "b": 5}, {"a": 5, "b": 30}]


@pytest.fixture(scope="module")
def database(network: dict[str, list[Row]]) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        for table, columns in TABLES.items():
            made.execute(f"CREATE TABLE {table} ({columns})")
            for row in network[table]:
                values = [_plain_moment(value) for value in row]
                made.table(table).insert(values)
        made.execute(VIEWS)
        yield made


def _plain_moment(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def _given(name: str) -> list[dict[str, Any]]:
    if name in ("ic13_distance", "ic14_trusted_paths"):
        return WAYS
    return [{**one, **MORE.get(name, {})} for one in PARAMS[name]]


@pytest.mark.parametrize(
    ("file", "name"),
    [*(("short.gq", name) for name in SHORT), *(("complex.gq", name) for name in COMPLEX)],
)
def test_a_read_gives_what_sql_gives(
    file: str, name: str, graph: Graph, database: duckdb.DuckDBPyConnection
) -> None:
    rows = 0
    for params in _given(name):
        sql = database.execute(
            {**SHORT, **COMPLEX}[name], {key: _plain_moment(one) for key, one in params.items()}
        )
        meant = [[_json(value) for value in row] for row in sql.fetchall()]
        ours = {
            key: spelled(one) if isinstance(one, datetime) else one for key, one in params.items()
        }
        result = graph.query(FILES / file, name, ours)
        found = [list(map(_values, row.values())) for row in json.loads(result.json_rows())]
        if name == "ic14_trusted_paths":
            # Ways of one weight have no order among them.
            found, meant = sorted(found), sorted(meant)
        assert found == meant, params
        rows += len(found)
    assert rows


def _json(value: Any) -> Any:
    if isinstance(value, datetime):
        return spelled(value)
    if isinstance(value, date):
        return str(value)
    return _values(value)


def _values(value: Any) -> Any:
    """Objects as what they hold: their fields are called differently."""
    if isinstance(value, list):
        return [_values(item) for item in value]
    return list(value.values()) if isinstance(value, dict) else value


def test_the_files_are_clean(capsys: pytest.CaptureFixture[str]) -> None:
    for file in sorted(FILES.glob("*.gq")):
        assert main(["lint", "--schema", str(FILES / "snb.pg"), "--query", str(file)]) == 0
        assert "0 errors, 0 warnings" in capsys.readouterr().out
    assert main(["fmt", "--check", *map(str, sorted(FILES.glob("*.[gp][qg]")))]) == 0


def test_there_are_all_reads() -> None:
    assert (len(SHORT), len(COMPLEX)) == (7, 14)
