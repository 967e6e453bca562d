"""Completion in shells: the script, and what it offers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
OMNIGRAPH = Path(sys.executable).with_name("omnigraph")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script(run: Run, shell: str) -> None:
    ran = run("completion", shell)
    assert (ran.code, ran.err) == (0, "")
    assert "_OMNIGRAPH_COMPLETE" in ran.out


def test_unknown_shells(run: Run) -> None:
    ran = run("completion", "tcsh")
    assert ran.code == 2
    assert "'bash', 'zsh', 'fish'" in ran.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("omnigraph br", {"branch"}),
        ("omnigraph branch re", {"rename", "reset"}),
        ("omnigraph load --mo", {"--mode"}),
        ("omnigraph load --mode a", {"append"}),
    ],
)
def test_what_is_offered(words: str, offered: set[str]) -> None:
    environment = {
        **os.environ,
        "_OMNIGRAPH_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    ran = subprocess.run(
        [OMNIGRAPH], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert {line.partition(",")[2] for line in ran.stdout.splitlines()} == offered
