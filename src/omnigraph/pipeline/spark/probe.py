"""The probe: one small job that tells whether executors can do the work, before any is begun.

Owns what is looked at on every executor, and what a person is told to do about it. Executors
import this module to look around, so it needs nothing but the standard library to be imported.
"""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph.pipeline.spark.engine import SparkEngine

# Distributions that tasks import, and the modules by which they are known to be there.
NEEDED: Mapping[str, str] = {
    "pylance": "lance",
    "pyarrow": "pyarrow",
    "numpy": "numpy",
    "msgspec": "msgspec",
    "obstore": "obstore",
    "python-ulid": "ulid",
}
_LOOKS_PER_CORE = 4
_MOST_LOOKS = 256
# A task that ends at once leaves its core to the next: so all of them get one.
_SECONDS = 0.05

_lock = threading.Lock()
_sound: weakref.WeakKeyDictionary[object, set[str]] = weakref.WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class ExecutorLook:
    """What one interpreter on one machine has."""

    host: str
    executable: str
    python: str
    packages: Mapping[str, str | None] = field(default_factory=dict)
    """The versions of what is needed; None where it is missing."""
    storage: str | None = None
    """Why the graph cannot be read there, if it cannot."""


def look(uri: str) -> str:
    """What is here, as JSON; run by a task."""
    import platform
    import socket
    import sys
    import time
    from importlib.metadata import PackageNotFoundError, version
    from importlib.util import find_spec

    def found(name: str, module: str) -> str | None:
        if find_spec(module) is None:
            return None
        try:
            return version(name)
        except PackageNotFoundError:
            return "unknown"

    packages = {name: found(name, module) for name, module in NEEDED.items()}
    storage = None
    if None not in packages.values():
        storage = _storage_problem(uri)
    time.sleep(_SECONDS)
    told = {
        "host": socket.gethostname(),
        "executable": sys.executable,
        "python": platform.python_version(),
        "packages": packages,
        "storage": storage,
    }
    return json.dumps(told, sort_keys=True)


def _storage_problem(uri: str) -> str | None:
    from omnigraph.manifest.store import Manifest
    from omnigraph.storage.objects.location import Location

    try:
        Manifest(Location.parse(uri)).view()
    except Exception as error:  # noqa: BLE001 - whatever it is, a person is told
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return None


# -- in the driver -----------------------------------------------------------------


def require_sound_executors(engine: SparkEngine, uri: str) -> None:
    """Refuse to begin on executors that cannot do the work; asked once for a session and a graph.

    Those of a local master are children of this process, and have what it has.
    """
    from omnigraph.errors import EngineError

    if engine.is_local:
        return
    holder: object = engine.session
    with _lock:
        if uri in _sound.get(holder, ()):
            return
    looks = probe(engine, uri)
    problems = [f"{one.host} ({one.executable}): {said}" for one in looks for said in _wrong(one)]
    if problems:
        said = "\n".join(f"  {problem}" for problem in dict.fromkeys(problems))
        raise EngineError(
            f"executors of {engine.master} cannot do the work; nothing was begun\n{said}",
            details={"master": engine.master, "problems": problems},
        )
    with _lock:
        _sound.setdefault(holder, set()).add(uri)


def probe(engine: SparkEngine, uri: str) -> list[ExecutorLook]:
    """What the executors have that run now, each interpreter once."""
    from pyspark.sql.functions import lit, udf

    from omnigraph.pipeline.spark.errors import failures

    count = min(_LOOKS_PER_CORE * engine.cores, _MOST_LOOKS)
    # Rows go one by one: what carries batches may be what is missing.
    looking = udf(look, "string", useArrow=False)
    frame = engine.session.range(0, count, 1, count).select(looking(lit(uri)).alias("told"))
    try:
        rows = frame.collect()
    except failures() as error:
        raise _no_python(engine, str(error)) from error
    told = sorted({str(row["told"]) for row in rows})
    return [ExecutorLook(**json.loads(text)) for text in told]


def _no_python(engine: SparkEngine, said: str) -> Exception:
    """Workers that did not even start, or are no interpreter of this version."""
    import platform

    from omnigraph.errors import EngineError

    lines = [line.strip() for line in said.splitlines() if line.strip()]
    guilty = ("PYTHON_VERSION_MISMATCH", "Cannot run program", "ModuleNotFoundError")
    reason = next((line for line in lines if any(one in line for one in guilty)), lines[0])
    return EngineError(
        f"executors of {engine.master} cannot run Python {platform.python_version()}, as this"
        f" program does: {reason}\n"
        "install that version on every worker and name it with --conf spark.pyspark.python=PATH,"
        " or ship an environment with --conf spark.archives=environment.tar.gz#environment"
        " --conf spark.pyspark.python=./environment/bin/python",
        details={"master": engine.master, "reason": reason},
    )


def _wrong(found: ExecutorLook) -> list[str]:
    """What is wrong with an executor, and what to do."""
    wanted = wanted_packages()
    missing = [f"{name}=={wanted[name]}" for name, has in found.packages.items() if has is None]
    said = []
    if missing:
        said.append(
            f"not installed: {' '.join(missing)}. Install them there with pip, or ship an"
            " environment (spark.archives)"
        )
    for name, has in found.packages.items():
        if name in ("pylance", "pyarrow") and has not in (None, "unknown", wanted[name]):
            said.append(f"{name} is {has} there and {wanted[name]} here: install the same")
    if found.storage is not None:
        said.append(
            f"cannot read the graph ({found.storage}). Put it where all machines reach it, and give"
            " executors the variables of the object store: --conf spark.executorEnv.AWS_…=…"
        )
    return said


def wanted_packages(names: Sequence[str] = tuple(NEEDED)) -> dict[str, str]:
    """The versions that this process has."""
    from importlib.metadata import version

    return {name: version(name) for name in names}


def as_json(looks: Sequence[ExecutorLook]) -> list[dict[str, Any]]:
    """What was seen, for programs."""
    from dataclasses import asdict

    return [asdict(one) for one in looks]
