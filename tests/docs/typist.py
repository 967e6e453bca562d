"""Somebody who types a page at an installed program, with nothing of this repository at hand.

Owns the processes: one for each command, and one of Python for each page.
"""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import ExitStack
from pathlib import Path

from tests.docs.examples import Block
from tests.docs.follow import Follower

_DOCTESTS = """\
import doctest, io, json, sys
answers, names = sys.stdout, {}
for line in sys.stdin:
    sys.stdout = io.StringIO()
    told, runner = [], doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    test = doctest.DocTestParser().get_doctest(json.loads(line), names, "page", None, 0)
    runner.run(test, out=told.append, clear_globs=False)
    names.update(test.globs)
    print(json.dumps("".join(told)), file=answers, flush=True)
"""


class Typist(Follower):
    """Follows a page with the programs of an environment."""

    def __init__(self, page: Path, programs: Path, closing: ExitStack) -> None:
        super().__init__(page)
        self.programs = programs
        self.environment = {
            **{name: value for name, value in os.environ.items() if name in ("HOME", "LANG")},
            "PATH": f"{programs}:/usr/bin:/bin",
            "OMNIGRAPH_HOME": str(Path.cwd() / ".own"),
        }
        self.interpreter = closing.enter_context(
            subprocess.Popen(
                [programs / "python", "-c", _DOCTESTS],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=self.environment,
                text=True,
            )
        )

    def execute(self, arguments: list[str]) -> tuple[int, str, str]:
        """A process of its own."""
        ran = subprocess.run(
            [self.programs / "omnigraph", *arguments],
            capture_output=True,
            check=False,
            env=self.environment,
            text=True,
            timeout=300,
        )
        return ran.returncode, ran.stdout, ran.stderr

    def python(self, block: Block) -> None:
        """The one interpreter of the page."""
        asking, answering = self.interpreter.stdin, self.interpreter.stdout
        assert asking is not None
        assert answering is not None
        asking.write(json.dumps(block.text) + "\n")
        asking.flush()
        told = json.loads(answering.readline())
        assert told == "", f"{block.place}\n{told}"
