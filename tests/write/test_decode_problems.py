"""NDJSON decoding: what is said about lines that are wrong, and where."""

from __future__ import annotations

import pytest

from omnigraph.errors import ValidationError
from tests.write.decoding import decode, one, person, problem


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "1:2 format not valid JSON: expecting property name enclosed in double quotes"),
        ('{"type":"Note"} x', "1:17 format not valid JSON: extra data"),
        ('{"type":"Note"}{"type":"Note"}', "1:16 format not valid JSON: extra data"),
        ("[1]", "1:1 format a line is one JSON object, found an array"),
        (" null", "1:2 format a line is one JSON object, found null"),
        ("{}", '1:1 format a line has either "type" (a node) or "edge"; this one has neither'),
        (
            '{"type":"Note","edge":"Likes"}',
            '1:16 format a line has either "type" (a node) or "edge"; this one has both',
        ),
        ('{"type":1}', '1:9 format "type" must be a string, found the number 1'),
        ('{"edge":null}', '1:9 format "edge" must be a string, found null'),
        ('{"type":"Persn"}', "1:9 format unknown node type 'Persn'; did you mean `Person`?"),
        ('{"type":"note"}', "1:9 format unknown node type 'note'; did you mean `Note`?"),
        (
            '{"type":"Likes"}',
            '1:9 format unknown node type \'Likes\'; it is an edge type: write "edge": "Likes"',
        ),
        (
            '{"edge":"Note"}',
            '1:9 format unknown edge type \'Note\'; it is a node type: write "type": "Note"',
        ),
        (
            '{"type":"Note","data":{"text":"a"},"text":1}',
            (
                '1:36 format unknown member \'text\'; the line of a node has "type", "data";'
                ' properties go into "data"'
            ),
        ),
        (
            '{"type":"Note","data":{"text":"a"},"to":"x"}',
            '1:36 format unknown member \'to\'; the line of a node has "type", "data"',
        ),
        (
            '{"edge":"Likes","from":"a","to":"b","data":null}',
            "1:44 format 'data' must be an object, found null; leave it out if there is none",
        ),
        (
            '{"edge":"Likes","from":"a","to":1}',
            ("1:33 format 'to' must be a string, the id of a node; found the number 1"),
        ),
        (
            '{"edge":"Likes","from":"a"}',
            ("1:1 format 'to' is missing: give the id of the target node"),
        ),
        (
            '{"type":"Note","data":{"text":"a","text":"b"}}',
            ("1:35 format duplicate JSON member 'text'"),
        ),
        (
            '{"type":"Note","data":{"text":"a","t\\u0065xt":"b"}}',
            ("1:35 format duplicate JSON member 'text'"),
        ),
        (
            '{"type":"Note","type":"Note","data":{"text":"a"}}',
            ("1:16 format duplicate JSON member 'type'"),
        ),
        (
            '{"type":"Note","data":{"text":[{"q":1},{"q":1,"q":2}]}}',
            ("1:47 format duplicate JSON member 'q'"),
        ),
        (
            '{"type":"Note","data":{"text":"\\ud800"}}',
            ("1:32 format not valid JSON: \\ud800 alone is no character"),
        ),
        (
            '{"type":"Note","data":{"text":"a","n":NaN}}',
            ("1:39 format not valid JSON: NaN is no number"),
        ),
        (b'{"type":"Note","data":{"text":"\xc3\xa9\xff"}}', "1:33 format the line is not UTF-8"),
        (
            '{"type":"Note","data":{}}',
            ("1:None required non-nullable property 'text' has null or invalid values"),
        ),
        (
            '{"type":"Note","data":{"text":null}}',
            ("1:31 required non-nullable property 'text' has null or invalid values"),
        ),
        (
            '{"edge":"Knows","from":"a","to":"b","data":{"weight":null}}',
            ("1:54 required non-nullable property 'weight' has null or invalid values"),
        ),
        (
            '{"type":"Note","data":{"text":"a","_rowid":1}}',
            ("1:35 format '_rowid' is reserved physical state"),
        ),
        (
            '{"edge":"Likes","from":"a","to":"b","data":{"src":"x"}}',
            ('1:45 format \'src\' is reserved structural state; give "from" beside "data"'),
        ),
        (
            '{"type":"Person","data":{"name":"a","agee":1}}',
            ("1:37 format unknown property 'agee' for Person; did you mean `age`?"),
        ),
    ],
)
def test_bad_lines(line: str | bytes, told: str) -> None:
    assert problem(line) == told


def test_deep_nesting_is_refused() -> None:
    deep = "[" * 60000 + "]" * 60000
    assert "nested too deeply" in problem(f'{{"type":"Note","data":{{"text":{deep}}}}}')


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        (
            "age",
            "1.0",
            ("expected I32, found the number 1.0; write it without a fraction and an exponent"),
        ),
        ("age", '"1"', 'expected I32, found the string "1"'),
        ("age", "true", "expected I32, found true"),
        ("age", "2147483648", "2147483648 does not fit I32"),
        ("age", "9" * 5000, f"{'9' * 27}… does not fit I32"),
        ("big", "-1", "-1 does not fit U64"),
        ("small", "3.5e38", "3.5e38 does not fit F32"),
        ("score", "1e400", "1e400 does not fit F64"),
        ("score", '"1"', 'expected F64, found the string "1"'),
        ("active", "0", "expected Bool, found the number 0"),
        ("name", "1", "expected String, found the number 1"),
        ("mood", "[]", "expected String, found an array"),
        ("born", '"2020-02-30"', "invalid Date literal '2020-02-30'; write YYYY-MM-DD"),
        (
            "born",
            '"2020-01-01T00:00:00Z"',
            (
                "invalid Date literal '2020-01-01T00:00:00Z': a Date"
                " has no time of day; write '2020-01-01'"
            ),
        ),
        ("born", "1.5", "expected Date, found the number 1.5"),
        ("born", "2932897", "2932897 does not lie in the years 1 to 9999"),
        (
            "seen",
            '"2020-01-01T00:00:00"',
            (
                "invalid DateTime literal '2020-01-01T00:00:00'; write"
                " it like 2024-05-01T12:00:00Z, with a zone"
            ),
        ),
        ("seen", "253402300800000", "253402300800000 does not lie in the years 1 to 9999"),
        ("tags", '"a"', 'expected [String], found the string "a"'),
        ("face", "[1,2]", "expected 3 numbers, found 2"),
        ("face", "1", "expected an array of 3 numbers, found the number 1"),
        ("photo", '"base64:YQ"', "what follows `base64:` is not standard base64 with padding"),
    ],
)
def test_wrong_values(name: str, value: str, told: str) -> None:
    head = '{"type":"Person","data":{'
    data = f'"name":{value}' if name == "name" else f'"name":"a", "{name}": {value}'
    line = f"{head}{data}}}}}"
    column = line.rindex(value) + 1
    assert problem(line) == f"1:{column} type Person.{name}: {told}"


def test_wrong_elements() -> None:
    line = person(tags=["a", None])
    at = line.index("null") + 1
    assert problem(line) == f"1:{at} type Person.tags: a list has no null elements"
    assert "found true" in problem(person(face=[1, True, 3]))
    assert ": element 2: expected String" in problem(person(tags=["a", 1]))


def test_external_blobs_are_not_admitted() -> None:
    line = person(photo="s3://bucket/x")
    at = line.index('"s3') + 1
    assert problem(line) == (
        f"1:{at} format Person.photo: this graph admits no external blob URIs; give the content"
        ' itself as "base64:" and its standard base64 text'
    )


def test_unusual_but_right() -> None:
    row = one("node:Person", '{"type":"Person","data":{"name":"a","big":-0,"age":-0}}')
    assert (row["big"], row["age"]) == (0, 0)
    escaped = '{"type":"Per\\u0073on","data":{"n\\u0061me":"\\ud83d\\ude00"}}'
    assert one("node:Person", escaped)["name"] == "😀"
    assert one("node:Person", person(photo="base64:"))["photo"] == b""


def test_every_problem_is_told_in_the_order_of_the_lines() -> None:
    filler = [person(name=f"p{at}") for at in range(3000)]
    filler[2] = '{"type":"Note"}'
    filler[1500] = person(age="x", nme=1)
    filler[1600] = "oops"
    filler[2999] = '{"edge":"likes","from":"a","to":"b","x":1}'
    with pytest.raises(ValidationError) as caught:
        decode(*filler, name="f.jsonl")
    text = str(caught.value).splitlines()
    assert [line.split(" ")[0] for line in text] == [
        "f.jsonl:3:",
        "f.jsonl:1501:51:",
        "f.jsonl:1501:56:",
        "f.jsonl:1601:1:",
        "f.jsonl:3000:37:",
        "5",
    ]
    assert caught.value.rule == "required"


def test_problems_are_counted_beyond_those_that_are_told() -> None:
    with pytest.raises(ValidationError) as caught:
        decode(*[person(name=1, x=1)] * 2000, *["{"] * 2000)
    assert caught.value.details["total"] == 6000
    assert len(caught.value.details["violations"]) == 100
    assert caught.value.details["violations"][-1]["line"] == 50
