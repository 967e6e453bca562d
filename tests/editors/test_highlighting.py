"""Highlighting: every text of the documentation is lexed whole, and words are what they are."""

from __future__ import annotations

import json
import re
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from pygments.token import Error, Keyword, Name, Operator, Token

from omnigraph.editors.pygments_lexers import GqLexer, PgLexer
from omnigraph.editors.textmate import grammars, write, written
from omnigraph.lang.query import words
from omnigraph.lang.query.parsing.parser import parse_queries

DOCS = Path(__file__).parents[2] / "docs/user"
VSCODE = Path(__file__).parents[2] / "editors/vscode"
LEXERS: dict[str, type[Any]] = {"gq": GqLexer, "pg": PgLexer}


@pytest.mark.parametrize("language", LEXERS)
def test_every_example_of_the_documentation_is_lexed(language: str) -> None:
    fence = re.compile(rf"^```{language}\n(.*?)^```", re.DOTALL | re.MULTILINE)
    texts = [text for page in DOCS.glob("*.md") for text in fence.findall(page.read_text())]
    assert len(texts) > 10
    for text in texts:
        pieces = list(LEXERS[language](stripnl=False, ensurenl=False).get_tokens(text))
        assert "".join(piece for _, piece in pieces) == text
        assert not [piece for kind, piece in pieces if kind is Error and piece not in "';#"]


def test_words_are_what_they_are() -> None:
    text = 'query q($n: I32) { match { $p: Person  lower($p.name) = "a" and not $p.old } }'
    kinds = {piece: kind for kind, piece in GqLexer().get_tokens(text)}
    assert kinds["query"] is Keyword
    assert kinds["q"] is Name.Function
    assert kinds["I32"] is Keyword.Type
    assert kinds["$p"] is Name.Variable
    assert kinds["Person"] is Name.Class
    assert kinds["lower"] is Name.Builtin
    assert kinds["name"] is Name.Attribute
    assert kinds["and"] is kinds["not"] is Operator.Word
    assert kinds['"a"'] in Token.Literal.String


def test_the_package_offers_the_lexers() -> None:
    project = tomllib.loads((DOCS.parents[1] / "pyproject.toml").read_text())["project"]
    offered = project["entry-points"]["pygments.lexers"]
    points = [EntryPoint(name, place, "pygments.lexers") for name, place in offered.items()]
    assert {point.name: point.load() for point in points} == LEXERS
    assert all(name in lexer.aliases for name, lexer in LEXERS.items())


@pytest.mark.parametrize("directory", [DOCS, VSCODE / "syntaxes"], ids=["docs", "vscode"])
@pytest.mark.parametrize("name", ["gq.tmLanguage.json", "pg.tmLanguage.json"])
def test_the_grammars_that_are_handed_out_are_the_generated_ones(
    name: str, directory: Path, request: pytest.FixtureRequest
) -> None:
    text = written(grammars()[name])
    if request.config.getoption("--bless"):
        (directory / name).write_text(text)
    assert (directory / name).read_text() == text


def test_the_extension_names_files_that_are_there() -> None:
    manifest = json.loads((VSCODE / "package.json").read_text())
    offered = manifest["contributes"]
    named = [manifest["main"], *(one["path"] for one in offered["grammars"])]
    named += [one["configuration"] for one in offered["languages"]]
    assert all((VSCODE / name).is_file() for name in named)
    scopes = {one["scopeName"]: one["language"] for one in offered["grammars"]}
    assert scopes.keys() == {grammar["scopeName"] for grammar in grammars().values()}
    languages = {one["id"] for one in offered["languages"]}
    assert set(scopes.values()) == languages
    assert manifest["activationEvents"] == [
        f"onLanguage:{one['id']}" for one in offered["languages"]
    ]
    script = (VSCODE / manifest["main"]).read_text()
    assert all(f'language: "{language}"' in script for language in languages)


def test_the_grammars_are_written_into_a_directory(tmp_path: Path) -> None:
    write(tmp_path / "syntaxes")
    found = {file.name: json.loads(file.read_text()) for file in (tmp_path / "syntaxes").iterdir()}
    assert found == grammars()


def test_every_pattern_of_a_grammar_is_a_regular_expression() -> None:
    for grammar in grammars().values():
        for rule in grammar["patterns"]:
            for key in ("match", "begin", "end"):
                if key in rule:
                    re.compile(rule[key])


def test_the_words_are_those_that_the_parser_asks_for() -> None:
    source = Path(parse_queries.__code__.co_filename)
    asked = set()
    for file in source.parent.rglob("*.py"):
        asked |= set(re.findall(r'\b(?:at|accept|keyword|expect)\("([a-z_]+)"\)', file.read_text()))
    known = {*words.KEYWORDS, *words.WORD_OPERATORS, *words.CONSTANTS, *words.CALLS}
    assert asked <= known
