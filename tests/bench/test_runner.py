"""The benchmark runner: discovery, verdict, table."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import __main__ as runner
from bench.ratio import Ratio, interleaved


def test_discovery_finds_the_modules_by_name(tmp_path: Path) -> None:
    for name in ("bench_b.py", "bench_a.py", "ratio.py"):
        (tmp_path / name).touch()
    assert runner.discover(tmp_path) == ["a", "b"]


@pytest.mark.parametrize(("top", "verdict"), [(2.0, "PASS"), (3.0, "PASS"), (3.01, "FAIL")])
def test_a_ratio_is_judged_by_its_limit(top: float, verdict: str) -> None:
    assert runner.table([Ratio("x", top, 1.0, 3.0)]).splitlines()[1].endswith(verdict)


@pytest.mark.parametrize(("limit", "code"), [(3.0, 0), (1.0, 1)])
def test_a_broken_limit_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, limit: float, code: int
) -> None:
    monkeypatch.setattr("bench.bench_cli.run", lambda: [Ratio("x", 2.0, 1.0, limit)])
    assert runner.main(["cli"]) == code


def test_an_unknown_benchmark_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["nonsense"]) == 2
    assert "no such benchmark: nonsense" in capsys.readouterr().out


def test_both_are_measured_in_turns() -> None:
    calls: list[str] = []
    interleaved(lambda: calls.append("a"), lambda: calls.append("b"), runs=3)
    assert calls == ["a", "b"] * 4
