"""The page with the examples of the command line, made from those that its helps end with."""

from __future__ import annotations

import click

from omnigraph.cli.examples import EXAMPLES
from omnigraph.cli.main import cli
from tests.docs.collect import walk

_OPENING = """\
# Examples of the command line

What the help of each command ends with, to be copied. They are about a graph `film.omni` and name
it in full; in a [project](projects.md) leave it out. What the options mean stands under
[command line](cli.md).
"""


def examples_page() -> str:
    """The page, command by command in the order of the help."""
    blocks = [_OPENING]
    for words, command, _ in walk(cli):
        if words and not isinstance(command, click.Group):
            lines = "\n".join(EXAMPLES[words])
            anchor = words.replace(" ", "-")
            blocks.append(f"## [`{words}`](cli.md#{anchor})\n\n```bash\n{lines}\n```\n")
    return "\n".join(blocks)
