"""A real IPython for tests: without history, colours and files of whoever runs them."""

from __future__ import annotations

import atexit
import builtins
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def ipython_shell(directory: Path) -> Iterator[Any]:
    """A shell that is gone afterwards, with what it changes in this process."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    make: Any = InteractiveShell
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(directory.absolute()))
        patch.setitem(sys.modules, "__main__", sys.modules["__main__"])
        patch.setattr(sys, "path", [*sys.path])
        # Whoever looks for a person at a prompt is not to find one when it is gone.
        for name in ("ps1", "ps2", "ps3"):
            patch.setattr(sys, name, "", raising=False)
        for name in ("__IPYTHON__", "display"):
            patch.setattr(builtins, name, None, raising=False)
        shell = make(config=config)
        # Its cache of modules would be written where somebody's own is.
        shell.Completer.use_jedi = False
        yield shell
        atexit.unregister(shell.atexit_operations)
        shell.atexit_operations()
