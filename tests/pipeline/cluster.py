"""A real standalone Spark cluster for the tests: a master and workers on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from omnigraph.pipeline.spark.jvm import find_java
from tests import jvm
from tests.s3_server import free_ports

HOST = "127.0.0.1"
READY_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the master listens, and the processes to be killed by tests."""

    url: str
    master: subprocess.Popen[bytes]
    workers: tuple[subprocess.Popen[bytes], ...]
    logs: Path

    def executors(self) -> list[int]:
        """The process ids of the executors that run now."""
        owners = {worker.pid for worker in self.workers}
        return [
            process.pid
            for process in _processes()
            if process.parent in owners and "CoarseGrainedExecutorBackend" in process.command
        ]


@contextmanager
def standalone_cluster(
    workers: int = 2, *, cores: int = 1, memory: str = "1g"
) -> Iterator[Cluster]:
    """A cluster whose workers have registered; all of its processes are killed at the end."""
    import pyspark

    home = Path(pyspark.__file__).parent
    port, web_port = free_ports(2)
    url = f"spark://{HOST}:{port}"
    with (
        tempfile.TemporaryDirectory(
            prefix="omnigraph-cluster-", ignore_cleanup_errors=True
        ) as directory,
        ExitStack() as running,
    ):
        logs = Path(directory)
        environment = {
            **os.environ,
            "JAVA_HOME": str(find_java().home),
            "JDK_JAVA_OPTIONS": jvm.OPTIONS,
            "SPARK_HOME": str(home),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOCAL_DIRS": directory,
            "SPARK_LOCAL_IP": HOST,
        }

        def start(name: str, main: str, *arguments: str) -> subprocess.Popen[bytes]:
            command = [str(home / "bin" / "spark-class"), main, "--host", HOST, *arguments]
            with (logs / f"{name}.log").open("wb") as log:
                process = subprocess.Popen(
                    command,
                    cwd=directory,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            running.callback(_kill, process)
            return process

        master = start(
            "master",
            "org.apache.spark.deploy.master.Master",
            *("--port", str(port), "--webui-port", str(web_port)),
        )
        started = tuple(
            start(
                f"worker-{number}",
                "org.apache.spark.deploy.worker.Worker",
                *("--cores", str(cores), "--memory", memory, "--webui-port", "0"),
                *("--work-dir", str(logs / f"work-{number}"), url),
            )
            for number in range(workers)
        )
        cluster = Cluster(url, master, started, logs)
        _await_workers(cluster, web_port)
        yield cluster


def _await_workers(cluster: Cluster, web_port: int) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if any(process.poll() is not None for process in (cluster.master, *cluster.workers)):
            break
        if _alive_workers(web_port) == len(cluster.workers):
            return
        time.sleep(0.2)
    tails = (
        path.read_text(encoding="utf-8")[-1500:] for path in sorted(cluster.logs.glob("*.log"))
    )
    raise RuntimeError("the Spark cluster did not start:\n" + "\n".join(tails))


def _alive_workers(web_port: int) -> int:
    with suppress(OSError, ValueError):
        page = urllib.request.urlopen(f"http://{HOST}:{web_port}/json/", timeout=5)
        with page:
            return int(json.load(page)["aliveworkers"])
    return 0


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and what it has started: a killed worker leaves its executors behind."""
    children = [child.pid for child in _processes() if child.parent == process.pid]
    process.kill()
    process.wait()
    for pid in children:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


class _Process(NamedTuple):
    pid: int
    parent: int
    command: str


def _processes() -> list[_Process]:
    """Every process of this machine."""
    listed = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="],  # noqa: S607 - wherever the system has it
        capture_output=True,
        text=True,
        errors="replace",
        check=True,
    )
    rows = (line.split(maxsplit=2) for line in listed.stdout.splitlines())
    return [_Process(int(row[0]), int(row[1]), row[2]) for row in rows if len(row) == 3]
