"""Locations: where tables and control objects live, on a local disk or on S3.

Owns the reading of location texts and of the `AWS_*` variables. Must never
show a secret, and never touches the storage itself.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self
from urllib.parse import unquote, urlsplit

from omnigraph.errors import BadRequest, StorageError
from omnigraph.storage.objects.s3_limits import S3Limits

Scheme = Literal["file", "s3"]
MAX_NAME = 255
MAX_PATH = 3_500
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Location:
    """A directory on a local disk, or a prefix in a bucket.

    ``path`` is absolute for a local directory, and ``bucket/prefix`` for S3.
    """

    scheme: Scheme
    path: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``path``, ``file:///path`` or ``s3://bucket/prefix``; anything else is refused."""
        if not text.strip() or "\0" in text:
            raise BadRequest(
                "a location is a path, file:///path or s3://bucket/prefix; it is empty"
            )
        scheme, separator, rest = text.partition("://")
        if not separator:
            return cls("file", _local(_absolute(text)))
        match scheme.lower():
            case "file":
                return cls("file", _local(_file_path(text)))
            case "s3":
                return cls("s3", _usable(_bucket_path(rest, text)))
        raise BadRequest(
            f"cannot use {_shown(text)!r}: {scheme}:// is not supported, "
            "use a path, file:///path or s3://bucket/prefix"
        )

    @property
    def is_local(self) -> bool:
        """Whether this is a directory of this machine."""
        return self.scheme == "file"

    @property
    def uri(self) -> str:
        """What Lance opens: a plain path (no escaping needed) or an ``s3://`` address."""
        return self.path if self.is_local else f"s3://{self.path}"

    @property
    def bucket(self) -> str | None:
        """The bucket, for S3."""
        return None if self.is_local else self.path.partition("/")[0]

    @property
    def prefix(self) -> str:
        """What follows the bucket, for S3; may be empty."""
        return "" if self.is_local else self.path.partition("/")[2]

    @property
    def storage_options(self) -> dict[str, str]:
        """Options for Lance from the environment of now; empty for a local disk."""
        if self.is_local:
            return {}
        return {**s3_options(), **S3Limits.of_environment().lance_options}

    def join(self, *names: str) -> Self:
        """The location below this one; names may contain ``/`` but never climb out."""
        parts = [part for name in names for part in name.split("/") if part]
        if any(part in {".", ".."} or "\0" in part for part in parts):
            raise BadRequest(f"{'/'.join(names)!r} is not a name below {self}")
        return type(self)(self.scheme, "/".join([self.path.rstrip("/"), *parts]))

    def __str__(self) -> str:
        return self.uri


def s3_options() -> dict[str, str]:
    """The `AWS_*` variables in the words of the object-store libraries.

    Keys that are not set are left out, so that the usual chain (profile, web
    identity, instance role) can supply them.
    """
    options: dict[str, str] = {}
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if endpoint:
        options["aws_endpoint"] = _server(endpoint)
        # A server of one's own has no regions; the signature needs one all the same.
        region = region or "us-east-1"
    if region:
        options["aws_region"] = region
    if access_key := os.environ.get("AWS_ACCESS_KEY_ID"):
        options["aws_access_key_id"] = access_key
    if secret := os.environ.get("AWS_SECRET_ACCESS_KEY"):
        options["aws_secret_access_key"] = secret
    if token := os.environ.get("AWS_SESSION_TOKEN"):
        options["aws_session_token"] = token
    if _is_on(os.environ.get("AWS_ALLOW_HTTP")) or (endpoint or "").startswith("http://"):
        options["allow_http"] = "true"
    if _is_on(os.environ.get("AWS_S3_FORCE_PATH_STYLE")):
        options["aws_virtual_hosted_style_request"] = "false"
    return options


def _server(endpoint: str) -> str:
    """The address of a server; the libraries break down over what is none."""
    try:
        parts = urlsplit(endpoint)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname)
        is_address = is_address and (parts.port is None or parts.port > 0) and endpoint.isascii()
    except ValueError:
        is_address = False
    if not is_address or not endpoint.isprintable() or " " in endpoint:
        raise StorageError(
            f"AWS_ENDPOINT_URL_S3 is {endpoint!r:.80}: write the address of a server, "
            "http://host:port or https://host",
            kind="configuration",
        )
    return endpoint


def _is_on(value: str | None) -> bool:
    return value is not None and value.strip().lower() not in {"", "0", "false"}


def _absolute(path: str) -> str:
    # Not resolved: a symbolic link may be moved on purpose while the graph keeps its name.
    return os.path.abspath(path)  # noqa: PTH100 - Path.absolute keeps "..", resolve follows links


def _local(path: str) -> str:
    """A path that a file system can have, with the names of tables and their files below it."""
    longest = max(len(os.fsencode(name)) for name in path.split("/"))
    if longest > MAX_NAME or len(os.fsencode(path)) > MAX_PATH:
        raise BadRequest(
            f"cannot use {path[:60]!r}…: a name in a path has {MAX_NAME} bytes at the most, and a "
            f"path {MAX_PATH:,}"
        )
    return _usable(path)


def _usable(path: str) -> str:
    """A path that Lance can open: all characters stand for themselves, but these it refuses."""
    if _CONTROL.search(path):
        raise BadRequest(
            f"cannot use {path!a}: a location has no control characters, such as a line break"
        )
    return path


def _file_path(text: str) -> str:
    parts = urlsplit(text)
    path = unquote(parts.path)
    if parts.netloc not in {"", "localhost"} or not Path(path).is_absolute():
        raise BadRequest(f"cannot use {text!r}: a file URI has an absolute path, file:///path")
    if parts.query or parts.fragment:
        raise BadRequest(f"cannot use {text!r}: write ? and # in a file URI as %3F and %23")
    return _absolute(path)


def _bucket_path(rest: str, text: str) -> str:
    bucket, *names = rest.split("/")
    if "@" in bucket:
        raise BadRequest("keys do not belong into a location: set AWS_ACCESS_KEY_ID and the others")
    if not bucket:
        raise BadRequest(f"cannot use {text!r}: the bucket is missing, write s3://bucket/prefix")
    names = [name for name in names if name]
    if any(name in {".", ".."} for name in names) or any(mark in rest for mark in "?#"):
        raise BadRequest(f"cannot use {text!r}: ., .., ? and # are not allowed in an S3 location")
    return "/".join([bucket, *names])


def _shown(text: str) -> str:
    """The text without what may be a password."""
    scheme, _, rest = text.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"
