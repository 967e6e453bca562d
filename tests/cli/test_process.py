"""The installed program as a user starts it: what it imports, and how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph.cli.verbs import VERBS

PROGRAM = str(Path(sys.executable).with_name("omnigraph"))
HEAVY = ("rich", "msgspec", "pyarrow", "pyspark", "pandas", "numpy", "lance", "omnigraph.lang")


def start(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_help_imports_nothing_heavy_and_no_verb() -> None:
    script = (
        "import sys; from omnigraph.cli.main import main; code = main(['--help']);"
        "print(*sys.modules, sep='\\n', file=sys.stderr); sys.exit(code)"
    )
    ran = start(sys.executable, "-c", script)
    assert ran.returncode == 0
    loaded = set(ran.stderr.split())
    assert loaded.isdisjoint(HEAVY)
    assert not [name for name in loaded if name.startswith("omnigraph.cli.verbs.")]


def test_the_help_of_a_verb_opens_no_engine() -> None:
    for verb in ("init", "snapshot", "commit", "branch", "schema"):
        script = (
            f"import sys; from omnigraph.cli.main import main; main(['{verb}', '--help']);"
            "print(*sys.modules, sep='\\n', file=sys.stderr)"
        )
        loaded = set(start(sys.executable, "-c", script).stderr.split())
        assert f"omnigraph.cli.verbs.{VERBS[verb].room}.{verb}" in loaded
        assert loaded.isdisjoint({*HEAVY, "omnigraph.graph"})


def test_importing_the_package_is_cheap() -> None:
    ran = start(sys.executable, "-c", "import omnigraph, sys; print(*sys.modules, sep='\\n')")
    assert set(ran.stdout.split()).isdisjoint({*HEAVY, "click", "omnigraph.cli"})


@pytest.mark.parametrize(
    ("args", "code"), [(["version"], 0), (["nonsense"], 2), (["version", "--as", "ann"], 2)]
)
def test_exit_codes_reach_the_shell(args: list[str], code: int) -> None:
    assert start(PROGRAM, *args).returncode == code


def test_a_reader_that_went_away_is_no_error_message() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        ran = subprocess.run(
            [PROGRAM, "--help"],
            stdout=write_end,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    finally:
        os.close(write_end)
    assert ran.stderr == ""
    assert ran.returncode == 0
