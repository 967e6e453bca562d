"""Streams, colour and JSON."""

from __future__ import annotations

import io
import sys

import pytest

from omnigraph.cli.render.output import diagnose, use_colour, write_json, write_note, write_text
from omnigraph.wire.body import Body


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Ordered(Body, frozen=True):
    b: str
    a: list[int | None]


def test_results_and_diagnostics_have_their_own_streams(capsys: pytest.CaptureFixture[str]) -> None:
    write_text("result")
    write_note("note")
    diagnose("warning", "careful")
    captured = capsys.readouterr()
    assert captured.out == "result\n"
    assert captured.err == "note\nwarning: careful\n"


def test_json_keeps_order_and_unicode(capsys: pytest.CaptureFixture[str]) -> None:
    write_json(Ordered("é", [1, None]))
    assert capsys.readouterr().out == '{\n  "b": "é",\n  "a": [\n    1,\n    null\n  ]\n}\n'


@pytest.mark.parametrize(
    ("no_color", "coloured"), [(None, True), ("", True), ("1", False), ("0", False)]
)
def test_colour_on_a_terminal_honours_no_color(
    monkeypatch: pytest.MonkeyPatch, no_color: str | None, coloured: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    diagnose("error", "broken")
    assert ("\x1b[" in terminal.getvalue()) is coloured


def test_no_colour_in_a_file() -> None:
    assert not use_colour(io.StringIO())
