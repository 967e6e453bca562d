"""Who embeds nothing pays for nothing: models and their libraries are loaded by the first text."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCHEMA = "node Film { title: String @key\n blurb: String?\n meaning: Vector(64)? @embed(blurb) }"
HEAVY = ("wordllama", "tokenizers", "safetensors", "httpx2")


def loaded(program: str, *arguments: str) -> set[str]:
    """The heavy modules that a program has imported in the end."""
    ending = f"\nimport sys\nprint(*(name for name in {HEAVY} if name in sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-c", program + ending, *arguments],
        check=True,
        capture_output=True,
        text=True,
    )
    return set(ran.stdout.splitlines()[-1].split())


def test_help() -> None:
    program = (
        "from omnigraph.cli.main import main\nimport sys\nsys.argv = ['omnigraph', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass"
    )
    assert loaded(program) == set()


@pytest.mark.slow
def test_writes(tmp_path: Path) -> None:
    program = (
        "import sys, omnigraph as og\n"
        "graph = og.init(sys.argv[1], sys.argv[2])\n"
        "film = {'title': 'Rain', **eval(sys.argv[3])}\n"
        "graph.load([{'type': 'Film', 'data': film}], mode='append')\n"
        "graph.query('query q() { match { $f: Film } return { $f.title } }')"
    )
    assert loaded(program, str(tmp_path / "a.omni"), SCHEMA, "{}") == set()
    # Only the data of wordllama is used: importing it would change the logging of the process.
    filled = loaded(program, str(tmp_path / "b.omni"), SCHEMA, "{'blurb': 'it rains'}")
    assert filled == {"tokenizers", "safetensors"}
