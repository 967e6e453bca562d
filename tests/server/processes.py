"""Servers in processes of their own, as people start them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2 as httpx

PROGRAM = Path(sys.executable).with_name("omnigraph-server")


@dataclass(frozen=True)
class Running:
    """A server that answers."""

    process: subprocess.Popen[str]
    url: str
    log: Path

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        return host, int(port)

    def client(self) -> httpx.Client:
        """A client of it."""
        return httpx.Client(base_url=f"{self.url}/graphs/film", timeout=60)

    def children(self) -> list[int]:
        """The processes that it has started and that serve."""
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [pid for pid in map(int, listed.split()) if b"spawn_main" in _command(pid)]

    def stop(self) -> int:
        """End it in order; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@contextmanager
def running(
    location: Path, *more: str, is_cluster: bool = False, **environment: str
) -> Iterator[Running]:
    """A server over a graph, or over those of a cluster, on a port that was free."""
    log = location.with_suffix(".log")
    served = ["--cluster", str(location)] if is_cluster else [str(location)]
    arguments = [str(PROGRAM), *served, "--bind", "127.0.0.1:0", *more]
    if not any(name.startswith("OMNIGRAPH_SERVER") for name in environment):
        arguments.append("--unauthenticated")
    with log.open("w") as errors:
        process = subprocess.Popen(
            arguments,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, **environment},
        )
        try:
            assert process.stdout is not None
            name, _, address = process.stdout.readline().strip().partition("=")
            assert name == "OMNIGRAPH_LISTEN_ADDR", log.read_text()
            yield Running(process, f"http://{address}", log)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(60)
                except subprocess.TimeoutExpired:
                    process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
