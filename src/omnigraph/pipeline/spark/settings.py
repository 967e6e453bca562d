"""What a user may say about the Spark to run on, and the configuration that follows from it.

Owns reading masters and addresses and the defaults. Plain data: never imports
pyspark, never starts anything.
"""

from __future__ import annotations

import os
import re
import socket
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from omnigraph.errors import BadRequest

DEFAULT_MASTER = "local[*]"
# Without a count, a local master gives up at the first failure of a task.
LOCAL_TASK_ATTEMPTS = 3

_LOCAL = re.compile(r"local(?:\[(?P<threads>[1-9]\d*|\*)(?:,(?P<attempts>[1-9]\d*))?\])?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[[1-9]\d*,[1-9]\d*,[1-9]\d*\]")
_STANDALONE = re.compile(r"spark://(?P<hosts>[^,/:\s]+:\d+(?:,[^,/:\s]+:\d+)*)")
_KUBERNETES = re.compile(r"k8s://\S+")
_LOOPBACK = frozenset({"localhost", "127.0.0.1"})
# The engine says where it runs by `master` and `remote`, which are checked.
_RESERVED = {"spark.master": "master", "spark.remote": "remote"}

# What the pipeline's results depend on: the same on every engine.
_SQL = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
}
_CLASSIC = {
    "spark.app.name": "omnigraph",
    "spark.executorEnv.LANCE_LOG": "error",
    "spark.ui.showConsoleProgress": "false",
}
# On a cluster these belong to whoever runs it.
_LOCAL_ONLY = {
    "spark.driver.memory": "2g",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.ui.enabled": "false",
}
# A machine whose own name does not resolve can still reach its loopback.
_BOUND_TO_LOOPBACK = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """Which Spark: a master, or the address of a Spark Connect server.

    ``conf`` overrides every default. ``start_seconds`` bounds the start,
    waiting for the first executor of a standalone cluster included.
    """

    master: str = DEFAULT_MASTER
    remote: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    start_seconds: float = 300.0

    def __post_init__(self) -> None:
        for key in self.conf:
            if instead := _RESERVED.get(key):
                raise BadRequest(f"{key} cannot be set by conf: say {instead} instead")
            if not key.startswith("spark."):
                raise BadRequest(f"{key!r} is not a setting of Spark: its keys begin with spark.")
        if self.remote is None:
            _check_master(self.master)
        elif self.master != DEFAULT_MASTER:
            raise BadRequest("say either a master or a remote, not both")
        else:
            connect_address(self.remote)


def is_local(master: str) -> bool:
    """Whether tasks run inside this process's own JVM."""
    return _LOCAL.fullmatch(master) is not None


def shares_this_disk(master: str) -> bool:
    """Whether executors of a master see the files of this machine.

    A standalone master on this machine is taken as a cluster of one machine:
    it may have workers elsewhere, which cannot be seen from here. A Connect
    server never is, since ``sc://localhost`` is often the end of a tunnel.
    """
    if is_local(master) or _LOCAL_CLUSTER.fullmatch(master):
        return True
    own = {*_LOOPBACK, socket.gethostname().lower()}
    hosts = {host.lower() for host, _ in standalone_addresses(master)}
    return bool(hosts) and hosts <= own


def standalone_addresses(master: str) -> list[tuple[str, int]]:
    """Host and port of every standalone master in the text; none for other kinds."""
    found = _STANDALONE.fullmatch(master)
    if found is None:
        return []
    pairs = (address.rpartition(":") for address in found["hosts"].split(","))
    return [(host, int(port)) for host, _, port in pairs]


def connect_address(remote: str) -> str:
    """``sc://host:port`` of a Connect address; its parameters may hold a token, so they are cut."""
    try:
        parts = urlsplit(remote)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not remote.startswith("sc://") or not host:
        raise BadRequest("a remote is the address of a Spark Connect server: sc://host:port")
    return f"sc://{host}:{port or 15002}"


def classic_conf(settings: SparkSettings) -> dict[str, str]:
    """The whole configuration of a session that this process drives."""
    conf = {**_SQL, **_CLASSIC}
    local = _LOCAL.fullmatch(settings.master)
    if local is not None:
        conf |= _LOCAL_ONLY
        conf["spark.local.dir"] = tempfile.gettempdir()
        conf["spark.sql.shuffle.partitions"] = str(max(8, 2 * (os.cpu_count() or 1)))
    conf |= loopback_conf(settings.master)
    conf |= settings.conf
    conf["spark.master"] = settings.master if local is None else _retrying(local)
    return conf


def loopback_conf(master: str) -> dict[str, str]:
    """Where a driver listens whose executors are all on this machine."""
    hosts = {host for host, _ in standalone_addresses(master)}
    return _BOUND_TO_LOOPBACK if is_local(master) or (hosts and hosts <= _LOOPBACK) else {}


def connect_conf(settings: SparkSettings) -> dict[str, str]:
    """What a session on a Connect server is told; the rest is the server's."""
    return {**_SQL, **settings.conf}


def _retrying(local: re.Match[str]) -> str:
    return f"local[{local['threads'] or 1},{local['attempts'] or LOCAL_TASK_ATTEMPTS}]"


def _check_master(master: str) -> None:
    known = (_LOCAL, _LOCAL_CLUSTER, _STANDALONE, _KUBERNETES)
    if master != "yarn" and not any(pattern.fullmatch(master) for pattern in known):
        raise BadRequest(
            f"cannot use {master!r} as a master: write local[*], local[N], spark://host:port, "
            "yarn or k8s://…; the address of a Spark Connect server (sc://…) is a remote"
        )
