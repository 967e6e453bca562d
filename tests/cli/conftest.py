"""Running the command line in this process, the way the console script does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from omnigraph.cli.main import main


@dataclass(frozen=True, slots=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    def _run(*args: str) -> Ran:
        code = main(args)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return _run
