"""Where the command line writes: results on stdout, everything else on stderr.

Owns the two streams, pretty JSON and the decision to use colour. Must never
import a renderer at module level: most runs print plain text.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Literal, TextIO

import click

Severity = Literal["error", "warning", "note"]

_COLOURS: dict[Severity, str] = {"error": "red", "warning": "yellow", "note": "cyan"}


def write_text(text: str) -> None:
    """Print a result for people."""
    click.echo(text, color=use_colour(sys.stdout))


def write_json(value: Any) -> None:
    """Print a result for programs: two-space indented JSON, fields in the given order."""
    import msgspec

    encoded = msgspec.json.format(msgspec.json.encode(value), indent=2)
    click.echo(encoded.decode(), color=False)


def diagnose(severity: Severity, message: str) -> None:
    """Tell the user something on stderr, marked with how serious it is."""
    label = click.style(f"{severity}:", fg=_COLOURS[severity], bold=True)
    click.echo(f"{label} {message}", err=True, color=use_colour(sys.stderr))


def write_note(text: str) -> None:
    """Print plain text on stderr."""
    click.echo(text, err=True, color=use_colour(sys.stderr))


def use_colour(stream: TextIO) -> bool:
    """Colour is for terminals, unless NO_COLOR is set to anything."""
    return stream.isatty() and not os.environ.get("NO_COLOR")
