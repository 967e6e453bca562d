"""The inserts of the LDBC SNB Interactive benchmark in our language, looked at afterwards."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from omnigraph import Graph
from tests.snb.network import FILES, START, spelled

WHEN = spelled(START + timedelta(days=200))
THERE = f'datetime("{WHEN}")'
INSERTS: dict[str, tuple[dict[str, Any], str, list[list[Any]]]] = {
    "iu1_person": (
        {
            "number": 900,
            "firstName": "Ida",
            "lastName": "Moe",
            "gender": "female",
            "birthday": "1990-05-05",
            "creationDate": WHEN,
            "locationIP": "9.9.9.9",
            "browserUsed": "Safari",
            "emails": ["ida@moe.no"],
            "speaks": ["no", "en"],
            "city": 101,
            "tags": [1, 2],
            "study": [{"university": 0, "classYear": 2011}],
            "work": [{"company": 1, "workFrom": 2012}],
        },
        (
            "$p: Person { number: 900 }  $p isLocatedIn $c  $p hasInterest $t  $p $s:studyAt $u  "
            "$p $w:workAt $o } return { $p.emails, $c.name, $t.name as tag, $s.classYear, "
            "$w.workFrom } order { tag }"
        ),
        [[["ida@moe.no"], "City1", tag, 2011, 2012] for tag in ("Tag1", "Tag2")],
    ),
    "iu2_like_post": (
        {"person": 3, "post": 0, "creationDate": WHEN},
        f"$p: Person  $p $l:likes $m  $l.creationDate = {THERE} }} return {{ $p.number, $m.@id }}",
        [[3, "0"]],
    ),
    "iu3_like_comment": (
        {"person": 3, "comment": 199, "creationDate": WHEN},
        f"$p: Person  $p $l:likes $m  $l.creationDate = {THERE} }} return {{ $p.number, $m.@id }}",
        [[3, "199"]],
    ),
    "iu4_forum": (
        {"number": 900, "title": "New", "creationDate": WHEN, "moderator": 3, "tags": [4]},
        (
            "$f: Forum { number: 900 }  $f hasModerator $p  $f hasTag $t } "
            "return { $f.title, $p.number, $t.name }"
        ),
        [["New", 3, "Tag4"]],
    ),
    "iu5_member": (
        {"person": 30, "forum": 2, "joinDate": WHEN},
        f"$f: Forum  $f $m:hasMember $p  $m.joinDate = {THERE} }} return {{ $f.number, $p.@id }}",
        [[2, "30"]],
    ),
    "iu6_post": (
        {
            "number": 900,
            "imageFile": None,
            "creationDate": WHEN,
            "locationIP": "9.9.9.9",
            "browserUsed": "Safari",
            "language": "en",
            "content": "hello",
            "length": 5,
            "author": 3,
            "forum": 2,
            "country": 1,
            "tags": [1],
        },
        (
            "$m: Post { number: 900 }  $m hasCreator $p  $f containerOf $m  $m isLocatedIn $c  "
            "$m hasTag $t } return { $m.content, $p.@id, $f.@id, $c.name, $t.name }"
        ),
        [["hello", "3", "2", "Italy", "Tag1"]],
    ),
    "iu7_comment": (
        {
            "number": 901,
            "creationDate": WHEN,
            "locationIP": "9.9.9.9",
            "browserUsed": "Safari",
            "content": "yes",
            "length": 3,
            "author": 11,
            "country": 1,
            "parent": 199,
            "tags": [2],
        },
        (
            "$m: Comment { number: 901 }  $m hasCreator $p  $m replyOf $q  $m hasTag $t } "
            "return { $p.@id, $q.@id, $t.name }"
        ),
        [["11", "199", "Tag2"]],
    ),
    "iu8_friendship": (
        {"a": 29, "b": 30, "creationDate": WHEN},
        "$p: Person { number: 30 }  $p $k:<knows> $q } return { $q.number, $k.creationDate }",
        [[29, WHEN]],
    ),
}


@pytest.mark.parametrize("name", INSERTS)
def test_an_insert_is_seen(name: str, graph: Graph) -> None:
    params, looking, expected = INSERTS[name]
    graph.branches.create(name)
    graph.mutate(FILES / "inserts.gq", name, params, branch=name)
    seen = graph.query(f"query seen() {{ match {{ {looking} }}", branch=name)
    assert [list(row.values()) for row in json.loads(seen.json_rows())] == expected
    before = graph.query(f"query seen() {{ match {{ {looking} }}")
    assert json.loads(before.json_rows()) == []


def test_there_are_all_inserts() -> None:
    assert len(INSERTS) == 8
