"""Branch names: one spelling, and what cannot be one."""

from __future__ import annotations

import pytest

from omnigraph.errors import BadRequest
from omnigraph.manifest.branches import MAX_BYTES, normalise_branch, path_conflict


@pytest.mark.parametrize(
    "name",
    [
        "main",
        "dev",
        "team/a.b-c_9",
        "A",
        "lock",
        "a.locked",
        "1",
        "prüfung",
        "разработка/ветка-2",
        "開発",
        "فرع",
        "शाखा",
        "٣",
        "x" * 200,
        "ü" * 100,
    ],
)
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
        "a🦆",
        "a\u200bb",
        "a\u00a0b",
        "a\ud800",
        "a?",
        "x" * 201,
        "ü" * 101,
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


def test_two_spellings_of_one_text_are_one_name() -> None:
    composed, decomposed = "pr\u00fcfung", "pru\u0308fung"
    assert normalise_branch(decomposed) == normalise_branch(composed) == composed


@pytest.mark.parametrize("name", ["a b", "a🦆", "a:b"])
def test_refusal_says_what_a_name_may_have(name: str) -> None:
    with pytest.raises(BadRequest) as caught:
        normalise_branch(name)
    assert "letters and digits of any script, and . _ - /" in caught.value.message
    assert name in caught.value.message


def test_refusal_of_a_long_name_says_how_long_it_may_be() -> None:
    with pytest.raises(BadRequest) as caught:
        normalise_branch("ü" * 150)
    assert "300 bytes" in caught.value.message
    assert str(MAX_BYTES) in caught.value.message
    assert len(caught.value.message) < 200, "the name itself is cut short"


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
