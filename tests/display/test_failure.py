"""What a notebook shows of a failure: one screen, with the caret and the line that asked."""

from __future__ import annotations

import linecache

import pytest

from omnigraph.display.failure import MOST_LINES
from omnigraph.errors import BadRequest, OmniGraphError, TypeCheckError


def test_the_report_is_kept() -> None:
    report = (
        "error[T1]: unknown node type Persn\n  |\n1 | match { $p: Persn }\n  |             ^^^^^"
    )
    shown = TypeCheckError("unknown", code="T1", report=report)._render_traceback_()
    assert shown == ["TypeCheckError (T1)", *report.split("\n")]


@pytest.mark.parametrize("more", [0, 1, 500])
def test_it_is_one_screen(more: int) -> None:
    lines = [f"line {number}" for number in range(MOST_LINES + more)]
    heading, *shown = BadRequest("\n".join(lines))._render_traceback_()
    assert heading == "BadRequest (bad_request)"
    assert len(shown) == MOST_LINES
    assert shown[-1] == (
        f"… and {more + 1} more lines: print(error) shows them" if more else lines[-1]
    )


@pytest.mark.parametrize(
    ("written", "told"),
    [("fail()", ["  line 2: fail()"]), ("get_ipython().run_line_magic('gq', '')", [])],
)
def test_the_line_that_asked_is_told(
    monkeypatch: pytest.MonkeyPatch, written: str, told: list[str]
) -> None:
    lines = ["def ask():\n", f"    {written}\n", "ask()\n"]
    monkeypatch.setitem(linecache.cache, "<cell 1>", (0, None, lines, "<cell 1>"))

    def fail() -> None:
        raise BadRequest("no")

    class Shell:
        def run_line_magic(self, *_: str) -> None:
            fail()

    names = {"fail": fail, "get_ipython": Shell}
    frames: dict[str, object] = {"__name__": "__main__", **names}
    with pytest.raises(OmniGraphError) as caught:
        exec(compile("".join(lines), "<cell 1>", "exec"), frames)  # noqa: S102 - as a notebook does
    assert caught.value._render_traceback_()[1:] == [*told, "no"]
