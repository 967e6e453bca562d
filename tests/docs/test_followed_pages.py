"""Every page with something to try works to the letter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as og
from tests.docs.examples import Block, blocks_of, transcripts
from tests.docs.follow import Follower
from tests.film_graph import SCHEMA

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def _has_something_to_try(path: Path) -> bool:
    blocks = blocks_of(path.read_text(encoding="utf-8"), path.name)
    return any(
        block.info == "pycon" or (block.info == "console" and transcripts(block))
        for block in blocks
    )


PAGES = [
    path
    for path in (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))
    if _has_something_to_try(path)
]


def _film_graph() -> None:
    og.init("film.omni", SCHEMA)


# What a page takes for granted; the others begin with nothing.
STARTS: dict[str, Callable[[], None]] = {"cli.md": _film_graph}


class Beginner(Follower):
    """Makes the mistake that the first page asks for, and mends it."""

    def do(self, block: Block) -> None:
        if "ERROR" not in block.text:
            super().do(block)
            return
        query = Path("film.gq")
        text = query.read_text(encoding="utf-8")
        query.write_text(text.replace("{ $p.name,", "{ $p.nam,"), encoding="utf-8")
        super().do(block)
        query.write_text(text, encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("page", [pytest.param(path, id=path.name) for path in PAGES])
def test_the_page_does_what_it_shows(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    STARTS.get(page.name, lambda: None)()
    follower = (Beginner if page.name == "getting-started.md" else Follower)(page, capsys)
    follower.follow()
    assert follower.ran > 0
    if page.name == "two-minutes.md":
        (proposed,) = (block for block in follower.blocks if block.info == "pg")
        assert Path("film.pg").read_text(encoding="utf-8") == proposed.text


def test_the_pages_that_teach_are_followed() -> None:
    assert {page.name for page in PAGES} >= {
        *("README.md", "two-minutes.md", "history.md", "branches.md", "merging.md"),
        *("changing-the-schema.md", "cli.md", "getting-started.md", "graphs.md"),
        *("loading.md", "query-mutations.md", "transactions.md"),
    }


# -- the following of pages --------------------------------------------------------


def follow(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Follower:
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    follower = Follower(page, capsys)
    follower.follow()
    return follower


RIGHT = """\
```pg title="a.pg"
node A {
    name: String @key
}
```

```console
$ omnigraph fmt --check a.pg
$ omnigraph init --schema a.pg a.omni
initialized a.omni
$ omnigraph init --schema a.pg a.omni
error: /home/ann/a.omni holds a graph already
$ echo $?
1
$ omnigraph schema show a.omni > copy.pg
```

```pycon
>>> from pathlib import Path
>>> Path("copy.pg").read_text() == Path("a.pg").read_text()
True
```
"""


def test_a_page_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert follow(RIGHT, tmp_path, monkeypatch, capsys).ran == 6


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("initialized a.omni", "initialized b.omni"),
        ("error: /home", "note: /home"),
        ("$ echo $?\n1", "$ echo $?\n0"),
        ("$ omnigraph fmt", "$ rm -r"),
    ],
)
def test_a_page_that_is_wrong_is_found(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    right: str,
    wrong: str,
) -> None:
    with pytest.raises(AssertionError):
        follow(RIGHT.replace(right, wrong), tmp_path, monkeypatch, capsys)


def test_one_id_on_a_page_stands_for_one_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        og.init(tmp_path / name, "node A { name: String @key }")
    shown = "branch main, manifest version 1, commit 01KA5QWZ7N4T3M8YB0C2D6E9F{last}"
    table = (
        "type   | entities | version | lance version | path\n"
        "-------+----------+---------+---------------+----------------------------------------\n"
        "node:A |        0 |       1 |             1 | nodes/0000000000000001-0000000000000003\n"
    )
    text = "```console\n" + "".join(
        f"$ omnigraph snapshot {name}\n{shown}\n{table}" for name in ("a", "b")
    )
    different = text.replace("{last}", "G", 1).replace("{last}", "H") + "```\n"
    assert follow(different, tmp_path, monkeypatch, capsys).ran == 2
    with pytest.raises(AssertionError, match="stands for two ids"):
        follow(text.replace("{last}", "G") + "```\n", tmp_path, monkeypatch, capsys)
