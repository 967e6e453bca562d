"""The Python reference: it is what the docstrings say, nothing is missing, and examples work."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.lang.source import Source
from omnigraph.server.app import Application
from omnigraph.server.served import ServedGraph, ServedGraphs
from omnigraph.server.stored_queries import StoredQueries
from omnigraph.server.tokens import Tokens
from tests.client.running import running
from tests.docs.generated import PAGES, ROOT
from tests.docs.reference.examples import (
    EXAMPLES,
    copied,
    made,
    on_server,
    on_spark,
    run_example,
    without_library,
)
from tests.docs.reference.members import methods
from tests.docs.reference.page import example_of
from tests.docs.reference.shown import PARTS, Class

STORED = """\
query films($until: I32) {
    match {
        $f: Film
        $f.year < $until
    }
    return { $f.title as film }
}

query add_film($title: String, $year: I32) {
    create Film { title: $title, year: $year }
}
"""
PLAIN = sorted({*EXAMPLES} - {*on_spark(), *on_server(), *without_library()})
PAGE = (ROOT / "docs/user/python-reference.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_would_be_made(name: str, request: pytest.FixtureRequest) -> None:
    path, made_now = ROOT / name, PAGES[name]()
    if request.config.getoption("--bless"):
        path.write_text(made_now, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == made_now, f"pytest --bless {__file__} writes it"


@pytest.mark.parametrize("name", og.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert (
        name == "__version__" or f"`{name}`" in PAGE or f"`og.{name}`" in PAGE or name == "errors"
    )


def test_every_method_of_a_graph_is_there() -> None:
    for owner, shown in [
        ("graph", og.Graph),
        *((f"graph.{one.__name__.lower()}", one) for one in _namespaces()),
    ]:
        public = {name for name in dir(shown) if not name.startswith("_")}
        called = {name for name in public if callable(getattr(shown, name))}
        assert {f"{owner}.{name}" for name in called} - {*EXAMPLES} == set()


def test_every_type_that_a_method_returns_is_there() -> None:
    shown = {item.type.__name__ for part in PARTS for item in part.items if isinstance(item, Class)}
    for name, function in EXAMPLES.items():
        returned = str(inspect.signature(function).return_annotation)
        for word in re.findall(r"\b[A-Z]\w+", returned):
            if word in vars(inspect.getmodule(inspect.unwrap(function))):
                ours = getattr(inspect.getmodule(inspect.unwrap(function)), word)
                is_class = inspect.isclass(ours) and ours.__module__.startswith("omnigraph.")
                assert not is_class or word in {*shown, *ALSO}, f"{name} returns {word}"


ALSO = {"Graph", "Session", "Opening", "StoredQueriesBody"}
"""Returned types that have no table of their own: what they have is said elsewhere."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_method_has_an_example(name: str) -> None:
    assert example_of(EXAMPLES[name])


def _namespaces() -> list[type]:
    return [
        item.type
        for part in PARTS
        for item in part.items
        if isinstance(item, Class) and item.name.startswith("graph.") and methods(item)
    ]


# -- running them ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("films") / "origin")


@pytest.mark.parametrize("name", PLAIN)
def test_an_example_does_what_it_says(
    name: str, origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_example(name, copied(origin, tmp_path, monkeypatch))


@pytest.mark.parametrize("name", on_server())
def test_an_example_on_a_server_does_what_it_says(
    name: str, origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = copied(origin, tmp_path, monkeypatch)
    queries = StoredQueries.of(iter([Source(STORED, "stored.gq")]))
    queries.check(names["graph"].catalog)
    graphs = ServedGraphs({"film": ServedGraph("film", names["graph"], None, queries)})
    with running(Application(graphs, "open", Tokens())) as url:
        run_example(name, {**names, "url": url})


def test_an_example_that_is_wrong_is_found(
    origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong() -> None:
        """Something else.

        >>> graph.branches.list()
        ['main']
        """

    monkeypatch.setitem(EXAMPLES, "wrong", wrong)
    with pytest.raises(AssertionError, match="draft"):
        run_example("wrong", copied(origin, tmp_path, monkeypatch))
