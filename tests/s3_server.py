"""A real S3-compatible server for the tests: SeaweedFS, on loopback, in a temporary directory."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

WEED = Path(sys.executable).parent / "weed"
ACCESS_KEY = "test-access-key"
SECRET_KEY = "test-secret-key"  # noqa: S105 - of a server that lives for one test run
BUCKET = "graphs"


@dataclass(frozen=True, slots=True)
class S3Server:
    """Where the server listens and how to speak to it."""

    endpoint: str
    bucket: str = BUCKET
    filer: str = ""
    """Where it shows how it keeps what it has."""

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": "us-east-1",
            "AWS_S3_FORCE_PATH_STYLE": "true",
        }

    def uploads(self) -> list[str]:
        """Uploads in several parts that were begun, and neither finished nor given up."""
        asked = f"{self.filer}/buckets/{self.bucket}/.uploads/?limit=1000"
        request = urllib.request.Request(asked, headers={"Accept": "application/json"})  # noqa: S310 - ours
        try:
            with urllib.request.urlopen(request) as answer:  # noqa: S310 - ours
                found = json.load(answer)["Entries"] or []
        except urllib.error.HTTPError as error:
            if error.code == HTTPStatus.NOT_FOUND:
                return []
            raise
        return sorted(entry["FullPath"] for entry in found)


@contextmanager
def running(directory: Path) -> Iterator[S3Server]:
    """A server with one empty bucket, stopped at the end."""
    ports = free_ports(8)
    master, volume, filer, s3 = ports[:4]
    config = directory / "s3.json"
    credentials = {"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}
    identity = {"name": "tests", "credentials": [credentials], "actions": ["Admin"]}
    config.write_text(json.dumps({"identities": [identity]}), encoding="utf-8")
    data = directory / "data"
    data.mkdir()
    log = directory / "weed.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                WEED,
                "server",
                f"-dir={data}",
                "-ip=127.0.0.1",
                "-ip.bind=127.0.0.1",
                f"-master.port={master}",
                f"-master.port.grpc={ports[4]}",
                "-master.telemetry=false",
                "-master.volumeSizeLimitMB=64",
                f"-volume.port={volume}",
                f"-volume.port.grpc={ports[5]}",
                "-volume.max=50",
                "-filer",
                f"-filer.port={filer}",
                f"-filer.port.grpc={ports[6]}",
                f"-filer.localSocket={directory / 'filer.sock'}",
                "-s3",
                f"-s3.port={s3}",
                f"-s3.port.grpc={ports[7]}",
                # Fixed ports, unless switched off: a second server could not start beside this one.
                "-s3.port.iceberg=0",
                "-s3.port.lance=0",
                f"-s3.config={config}",
                f"-s3.localSocket={directory / 's3.sock'}",
            ],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            server = S3Server(f"http://127.0.0.1:{s3}", filer=f"http://127.0.0.1:{filer}")
            _await(server, process, log)
            yield server
        finally:
            # Not asked politely: it would take ten seconds, and nothing of it is needed.
            process.kill()
            process.wait()


def free_ports(count: int) -> list[int]:
    """Ports that are free now."""
    found: list[int] = []
    sockets = [socket.socket() for _ in range(count)]
    for listener in sockets:
        listener.bind(("127.0.0.1", 0))
        found.append(listener.getsockname()[1])
    for listener in sockets:
        listener.close()
    return found


def _await(server: S3Server, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until an object can really be written: the gateway answers before its volumes do."""
    import obstore
    from obstore.exceptions import BaseError
    from obstore.store import S3Store

    store = S3Store(
        server.bucket,
        endpoint=server.endpoint,
        access_key_id=ACCESS_KEY,
        secret_access_key=SECRET_KEY,
        region="us-east-1",
        client_options={"allow_http": True, "timeout": "5s"},
        retry_config={"max_retries": 0},
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        # The bucket comes into being with its first object.
        with suppress(BaseError, OSError):
            obstore.put(store, "ready", b"yes", use_multipart=False)
            obstore.delete(store, "ready")
            return
        time.sleep(0.1)
    tail = log.read_text(encoding="utf-8", errors="replace")[-2000:]
    raise RuntimeError(f"the S3 server did not start:\n{tail}")
