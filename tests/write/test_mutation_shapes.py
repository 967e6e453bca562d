"""Mutations of types of other shapes: blobs, vectors, composite and numeric keys, no key."""

from __future__ import annotations

from base64 import b64encode
from datetime import date
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.lang.structural import ID
from tests.write.writing import mutate, rows, unchanged

SHAPES = """
node Doc {
    slug: String @key
    title: String?
    data: Blob?
    thumb: Blob?
    v: Vector(3)?
    need: Vector(2)
}
node Slot { day: Date  hour: I32  note: String?  @key(day, hour) }
node Number { n: I64 @key  note: String? }
node Fact { text: String?  count: U32? }
edge Cites: Doc -> Doc { page: Blob?  note: String? }
edge At: Doc -> Slot
"""


@pytest.fixture
def shapes(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "shapes", SHAPES)


def blob(graph: og.Graph, type_name: str, column: str) -> dict[str, bytes | None]:
    found = graph.table(type_name).scanner(columns=[ID, column], blob_handling="all_binary")
    return {row[ID]: row[column] for row in found.to_table().to_pylist()}


def base64(data: bytes) -> str:
    return "base64:" + b64encode(data).decode()


INSERT_DOC = """
query q($slug: String, $data: Blob?, $v: Vector(3)?) {
    insert Doc { slug: $slug data: $data v: $v need: [0.0, 1.0] }
}
"""


def test_blobs_are_kept_when_other_properties_change(shapes: og.Graph) -> None:
    contents = {"a": b"one", "b": b"", "c": None, "d": bytes(range(256)) * 1000}
    for slug, data in contents.items():
        given = None if data is None else base64(data)
        shapes.mutate(INSERT_DOC, params={"slug": slug, "data": given})
    assert blob(shapes, "Doc", "data") == contents
    result = mutate(shapes, 'update Doc set { title: "t" } where slug >= "a"')
    assert result.affected_nodes == 4
    assert blob(shapes, "Doc", "data") == contents
    mutate(shapes, 'update Doc set { title: "u" } where title = "t" and slug = "d"')
    assert blob(shapes, "Doc", "data") == contents
    source = 'query q($d: Blob?) { update Doc set { data: $d } where slug = "a" }'
    shapes.mutate(source, params={"d": base64(b"new")})
    assert blob(shapes, "Doc", "data") == {**contents, "a": b"new"}
    shapes.mutate(source)
    assert blob(shapes, "Doc", "data") == {**contents, "a": None}
    mutate(shapes, 'delete Doc where slug = "a"')
    assert blob(shapes, "Doc", "data").keys() == {"b", "c", "d"}


@pytest.mark.slow
def test_blobs_are_kept_over_statements_of_one_query(shapes: og.Graph) -> None:
    source = """
    query q($d: Blob) {
        insert Doc { slug: "a" data: $d need: [0.0, 1.0] }
        update Doc set { title: "t" } where slug = "a"
        insert Doc { slug: "b" need: [0.0, 1.0] }
        insert Cites { from: "a" to: "b" page: $d }
        update Cites set { note: "n" } where to = "b"
    }
    """
    shapes.mutate(source, params={"d": base64(b"xyz")})
    assert blob(shapes, "Doc", "data") == {"a": b"xyz", "b": None}
    assert set(blob(shapes, "Cites", "page").values()) == {b"xyz"}
    mutate(shapes, 'update Cites set { note: "m" } where note = "n"')
    assert set(blob(shapes, "Cites", "page").values()) == {b"xyz"}


@pytest.mark.parametrize("given", ["base64:!", "base64:QQ", "https://example.org/x", "plain"])
def test_a_blob_that_is_none_is_refused(shapes: og.Graph, given: str) -> None:
    with unchanged(shapes), pytest.raises(errors.ValidationError, match="base64"):
        shapes.mutate(INSERT_DOC, params={"slug": "a", "data": given})


def test_vectors(shapes: og.Graph) -> None:
    shapes.mutate(INSERT_DOC, params={"slug": "a", "v": [1, 2.5, -3]})
    mutate(shapes, 'insert Doc { slug: "b" need: [1.0, 2.0] v: [0.1, 0.2, 0.3] }')
    mutate(shapes, 'update Doc set { title: "t" } where slug = "a"')
    found = rows(shapes, "Doc")
    assert found["a"]["v"] == [1.0, 2.5, -3.0]
    assert found["b"]["v"] == pytest.approx([0.1, 0.2, 0.3])
    assert found["a"]["need"] == [0.0, 1.0]
    mutate(
        shapes, "update Doc set { v: null } where v is not null and slug < 'b'".replace("'", '"')
    )
    assert mutate(shapes, 'update Doc set { title: "t" } where v is null').affected_nodes == 1
    assert rows(shapes, "Doc")["a"]["v"] is None
    with unchanged(shapes), pytest.raises(errors.OmniGraphError):
        shapes.mutate(INSERT_DOC, params={"slug": "c", "v": [1, 2]})
    with unchanged(shapes), pytest.raises(errors.ParamError, match="out of range for F32"):
        shapes.mutate(INSERT_DOC, params={"slug": "c", "v": [1e300, 0, 0]})
    with unchanged(shapes), pytest.raises(errors.TypeCheckError) as caught:
        mutate(shapes, 'insert Doc { slug: "c" }')
    assert caught.value.code == "T12"


def test_keys_of_several_members_and_of_numbers(shapes: og.Graph) -> None:
    for note in ("x", "y"):
        mutate(
            shapes,
            f'insert Slot {{ day: date("2020-01-02") hour: 3 note: "{note}" }} '
            f'insert Number {{ n: -5 note: "{note}" }}',
        )
    assert rows(shapes, "Slot") == {
        '["18263","3"]': {"day": date(2020, 1, 2), "hour": 3, "note": "y"}
    }
    assert rows(shapes, "Number") == {"-5": {"n": -5, "note": "y"}}
    for where, count in {
        "n = -5": 1,
        "n = -5.0": 1,
        "n in [-5, 7]": 1,
        "n in [-5.0]": 1,
        "n = 5": 0,
        '@id = "-5"': 1,
        "n = -5.5": 0,
    }.items():
        result = mutate(shapes, f'update Number set {{ note: "z" }} where {where}')  # noqa: S608 - no SQL
        assert result.affected_nodes == count, where
    result = mutate(
        shapes, 'update Slot set { note: "z" } where day = date("2020-01-02") and hour = 3'
    )
    assert result.affected_nodes == 1
    with pytest.raises(errors.TypeCheckError, match="cannot update @key property 'hour'"):
        mutate(shapes, "update Slot set { hour: 4 } where hour = 3")
    shapes.mutate(INSERT_DOC, params={"slug": "a"})
    source = 'query q($s: String) { insert At { from: "a" to: $s } }'
    shapes.mutate(source, params={"s": '["18263","3"]'})
    result = mutate(shapes, "delete Slot where hour = 3")
    assert (result.affected_nodes, result.affected_edges) == (1, 1)


def test_nodes_without_a_key_are_always_new(shapes: og.Graph) -> None:
    for _ in range(2):
        mutate(shapes, 'insert Fact { text: "same" } insert Fact { text: "same" count: 3 }')
    found = rows(shapes, "Fact")
    assert len(found) == 4
    assert {len(id_) for id_ in found} == {26}
    chosen = next(id_ for id_, row in found.items() if row.get("count") is None)
    source = 'query q($id: String) { update Fact set { text: "other" } where @id = $id }'
    assert shapes.mutate(source, params={"id": chosen}).affected_nodes == 1
    assert rows(shapes, "Fact")[chosen]["text"] == "other"
    assert mutate(shapes, 'delete Fact where text = "same" and count > 2').affected_nodes == 2


def test_ids_are_found_among_many_rows(shapes: og.Graph) -> None:
    facts = [{"type": "Fact", "data": {"id": f"f{n}", "count": n}} for n in range(5000)]
    shapes.load(facts, mode="append")
    listed = [f"f{n}" for n in range(0, 5000, 2)]
    source = 'query q($ids: [String]) { update Fact set { text: "even" } where @id in $ids }'
    assert shapes.mutate(source, params={"ids": listed}).affected_nodes == 2500
    result = mutate(shapes, "delete Fact where count >= 4000")
    assert result.affected_nodes == 1000
    found = rows(shapes, "Fact")
    assert sum(row["text"] == "even" for row in found.values()) == 2000
    assert len(found) == 4000
