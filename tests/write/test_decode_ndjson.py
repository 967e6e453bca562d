"""NDJSON decoding: what comes out of good lines, and what is said about bad ones."""

from __future__ import annotations

import base64
from datetime import date

import pyarrow as pa
import pytest
from ulid import ULID

from omnigraph.errors import ResourceLimit
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.write.load.ndjson.lines import NdjsonSource
from omnigraph.write.rules.row_limits import RowLimits, row_limits
from omnigraph.write.rules.row_rules import check_required
from omnigraph.write.rules.violations import SourceLocation, Violations
from tests.write.decoding import decode, decode_ndjson, one, person, problem, problems

# -- what comes out ----------------------------------------------------------------


def test_every_type() -> None:
    row = one(
        "node:Person",
        person(
            age=-3,
            big=2**64 - 1,
            small=0.1,
            score=1,
            active=False,
            born="2020-02-29",
            seen="2024-05-01T12:00:00.123456+02:00",
            tags=["é", ""],
            days=["1970-01-02"],
            face=[1, 2.5, -1e-3],
            photo="base64:" + base64.b64encode(b"\x00hi").decode(),
            mood="sad",
            **{"class": "x"},
        ),
    )
    assert row.pop("small") == pytest.approx(0.1)
    assert row.pop("face") == pytest.approx([1, 2.5, -1e-3])
    seen = row.pop("seen")
    assert row == {
        ID: "Ann",
        "name": "Ann",
        "age": -3,
        "big": 2**64 - 1,
        "score": 1.0,
        "active": False,
        "born": date(2020, 2, 29),
        "tags": ["é", ""],
        "days": [date(1970, 1, 2)],
        "photo": b"\x00hi",
        "mood": "sad",
        "class": "x",
    }
    assert seen is not None
    millis = decode(person(seen="2024-05-01T12:00:00.123456+02:00"))["node:Person"].rows
    assert millis["seen"].cast(pa.int64()).to_pylist() == [1714557600123]


def test_float32_is_rounded_once() -> None:
    # By way of float64 this would become 1.0.
    rows = decode(person(), '{"type":"Person","data":{"name":"b","small":1.00000005960464477541}}')
    assert rows["node:Person"].rows["small"].to_pylist() == [None, 1.0000001192092896]


def test_types_in_any_order_and_rows_in_input_order() -> None:
    found = decode(
        '{"edge":"KNOWS","to":"b","from":"a"}',
        person(),
        "",
        '  {"data": {"text": "x"}, "type": "Note"}\r',
        person(name="Ben"),
        " \t\r",
        '{"edge":"knows","from":"b","to":"a","data":{"weight":2}}',
    )
    assert list(found) == ["edge:Knows", "node:Note", "node:Person"]
    assert found["node:Person"].rows["name"].to_pylist() == ["Ann", "Ben"]
    edges = found["edge:Knows"].rows
    assert edges[SRC].to_pylist() == ["a", "b"]
    assert edges[DST].to_pylist() == ["b", "a"]
    assert edges["weight"].to_pylist() == [1.0, 2.0]


def test_several_sources_make_one_batch_of_each_type() -> None:
    sources = [
        NdjsonSource("a", person().encode()),
        NdjsonSource("b", b""),
        NdjsonSource("c", b"\n" + person(name="Ben").encode()),
    ]
    (batch,) = decode_ndjson(sources)
    assert batch.rows["name"].to_pylist() == ["Ann", "Ben"]
    assert batch.places.place(0, None) == SourceLocation("a", 1)
    assert batch.places.place(1, "name") == SourceLocation("c", 2, 37)


@pytest.mark.parametrize("data", [b"", b"\n", b" \r\n\t", b"\xef\xbb\xbf"])
def test_nothing(data: bytes) -> None:
    assert decode_ndjson([NdjsonSource(None, data)]) == []
    assert decode_ndjson([]) == []


def test_a_byte_order_mark_at_the_start_of_a_file() -> None:
    assert list(decode("\ufeff" + person())) == ["node:Person"]
    assert problem("\ufeff" + '{"type":"Persn"}').startswith("1:9 ")
    assert problems(person(), "\ufeff" + person())[0].startswith("2:1 format not valid JSON")


def test_data_may_be_left_out() -> None:
    assert one("edge:Likes", '{"edge":"Likes","from":"a","to":"b"}')[SRC] == "a"


def test_dates_are_numbers_or_texts_even_in_one_column() -> None:
    lines = [
        person(name="a", born="2020-01-01", seen=0, days=[1, 2]),
        person(name="b", born=18262, seen="1970-01-01 00:00Z", days=["1970-01-02"]),
        person(name="c", born=None, days=[]),
        person(name="d", born=-719162, days=[2932896]),
    ]
    rows = decode(*lines)["node:Person"].rows
    assert rows["name"].to_pylist() == ["a", "b", "c", "d"]
    assert rows["born"].to_pylist() == [date(2020, 1, 1), date(2020, 1, 1), None, date.min]
    assert rows["seen"].cast(pa.int64()).to_pylist() == [0, 0, 1577836800000, 1577836800000]
    days = [date(1970, 1, 2), date(1970, 1, 3)]
    assert rows["days"].to_pylist() == [days, [date(1970, 1, 2)], [], [date.max]]
    mixed_inside = one("node:Person", person(days=[1, "1970-01-03"]))
    assert mixed_inside["days"] == days


def test_a_default_is_for_what_is_absent_and_never_for_null() -> None:
    lines = [person(name="a"), person(name="b", active=None, seen=None, **{"class": None})]
    rows = decode(*lines)["node:Person"].rows
    assert rows["active"].to_pylist() == [True, None]
    assert rows["class"].to_pylist() == ["none", None]
    assert rows["seen"].cast(pa.int64()).to_pylist() == [1577836800000, None]


def test_a_null_among_other_lines_does_not_unset_defaults() -> None:
    rows = decode(person(name="a", tags=None), person(name="b", tags=["null"]))
    assert rows["node:Person"].rows["active"].to_pylist() == [True, True]


def test_a_vector_to_be_embedded_may_be_missing() -> None:
    batch = decode('{"type":"Doc","data":{"slug":"a","body":"b"}}')["node:Doc"]
    assert batch.rows["vector"].null_count == 1
    violations = Violations()
    check_required(batch.type, batch.rows, violations, batch.places)
    assert violations.total == 1


# -- ids ---------------------------------------------------------------------------


def test_ids() -> None:
    found = decode(
        person(),
        person(name="Ben", id="Ben"),
        '{"type":"Note","data":{"text":"a"}}',
        '{"type":"Note","data":{"text":"b","id":"n1"}}',
        '{"edge":"Likes","from":"a","to":"b"}',
        '{"edge":"Likes","from":"a","to":"c"}',
        '{"type":"Pair","data":{"b":"x\\"y","a":0.1}}',
    )
    keyed = found["node:Person"]
    assert keyed.rows[ID].to_pylist() == ["Ann", "Ben"]
    assert keyed.fresh is not None
    assert keyed.fresh.to_pylist() == [False, False]
    notes = found["node:Note"]
    assert notes.fresh is not None
    assert notes.fresh.to_pylist() == [True, False]
    made = notes.rows[ID][0].as_py()
    assert str(ULID.from_str(made)) == made
    assert notes.rows[ID][1].as_py() == "n1"
    assert found["edge:Likes"].fresh is None
    assert found["edge:Likes"].rows[ID].null_count == 0
    assert found["node:Pair"].rows[ID].to_pylist() == ['["0.1","x\\"y"]']


def test_an_explicit_id_must_be_the_one_of_the_key() -> None:
    pair = '{"type":"Pair","data":{"a":1,"b":"x","id":"1"}}'
    assert problems(person(id="Bob"), person(), pair) == [
        "1:50 format id 'Bob' is not the id its key gives: 'Ann'; leave it out",
        "3:43 format id '1' is not the id its key gives: '[\"1\",\"x\"]'; leave it out",
    ]


@pytest.mark.parametrize("value", ["1", "null", "[]"])
@pytest.mark.parametrize(
    "head", ['"type":"Note","data":{"text":"a",', '"type":"Person","data":{"name":"a",']
)
def test_an_id_is_a_string(value: str, head: str) -> None:
    told = problem(f'{{{head}"id":{value}}}}}')
    assert "type 'id' must be a string, found" in told


# -- limits and places -------------------------------------------------------------


def test_a_line_may_not_be_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_ROW_BYTES", "1 MiB")
    with pytest.raises(ResourceLimit, match="OMNIGRAPH_ROW_BYTES allows more") as caught:
        decode(person(**{"class": "x" * (1 << 20)}))
    assert caught.value.details["resource"] == "graph_batch_line_bytes"
    assert caught.value.details["limit"] == 1 << 20


def test_a_line_may_not_have_too_many_structural_characters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMNIGRAPH_ROW_BYTES", "1 MiB")
    fits = "{[,:]}" * 30_000
    assert one("node:Person", person(**{"class": fits}))["class"] == fits
    with pytest.raises(ResourceLimit) as caught:
        decode(person(tags=["a"] * 16_384))
    assert caught.value.details == {
        "resource": "graph_batch_json_structural_slots",
        "limit": 16_384,
        "actual": 16_396,
    }


def test_without_a_setting_a_line_has_a_quarter_of_a_gibibyte() -> None:
    assert row_limits() == RowLimits(256 << 20, 4 << 20)


def test_places() -> None:
    edge = '{"edge":"Knows", "from":"ä", "to":"b", "data":{"since":"2020-01-01"}}'
    batch = decode("", person(), edge, name="x.jsonl")["edge:Knows"]
    place = batch.places.place
    assert place(0, None) == SourceLocation("x.jsonl", 3)
    assert place(0, "from") == SourceLocation("x.jsonl", 3, 25)
    assert place(0, "to") == place(0, DST) == SourceLocation("x.jsonl", 3, 35)
    assert place(0, "since") == SourceLocation("x.jsonl", 3, 56)
    assert place(0, "weight") == SourceLocation("x.jsonl", 3)


def test_a_node_may_have_properties_that_sound_like_ends() -> None:
    batch = decode('{"type":"Note","data":{"text":"a","from":"x","src":1}}')["node:Note"]
    assert batch.rows.select(["from", "src"]).to_pylist() == [{"from": "x", "src": 1}]
    assert batch.places.place(0, "from") == SourceLocation(None, 1, 42)
    assert batch.places.place(0, "src") == SourceLocation(None, 1, 52)
