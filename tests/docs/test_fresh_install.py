"""The tutorials, typed by somebody who has just installed the program.

A virtual environment with the wheel and what it needs takes minutes to make: only `make soak` does.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests import profile
from tests.docs.test_followed_pages import Beginner
from tests.docs.typist import Typist

ROOT = Path(__file__).parents[2]
PAGES = (
    "docs/user/two-minutes.md",
    "docs/user/getting-started.md",
    "README.md",
    "docs/user/querying.md",
    "docs/user/branches.md",
    "docs/user/history.md",
)
FOR_DEVELOPERS = {"bench", "docs", "test"}
"""The extras that users have no use for."""


class BeginningTypist(Beginner, Typist):
    """One who makes the mistake that a page asks for."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel, its extras and the pinned dependencies."""
    place = tmp_path_factory.mktemp("fresh")
    found = place / "venv" / "bin"
    build = ("wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", place, ROOT)
    _run(sys.executable, "-m", "pip", *build)
    _run(sys.executable, "-m", "venv", place / "venv")
    # What ships as source is built with pinned tools, as `make` does it.
    pinned = ("install", "--quiet", "--no-build-isolation", "--require-hashes", "-r")
    for name in ("build", "product"):
        _run(found / "python", "-m", "pip", *pinned, ROOT / "requirements" / f"{name}.txt")
    (wheel,) = place.glob("*.whl")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    names = {*extras["project"]["optional-dependencies"]} - FOR_DEVELOPERS
    wanted = f"{wheel}[{','.join(sorted(names))}]"
    _run(found / "python", "-m", "pip", "install", "--quiet", "--no-build-isolation", wanted)
    return found


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.xdist_group("fresh-install")
@pytest.mark.skipif(profile.NAME != "soak", reason="takes minutes: make soak")
@pytest.mark.parametrize("name", PAGES)
def test_a_tutorial_can_be_typed(
    name: str, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    typist = BeginningTypist if "getting-started" in name else Typist
    with ExitStack() as closing:
        follower = typist(ROOT / name, programs, closing)
        closing.callback(follower.interpreter.terminate)
        follower.follow()
    assert follower.ran > 0


def test_the_tutorials_of_the_site_are_typed() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    tutorials = navigation.partition("  - Tutorials:\n")[2].partition("  - How-to guides:\n")[0]
    named = {f"docs/{line.rpartition(': ')[2]}" for line in tutorials.splitlines()}
    assert named <= {*PAGES}


def _run(*command: object) -> None:
    done = subprocess.run(
        [str(word) for word in command], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
