"""Mutations: the worked examples, every predicate, read-your-writes, values and parameters."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.lang.structural import DST, SRC
from omnigraph.storage.tables import row_lookup
from tests.write.writing import image, mutate, rows, unchanged

PILOTS = """
node Pilot { name: String @key  hours: I32?  ratings: [String]?  hired: Date? }
node Base { name: String @key }
edge Trains: Pilot -> Pilot { since: Date?  note: String? }
edge StationedAt: Pilot -> Base
"""


def trains(id_: str, source: str, target: str, **data: Any) -> dict[str, Any]:
    return {"edge": "Trains", "from": source, "to": target, "data": {"id": id_, **data}}


@pytest.fixture
def pilots(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "pilots", PILOTS)
    graph.load(
        [
            {
                "type": "Pilot",
                "data": {
                    "name": "Ann",
                    "hours": 30,
                    "ratings": ["a", "b"],
                    "hired": "2020-01-02",
                },
            },
            {"type": "Pilot", "data": {"name": "Ben", "hours": 25, "ratings": ["b"]}},
            {"type": "Pilot", "data": {"name": "Cat", "hours": 35}},
            {"type": "Pilot", "data": {"name": "Dan"}},
            {"type": "Base", "data": {"name": "Arda"}},
            {"type": "Base", "data": {"name": "Brell"}},
            trains("e1", "Ann", "Ben", since="2020-05-01"),
            trains("e2", "Ann", "Cat"),
            trains("e3", "Ben", "Dan"),
            trains("e4", "Ann", "Ben", since="2024-01-01"),
            {"edge": "StationedAt", "from": "Ann", "to": "Arda", "data": {"id": "w1"}},
            {"edge": "StationedAt", "from": "Ben", "to": "Brell", "data": {"id": "w2"}},
        ],
        mode="append",
    )
    return graph


# -- the worked examples -------------------------------------------------------------------------


def test_27_an_insert_of_a_key_that_exists_replaces_the_row(pilots: og.Graph) -> None:
    edges = rows(pilots, "Trains")
    result = mutate(pilots, 'insert Pilot { name: "Ann" }')
    assert (result.affected_nodes, result.affected_edges) == (1, 0)
    assert rows(pilots, "Pilot")["Ann"] == {
        "name": "Ann",
        "hours": None,
        "ratings": None,
        "hired": None,
    }
    assert rows(pilots, "Trains") == edges


def test_28_an_edge_to_nobody_changes_nothing(pilots: og.Graph) -> None:
    with (
        unchanged(pilots),
        pytest.raises(errors.ValidationError, match=r"^dst 'Zed' not found in Pilot$"),
    ):
        mutate(pilots, 'insert Trains { from: "Ann", to: "Zed" }')


def test_29_an_end_from_the_same_query_is_seen(pilots: og.Graph) -> None:
    before = pilots.snapshot().commit_id
    result = mutate(pilots, 'insert Pilot { name: "Eve" } insert Trains { from: "Eve", to: "Ann" }')
    assert (result.affected_nodes, result.affected_edges) == (1, 1)
    assert result.commit is not None
    assert result.commit.parent_id == before
    assert [row[DST] for row in rows(pilots, "Trains").values() if row[SRC] == "Eve"] == ["Ann"]
    # In the other order, too: only the final image is checked.
    mutate(pilots, 'insert Trains { from: "Fay", to: "Ann" } insert Pilot { name: "Fay" }')


def test_30_an_update(pilots: og.Graph) -> None:
    result = mutate(pilots, 'update Pilot set { hours: 31 } where name = "Ann"')
    assert (result.affected_nodes, result.affected_edges) == (1, 0)
    found = rows(pilots, "Pilot")["Ann"]
    assert (found["hours"], found["ratings"], found["hired"]) == (31, ["a", "b"], date(2020, 1, 2))
    with unchanged(pilots):
        result = mutate(pilots, "update Pilot set { hours: 31 } where hours > 100")
    assert (result.affected_nodes, result.commit) == (0, None)


def test_31_a_delete_takes_the_edges_along(pilots: og.Graph) -> None:
    result = mutate(pilots, 'delete Pilot where name = "Ann"')
    assert (result.affected_nodes, result.affected_edges) == (1, 4)
    found = image(pilots)
    assert found["node:Pilot"].keys() == {"Ben", "Cat", "Dan"}
    assert found["edge:Trains"].keys() == {"e3"}
    assert found["edge:StationedAt"].keys() == {"w2"}


def test_32_a_delete_of_edges_by_their_source(pilots: og.Graph) -> None:
    result = mutate(pilots, 'delete Trains where from = "Ann"')
    assert (result.affected_nodes, result.affected_edges) == (0, 3)
    assert rows(pilots, "Trains").keys() == {"e3"}


def test_33_overlapping_deletes_count_each_row_once(pilots: og.Graph) -> None:
    result = mutate(pilots, 'delete Pilot where name = "Ann" delete Pilot where hours > 29')
    assert (result.affected_nodes, result.affected_edges) == (2, 4)
    assert rows(pilots, "Pilot").keys() == {"Ben", "Dan"}


def test_34_inserts_and_deletes_mix(pilots: og.Graph) -> None:
    result = mutate(pilots, 'insert Pilot { name: "X" } delete Pilot where name = "Ben"')
    assert (result.affected_nodes, result.affected_edges) == (2, 4)
    assert rows(pilots, "Pilot").keys() == {"Ann", "Cat", "Dan", "X"}


def test_35_a_key_cannot_be_updated(pilots: og.Graph) -> None:
    with (
        unchanged(pilots),
        pytest.raises(errors.TypeCheckError, match="cannot update @key property 'name'"),
    ):
        mutate(pilots, 'update Pilot set { name: "Y" } where name = "Ben"')


def test_an_edge_is_updated_by_both_ends(pilots: og.Graph) -> None:
    result = mutate(pilots, 'update Trains set { note: "x" } where from = "Ann" and to = "Ben"')
    assert (result.affected_nodes, result.affected_edges) == (0, 2)
    found = rows(pilots, "Trains")
    assert {id_ for id_, row in found.items() if row["note"] == "x"} == {"e1", "e4"}
    assert found["e1"]["since"] == date(2020, 5, 1)
    with unchanged(pilots), pytest.raises(errors.TypeCheckError) as caught:
        mutate(pilots, 'update Trains set { to: "Cat" } where from = "Ann"')
    assert caught.value.code == "T11"


# -- what a statement sees of the ones before it -------------------------------------------------


def test_an_update_sees_inserts_and_updates(pilots: og.Graph) -> None:
    result = mutate(
        pilots,
        'insert Pilot { name: "Eve" hours: 50 } '
        'update Pilot set { hours: 60 } where name = "Ann" '
        'update Pilot set { hired: date("2021-01-01") } where hours >= 50 '
        'update Pilot set { hours: 1 } where hired = date("2021-01-01") and name != "Eve"',
    )
    assert result.affected_nodes == 1 + 1 + 2 + 1
    found = rows(pilots, "Pilot")
    assert (found["Eve"]["hours"], found["Eve"]["hired"]) == (50, date(2021, 1, 1))
    assert (found["Ann"]["hours"], found["Ann"]["hired"]) == (1, date(2021, 1, 1))
    assert found["Ann"]["ratings"] == ["a", "b"]


def test_a_row_that_was_changed_is_not_found_by_what_it_was(pilots: og.Graph) -> None:
    result = mutate(
        pilots,
        'update Pilot set { hours: 1 } where name = "Ann" '
        "update Pilot set { hours: 2 } where hours = 30 ",
    )
    assert result.affected_nodes == 1
    assert rows(pilots, "Pilot")["Ann"]["hours"] == 1


def test_a_row_that_was_changed_twice_is_written_once(pilots: og.Graph) -> None:
    before = pilots.snapshot().tables["node:Pilot"]
    result = mutate(
        pilots,
        'insert Pilot { name: "Ann" hours: 1 } insert Pilot { name: "Ann" ratings: ["x"] } '
        'update Pilot set { hours: 3 } where name = "Ann"',
    )
    assert result.affected_nodes == 3
    after = pilots.snapshot().tables["node:Pilot"]
    assert after.version == before.version + 1
    assert after.pin.row_count == before.pin.row_count
    found = rows(pilots, "Pilot")["Ann"]
    assert (found["hours"], found["ratings"], found["hired"]) == (3, ["x"], None)


def test_edges_that_were_just_inserted_can_be_updated(pilots: og.Graph) -> None:
    result = mutate(
        pilots,
        'insert Trains { from: "Dan" to: "Cat" } '
        'update Trains set { note: "new" } where to = "Cat"',
    )
    assert result.affected_edges == 1 + 2
    notes = {row[SRC]: row["note"] for row in rows(pilots, "Trains").values() if row[DST] == "Cat"}
    assert notes == {"Dan": "new", "Ann": "new"}


def test_deletes_see_deletes(pilots: og.Graph) -> None:
    result = mutate(
        pilots,
        'delete Trains where from = "Ann" delete Pilot where name = "Ann" '
        'delete Trains where to = "Dan"',
    )
    assert (result.affected_nodes, result.affected_edges) == (1, 3 + 1 + 1)
    assert rows(pilots, "Trains") == {}


def test_a_loop_is_deleted_once(pilots: og.Graph) -> None:
    mutate(pilots, 'insert Trains { from: "Dan" to: "Dan" }')
    result = mutate(pilots, 'delete Pilot where name = "Dan"')
    assert (result.affected_nodes, result.affected_edges) == (1, 2)


def test_nothing_to_delete_is_no_commit(pilots: og.Graph) -> None:
    with unchanged(pilots):
        result = mutate(pilots, 'delete Pilot where name = "Zed" delete Trains where to = "Zed"')
    assert (result.affected_nodes, result.affected_edges, result.commit) == (0, 0, None)


@pytest.mark.parametrize("where", ['name = "nobody"', "age = 12345"])
def test_a_null_is_refused_also_when_no_row_matches(tmp_path: Path, where: str) -> None:
    graph = og.init(
        tmp_path / "graph", "node Person { name: String @key  age: I32  nick: String? }"
    )
    declared = "$age: I32?, $nick: String?"
    with pytest.raises(errors.ValidationError, match="non-nullable property 'age'") as refused:
        graph.mutate(update("Person", "age: $age", where, declared))
    assert refused.value.rule == "required"
    assert graph.mutate(update("Person", "nick: $nick", where, declared)).affected_nodes == 0


def test_a_value_that_does_not_fit_is_refused_also_when_no_row_matches(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", "node Person { name: String @key  age: I32? }")
    text = update("Person", "age: $age", 'name = "nobody"', "$age: I64")
    with pytest.raises(errors.ValidationError, match="does not fit I32"):
        graph.mutate(text, params={"age": 2**40})


# -- predicates ----------------------------------------------------------------------------------

EVERYTHING = """
node Thing {
    slug: String @key
    flag: Bool?
    small: I32?
    large: I64?
    usmall: U32?
    ularge: U64?
    half: F32?
    whole: F64?
    day: Date?
    moment: DateTime?
    text: String?
    kind: enum(a, b)?
    words: [String]?
    numbers: [I64]?
    days: [Date]?
    hit: I32?
}
"""
MOMENT = datetime(2024, 2, 29, 12, 30, 0, 250000, tzinfo=UTC)
THINGS: list[dict[str, Any]] = [
    {
        "slug": f"t{number}",
        "flag": number % 2 == 0,
        "small": number - 3,
        "large": (number - 3) * 2**40,
        "usmall": number + 2**31,
        "ularge": number + 2**40,
        "half": number / 4,
        "whole": number / 3,
        "day": date(2024, 2, 26) + timedelta(days=number),
        "moment": MOMENT + timedelta(milliseconds=number),
        "text": ["", "a_b", "a%b", "É", "abc", "Zebra", "z"][number],
        "kind": "ab"[number % 2],
        "words": [["x"], [], ["y", "x"], ["z"], None, ["x"], ["w"]][number],
        "numbers": [number, -number],
        "days": [date(2024, 3, 1)] if number > 3 else [],
    }
    for number in range(7)
]
THINGS.append({"slug": "none"})
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
COMPARED = {
    "flag": "Bool",
    "small": "I32",
    "large": "I64",
    "usmall": "U32",
    "ularge": "U64",
    "half": "F32",
    "whole": "F64",
    "day": "Date",
    "moment": "DateTime",
    "text": "String",
    "kind": "String",
}


def jsonable(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    return [jsonable(item) for item in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.init(tmp_path_factory.mktemp("things") / "graph", EVERYTHING)
    for part in (THINGS[:4], THINGS[4:]):
        graph.load(
            [
                {"type": "Thing", "data": {name: jsonable(v) for name, v in thing.items()}}
                for thing in part
            ],
            mode="append",
        )
    return graph


def update(type_name: str, assigned: str, where: str, declared: str = "") -> str:
    return f"query q({declared}) {{ update {type_name} set {{ {assigned} }} where {where} }}"  # noqa: S608 - no SQL


_hits = iter(range(1, 10_000))


def hits(graph: og.Graph, where: str, declared: str = "", **params: Any) -> set[str]:
    """The rows that an update with this condition touches."""
    mark = next(_hits)
    result = graph.mutate(update("Thing", f"hit: {mark}", where, declared), params=params)
    found = rows(graph, "Thing")
    touched = {id_ for id_, row in found.items() if row["hit"] == mark}
    assert result.affected_nodes == len(touched)
    for thing in THINGS:
        # Whatever was updated is otherwise as it was.
        assert found[thing["slug"]]["words"] == thing.get("words")
        assert found[thing["slug"]]["moment"] == thing.get("moment")
    return touched


def expected(test: Callable[[dict[str, Any]], bool]) -> set[str]:
    return {thing["slug"] for thing in THINGS if test(thing)}


@pytest.mark.parametrize("column", COMPARED)
def test_comparisons(things: og.Graph, column: str) -> None:
    value = THINGS[3][column]
    for spelled, compare in OPERATORS.items():
        assert hits(
            things, f"{column} {spelled} $v", f"$v: {COMPARED[column]}", v=jsonable(value)
        ) == expected(lambda thing: column in thing and compare(thing[column], value)), spelled  # noqa: B023 - called at once


@pytest.mark.parametrize("column", COMPARED)
def test_lists_of_values(things: og.Graph, column: str) -> None:
    chosen = [THINGS[1][column], THINGS[5][column]]
    touched = hits(
        things, f"{column} in $v", f"$v: [{COMPARED[column]}]", v=[jsonable(v) for v in chosen]
    )
    assert touched == expected(lambda thing: thing.get(column) in chosen)
    assert hits(things, f"{column} in $v", f"$v: [{COMPARED[column]}]", v=[]) == set()
    assert hits(things, f"{column} in $v", f"$v: [{COMPARED[column]}]?", v=None) == set()


@pytest.mark.parametrize("column", [*COMPARED, "words", "numbers", "days"])
def test_nulls(things: og.Graph, column: str) -> None:
    missing = expected(lambda thing: thing.get(column) is None)
    assert hits(things, f"{column} is null") == missing
    assert hits(things, f"{column} is not null") == expected(lambda _: True) - missing


@pytest.mark.parametrize("column", COMPARED)
def test_a_null_parameter_matches_nothing(things: og.Graph, column: str) -> None:
    declared = f"$v: {COMPARED[column]}?"
    for spelled in OPERATORS:
        assert hits(things, f"{column} {spelled} $v", declared, v=None) == set()
        assert hits(things, f"{column} {spelled} $v", declared) == set()


@pytest.mark.parametrize(
    ("where", "test"),
    [
        ('words contains "x"', lambda t: "x" in (t.get("words") or [])),
        ("numbers contains -2", lambda t: -2 in (t.get("numbers") or [])),
        ("numbers contains 2.5", lambda _: False),
        ('days contains date("2024-03-01")', lambda t: bool(t.get("days"))),
        ('text contains "_"', lambda t: "_" in t.get("text", "")),
        ('text contains "%"', lambda t: "%" in t.get("text", "")),
        ('text contains ""', lambda t: "text" in t),
        ('text starts_with "a"', lambda t: t.get("text", "").startswith("a")),
        ('text starts_with "É"', lambda t: t.get("text", "").startswith("É")),
        ('text < "z"', lambda t: "text" in t and t["text"] < "z"),
        ("small = 2.7", lambda _: False),
        ("small != 2.7", lambda t: "small" in t),
        ("small < 2.7", lambda t: "small" in t and t["small"] < 2.7),
        ("small >= -2.5", lambda t: "small" in t and t["small"] >= -2.5),
        ("usmall >= -1", lambda t: "usmall" in t),
        ("ularge > 5", lambda t: "ularge" in t),
        ("small < 99999999999", lambda t: "small" in t),
        ("whole = 2", lambda t: t.get("whole") == 2),
        ("whole in [1, 2]", lambda t: t.get("whole") in (1, 2)),
        ("small in [1.0, 2.5]", lambda t: t.get("small") == 1),
        ("flag = true", lambda t: t.get("flag") is True),
        ('kind = "a"', lambda t: t.get("kind") == "a"),
        ("moment < now()", lambda t: "moment" in t),
        ('@id = "t3"', lambda t: t["slug"] == "t3"),
        ('@id in ["t1", "none", "zed"]', lambda t: t["slug"] in ("t1", "none")),
        ('@id > "t3"', lambda t: t["slug"] > "t3"),
        ('@id starts_with "t"', lambda t: t["slug"].startswith("t")),
        ('slug = "t3" and small > 5', lambda _: False),
        ('slug in ["t1", "t3"] and flag = false', lambda t: t["slug"] in ("t1", "t3")),
        (
            'small > -2 and text is not null and words contains "x" and usmall > 1',
            lambda t: t.get("small", -9) > -2 and "x" in (t["words"] or []),
        ),
        ("small > 0 and small is null", lambda _: False),
    ],
)
def test_conditions(things: og.Graph, where: str, test: Callable[[dict[str, Any]], bool]) -> None:
    assert hits(things, where) == expected(test)


def test_conditions_on_edges(pilots: og.Graph) -> None:
    conditions = {
        'from = "Ann"': 3,
        'from in ["Ann", "Ben"] and to = "Dan"': 1,
        'to starts_with "B"': 2,
        'from != "Ann"': 1,
        '@id = "e2"': 1,
        '@id in ["e1", "e2", "e9"]': 2,
        "since is null": 2,
        'since > date("2021-01-01") and from = "Ann"': 1,
        'from contains "n"': 4,
        'from = "Zed"': 0,
    }
    for where, count in conditions.items():
        result = pilots.mutate(update("Trains", 'note: "n"', where))
        assert result.affected_edges == count, where


# -- values --------------------------------------------------------------------------------------


def test_numbers_become_the_type_of_the_property(things: og.Graph) -> None:
    mutate(things, 'insert Thing { slug: "v1" whole: 3 half: 2 large: 5 small: -5 usmall: 7 }')
    found = rows(things, "Thing")["v1"]
    assert (found["whole"], found["half"], found["large"], found["small"]) == (3.0, 2.0, 5, -5)
    assert isinstance(found["whole"], float)
    mutate(things, 'delete Thing where slug = "v1"')
    for wrong in ("small: 3.5", "usmall: -1", "small: 99999999999"):
        with unchanged(things), pytest.raises(errors.OmniGraphError):
            mutate(things, f'insert Thing {{ slug: "v1" {wrong} }}')
    source = 'query q($n: I64) { insert Thing { slug: "v1" small: $n } }'
    with unchanged(things), pytest.raises(errors.ValidationError, match="does not fit I32"):
        things.mutate(source, params={"n": 2**40})


def test_lists(things: og.Graph) -> None:
    mutate(things, 'insert Thing { slug: "v2" words: [] numbers: [1, 2] days: [] }')
    found = rows(things, "Thing")["v2"]
    assert (found["words"], found["numbers"], found["days"]) == ([], [1, 2], [])
    source = 'query q($w: [String]?) { update Thing set { words: $w } where slug = "v2" }'
    things.mutate(source, params={"w": ["a", "é"]})
    assert rows(things, "Thing")["v2"]["words"] == ["a", "é"]
    things.mutate(source)
    assert rows(things, "Thing")["v2"]["words"] is None
    mutate(things, 'delete Thing where slug = "v2"')


def test_now_is_one_moment_for_the_whole_query(things: og.Graph) -> None:
    start = datetime.now(UTC) - timedelta(milliseconds=1)
    mutate(
        things,
        'insert Thing { slug: "n1" moment: now() } insert Thing { slug: "n2" moment: now() } '
        'update Thing set { hit: 9999 } where moment = now() and slug starts_with "n"',
    )
    found = rows(things, "Thing")
    assert found["n1"]["moment"] == found["n2"]["moment"] >= start
    assert (found["n1"]["hit"], found["n2"]["hit"]) == (9999, 9999)
    mutate(things, 'delete Thing where slug starts_with "n" and hit = 9999')


def test_null_is_assigned_only_where_it_fits(pilots: og.Graph) -> None:
    mutate(pilots, 'update Pilot set { hours: null ratings: null } where name = "Ann"')
    found = rows(pilots, "Pilot")["Ann"]
    assert (found["hours"], found["ratings"], found["hired"]) == (None, None, date(2020, 1, 2))
    with unchanged(pilots), pytest.raises(errors.TypeCheckError) as caught:
        mutate(pilots, "insert Pilot { name: null }")
    assert caught.value.code == "T3"
    source = "query q($n: String?) { insert Pilot { name: $n } }"
    with unchanged(pilots), pytest.raises(errors.ValidationError) as refused:
        pilots.mutate(source)
    assert refused.value.rule == "required"
    source = 'query q($n: String?) { insert Trains { from: $n to: "Ann" } }'
    with (
        unchanged(pilots),
        pytest.raises(errors.ValidationError, match="endpoint 'from' is null"),
    ):
        pilots.mutate(source)


def test_parameters_are_asked_for(pilots: og.Graph) -> None:
    source = "query q($n: String) { insert Pilot { name: $n } }"
    with unchanged(pilots), pytest.raises(errors.ParamError, match="not provided"):
        pilots.mutate(source)
    with unchanged(pilots), pytest.raises(errors.ParamError, match="'n'"):
        pilots.mutate(source, params={"n": 3})
    # What looks like a query is only text.
    nasty = "x' or '1'='1\"; delete"
    pilots.mutate(source, params={"n": nasty})
    assert nasty in rows(pilots, "Pilot")
    deleted = pilots.mutate(
        "query q($n: String) { delete Pilot where name = $n }", params={"n": nasty}
    )
    assert deleted.affected_nodes == 1
    assert len(rows(pilots, "Pilot")) == 4


def test_one_of_several_queries_is_chosen(pilots: og.Graph) -> None:
    source = """
    query add($n: String) { insert Pilot { name: $n } }
    query remove($n: String) { delete Pilot where name = $n }
    """
    assert pilots.mutate(source, "add", {"n": "Eve"}).query_name == "add"
    assert pilots.mutate(source, "remove", {"n": "Eve"}).query_name == "remove"
    with unchanged(pilots), pytest.raises(errors.OmniGraphError):
        pilots.mutate(source, params={"n": "Eve"})
    with unchanged(pilots), pytest.raises(errors.OmniGraphError):
        pilots.mutate("query q() { match { $p: Pilot } return { $p.name } }")


def test_the_actor_is_recorded(pilots: og.Graph) -> None:
    handle = og.open(str(pilots.location), actor="ann")
    first = mutate(handle, 'insert Pilot { name: "A" }')
    second = mutate(handle, 'insert Pilot { name: "B" }', actor="ben")
    assert first.commit is not None
    assert second.commit is not None
    assert (first.actor, first.commit.actor) == ("ann", "ann")
    assert (second.actor, second.commit.actor) == ("ben", "ben")
    assert first.commit.metadata == {"operation": "mutation"}
    assert [commit.id for commit in pilots.commits.list(actor="ben")] == [second.commit.id]


def test_a_branch_is_written_to_alone(pilots: og.Graph) -> None:
    pilots.branches.create("dev")
    before = image(pilots)
    result = mutate(pilots, 'delete Pilot where name = "Ann"', branch="dev")
    assert (result.branch, result.affected_edges) == ("dev", 4)
    assert image(pilots) == before
    assert "Ann" not in rows(pilots, "Pilot", "dev")
    with pytest.raises(errors.BranchNotFound):
        mutate(pilots, 'insert Pilot { name: "A" }', branch="nope")
    reader = og.open(str(pilots.location), read_only=True)
    with pytest.raises(errors.BadRequest, match="read-only"):
        mutate(reader, 'insert Pilot { name: "A" }')


def test_a_branch_replaces_a_row_that_main_has_deleted(
    pilots: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is known of main's rows must not be taken for what the branch has."""
    pilots.branches.create("dev")
    mutate(pilots, 'delete Pilot where name = "Ben"')
    # As in a new process, which looks at main first.
    monkeypatch.setattr(row_lookup, "fragment_maps", row_lookup.FragmentMaps())
    mutate(pilots, 'insert Pilot { name: "Eve" }')
    result = mutate(pilots, 'insert Pilot { name: "Ben" hours: 1 }', branch="dev")
    assert result.affected_nodes == 1
    assert rows(pilots, "Pilot", "dev")["Ben"]["hours"] == 1
    assert pilots.table("Pilot", branch="dev").count_rows() == 4
    mutate(pilots, 'insert Trains { from: "Ben" to: "Ann" }', branch="dev")


def test_a_condition_on_the_head(pilots: og.Graph) -> None:
    head = pilots.snapshot().commit_id
    result = mutate(pilots, 'insert Pilot { name: "A" }', if_commit=head)
    assert result.commit is not None
    with unchanged(pilots), pytest.raises(errors.PreconditionFailed):
        mutate(pilots, 'insert Pilot { name: "B" }', if_commit=head)
    pilots.branches.create("dev")
    # A fresh branch has the head it was forked at.
    mutate(pilots, 'insert Pilot { name: "B" }', if_commit=result.commit.id, branch="dev")
