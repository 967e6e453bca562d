"""Documentation cannot rot: whatever users can meet is written in `docs/user/`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest

from omnigraph.cli.main import cli
from omnigraph.cli.options.scope import GlobalOption
from omnigraph.config.json_schema import project_schema
from omnigraph.config.keys import OPERATOR, OPERATOR_FILE, PROJECT, PROJECT_FILE, Key, rows
from omnigraph.write.publish.failpoints import FAILPOINTS
from tests.docs.collect import (
    LINT_CODE,
    MIGRATION_CODE,
    TYPE_CODE,
    choices,
    codes,
    environment_variables,
    error_codes,
    options,
    shared,
    walk,
)
from tests.faults import STORAGE_POINTS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "omnigraph"
USER_DOCS = ROOT / "docs" / "user"
COMMANDS = {words: (command, ctx) for words, command, ctx in walk(cli)}


def in_backticks(text: str) -> set[str]:
    """Every word inside inline code, so that a mention in passing does not count."""
    spans = re.findall(r"`([^`\n]+)`", text)
    return {word for span in spans for word in re.split(r"[\s,|\\:{}\[\]()]+", span)}


def page(name: str) -> str:
    return (USER_DOCS / name).read_text(encoding="utf-8")


def section(words: str) -> str:
    """The part of the command reference about one command; the root is the whole of it."""
    if not words:
        return page("cli.md")
    found = re.search(
        rf"^(?P<level>##+) `{re.escape(words)}`$(?P<body>.*?)(?=^##+ |\Z)",
        page("cli.md"),
        re.MULTILINE | re.DOTALL,
    )
    assert found is not None, f"docs/user/cli.md has no section for `{words}`"
    return found["body"]


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_and_option(words: str) -> None:
    command, ctx = COMMANDS[words]
    documented = in_backticks(section(words))
    own = set(options(command, ctx))
    if words:  # the global options are documented once, for the root
        own -= {*shared(command, ctx, GlobalOption), *ctx.help_option_names}
    assert not own - documented, f"options of `{words}` missing in docs/user/cli.md"
    said = set(re.findall(r"[\w-]+", section(words)))
    assert not choices(command, ctx) - said, f"values of `{words}` missing in docs/user/cli.md"


@pytest.mark.parametrize(
    "words", [words for words, (command, _) in COMMANDS.items() if command.params and words]
)
def test_every_command_has_its_usage(words: str) -> None:
    if not isinstance(COMMANDS[words][0], click.Group):
        assert section(words).lstrip().startswith(f"```text\nomnigraph {words}")


def test_global_options_of_a_verb_are_those_of_the_root() -> None:
    for words, (command, ctx) in COMMANDS.items():
        assert shared(command, ctx, GlobalOption) <= {*options(*COMMANDS[""])}, words


@pytest.mark.parametrize(("name", "code"), error_codes().items())
def test_every_error_class_and_code(name: str, code: str) -> None:
    documented = {part.rpartition(".")[2] for part in in_backticks(page("errors.md"))}
    assert {name, code} <= documented, "missing in docs/user/errors.md"


def table_rows(name: str, pattern: re.Pattern[str]) -> set[str]:
    """The codes that have a row of their own in a table of a page."""
    rows = re.findall(r"^\| `([^`]+)` \|", page(name), re.MULTILINE)
    return {code for code in rows if pattern.fullmatch(code)}


def test_every_type_code_has_its_row_and_every_row_its_code() -> None:
    assert table_rows("query-errors.md", TYPE_CODE) == codes(PACKAGE / "lang", TYPE_CODE)


def test_every_lint_code_has_its_row_and_every_row_its_code() -> None:
    assert table_rows("query-errors.md", LINT_CODE) == codes(PACKAGE / "lang", LINT_CODE)


def test_every_schema_change_code() -> None:
    mentioned = {
        word
        for word in in_backticks(page("changing-the-schema.md"))
        if MIGRATION_CODE.fullmatch(word)
    }
    assert mentioned == codes(PACKAGE / "lang", MIGRATION_CODE)


@pytest.mark.slow
def test_every_environment_variable() -> None:
    documented = in_backticks(page("environment.md"))
    for path in sorted(PACKAGE.rglob("*.py")):
        missing = environment_variables(path.read_text(encoding="utf-8")) - documented
        assert not missing, f"read in {path.relative_to(ROOT)}, missing in environment.md"


@pytest.mark.parametrize(
    ("keys", "file"), [(PROJECT, PROJECT_FILE), (OPERATOR, OPERATOR_FILE)], ids=["project", "own"]
)
def test_every_config_key_has_its_row_and_every_row_its_key(
    keys: tuple[Key, ...], file: str
) -> None:
    """Word for word: its file, what it says, its default, environment name and flag."""
    lines = page("configuration.md").splitlines()
    wanted = [f"| {' | '.join(cells)} |".replace("  ", " ") for cells in rows(keys, file)]
    shown = [line for line in lines if line.startswith("| `") and f"| `{file}` |" in line]
    assert shown == wanted


def test_the_json_schema_of_the_documentation_is_the_one_that_is_printed() -> None:
    text = (USER_DOCS / "omnigraph.schema.json").read_text(encoding="utf-8")
    assert json.loads(text) == project_schema()


def test_every_failpoint_has_its_row() -> None:
    text = (ROOT / "docs/developer/how-a-write-becomes-durable.md").read_text(encoding="utf-8")
    table = text.partition("| Point | Passed |")[2].partition("\n\n")[0]
    points = {
        point for row in table.splitlines() for point in in_backticks(row.split("|", 2)[1:2].pop())
    }
    assert points == {*FAILPOINTS, *STORAGE_POINTS}


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for path in sorted((ROOT / "docs").rglob("*.md")):
        assert f": {path.relative_to(ROOT / 'docs')}" in navigation
