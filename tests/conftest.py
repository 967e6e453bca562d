"""Options of the whole test suite."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.s3_server import S3Server, running


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--bless",
        action="store_true",
        help="rewrite the expectations of fixture files from actual output, then read the diff",
    )


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
