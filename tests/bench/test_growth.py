"""The growth benchmark at a tiny size, and its chart."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from bench.__main__ import CHART, main
from bench.bench_growth import Size, measure
from bench.growth.chart import Line, chart

TINY = Size((2, 8), (2, 4), (3, 6), 1, 2, 0.3, 2)


@pytest.mark.slow
def test_every_line_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = tmp_path / "growth.svg"
    monkeypatch.setenv(CHART, str(picture))
    names = [ratio.name for ratio in measure(TINY)]
    for part in ("write, depth", "requests", "read, depth", "open, depth", "memory", "disk before"):
        assert any(name.startswith(part) for name in names), part
    for part in ("create, 4", "delete, 4", "cleanup, 4", "init, 6", "write, 6 types", "commits/s"):
        assert any(name.startswith(part) for name in names), part
    assert ET.fromstring(picture.read_text()).tag.endswith("svg")  # noqa: S314 - our own


def test_a_chart_shows_growth_beside_the_first_point() -> None:
    picture = chart(
        "a & b", "depth", [Line("write", ((10, 2.0), (1_000, 3.0))), Line("r", ((10, 5.0),))]
    )
    texts = [one.text for one in ET.fromstring(picture).iter() if one.text]  # noqa: S314 - our own
    assert {"a & b", "write, 1.50 x", "r, 1.00 x", "1,000"} <= set(texts)


def test_a_chart_needs_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["growth", "--chart"]) == 2
    assert "--chart needs" in capsys.readouterr().out
