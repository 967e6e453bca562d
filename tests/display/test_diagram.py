"""Schemas as pictures: everything is there, nothing lies on anything, texts stay texts."""

from __future__ import annotations

import random
import re
from xml.etree import ElementTree as ET

import pytest

from omnigraph.display.diagram import MOST_LINES, Arrow, Box, svg_of
from omnigraph.display.layout import Layout, Size, Spot, lay_out
from omnigraph.display.schema import MOST_TYPES, diagram_of, schema_html
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.source import Source

SVG = "{http://www.w3.org/2000/svg}"
FILMS = """\
interface Named {
    name: String
}

node Person implements Named {
    born: Date?
    name: String @key
}

node Film {
    title: String @key
}

node Alone {
    code: String @key
}

edge ActedIn: Person -> Film {
    role: String?
}

edge Directed: Person -> Film

edge Knows: Person -> Person

edge Stars: Film -> Person
"""


def catalog(text: str) -> Catalog:
    return compile_schema(Source(text, "schema.pg")).catalog


def texts(svg: str) -> list[str]:
    # It is what this project has just made.
    return [found.text or "" for found in ET.fromstring(svg).iter(f"{SVG}text")]  # noqa: S314


def test_every_type_and_property_is_drawn() -> None:
    drawn = texts(diagram_of(catalog(FILMS)))
    assert {"Person", "Film", "Alone", "Named"} <= {*drawn}
    assert {"ActedIn (role)", "Directed", "Knows", "Stars"} <= {*drawn}
    # What identifies a node comes first.
    assert drawn.index("name: String @key") < drawn.index("born: Date?")


def test_the_same_schema_is_the_same_picture() -> None:
    lines = FILMS.split("\n\n")
    random.Random(3).shuffle(lines)  # noqa: S311 - the same every time
    assert diagram_of(catalog("\n\n".join(lines))) == diagram_of(catalog(FILMS))


def test_nothing_is_asked_of_anybody() -> None:
    drawn = diagram_of(catalog(FILMS)).replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|url\(|<script|<image|<style| id=| href=", drawn)


def test_texts_are_no_markup() -> None:
    name = '<script>alert("1")</script>'
    drawn = svg_of([Box(name, (name,), name)], [Arrow(name, name, name, name)], name)
    assert "<script" not in drawn
    assert texts(drawn) == [name, name, name]


def test_long_types_and_long_names_are_cut() -> None:
    box = Box("a" * 100, tuple(f"p{n}: I32" for n in range(40)))
    drawn = texts(svg_of([box], [], "one"))
    assert max(map(len, drawn)) < 60
    assert len(drawn) == MOST_LINES + 1
    assert drawn[-1] == f"… {40 - MOST_LINES + 1} more"


def test_a_schema_without_types_has_no_picture_and_a_huge_one_a_list() -> None:
    assert schema_html(catalog("")) == "<p>0 node types, 0 edge types</p>"
    many = catalog("\n".join(f"node N{n} {{ a: I32? }}" for n in range(MOST_TYPES + 1)))
    assert "<svg" not in diagram_of(many)
    assert "N80" in diagram_of(many)


# -- where things stand ------------------------------------------------------------


def spots_of(laid: Layout) -> list[Spot]:
    every = [*laid.boxes.values(), *(spot for way in laid.ways for spot in way)]
    return list({id(spot): spot for spot in every}.values())


def check_apart(laid: Layout) -> None:
    spots = spots_of(laid)
    for spot in spots:
        assert spot.x >= 0
        assert spot.x + spot.size.width <= laid.width
        assert spot.y >= 0
        assert spot.y + spot.size.height <= laid.height
    for number, one in enumerate(spots):
        for other in spots[:number]:
            across = one.x < other.x + other.size.width and other.x < one.x + one.size.width
            down = one.y < other.y + other.size.height and other.y < one.y + one.size.height
            assert not (across and down), (one.order, other.order)


@pytest.mark.parametrize("seed", range(30))
def test_nothing_lies_on_anything(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - the same every time
    names = [f"T{number}" for number in range(dice.randint(1, 12))]
    boxes = {name: Size(dice.randint(40, 200), dice.randint(20, 150)) for name in names}
    arrows = [(dice.choice(names), dice.choice(names)) for _ in range(dice.randint(0, 20))]
    check_apart(lay_out(boxes, arrows, [Size(60, 16)] * len(arrows)))


def test_arrows_lead_to_the_right_but_in_circles() -> None:
    boxes = dict.fromkeys("abcd", Size(10, 10))
    arrows = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "a"), ("b", "b")]
    laid = lay_out(boxes, arrows, [Size(5, 5)] * len(arrows))
    assert laid.boxes["a"].x < laid.boxes["b"].x < laid.boxes["c"].x
    assert laid.backwards == [False, False, False, True, False]
    # What nothing leads to stands beside the others, not below all of them.
    assert laid.boxes["d"].column in (0, 2, 4)
