"""Options of the whole test suite."""

from __future__ import annotations

import gc
import logging
import os
import uuid
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator

import pytest

from tests import cpu_times, jvm, profile
from tests.s3_server import S3Server, running

SHARED = {"spark_engine": "spark", "cluster": "spark", "rehearsals": "crash", "s3_server": "s3"}
"""What is costly to make, and the group of the tests that share it; they are slow ones."""

os.environ.setdefault("SPARK_SUBMIT_OPTS", jvm.OPTIONS)
# Tests start hundreds of processes: the package is compiled for the first only.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# A server in this process may log to the screen of a test that has ended: that is told to nobody.
logging.raiseExceptions = False


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--bless",
        action="store_true",
        help="rewrite the expectations of fixture files from actual output, then read the diff",
    )
    cpu_times.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    cpu_times.install(config)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests are collected, and stay: nobody looks for garbage among them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the profile does not ask for, and give tests that share to one process.

    The largest groups are begun first.
    """
    for item in items:
        wanted = set(getattr(item, "fixturenames", ()))
        if any(isinstance(one, str) and one == "s3" for one in _params(item).values()):
            wanted.add("s3_server")
        group = next((group for name, group in SHARED.items() if name in wanted), None)
        if group is not None:
            item.add_marker(pytest.mark.xdist_group(group))
            item.add_marker(pytest.mark.slow)
    if not profile.CHOSEN.every_case:
        left_out = set(_left_out(items))
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def _params(item: pytest.Item) -> dict[str, object]:
    return getattr(getattr(item, "callspec", None), "params", {})


def _left_out(items: list[pytest.Item]) -> list[pytest.Item]:
    """Cases of tests marked ``pairwise`` whose values all meet in other cases."""
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("pairwise") is not None:
            cases[item.nodeid.partition("[")[0]].append(item)
    found: list[pytest.Item] = []
    for same in cases.values():
        values = [{name: repr(value) for name, value in _params(item).items()} for item in same]
        chosen = profile.pairwise(values)
        found += [item for place, item in enumerate(same) if place not in chosen]
    return found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what tests have counted with `record_property`, in whatever process they ran."""
    counts: Counter[str] = Counter()
    for report in terminalreporter.getreports("passed"):
        counts.update({name: n for name, n in report.user_properties if isinstance(n, int)})
    for name, count in sorted(counts.items()):
        terminalreporter.write_line(f"{name}: {count}")


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3-compatible server, one per test process."""
    with running(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def s3_bucket(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of an empty prefix on the server; the environment has what is needed for it."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    return f"s3://{s3_server.bucket}/{uuid.uuid4().hex}"
