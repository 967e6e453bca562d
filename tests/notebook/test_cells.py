"""Queries in cells, in a real IPython: what they show, what they leave behind, how they fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.completer import provisionalcompleter

import omnigraph as og
from omnigraph import errors
from tests.ipython_shell import ipython_shell

SCHEMA = """\
node Person {
    name: String @key
    age: I32?
}

edge Knows: Person -> Person
"""
LINES = [
    {"type": "Person", "data": {"name": "Ann", "age": 30}},
    {"type": "Person", "data": {"name": "Ben"}},
    {"edge": "Knows", "from": "Ann", "to": "Ben"},
]
NAMES = "match { $p: Person } return { $p.name as name } order { $p.name }"
AGE = "match { $p: Person { name: $n } } return { $p.age as age }"


class Notebook:
    """A notebook: cells that are run one after the other."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell

    def __call__(self, cell: str) -> Any:
        """The result of a cell that works."""
        done = self.shell.run_cell(cell)
        done.raise_error()
        return done.result

    def fails(self, cell: str) -> errors.OmniGraphError:
        """The error of a cell that does not."""
        error = self.shell.run_cell(cell).error_in_exec
        assert isinstance(error, errors.OmniGraphError)
        return error

    def offers(self, text: str, *, behind: str = "") -> list[str]:
        """What Tab offers at the end of a text, with more text behind it."""
        completer = self.shell.Completer
        assert completer is not None
        with provisionalcompleter():
            return [one.text for one in completer.completions(text + behind, len(text))]


@pytest.fixture(scope="module")
def ipython(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with ipython_shell(tmp_path_factory.mktemp("ipython")) as shell:
        yield shell


@pytest.fixture
def notebook(ipython: Any) -> Iterator[Notebook]:
    ipython.reset(new_session=False)
    ipython.run_line_magic("load_ext", "omnigraph")
    yield Notebook(ipython)
    ipython.run_line_magic("unload_ext", "omnigraph")


@pytest.fixture
def graph(tmp_path: Path, notebook: Notebook) -> og.Graph:
    graph = og.init(tmp_path / "people.omni", SCHEMA)
    graph.load(LINES, mode="append")
    notebook.shell.user_ns["people"] = graph
    return graph


# -- running -----------------------------------------------------------------------


def test_a_cell_shows_its_result(
    notebook: Notebook, graph: og.Graph, capsys: pytest.CaptureFixture[str]
) -> None:
    assert notebook(f"%%gq\n{NAMES}").rows == [{"name": "Ann"}, {"name": "Ben"}]
    assert f"{graph.query(NAMES)!r}" in capsys.readouterr().out
    # Braces and dollars are the query's, whatever the notebook has under their names.
    notebook("p = 'nobody'")
    assert len(notebook(f"%gq {NAMES}")) == 2


@pytest.mark.usefixtures("graph")
@pytest.mark.parametrize(
    "given",
    [
        "-p n=Ann",
        "--param=n=Ann",
        "-p 'n=Ann'",
        '-p n="Ann"',
        "-p n={who}",
        "-p n={found['who']}",
        "-p '$n=\"Ann\"'",
        "--params {{'n': who}}",
        "--params {found} -p n=Ann",
    ],
)
def test_parameters(notebook: Notebook, given: str) -> None:
    notebook("who = 'Ann'\nfound = {'who': who, 'n': 'Ben'}")
    if given.startswith("--params {{"):
        given = "--params {dict(n=who)}"
    if "found}" in given:
        notebook("found = {'n': 'Ben'}")
    assert notebook(f"%gq {given} {AGE}").scalar() == 30


def test_a_result_gets_a_name(notebook: Notebook, graph: og.Graph) -> None:
    assert len(graph.commits.list()) == 2
    notebook(f"%%gq --out names\n{NAMES}")
    assert notebook("names.columns") == ["name"]
    assert notebook(f"also = %gq {NAMES}\nalso[0]") == {"name": "Ann"}
    assert "cannot be the name" in str(notebook.fails('%gq -o 1x delete Person where name = "Ann"'))
    # It is told before anything is done.
    assert len(graph.commits.list()) == 2


def test_a_mutation_is_a_commit_with_a_message(notebook: Notebook, graph: og.Graph) -> None:
    graph.branches.create("dev")
    done = notebook('%%gq -b dev -m "older now"\nupdate Person set { age: 31 } where name = "Ann"')
    assert (done.branch, done.affected_nodes) == ("dev", 1)
    assert graph.commits.list("dev")[0].message == "older now"
    assert notebook(f"%gq -b dev -p n=Ann {AGE}").scalar() == 31
    assert notebook(f"%gq --snapshot main -p n=Ann {AGE}").scalar() == 30
    told = str(notebook.fails('%gq --snapshot main delete Person where name = "Ann"'))
    assert "leave --snapshot and --explain out" in told
    assert "changes nothing" in str(notebook.fails(f"%gq -m no {NAMES}"))


def test_one_of_several_queries(notebook: Notebook, graph: og.Graph) -> None:
    both = f'query all() {{ {NAMES} }}\nquery go() {{ delete Person where name = "Ben" }}'
    assert len(notebook(f"%%gq --name all\n{both}")) == 2
    assert len(graph.commits.list()) == 2
    assert notebook(f"%%gq -n go\n{both}").affected_nodes == 1


def test_a_plan(notebook: Notebook, graph: og.Graph) -> None:
    assert notebook(f"%gq --explain {NAMES}").text == graph.explain(NAMES).text


# -- which graph -------------------------------------------------------------------


def test_the_graph_that_was_opened(notebook: Notebook, graph: og.Graph) -> None:
    graph.branches.create("dev")
    graph.mutate('delete Person where name = "Ben"', branch="dev")
    opened = notebook(f"%gq_open {graph.location} --branch dev --read-only")
    assert isinstance(opened, og.Graph)
    assert len(notebook(f"%gq {NAMES}")) == 1
    assert len(notebook(f"%gq -b main {NAMES}")) == 2
    # Another graph has its own main.
    assert len(notebook(f"%gq --graph people {NAMES}")) == 2
    told = str(notebook.fails('%gq delete Person where name = "Ann"'))
    assert "read-only" in told
    assert "%gq_open: the following arguments" in str(notebook.fails("%gq_open"))


def test_one_of_several_graphs(notebook: Notebook, graph: og.Graph, tmp_path: Path) -> None:
    notebook("again = people")
    assert len(notebook(f"%gq {NAMES}")) == 2
    notebook.shell.user_ns["empty"] = og.init(tmp_path / "empty.omni", SCHEMA)
    told = str(notebook.fails(f"%gq {NAMES}"))
    assert told == "which graph? say --graph NAME: there are again, empty, people"
    assert len(notebook(f"%gq -g empty {NAMES}")) == 0
    assert "did you mean `people`?" in str(notebook.fails(f"%gq -g peopel {NAMES}"))
    assert len(graph.branches.list()) == 1


def test_without_a_graph(notebook: Notebook) -> None:
    assert "%gq_open LOCATION" in str(notebook.fails(f"%gq {NAMES}"))


def test_a_graph_on_a_server_is_opened_without_asking(notebook: Notebook) -> None:
    opened = notebook("%gq_open http://127.0.0.1:1/base --graph film")
    assert "/graphs/film" in opened.location
    assert "which graph?" in str(notebook.fails("%gq_open http://127.0.0.1:1"))
    assert "the token decides" in str(notebook.fails("%gq_open http://127.0.0.1:1 --actor a"))
    assert isinstance(notebook.fails(f"%gq {NAMES}"), errors.ServerError)


# -- failing -----------------------------------------------------------------------


@pytest.mark.usefixtures("graph")
def test_a_failure_is_one_screen_with_its_caret(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook.fails("%%gq\nmatch { $p: Persn }\nreturn { $p.name }")
    shown = capsys.readouterr()
    assert "did you mean `Person`?" in shown.out + shown.err
    assert "^^^^^" in shown.out + shown.err
    lines = (shown.out + shown.err).strip().splitlines()
    assert lines[0] == "TypeCheckError (T1)"
    assert len(lines) < 10
    notebook.fails("found = 1\npeople.query('match { $p: Persn } return { $p }')")
    shown = capsys.readouterr()
    assert "  line 2: people.query(" in shown.out + shown.err
    assert "guard.py" not in shown.out + shown.err


@pytest.mark.usefixtures("graph")
@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("%gq --brnch x match { }", "no option --brnch: did you mean `--branch`?"),
        ("%gq", "there is no query"),
        ("%%gq -b main\n\n", "there is no query"),
        ("%%gq match\nmatch { $p: Person }", "begins below the line of %%gq, not with 'match'"),
        ("%gq -p n", "a parameter is written name=value: not n"),
        ("%gq -p", "a value is missing"),
        ("%gq -b 'x", "its quote is not closed"),
        ("%gq --params x match { }", "--params takes an expression in braces"),
        ("%gq --params {3} match { $p: Person } return { $p }", "--params is a int"),
    ],
)
def test_what_is_written_wrong_is_told(notebook: Notebook, cell: str, told: str) -> None:
    assert told in str(notebook.fails(cell))


# -- completion --------------------------------------------------------------------


@pytest.mark.usefixtures("graph")
def test_queries_are_completed(notebook: Notebook) -> None:
    assert notebook.offers("%%gq\nmatch { $p: Pe") == ["Person"]
    assert notebook.offers("%%gq -b main\nmatch { $p: Person  $p kn") == ["knows"]
    behind = "\n}\nreturn { $p.name }"
    assert notebook.offers("\n%%gq\nmatch { $p: Person\n  $p.", behind=behind) == ["age", "name"]
    assert notebook.offers("x = %gq match { $p: Person } return { $p.na") == ["name"]
    assert notebook.offers("%gq -b main match { $p: Person } return { $") == ["$p"]
    assert notebook.offers("%%gq\noptiona") == ["optional"]
    assert "Person" not in notebook.offers("Pe")
    assert "match" not in notebook.offers("print('%%gq')\nmat")


def test_options_are_completed(notebook: Notebook, graph: og.Graph) -> None:
    graph.branches.create("draft")
    assert notebook.offers("%%gq --br") == ["--branch"]
    assert notebook.offers("%%gq --branch ") == ["draft", "main"]
    assert notebook.offers("%gq -b dr") == ["draft"]
    assert notebook.offers("%gq -g people -b dr") == ["draft"]
    assert notebook.offers("%gq -g ") == ["people"]


def test_the_graph_is_asked_again_after_a_cell(notebook: Notebook, graph: og.Graph) -> None:
    assert "Film" not in notebook.offers("%gq match { $f: Fi")
    graph.apply_schema(SCHEMA + "node Film { title: String @key }")
    assert "Film" not in notebook.offers("%gq match { $f: Fi")
    notebook("1")
    assert notebook.offers("%gq match { $f: Fi") == ["Film"]


def test_the_types_are_those_of_the_branch(notebook: Notebook, graph: og.Graph) -> None:
    graph.branches.create("dev")
    graph.apply_schema(SCHEMA + "node Film { title: String @key }", branch="dev")
    assert "Film" not in notebook.offers("%gq match { $f: Fi")
    assert notebook.offers("%gq -b dev match { $f: Fi") == ["Film"]
    notebook(f"%gq_open {graph.location} -b dev")
    assert notebook.offers("%gq match { $f: Fi") == ["Film"]
    assert "Film" not in notebook.offers("%gq -g people match { $f: Fi")


def test_without_a_graph_the_words_are_completed(notebook: Notebook) -> None:
    assert notebook.offers("%%gq\noptiona") == ["optional"]
    assert "main" not in notebook.offers("%%gq -b ma")


# -- loading -----------------------------------------------------------------------


@pytest.mark.usefixtures("graph")
def test_it_is_loaded_once_and_taken_back(notebook: Notebook) -> None:
    og.load_ipython_extension(notebook.shell)
    assert notebook.offers("%%gq\nmatch { $p: Pe") == ["Person"]
    og.unload_ipython_extension(notebook.shell)
    og.unload_ipython_extension(notebook.shell)
    assert "Person" not in notebook.offers("%%gq\nmatch { $p: Pe")
    assert not isinstance(notebook.shell.run_cell("%gq").error_in_exec, errors.OmniGraphError)
