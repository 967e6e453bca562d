"""The finders must find: a blind one would make the completeness tests pass."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from tests.docs.collect import (
    LINT_CODE,
    MIGRATION_CODE,
    TYPE_CODE,
    codes,
    commands,
    environment_variables,
    error_codes,
)


@pytest.mark.parametrize(
    "source",
    [
        "os.environ['A']",
        "os.environ.get('A', '1')",
        "environ.get('A')",
        "os.getenv('A')",
        "getenv('A')",
        "'A' in os.environ",
        "'A' not in environ",
        "click.option('--a', envvar='A')",
        "click.option('--a', envvar=['A'])",
        "NAME = 'A'\nos.getenv(NAME)",
        "NAME: Final = 'A'\nos.environ[NAME]",
    ],
)
def test_environment_variables(source: str) -> None:
    assert environment_variables(source) == {"A"}


def test_a_computed_variable_cannot_slip_through() -> None:
    assert environment_variables("os.environ[prefix + name]") == {"prefix + name"}


def test_other_lookups_are_not_environment_variables() -> None:
    assert environment_variables("settings.get('A'); rows['A']; 'A' in names") == set()


def test_commands_and_options() -> None:
    child = click.Command("b", params=[click.Option(["-x", "--ex/--no-ex"])])
    hidden = click.Command("c", hidden=True)
    root = click.Group("r", commands=[click.Group("a", commands=[child]), hidden])
    found = commands(root)
    assert list(found) == ["", "a", "a b"]
    assert set(found["a b"]) == {"-x", "--ex", "--no-ex", "--help"}


def test_codes(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    outer, inner = tmp_path / "a.py", tmp_path / "inner" / "b.py"
    outer.write_text('"""Owns T1."""\nerror("T7" if hops else "T15")\n', encoding="utf-8")
    inner.write_text('refuse("OG-MF-103", code="T7")  # T99\nwarn("L201")\n', encoding="utf-8")
    assert codes(tmp_path, TYPE_CODE) == {"T7", "T15"}
    assert codes(tmp_path, MIGRATION_CODE) == {"OG-MF-103"}
    assert codes(tmp_path, LINT_CODE) == {"L201"}


def test_error_codes() -> None:
    assert error_codes()["BranchNotFound"] == "not_found"
