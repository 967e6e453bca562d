from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., Any]


UGLY = "// books\nnode Book{isbn:String @key // the key\n title:String?}"
CANONICAL = """\
// books
node Book {
    isbn: String @key  // the key
    title: String?
}
"""


def test_files_are_rewritten_in_place_and_then_pass_the_check(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.pg"
    path.write_text(UGLY)
    path.chmod(0o640)
    result = run("fmt", str(path))
    assert (result.code, result.out) == (0, f"reformatted {path}\n")
    assert path.read_text() == CANONICAL
    assert path.stat().st_mode & 0o777 == 0o640
    again = run("fmt", "--check", str(path))
    assert (again.code, again.out) == (0, "")


def test_check_changes_nothing(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.pg"
    path.write_text(UGLY)
    result = run("fmt", "--check", str(path))
    assert (result.code, result.out) == (1, f"would reformat {path}\n")
    assert path.read_text() == UGLY


def test_a_broken_file_is_left_alone_and_the_others_are_done(run: Run, tmp_path: Path) -> None:
    broken, sound, foreign = tmp_path / "b.gq", tmp_path / "s.pg", tmp_path / "t.txt"
    broken.write_text("query a( { }")
    sound.write_text(UGLY)
    foreign.write_text("x")
    result = run("fmt", str(broken), str(foreign), str(sound))
    assert result.code == 1
    assert broken.read_text() == "query a( { }"
    assert sound.read_text() == CANONICAL
    assert f"{broken}:1:10" in result.err
    assert "only .pg and .gq files" in result.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.gq", "s.pg", "t.txt"]
