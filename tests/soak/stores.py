"""The stores that the soak runs on."""

from __future__ import annotations

import uuid

from tests.s3_server import S3Server
from tests.soak.run import Store


def local() -> Store:
    """A directory on this machine's disk."""
    return Store("local")


def on_s3(server: S3Server) -> Store:
    """A prefix of its own on an S3 server."""
    return Store("s3", f"s3://{server.bucket}/{uuid.uuid4().hex}", server.environment, linger=2.0)
