"""`--cpu-times FILE`: the processor seconds of every test, with its fixtures and its processes.

A busy machine makes every test longer, but hardly any costlier: what a suite costs is compared by
these numbers. What is shared is booked to the test that asks for it first, and what a server or a
JVM does later to the test during which it does it.
"""

from __future__ import annotations

import json
import os
import resource
from collections import defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

OPTION = "--cpu-times"
PROPERTY = "cpu seconds"
SHOWN = 40
TICKS = os.sysconf("SC_CLK_TCK")


def spent() -> tuple[float, float]:
    """The seconds of this process and all that it has started; those of a JVM apart."""
    own = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        own += usage.ru_utime + usage.ru_stime
    java = 0.0
    for name, seconds in _living():
        if name == "java":
            java += seconds
        else:
            own += seconds
    return own, java


def _living() -> Iterator[tuple[str, float]]:
    """The processes below this one that are there, and what they and their reaped ones took."""
    children: dict[int, list[tuple[int, str, float]]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text(errors="replace")
            except OSError:
                continue  # it has ended meanwhile
            name, _, rest = text.partition("(")[2].rpartition(")")
            fields = rest.split()
            seconds = sum(map(int, fields[11:15])) / TICKS
            children[int(fields[1])].append((int(entry.name), name, seconds))
    waiting = [os.getpid()]
    while waiting:
        for pid, name, seconds in children[waiting.pop()]:
            waiting.append(pid)
            yield name, seconds


class Booking:
    """In every process that runs tests: what each test took travels with its last report."""

    def __init__(self) -> None:
        self._before = (0.0, 0.0)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        self._before = spent()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "teardown":
            taken = [round(now - then, 3) for now, then in zip(spent(), self._before, strict=True)]
            report.user_properties.append((PROPERTY, taken))
        return report


class Account:
    """In the process that reports: the sums, dearest first."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._taken: dict[str, list[float]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, taken in report.user_properties:
            if name == PROPERTY and isinstance(taken, list):
                self._taken[report.nodeid] = taken

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        self._file.write_text(json.dumps(self._taken, indent=0))
        modules: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for test, taken in self._taken.items():
            for place, seconds in enumerate(taken):
                modules[test.partition("::")[0]][place] += seconds
        terminalreporter.section("cpu seconds: python, java")
        for title, table in (("modules", modules), ("tests", self._taken)):
            total = [sum(taken[place] for taken in table.values()) for place in (0, 1)]
            terminalreporter.write_line(f"{total[0]:9.2f} {total[1]:8.2f}  all {title}")
            for name, taken in sorted(table.items(), key=lambda one: -sum(one[1]))[:SHOWN]:
                terminalreporter.write_line(f"{taken[0]:9.2f} {taken[1]:8.2f}  {name}")


def add_option(parser: pytest.Parser) -> None:
    parser.addoption(
        OPTION,
        metavar="FILE",
        type=Path,
        help="write the processor seconds of every test as JSON, and show the dearest",
    )


def install(config: pytest.Config) -> None:
    file = config.getoption(OPTION)
    if file is None:
        return
    config.pluginmanager.register(Booking())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Account(file))
