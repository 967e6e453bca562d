"""Projects to begin with: what is written, and that their READMEs work as typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from omnigraph.config.keys import TEMPLATES
from omnigraph.server import boot

Run = Callable[..., Any]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def typed(readme: str) -> Iterator[tuple[list[str], str]]:
    """Every command of a README, and what is shown of its output."""
    for block in re.findall(r"^```console\n(.*?)^```", readme, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield shlex.split(command), output


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_readme_works_as_typed(name: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = run("init", "--template", name, "project")
    assert ran.code == 0
    monkeypatch.chdir("project")
    written = {path.as_posix() for path in Path().rglob("*") if path.is_file()}
    assert {"README.md", "omnigraph.yaml", ".gitignore", "data/seed.jsonl"} <= written
    assert sorted(ran.out.split("\n")[:-1]) == sorted(f"wrote project/{one}" for one in written)
    commands = list(typed(Path("README.md").read_text()))
    assert len(commands) >= 4
    for words, output in commands:
        assert words[0] == "omnigraph"
        ran = run(*words[1:])
        assert ran.code == 0, (words, ran.err)
        if output:
            assert ran.out == output
    assert run("config", "validate").code == 0
    files = [*Path().glob("*.pg"), *Path("queries").iterdir()]
    assert run("fmt", "--check", *map(str, files)).code == 0


@pytest.mark.parametrize("name", TEMPLATES)
def test_what_else_a_readme_says_works(
    name: str, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its Python, and the server at its end: all graphs of the project are opened for that."""
    served: list[str] = []

    def serve(found: boot.Boot, _: str, *, workers: int = 1) -> int:
        served.extend(found.source.open().graphs)
        return workers - 1

    monkeypatch.setattr(boot, "serve", serve)
    run("init", "--template", name, "project")
    monkeypatch.chdir("project")
    readme = Path("README.md").read_text()
    for words, _ in list(typed(readme))[:2]:
        assert run(*words[1:]).code == 0
    for block in re.findall(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL):
        exec(compile(block, "README.md", "exec"), {})  # noqa: S102 - it is our own
        assert "rows from branch main" in capsys.readouterr().out
    for line in re.findall(r"`omnigraph (serve [^`]*)`", readme):
        assert run(*shlex.split(line)).code == 0
    assert bool(served) is (name != "blank")


def test_nothing_is_overwritten(run: Run) -> None:
    Path("p").mkdir()
    Path("p/film.pg").write_text("mine")
    ran = run("init", "--template", "film", "p")
    assert (ran.code, ran.out) == (1, "")
    assert "film.pg is there already" in ran.err
    assert [path.name for path in Path("p").iterdir()] == ["film.pg"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--template", "film"], "where? give the directory"),
        (["--template", "film", "s3://b/p"], "where? give the directory"),
        (["--template", "flim", "p"], "'film', 'knowledge', 'blank'"),
        (["--template", "film", "p", "--schema", "s.pg"], "leave --schema and --force out"),
        ([], "which graph? give its URI"),
        (["x.omni"], "which schema? give --schema FILE"),
    ],
)
def test_what_is_asked_for_otherwise(run: Run, args: list[str], said: str) -> None:
    ran = run("init", *args)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
