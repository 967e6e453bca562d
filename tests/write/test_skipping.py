"""Loads that leave out wrong rows, and loads that only pretend."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.lang.structural import DST
from tests.write.writing import image, rows, unchanged

SCHEMA = """
node Person {
    name: String @key
    email: String? @unique
    age: I32?
    @range(age, 0..150)
}

node Note {
    text: String?
    code: I64? @unique
}

edge Knows: Person -> Person {
    since: Date?
}

edge Boss: Person -> Person @card(0..1)
"""

MODES = ["append", "merge", "overwrite"]


def person(name: Any, **data: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **data}}


def note(id_: str | None = None, **data: Any) -> dict[str, Any]:
    return {"type": "Note", "data": data if id_ is None else {"id": id_, **data}}


def edge(type_: str, id_: str | None, source: str, target: str) -> dict[str, Any]:
    return {"edge": type_, "from": source, "to": target, "data": {} if id_ is None else {"id": id_}}


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "graph", SCHEMA)
    graph.load(
        [
            person("Ann", email="ann@x"),
            person("Ben", email="ben@x"),
            person("Cat"),
            note("n1", code=1),
            note("n2", code=2),
            edge("Knows", "k1", "Ann", "Ben"),
            edge("Boss", "b1", "Ann", "Ben"),
        ],
        mode="append",
    )
    return graph


def skipped(
    graph: og.Graph, records: list[dict[str, Any]], mode: str, tmp_path: Path
) -> dict[int, str]:
    """The rejects of a load by line."""
    result = graph.load(records, mode=mode, on_error="skip", rejects=str(tmp_path / "rejects"))
    listed = [] if result.rejects_file is None else listing(result.rejects_file)
    assert result.rejected == len(listed)
    assert result.total == len(records) - len(listed)
    return {reject["line"]: reject["code"] for reject in listed}


def listing(path: str | Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


# -- rejects --------------------------------------------------------------------------------


def test_rejects_are_told_in_full(graph: og.Graph, tmp_path: Path) -> None:
    text = (
        b'\xef\xbb\xbf{"type": "Person", "data": {"name": "Dan", "age": 200}}\r\n'
        b"\r\n"
        b'{"type": "Person", "data": {"name": "Eve", "age": "old"}}\r\n'
        b'{"type": "Note", "data": {"text": "\xff"}}\n'
        b'{"type": "Person", "data": {"name": "Fay"}}\n'
        b'{"edge": "Knows", "from": "Fay", "to": "Eve"}'
    )
    path = tmp_path / "input.jsonl"
    path.write_bytes(text)
    result = graph.load(path, mode="append", on_error="skip", rejects=str(tmp_path / "a" / "b"))
    assert result.rejects == {"endpoint": 1, "format": 1, "range": 1, "type": 1}
    assert (result.rejected, result.total, result.nodes) == (4, 1, {"Person": 1})
    assert result.edges == {}
    assert result.rejects_file is not None
    assert Path(result.rejects_file).parent == tmp_path / "a" / "b"
    lines = text.split(b"\n")
    expected = [
        (1, 3, "range", "node:Person", "age"),
        (3, text.index(lines[2]), "type", "node:Person", "age"),
        (4, text.index(lines[3]), "format", None, None),
        (6, text.index(lines[5]), "endpoint", "edge:Knows", "to"),
    ]
    found = listing(result.rejects_file)
    assert [
        (one["line"], one["offset"], one["code"], one["type"], one["property"]) for one in found
    ] == expected
    assert {one["file"] for one in found} == {str(path)}
    assert [one["raw"] for one in found] == [
        lines[0].removeprefix(b"\xef\xbb\xbf").removesuffix(b"\r").decode(),
        lines[2].removesuffix(b"\r").decode(),
        lines[3].decode(errors="replace"),
        lines[5].decode(),
    ]
    assert found[0]["message"] == "@range violation on Person.age: value 200 > max 150"
    assert found[3]["message"] == "dst 'Eve' not found in Person"


def test_nothing_is_listed_when_nothing_is_wrong(graph: og.Graph, tmp_path: Path) -> None:
    place = tmp_path / "rejects"
    result = graph.load([person("Dan")], mode="append", on_error="skip", rejects=str(place))
    assert (result.rejects_file, result.rejected) == (None, 0)
    assert not place.exists()


def test_rejects_are_counted_when_nobody_wants_the_list(graph: og.Graph) -> None:
    result = graph.load([person(1), person("Dan")], mode="append", on_error="skip")
    assert (result.rejects_file, result.rejects) == (None, {"type": 1})
    assert rows(graph, "Person").keys() == {"Ann", "Ben", "Cat", "Dan"}


def test_a_row_is_rejected_once(graph: og.Graph, tmp_path: Path) -> None:
    wrong = {"type": "Person", "data": {"name": 1, "age": "x", "nmae": 2}}
    assert skipped(graph, [wrong, wrong], "append", tmp_path) == {1: "type", 2: "type"}


def test_rows_of_frames_are_known_by_number(graph: og.Graph, tmp_path: Path) -> None:
    frame = pa.table({"name": ["Dan", "Eve", None], "age": [1, 200, 3]})
    result = graph.load(
        {"Person": frame}, mode="append", on_error="skip", rejects=str(tmp_path / "rejects")
    )
    assert result.rejects_file is not None
    found = [
        (one["file"], one["line"], one["offset"], one["code"], json.loads(one["raw"]))
        for one in listing(result.rejects_file)
    ]
    assert found == [
        ("Person", 2, None, "range", {"name": "Eve", "age": 200}),
        ("Person", 3, None, "required", {"name": None, "age": 3}),
    ]


@pytest.mark.parametrize("age", [pa.array(["x"]), pa.array([200])])
def test_a_frame_with_no_right_row_leaves_its_type_alone(graph: og.Graph, age: pa.Array) -> None:
    """A row may be no row, or break a rule: that makes no difference."""
    before = image(graph)
    frame = pa.table({"name": ["Dan"], "age": age})
    try:
        result = graph.load({"Person": frame}, mode="overwrite", on_error="skip")
    except errors.ValidationError:
        # A column of another type is nothing that a row is to blame for.
        assert pa.types.is_string(age.type)
    else:
        assert (result.total, result.rejected) == (0, 1)
    assert image(graph) == before


def test_a_frame_of_misfits_leaves_its_type_alone(graph: og.Graph) -> None:
    before = image(graph)
    frame = pa.table({"name": pa.array([None, None], pa.string()), "id": ["x", None]})
    result = graph.load({"Person": frame}, mode="overwrite", on_error="skip")
    assert (result.total, result.rejected) == (0, 2)
    assert image(graph) == before


# -- who is to blame ------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_later_rows_repeat_a_value(graph: og.Graph, tmp_path: Path, mode: str) -> None:
    records = [note(code=7), note(code=8), note(code=7), note(code=7)]
    assert skipped(graph, records, mode, tmp_path) == {3: "unique", 4: "unique"}


def test_stored_rows_keep_their_values(graph: og.Graph, tmp_path: Path) -> None:
    records = [person("Dan", email="ann@x"), person("Ann", email="new@x")]
    assert skipped(graph, records, "append", tmp_path) == {1: "unique", 2: "key_conflict"}
    assert skipped(graph, records, "merge", tmp_path) == {}


def test_a_value_is_free_only_until_the_row_that_frees_it_is_rejected(
    graph: og.Graph, tmp_path: Path
) -> None:
    records = [note("n3", code=7), note("n2", code=7), note("n1", code=2), note("n4", code=1)]
    assert skipped(graph, records, "merge", tmp_path) == {2: "unique", 3: "unique", 4: "unique"}
    assert {id_: row["code"] for id_, row in rows(graph, "Note").items()} == {
        "n1": 1,
        "n2": 2,
        "n3": 7,
    }


def test_a_reject_pulls_along_what_needs_it(graph: og.Graph, tmp_path: Path) -> None:
    records = [
        person("Dan", age=-1),
        person("Eve", email="ann@x"),
        edge("Knows", None, "Dan", "Ann"),
        edge("Knows", None, "Cat", "Eve"),
        edge("Knows", None, "Cat", "Ann"),
    ]
    assert skipped(graph, records, "append", tmp_path) == {
        1: "range",
        2: "unique",
        3: "endpoint",
        4: "endpoint",
    }


def test_no_edge_of_a_crowded_source_is_better_than_another(
    graph: og.Graph, tmp_path: Path
) -> None:
    records = [
        edge("Boss", None, "Cat", "Ann"),
        edge("Boss", None, "Ben", "Ann"),
        edge("Boss", None, "Cat", "Ben"),
        edge("Boss", None, "Ann", "Cat"),
    ]
    expected = {1: "cardinality", 3: "cardinality", 4: "cardinality"}
    assert skipped(graph, records, "append", tmp_path) == expected


def test_an_edge_that_goes_for_another_reason_in_the_same_round_still_counts(
    graph: og.Graph, tmp_path: Path
) -> None:
    records = [edge("Boss", None, "Cat", "nobody"), edge("Boss", None, "Cat", "Ben")]
    assert skipped(graph, records, "append", tmp_path) == {1: "endpoint", 2: "cardinality"}


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_strict_load_takes_the_first_row_of_an_id(
    graph: og.Graph, tmp_path: Path, mode: str
) -> None:
    records = [note("n8", text="1"), note("n8", text="2"), note("n8", text="3")]
    assert skipped(graph, records, mode, tmp_path) == {2: "key_conflict", 3: "key_conflict"}
    assert rows(graph, "Note")["n8"]["text"] == "1"


def test_a_merge_takes_the_last_row_of_an_id_that_is_right(graph: og.Graph, tmp_path: Path) -> None:
    records = [
        edge("Knows", "k8", "Ann", "nobody"),
        edge("Knows", "k8", "Ann", "Cat"),
        edge("Knows", "k8", "Ben", "nobody"),
        edge("Knows", "k9", "Ann", "nobody"),
        edge("Knows", "k9", "Ann", "Cat"),
    ]
    # What a later row replaces is not looked at: only one row of an id has to be right.
    assert skipped(graph, records, "merge", tmp_path) == {3: "endpoint"}
    assert rows(graph, "Knows")["k8"][DST] == "Cat"


def test_a_key_is_refused_only_when_nothing_else_is_wrong(graph: og.Graph, tmp_path: Path) -> None:
    records = [edge("Knows", "k1", "Ann", "nobody"), edge("Knows", "k1", "Ann", "Cat"), note("n1")]
    found = skipped(graph, records[:1], "append", tmp_path)
    assert found == {1: "endpoint"}
    assert skipped(graph, records[1:], "append", tmp_path) == {1: "key_conflict", 2: "key_conflict"}


# -- what is left alone ---------------------------------------------------------------------


def test_a_type_with_no_right_row_is_left_alone(graph: og.Graph, tmp_path: Path) -> None:
    records = [person("Ann"), person("Ben"), edge("Knows", None, "Ann", "nobody"), note(code="x")]
    before = image(graph)
    assert skipped(graph, records, "overwrite", tmp_path) == {3: "endpoint", 4: "type"}
    after = image(graph)
    assert after["node:Person"].keys() == {"Ann", "Ben"}
    assert {key: after[key] for key in ("edge:Knows", "edge:Boss", "node:Note")} == {
        key: before[key] for key in ("edge:Knows", "edge:Boss", "node:Note")
    }


@pytest.mark.parametrize(
    "more", [[], [edge("Knows", None, "Cat", "nobody"), edge("Boss", None, "nobody", "Cat")]]
)
def test_what_no_row_is_to_blame_for_is_not_skipped(
    graph: og.Graph, tmp_path: Path, more: list[dict[str, Any]]
) -> None:
    with unchanged(graph), pytest.raises(errors.ValidationError) as caught:
        skipped(graph, [person("Cat"), *more], "overwrite", tmp_path)
    assert caught.value.rule == "endpoint"
    assert "not found in Person" in str(caught.value)


@pytest.mark.parametrize("mode", MODES)
def test_a_load_of_nothing_right_is_an_empty_commit(graph: og.Graph, mode: str) -> None:
    before = image(graph)
    result = graph.load(b"{\n[]\n", mode=mode, on_error="skip")
    assert (result.total, result.rejects) == (0, {"format": 2})
    assert graph.commits.list()[0] == result.commit
    assert image(graph) == before


# -- bounds ---------------------------------------------------------------------------------


def test_too_many_rejects_are_listed_and_nothing_is_loaded(graph: og.Graph, tmp_path: Path) -> None:
    records = [
        person("Dan"),
        person("Eve", age=-1),
        edge("Knows", None, "Eve", "Ann"),
        note(code=1),
    ]
    place = tmp_path / "rejects"
    with unchanged(graph), pytest.raises(errors.ValidationError) as caught:
        graph.load(records, mode="append", on_error="skip", max_rejects=2, rejects=str(place))
    assert "3 rows are wrong, at most 2 may be; nothing was written" in str(caught.value)
    assert caught.value.details["codes"] == {"endpoint": 1, "range": 1, "unique": 1}
    assert caught.value.details["total"] == 3
    (file,) = place.iterdir()
    assert [one["line"] for one in listing(file)] == [2, 3, 4]
    result = graph.load(records, mode="append", on_error="skip", max_rejects=3)
    assert (result.rejected, result.nodes) == (3, {"Person": 1})


def test_no_reject_may_be(graph: og.Graph) -> None:
    with unchanged(graph), pytest.raises(errors.ValidationError):
        graph.load([person(1)], mode="append", on_error="skip", max_rejects=0)
    assert graph.load([person("Dan")], mode="append", on_error="skip", max_rejects=0).total == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"on_error": "ignore"}, "fail, skip"),
        ({"on_error": "skip", "max_rejects": -1}, "less than none"),
        ({"max_rejects": 1}, 'on_error="skip"'),
        ({"run_id": " "}, "empty"),
        ({"mode": "upsert"}, "append, merge, patch, overwrite"),
        ({"engine": "flink"}, "auto or inline or spark"),
    ],
)
def test_options_that_make_no_sense(graph: og.Graph, options: dict[str, Any], said: str) -> None:
    with unchanged(graph), pytest.raises(errors.BadRequest, match=said):
        graph.load([person("Dan")], **{"mode": "append", **options})


def test_rejects_that_cannot_be_listed_stop_the_load(graph: og.Graph, tmp_path: Path) -> None:
    place = tmp_path / "a file"
    place.touch()
    records = [person("Dan"), person(1)]
    with unchanged(graph), pytest.raises(errors.BadRequest, match="cannot write the rejects to"):
        graph.load(records, mode="append", on_error="skip", rejects=str(place))
    # Where there are none, nothing has to be listed.
    graph.load(records[:1], mode="append", on_error="skip", rejects=str(place))


# -- dry runs -------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_dry_run_tells_what_would_be(graph: og.Graph, tmp_path: Path, mode: str) -> None:
    records = [person("Dan"), person("Dan"), edge("Knows", None, "Dan", "Dan"), *kept(mode)]
    before = files(graph)
    with unchanged(graph):
        told = graph.load(
            records, mode=mode, on_error="skip", rejects=str(tmp_path / "told"), dry_run=True
        )
    assert files(graph) == before
    assert (told.is_dry_run, told.published) == (True, None)
    with pytest.raises(errors.BadRequest, match="a dry run makes no commit"):
        _ = told.commit
    done = graph.load(records, mode=mode, on_error="skip", rejects=str(tmp_path / "done"))
    assert (told.nodes, told.edges, told.rejects) == (done.nodes, done.edges, done.rejects)
    assert told.rejects == {"unique": 1}
    assert told.rejects_file is not None
    assert done.rejects_file is not None
    assert listing(told.rejects_file) == listing(done.rejects_file)


def kept(mode: str) -> list[dict[str, Any]]:
    """What an overwrite must not drop, since stored edges need it."""
    return [person("Ann"), person("Ben")] if mode == "overwrite" else []


def files(graph: og.Graph) -> set[Path]:
    return {path for path in Path(graph.location.path).rglob("*") if path.is_file()}


def test_a_dry_run_fails_as_the_load_would(graph: og.Graph) -> None:
    with unchanged(graph), pytest.raises(errors.KeyConflict):
        graph.load([note("n1")], mode="append", dry_run=True)


def test_a_dry_run_makes_no_branch(graph: og.Graph) -> None:
    told = graph.load(
        [person("Dan")], mode="append", branch="side", from_branch="main", dry_run=True
    )
    assert (told.nodes, told.branch_created) == ({"Person": 1}, False)
    assert graph.branches.list() == ["main"]
