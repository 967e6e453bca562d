"""The entry of spark-submit: `spark-submit submitted.py load …` is `omnigraph load …` there.

Owns nothing but taking over the session that spark-submit has made ready. It is run as a file.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> int:
    """Run the command line on the Spark that was submitted to."""
    # The directory of a file that is run comes first, and its modules are not top-level ones.
    here = str(Path(__file__).parent)
    sys.path[:] = [entry for entry in sys.path if entry != here]
    from omnigraph.cli.main import main as run
    from omnigraph.pipeline.spark.session import adopt_submitted

    adopt_submitted()
    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
