"""`omnigraph completion`: the script that makes a shell complete verbs, options and their values.

Owns which shells there are; what completes is what the commands themselves say.
"""

from __future__ import annotations

import click

from omnigraph.cli.command import VerbCommand
from omnigraph.cli.render.output import write_text

SHELLS = ("bash", "zsh", "fish")


@click.command("completion", cls=VerbCommand)
@click.argument("shell", type=click.Choice(SHELLS))
def command(*, shell: str) -> None:
    """Print the script that makes a shell complete verbs, options and their values.

    bash: eval "$(omnigraph completion bash)" in ~/.bashrc; zsh the same in ~/.zshrc; fish:
    omnigraph completion fish > ~/.config/fish/completions/omnigraph.fish
    """
    from click.shell_completion import get_completion_class

    root = click.get_current_context().find_root()
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"there is no completion for {shell}")
    write_text(found(root.command, {}, "omnigraph", "_OMNIGRAPH_COMPLETE").source())
