"""Branch names: one spelling, and what cannot be one."""

from __future__ import annotations

import pytest

from omnigraph.errors import BadRequest
from omnigraph.manifest.branch_names import native_name, normalise_branch, path_conflict


@pytest.mark.parametrize("name", ["main", "dev", "team/a.b-c_9", "A", "lock", "a.locked", "1"])
def test_good_names_stay(name: str) -> None:
    assert normalise_branch(name) == name
    assert normalise_branch(f"  {name}\t\n") == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "   ",
        "/a",
        "a/",
        "a//b",
        "a..b",
        "..",
        ".",
        "a/./b",
        "a.lock",
        "a b",
        "a\\b",
        "a:b",
        "ä",
        "a\n b",
        "a%2Fb",
        "a\0",
        "__schema_apply_lock__",
        "/__schema_apply_lock__",
        " //__schema_apply_lock__ ",
    ],
)
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(BadRequest):
        normalise_branch(name)


def test_main_has_no_native_name() -> None:
    assert native_name("main") is None
    assert native_name("dev") == "dev"


@pytest.mark.parametrize(
    ("name", "others", "found"),
    [
        ("a/b", ["a"], "a"),
        ("a", ["x", "a/b/c"], "a/b/c"),
        ("a", ["ab", "a-b"], None),
        ("ab/c", ["a", "ab/d"], None),
        ("a", [], None),
    ],
)
def test_path_conflict(name: str, others: list[str], found: str | None) -> None:
    assert path_conflict(name, others) == found
