"""A process that answers for one system: `python -m bench.language.worker NAME DIRECTORY`.

Owns which systems and which questions those are; the talk is that of the traversal benchmark.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench.language.questions import QUESTIONS
from bench.language.systems import system
from bench.traversal.worker import serve

if __name__ == "__main__":
    serve(system(sys.argv[1], Path(sys.argv[2])), QUESTIONS)
