"""Sessions whose driver is this process: a JVM of its own, on a local master or a cluster.

Owns their start within a time limit and their end. Must never touch a session it
did not start, nor leave a JVM behind.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.errors import OmniGraphError
from omnigraph.pipeline.spark.engine import SparkEngine, require_no_other_session
from omnigraph.pipeline.spark.errors import engine_unavailable
from omnigraph.pipeline.spark.jvm import (
    Gateway,
    GatewayFailed,
    find_java,
    launch,
    log_complaint,
    log_tail,
    new_log_file,
)
from omnigraph.pipeline.spark.pyspark_private import (
    Installed,
    executor_count,
    forget_session,
    install_gateway,
    is_stopped,
    new_conf,
    silence_loggers,
    silence_lost_connection,
)
from omnigraph.pipeline.spark.settings import (
    SparkSettings,
    classic_conf,
    shares_this_disk,
    standalone_addresses,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MASTER_SECONDS = 5.0
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Driver:
    """A started session with its JVM, and the gateway pyspark had before."""

    engine: SparkEngine
    gateway: Gateway
    before: Installed

    @property
    def is_alive(self) -> bool:
        """Whether the session can take work."""
        return self.gateway.is_alive and not is_stopped(self.engine.session)

    @contextmanager
    def at_work(self) -> Iterator[SparkEngine]:
        """The engine for a block; that its JVM ended meanwhile is told in our own words."""
        try:
            yield self.engine
        except OmniGraphError:
            raise
        except Exception as error:
            if not self.gateway.has_ended():
                raise
            raise engine_unavailable(
                "the JVM of Spark ended while it was at work, as it does when the machine has no "
                f"memory left for it (spark.driver.memory); log: {self.engine.log_file}",
                log_file=str(self.engine.log_file),
                log_tail=log_tail(self.gateway.log_file),
            ) from error

    def stop(self) -> None:
        """End the session and its JVM, also when the JVM is gone already."""
        if self.gateway.is_alive:
            self.engine.session.stop()
        else:
            forget_session()
        install_gateway(*self.before)
        self.gateway.stop()

    def end(self) -> None:
        """End the JVM while this process ends: it stops the session in it by itself."""
        self.gateway.stop()


def start(settings: SparkSettings) -> Driver:
    """A new session; whatever goes wrong is one kind of error, which names the log."""
    require_no_other_session()
    silence_loggers()
    _require_master_answers(settings.master)
    java = find_java()
    conf = classic_conf(settings)
    python = _worker_python(settings)
    log_file = new_log_file()
    deadline = time.monotonic() + settings.start_seconds
    with _start_errors(settings, log_file, deadline):
        gateway = launch(
            conf, java, python=python, log_file=log_file, seconds=settings.start_seconds
        )
    before = install_gateway(gateway.connection, gateway.connection.jvm)
    try:
        # The words of an error are asked of the JVM: translated before that is ended.
        with _start_errors(settings, log_file, deadline), _killed_at(deadline, gateway):
            session = _create_session(conf, python)
            if standalone_addresses(settings.master):
                _await_executor(session, deadline)
    except BaseException:
        gateway.stop()
        forget_session()
        install_gateway(*before)
        raise
    engine = SparkEngine(session, conf["spark.master"], log_file=log_file)
    return Driver(engine, gateway, before)


def _require_master_answers(master: str) -> None:
    """Fail at once where Spark would try for minutes."""
    addresses = standalone_addresses(master)
    problems: list[str] = []
    for address in addresses:
        try:
            socket.create_connection(address, timeout=_MASTER_SECONDS).close()
        except OSError as problem:
            problems.append(f"{address[0]}:{address[1]}: {problem.strerror or problem}")
        else:
            return
    if addresses:
        raise engine_unavailable(
            f"no Spark master answers at {master} ({'; '.join(problems)}): "
            "check the address, and that the cluster runs",
            master=master,
        )


def _worker_python(settings: SparkSettings) -> str | None:
    """The interpreter for tasks; None leaves it to the cluster."""
    chosen = settings.conf.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
    # On another machine this interpreter may not exist.
    return chosen or (sys.executable if shares_this_disk(settings.master) else None)


def _create_session(conf: Mapping[str, str], python: str | None) -> SparkSession:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    spark_conf = new_conf()
    for key, value in conf.items():
        spark_conf.set(key, value)
    with _own_interrupt_handler():
        context = SparkContext(conf=spark_conf)
    if python is not None:
        context.pythonExec = python
    silence_lost_connection(context)
    return SparkSession(context)


@contextmanager
def _own_interrupt_handler() -> Iterator[None]:
    """Keep the program's handler, which pyspark replaces by one that talks to the JVM."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _await_executor(session: SparkSession, deadline: float) -> None:
    """Wait for the first executor: without one, a job would wait for ever and say nothing."""
    context = session.sparkContext
    if context.getConf().get("spark.dynamicAllocation.enabled", "false") == "true":
        return
    while not executor_count(context):
        if time.monotonic() > deadline:
            raise GatewayFailed(
                "the master gave it no executor: no worker has enough free cores and memory "
                "(spark.executor.memory, spark.executor.cores, spark.cores.max)"
            )
        time.sleep(_POLL_SECONDS)


@contextmanager
def _killed_at(deadline: float, gateway: Gateway) -> Iterator[None]:
    """End the JVM when it takes too long: the call that waits for it then fails."""
    # Later than whoever watches the deadline and has something better to say.
    timer = threading.Timer(deadline - time.monotonic() + 1, gateway.process.kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def _start_errors(settings: SparkSettings, log_file: Path, deadline: float) -> Iterator[None]:
    from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (GatewayFailed, Py4JError, PySparkException, OSError) as error:
        said = _one_line(error)
        if time.monotonic() > deadline and not isinstance(error, GatewayFailed):
            said = f"it took more than {settings.start_seconds:g} s"
        if not isinstance(error, Py4JJavaError) and (complaint := log_complaint(log_file)):
            said = f"{said}: {complaint}"
        raise engine_unavailable(
            f"Spark did not start with the master {settings.master}: {said} (log: {log_file})",
            master=settings.master,
            reason=said,
            log_file=str(log_file),
            log_tail=log_tail(log_file),
        ) from error


def _one_line(error: Exception) -> str:
    """What happened, without the call that it happened in and the stack of the JVM."""
    text = str(error)
    of_java = re.search(r"^: (.+)$", text, re.MULTILINE)
    return of_java[1] if of_java else text.strip().partition("\n")[0]
