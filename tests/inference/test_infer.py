"""Proposed schemas: what follows from files and frames, and that the commands load them."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.cli.main import main
from omnigraph.errors import BadRequest
from omnigraph.inference.columns import property_name, type_name
from omnigraph.lang.schema.compile import compile_schema

AIRPORTS = """IATA,name,city,lat
JFK,John F. Kennedy,New York,40.6
SFO,San Francisco Intl,San Francisco,37.6
LAX,Los Angeles Intl,Los Angeles,33.9
"""
AIRLINES = """code,name,founded
AA,American,1926-04-15
UA,United,
"""
FLIGHTS = """origin,destination,carrier,minutes,departs,arrives
JFK,SFO,AA,380,2026-01-01T08:00:00Z,2026-01-01T08:00:00
SFO,LAX,UA,80,2026-01-01T09:00:00Z,2026-01-01T08:00:00
JFK,LAX,AA,370,2026-01-02T08:00:00Z,2026-01-01T08:00:00
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    for name, text in (("airports", AIRPORTS), ("airlines", AIRLINES), ("flights", FLIGHTS)):
        Path(f"{name}.csv").write_text(text)
    return ["airports.csv", "airlines.csv", "flights.csv"]


def test_what_is_proposed(files: list[str]) -> None:
    found = og.infer(files)
    assert (
        found.schema
        == """\
// airports.csv: 3 rows
node Airport {
    // all 3 values are different
    iata: String @key
    name: String
    city: String
    lat: F64
}

// airlines.csv: 2 rows
node Airline {
    // all 2 values are different
    code: String @key
    name: String
    founded: Date?
}

// flights.csv: 3 rows: `origin` holds keys of Airport and `destination` holds keys of Airport
edge Flight: Airport -> Airport {
    carrier: String
    minutes: I32
    departs: DateTime
    // a DateTime is written with its zone: 2026-05-01T12:00:00Z
    arrives: String
}
"""
    )
    compile_schema(found.schema)


def test_the_commands_load_the_files(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["infer", *files, "-o", "schema.pg"]) == 0
    told = capsys.readouterr()
    assert told.out == "wrote schema.pg\n"
    head, *commands = told.err.splitlines()
    assert head == "next:"
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0, command
    graph = og.open("graph.omni")
    found = graph.query(
        'match { $a: Airport { iata: "JFK" }  $a $f:flight $b } '
        "return { $b.iata as iata, $f.minutes as minutes } order { minutes }"
    )
    assert found.rows == [{"iata": "LAX", "minutes": 370}, {"iata": "SFO", "minutes": 380}]
    assert main(["infer", *files, "-o", "schema.pg"]) == 1
    assert "schema.pg exists" in capsys.readouterr().err


def test_rows_that_begin_with_two_keys_are_edges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("id,name\n1,Ann\n2,Ben\n")
    Path("films.csv").write_text("film_id,title\n10,Up\n11,Speed\n")
    # Every role happens to be another one.
    Path("acted_in.csv").write_text("person_id,film_id,role\n1,10,Carl\n2,11,Jack\n")
    assert main(["infer", "people.csv", "films.csv", "acted_in.csv", "-o", "schema.pg"]) == 0
    assert "edge ActedIn: Person -> Film {" in Path("schema.pg").read_text()
    for command in capsys.readouterr().err.splitlines()[1:]:
        assert main(shlex.split(command)[1:]) == 0, command
    graph = og.open("graph.omni")
    found = graph.query(
        "match { $p: Person  $p $a:actedIn $f } return { $a.role as r } order { r }"
    )
    assert found["r"] == ["Carl", "Jack"]


def test_a_name_before_two_references_is_a_key() -> None:
    people = pa.table({"name": ["Ann", "Ben"], "town": ["a", "b"], "employer": ["x", "x"]})
    towns, firms = pa.table({"code": ["a", "b", "c"]}), pa.table({"code": ["x", "y"]})
    found = og.infer({"people": people, "towns": towns, "firms": firms}).schema
    assert "node Person {" in found


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        (pa.array([1, 2**31 - 1]), "I32"),
        (pa.array([1, 2**31]), "I64"),
        (pa.array([2**63], pa.uint64()), "U64"),
        (pa.array([1.5, None]), "F64?"),
        (pa.array([1.5], pa.float32()), "F32"),
        (pa.array([True, False]), "Bool"),
        (pa.array(["a", None]), "String?"),
        (pa.array([["a"], ["b", "c"]]), "[String]"),
        (pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2)), "Vector(2)"),
        (pa.array([0], pa.timestamp("us")), "DateTime"),
        (pa.array([0], pa.date32()), "Date"),
        (pa.array([b"x"]), "Blob"),
        (pa.array([None, None], pa.string()), "String?"),
        (pa.array(["a", "a"]).dictionary_encode(), "String"),
    ],
)
def test_types(values: pa.Array, type_: str) -> None:
    found = og.infer({"Thing": pa.table({"x": values})})
    assert f"    x: {type_}" in found.schema
    assert found.commands == ()


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("airports", "Airport"),
        ("film_reviews-2020", "FilmReviews2020"),
        ("people", "Person"),
        ("countries", "Country"),
        ("addresses", "Address"),
        ("bus", "Bus"),
        ("2020", "T2020"),
        ("--", "Thing"),
    ],
)
def test_names_of_types(source: str, name: str) -> None:
    assert type_name(source) == name


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("name", "name"),
        ("IATA", "iata"),
        ("Airport Code", "airport_code"),
        ("HTTPStatus", "http_status"),
        ("camelCase", "camelCase"),
        ("3d", "_3d"),
        ("%", "column"),
    ],
)
def test_names_of_properties(source: str, name: str) -> None:
    assert property_name(source) == name


def test_numbers_are_keys_only_if_they_are_called_so(tmp_path: Path) -> None:
    people = pa.table({"height": [180, 170], "person_id": [1, 2]})
    assert "person_id: I32 @key" in og.infer({"people": people}).schema
    lengths = pa.table({"length": [1, 2], "width": [3, 4]})
    proposed = og.infer({"boxes": lengths}).schema
    assert "@key" not in proposed
    assert "no column tells every row from every other" in proposed
    pq.write_table(people, tmp_path / "people.parquet")
    assert "node Person {" in og.infer(tmp_path / "people.parquet").schema


def test_a_node_that_refers_is_told() -> None:
    towns = pa.table({"town": ["a", "b"], "country": ["x", "x"]})
    countries = pa.table({"code": ["x", "y"]})
    found = og.infer({"towns": towns, "countries": countries}).schema
    assert "// its values are keys of Country: an edge would say it better" in found


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("nowhere.csv", "there is no file"),
        ("notes.txt", "neither CSV nor Parquet"),
        ([], "nothing to look at"),
        (5, "give files"),
    ],
)
def test_what_cannot_be_looked_at(data: Any, told: str) -> None:
    with pytest.raises(BadRequest, match=told):
        og.infer(data)


def test_renamed_columns(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g.omni", "node P { name: String @key }\nedge K: P -> P")
    (tmp_path / "p.csv").write_text("Name\na\nb\n")
    (tmp_path / "k.csv").write_text("Name,other\na,b\n")
    csv = og.CsvOptions(rename={"P.Name": "name", "K.Name": "from", "other": "to"})
    data = {"P": str(tmp_path / "p.csv"), "K": str(tmp_path / "k.csv")}
    done = graph.load(data, mode="append", csv=csv)
    assert (done.nodes, done.edges) == ({"P": 2}, {"K": 1})
    refused: list[Callable[[], Any]] = [
        lambda: og.CsvOptions(rename={"a": ""}),
        lambda: og.CsvOptions(rename={" ": "a"}),
    ]
    for attempt in refused:
        with pytest.raises(BadRequest, match="rename"):
            attempt()
