"""The runner: `python -m bench [NAME…]` finds, runs and judges the benchmarks.

Owns the table and the exit code (1 when a ratio breaks its limit). Measures
nothing itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from bench.ratio import Ratio

CHART = "OMNIGRAPH_BENCH_CHART"
"""Where benchmarks that draw a chart put it."""


def discover(directory: Path) -> list[str]:
    """The names of the benchmarks in a directory, sorted."""
    return sorted(path.stem.removeprefix("bench_") for path in directory.glob("bench_*.py"))


def table(ratios: Sequence[Ratio]) -> str:
    """The ratios as aligned text, one line each."""
    width = max((len(ratio.name) for ratio in ratios), default=0)
    header = f"{'benchmark':<{width}}  {'ratio':>8}  {'limit':>8}  {'time':>10}  {'yardstick':>10}"
    return "\n".join([header, *(_line(ratio, width) for ratio in ratios)])


def _line(ratio: Ratio, width: int) -> str:
    return (
        f"{ratio.name:<{width}}  {ratio.value:>8.2f}  {ratio.limit:>8.2f}"
        f"  {_amount(ratio.numerator_s, ratio.unit)}  {_amount(ratio.denominator_s, ratio.unit)}"
        f"  {'PASS' if ratio.passed else 'FAIL'}"
    )


def _amount(value: float, unit: str) -> str:
    return f"{value * 1e3:>7.1f} ms" if unit == "s" else f"{value:>7.1f} {unit}"


def main(names: Sequence[str]) -> int:
    """Run the named benchmarks, or all of them; `--chart FILE` has `growth` draw what it found."""
    if "--chart" in names:
        place = names.index("--chart")
        if place + 1 == len(names):
            print("--chart needs the name of a file")
            return 2
        os.environ[CHART] = names[place + 1]
        names = [*names[:place], *names[place + 2 :]]
    known = discover(Path(__file__).parent)
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)} (known: {', '.join(known)})")
        return 2
    ratios: list[Ratio] = []
    for name in names or known:
        ratios.extend(import_module(f"bench.bench_{name}").run())
    print(table(ratios))
    return 0 if all(ratio.passed for ratio in ratios) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
