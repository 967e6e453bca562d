"""`create`, `upsert`, and what an `insert` takes away: keys, partial rows, vectors, warnings."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.lang.structural import ID
from tests.write.writing import image, mutate, overtaken, rows, unchanged

SCHEMA = """
node Film {
    title: String @key
    year: I32
    plot: String?
    tags: [String]?
    stars: I32 @default(3)
    rank: I32? @default(9)
    poster: Blob?
    shape: Vector(2)?
    meaning: Vector(4)? @embed(plot)
}
node Slot { day: Date  hour: I32  note: String?  @key(day, hour) }
node Essay { slug: String @key  body: String  v: Vector(4) @embed(body) }
edge Before: Film -> Film
"""


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> og.Graph:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    graph = og.init(tmp_path / "graph", SCHEMA)
    source = """
    query q($poster: Blob) {
        insert Film { title: "Rain" year: 1999 plot: "it rains" tags: ["wet"] stars: 5 rank: 1
                      poster: $poster shape: [1.0, 2.0] }
        insert Film { title: "Fog" year: 2001 }
    }
    """
    graph.mutate(source, params={"poster": "base64:" + b64encode(b"picture").decode()})
    return graph


def film(graph: og.Graph, title: str) -> dict[str, object]:
    return rows(graph, "Film")[title]


def poster(graph: og.Graph, title: str) -> bytes | None:
    found = graph.table("Film").scanner(columns=[ID, "poster"], blob_handling="all_binary")
    content: dict[str, bytes | None] = {
        row[ID]: row["poster"] for row in found.to_table().to_pylist()
    }
    return content[title]


# -- create --------------------------------------------------------------------------------------


def test_create_makes_a_row_as_insert_does(graph: og.Graph) -> None:
    result = mutate(graph, 'create Film { title: "Snow" year: 2020 plot: "it snows" }')
    assert (result.affected_nodes, result.warnings) == (1, ())
    made = film(graph, "Snow")
    assert (made["stars"], made["rank"], made["tags"]) == (3, 9, None)
    assert made["meaning"] is not None


@pytest.mark.parametrize(
    "body",
    [
        'create Film { title: "Rain" year: 1 }',
        'create Film { title: "New" year: 1 } create Film { title: "New" year: 2 }',
        'insert Film { title: "New" year: 1 } create Film { title: "New" year: 2 }',
        'upsert Film { title: "New" year: 1 } create Film { title: "New" year: 2 }',
        """insert Film { title: "New" year: 1 } update Film set { year: 2 } where title = "New"
        create Film { title: "New" year: 2 }""",
        'update Film set { year: 2 } where title = "Rain" create Film { title: "Rain" year: 2 }',
        'create Film { title: "Rain" year: 1 } delete Film where title = "Rain"',
    ],
)
def test_create_refuses_a_key_that_exists(graph: og.Graph, body: str) -> None:
    with unchanged(graph), pytest.raises(errors.KeyConflict) as caught:
        mutate(graph, body)
    title = "New" if "New" in body else "Rain"
    assert str(caught.value) == f"'{title}' exists already in Film"
    assert caught.value.code == "key_conflict"
    assert (caught.value.details["type_key"], caught.value.details["entity_id"]) == (
        "node:Film",
        title,
    )


def test_all_keys_that_exist_are_told(graph: og.Graph) -> None:
    with unchanged(graph), pytest.raises(errors.KeyConflict) as caught:
        mutate(
            graph,
            'create Film { title: "Rain" year: 1 } create Film { title: "New" year: 1 } '
            'create Film { title: "Fog" year: 1 } create Film { title: "New" year: 1 }',
        )
    assert [one["entity_id"] for one in caught.value.details["conflicts"]] == ["Rain", "Fog", "New"]


def test_create_makes_what_was_deleted_before(graph: og.Graph) -> None:
    mutate(graph, 'delete Film where title = "Rain" create Film { title: "Rain" year: 1 }')
    assert (film(graph, "Rain")["year"], film(graph, "Rain")["plot"]) == (1, None)
    mutate(
        graph,
        'create Film { title: "New" year: 1 } delete Film where title = "New" '
        'create Film { title: "New" year: 2 }',
    )
    assert film(graph, "New")["year"] == 2


def test_two_creates_at_once(graph: og.Graph) -> None:
    body = 'create Film { title: "New" year: 1 }'
    with (
        overtaken(graph, "table_staged", lambda other: mutate(other, body)),
        pytest.raises(errors.KeyConflict, match="'New' exists already in Film"),
    ):
        mutate(graph, body)


# -- upsert --------------------------------------------------------------------------------------


def test_upsert_changes_only_what_is_given(graph: og.Graph) -> None:
    before = film(graph, "Rain")
    result = mutate(graph, 'upsert Film { title: "Rain" stars: 1 tags: null }')
    assert (result.affected_nodes, result.warnings) == (1, ())
    assert film(graph, "Rain") == {**before, "stars": 1, "tags": None}
    assert poster(graph, "Rain") == b"picture"
    mutate(graph, 'upsert Film { title: "Rain" }')
    assert film(graph, "Rain") == {**before, "stars": 1, "tags": None}


def test_upsert_of_a_new_key_is_an_insert(graph: og.Graph) -> None:
    mutate(graph, 'upsert Film { title: "Snow" year: 2020 plot: "it snows" }')
    made = film(graph, "Snow")
    assert (made["stars"], made["rank"], made["tags"]) == (3, 9, None)
    assert made["meaning"] is not None
    mutate(graph, 'upsert Slot { day: date("2020-01-01") hour: 3 }')
    mutate(graph, 'upsert Slot { day: date("2020-01-01") hour: 3 note: "n" }')
    assert [row["note"] for row in rows(graph, "Slot").values()] == ["n"]


def test_required_properties_are_required_where_it_inserts(graph: og.Graph) -> None:
    mutate(graph, 'upsert Film { title: "Rain" plot: null }')
    with unchanged(graph), pytest.raises(errors.ValidationError) as caught:
        mutate(graph, 'upsert Film { title: "Rain" stars: 2 } upsert Film { title: "Snow" }')
    assert caught.value.rule == "required"
    (violation,) = caught.value.details["violations"]
    assert (violation["entity_id"], violation["property"]) == ("Snow", "year")
    # The final state counts.
    mutate(graph, 'upsert Film { title: "Snow" } upsert Film { title: "Snow" year: 1 }')
    mutate(graph, 'upsert Film { title: "Ice" } update Film set { year: 2 } where title = "Ice"')
    assert (film(graph, "Snow")["year"], film(graph, "Ice")["year"]) == (1, 2)
    source = 'query q($y: I32?) { upsert Film { title: "Rain" year: $y } }'
    with unchanged(graph), pytest.raises(errors.ValidationError) as refused:
        graph.mutate(source)
    assert refused.value.rule == "required"


def test_upserts_of_one_key_add_up(graph: og.Graph) -> None:
    mutate(
        graph,
        'upsert Film { title: "Rain" stars: 1 } upsert Film { title: "Rain" year: 5 stars: 2 } '
        'insert Film { title: "Fog" year: 6 } upsert Film { title: "Fog" tags: ["t"] } '
        'upsert Film { title: "New" tags: ["u"] } upsert Film { title: "New" year: 7 } '
        'upsert Film { title: "Old" year: 1 tags: ["v"] } insert Film { title: "Old" year: 8 }',
    )
    found = rows(graph, "Film")
    shown = {title: (row["year"], row["stars"], row["tags"]) for title, row in found.items()}
    assert shown == {
        "Rain": (5, 2, ["wet"]),
        "Fog": (6, 3, ["t"]),
        "New": (7, 3, ["u"]),
        "Old": (8, 3, None),
    }


def test_upsert_after_a_delete_starts_anew(graph: og.Graph) -> None:
    mutate(graph, 'delete Film where title = "Rain" upsert Film { title: "Rain" year: 3 }')
    assert (film(graph, "Rain")["year"], film(graph, "Rain")["plot"]) == (3, None)


def test_upsert_keeps_what_somebody_else_has_written(graph: og.Graph) -> None:
    change = 'update Film set { tags: ["theirs"] } where title = "Rain"'
    with overtaken(graph, "table_staged", lambda other: mutate(other, change)):
        mutate(graph, 'upsert Film { title: "Rain" stars: 1 }')
    assert (film(graph, "Rain")["tags"], film(graph, "Rain")["stars"]) == (["theirs"], 1)


def test_vectors_follow_their_texts(graph: og.Graph) -> None:
    before = film(graph, "Rain")["meaning"]
    mutate(graph, 'upsert Film { title: "Rain" plot: "it rains" stars: 1 }')
    assert film(graph, "Rain")["meaning"] == before
    mutate(graph, 'upsert Film { title: "Rain" plot: "it pours" }')
    poured = film(graph, "Rain")["meaning"]
    assert poured not in (None, before)
    mutate(graph, 'upsert Film { title: "Rain" plot: null }')
    assert film(graph, "Rain")["meaning"] is None
    mutate(graph, 'upsert Film { title: "Rain" plot: "it pours" meaning: [1.0, 0.0, 0.0, 0.0] }')
    assert film(graph, "Rain")["meaning"] == [1.0, 0.0, 0.0, 0.0]
    mutate(
        graph,
        'upsert Film { title: "Rain" meaning: [0.0, 1.0, 0.0, 0.0] } '
        'upsert Film { title: "Rain" plot: "it pours" }',
    )
    assert film(graph, "Rain")["meaning"] == [0.0, 1.0, 0.0, 0.0]
    # The text came back, but the vector went with the first of them.
    mutate(
        graph,
        'upsert Film { title: "Rain" plot: "it rains" } '
        'upsert Film { title: "Rain" plot: "it pours" }',
    )
    assert film(graph, "Rain")["meaning"] == poured
    mutate(graph, 'upsert Essay { slug: "a" body: "first" }')
    assert rows(graph, "Essay")["a"]["v"] is not None


# -- what an insert takes away -------------------------------------------------------------------


def warned(graph: og.Graph, body: str) -> list[tuple[str, int, tuple[str, ...]]]:
    result = mutate(graph, body)
    return [(one.type_name, one.rows, one.properties) for one in result.warnings]


def test_an_insert_that_empties_says_so(graph: og.Graph) -> None:
    lost = ("meaning", "plot", "poster", "shape", "tags")
    result = mutate(
        graph, 'insert Film { title: "Rain" year: 1 } insert Film { title: "X" year: 1 }'
    )
    (warning,) = result.warnings
    assert (warning.type_name, warning.rows, warning.properties) == ("Film", 1, lost)
    assert str(warning) == (
        "insert replaced 1 Film and emptied meaning, plot, poster, shape, tags; "
        "upsert changes only what is given"
    )
    # There is nothing left to lose.
    assert warned(graph, 'insert Film { title: "Rain" year: 1 }') == []


def test_rows_and_properties_are_counted(graph: og.Graph) -> None:
    mutate(graph, 'upsert Film { title: "Fog" tags: ["grey"] }')
    mutate(graph, 'insert Slot { day: date("2020-01-01") hour: 3 note: "n" }')
    assert warned(
        graph,
        'insert Film { title: "Rain" year: 1 plot: "it rains" poster: null shape: [1.0, 2.0] } '
        'insert Slot { day: date("2020-01-01") hour: 3 } insert Film { title: "Fog" year: 2 }',
    ) == [("Film", 2, ("tags",)), ("Slot", 1, ("note",))]


@pytest.mark.parametrize(
    "body",
    [
        'insert Film { title: "Rain" year: 1 plot: "p" tags: [] poster: null shape: null }',
        'insert Film { title: "Fog" year: 1 }',
        'insert Film { title: "New" year: 1 }',
        'insert Film { title: "New" year: 1 tags: ["t"] } insert Film { title: "New" year: 1 }',
        """insert Film { title: "New" year: 1 tags: ["t"] }
        update Film set { year: 2 } where year = 1 insert Film { title: "New" year: 1 }""",
        'update Film set { tags: ["t"] } where title = "Fog" insert Film { title: "Fog" year: 1 }',
        'delete Film where title = "Rain" insert Film { title: "Rain" year: 1 }',
        """delete Film where title = "Rain" insert Film { title: "Rain" year: 1 }
        update Film set { year: 2 } where year = 1 insert Film { title: "Rain" year: 1 }""",
        'insert Film { title: "Rain" year: 1 } delete Film where title = "Rain"',
        'upsert Film { title: "Rain" plot: null tags: null }',
        'update Film set { plot: null tags: null } where title = "Rain"',
    ],
)
def test_what_empties_nothing_is_not_warned_of(graph: og.Graph, body: str) -> None:
    assert warned(graph, body) == []


def test_what_is_given_again_is_not_lost(graph: og.Graph) -> None:
    assert warned(
        graph,
        'insert Film { title: "Rain" year: 1 poster: null } '
        'update Film set { plot: "p" } where title = "Rain" '
        'upsert Film { title: "Rain" shape: null }',
    ) == [("Film", 1, ("tags",))]
    assert image(graph)["node:Film"]["Rain"]["meaning"] is not None
